"""``reflectd setup claude-code`` asks who shall judge, or ``--judge`` says it: on files and a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from daemon import config
from daemon.cli.setup.judge import CHOICES, USUAL
from daemon.keys import TOKEN, load_keys
from harness.machine.sandbox import REPO
from tests.support.hosts.claude_code_settings import Desk

SERVER = '# mine\n[openai]  # local\nbase_url = "http://127.0.0.1:11434/v1"\n'
RULES = "the rules (no model, so they miss much; run `reflectd setup claude-code` to choose a judge)"
QUESTION = "Enter keeps what is in force: "
ANSWERED = {
    "REFLECTD_PLAYBOOK_ENABLED": "false",
    "REFLECTD_MEMORY_ENABLED": "false",
}  # whether it learns is the question of test_learning.py


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    found = Desk(tmp_path, capsys)
    monkeypatch.chdir(found.project)
    found.env["PATH"] = "/nowhere"
    return found


def settings_file(desk: Desk) -> Path:
    return desk.root / "home" / ".config" / "reflectd" / "config.toml"


def in_force(desk: Desk) -> tuple[str, str]:
    """What a daemon reads: (judge.claude_code, judge.provider)."""
    judge = config.load(desk.env, settings_file(desk)).judge
    return judge.claude_code, judge.provider


def a_claude(desk: Desk) -> None:
    program = desk.root / "home" / ".local" / "bin" / "claude"
    desk.write("#!/bin/sh\n", program)
    program.chmod(0o755)


@contextmanager
def asked(desk: Desk, columns: int = 400, **env: str) -> Iterator[pexpect.spawn[str]]:
    """The command on a terminal, at its question. Afterwards it has ended with exit code 0."""
    child: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        ["-m", "daemon", "setup", "claude-code"],
        env={**desk.env, "PYTHONPATH": str(REPO), **ANSWERED, **env},  # type: ignore[arg-type]
        cwd=str(desk.project),
        dimensions=(60, columns),
        encoding="utf-8",
        timeout=60,
    )
    try:
        child.expect_exact("Add /reflect? [Y/n] ")
        child.send("n\r")
        child.expect_exact(QUESTION)
        yield child
        child.expect(pexpect.EOF)
        desk.out = child.before or ""
    finally:
        child.close()
    assert child.exitstatus == 0, desk.out


@pytest.mark.full("a pseudo-terminal is driven")
def test_on_a_terminal_it_asks(desk: Desk) -> None:
    """What each choice costs and where the text goes is said before; one that is not set up is explained and
    asked again; the answer is in the settings, and other hosts keep their judge.
    """
    with asked(desk) as child:
        said = " ".join((child.before or "").split())
        for words in (
            "uses up the limits of your Claude plan",
            USUAL,
            "is sent to Anthropic",
            "a service reads only the file",
            "nothing leaves the machine",
            "claims only what it can show",
            "make eval-judge",
            "In force now: the rules",
        ):
            assert words in said, words
        for answer, words in (
            ("1", "install it, or set claude_cli.path"),
            ("2", "set ANTHROPIC_API_KEY or anthropic.key_file"),
            ("3", 'base_url = "http://127.0.0.1:11434/v1"'),
            ("5", "Type one of the four numbers"),
        ):
            child.send(f"{answer}\r")
            child.expect_exact(QUESTION)
            assert words in (child.before or "")
        assert not settings_file(desk).exists()
        child.send("4\r")
    assert '+claude_code = "offline"' in desk.out
    assert "`reflectd restart`" in desk.out
    assert in_force(desk) == ("offline", "auto")


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.full("a pseudo-terminal is driven")
def test_the_question_fits_the_screen(desk: Desk, columns: int) -> None:
    """No line of the choices, nor of what one of them lacks, is wider than the terminal."""
    with asked(desk, columns) as child:
        shown = (child.before or "").partition("Who shall judge")[2]
        child.send("1\r")
        child.expect_exact(QUESTION)
        shown += child.before or ""
        child.send("\r")
    lines = [line for line in shown.replace("\r", "").split("\n") if len(line) > 60]
    assert len(lines) > 10
    assert [line for line in lines if len(line) > columns] == []


@pytest.mark.full("a pseudo-terminal is driven")
def test_an_address_on_this_machine_is_said_to_be_one(desk: Desk) -> None:
    """Where the text of a session would go is the address that is set; nothing secret of it is shown."""
    desk.write(SERVER, settings_file(desk))
    env = {"REFLECTD_ANTHROPIC_BASE_URL": "https://me:hidden@judge.example.org/v1"}
    with asked(desk, **env) as child:
        said = " ".join((child.before or "").split())
        assert "Now that would be 127.0.0.1:11434, this machine." in said
        assert "is sent to judge.example.org." in said
        assert "hidden" not in said
        child.send("3\r")
    assert in_force(desk) == ("openai", "auto")


@pytest.mark.parametrize(("key", "sentence"), [("\x03", True), ("\x04", True), ("\r", False)])
@pytest.mark.full("a pseudo-terminal is driven")
def test_no_answer_changes_nothing(desk: Desk, key: str, sentence: bool) -> None:
    """Ctrl-C, the end of input and Enter: the plugin is set up, and who judges is what it was."""
    with asked(desk) as child:
        child.send(key)
    assert ("The plugin is set up. Who judges was not changed." in desk.out) is sentence
    assert RULES in desk.out
    assert desk.file.exists()
    assert not settings_file(desk).exists()


def test_without_a_terminal_nothing_is_asked_or_changed(desk: Desk) -> None:
    """A script is told who judges; so is one that wants JSON."""
    assert desk() == 0
    assert f"  judge:  {RULES}\n" in desk.out
    assert "session's own model" not in desk.out
    found = desk.json()["judge"]
    assert (found["asked"], found["setting"], found["changed"]) == (["offline"], "judge.provider", False)
    assert not settings_file(desk).exists()


def test_a_choice_is_written_and_can_be_undone(desk: Desk) -> None:
    """One line is added, and every other byte stays; the backup is what was there; twice is once."""
    a_claude(desk)
    desk.write(SERVER, settings_file(desk))
    done = desk.json("--judge", "claude-cli")["judge"]
    text = settings_file(desk).read_text()
    assert text == f'{SERVER}\n[judge]\nclaude_code = "claude-cli"\n'
    assert '+claude_code = "claude-cli"' in done["diff"]
    assert (done["asked"], done["setting"], done["chosen"]) == (
        ["claude-cli"],
        "judge.claude_code",
        "claude-cli",
    )
    assert Path(done["backup"]).read_text() == SERVER
    again = desk.json("--judge", "claude-cli")["judge"]
    assert (again["changed"], again["backup"], again["diff"]) == (False, None, "")
    assert desk("--judge", "openai") == 0
    assert settings_file(desk).read_text() == text.replace("claude-cli", "openai")
    assert "copy it back to undo" in desk.out
    assert "at most 2.00 USD a day" in desk.out
    assert in_force(desk) == ("openai", "auto")
    assert desk("--remove") == 0
    assert in_force(desk) == ("openai", "auto")


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("claude-cli", "claude_cli.path"),
        ("anthropic", "ANTHROPIC_API_KEY or anthropic.key_file"),
        ("openai", "base_url"),
    ],
)
def test_what_is_not_set_up_is_refused_before_anything_is_written(
    desk: Desk, choice: str, words: str
) -> None:
    """Exit code 2 with what to do; neither the plugin nor the judge is changed."""
    before = desk.tree()
    assert desk("--judge", choice) == 2
    assert words in desk.err
    assert desk.tree() == before


@pytest.mark.shows("I43")
@pytest.mark.parametrize("text", ['judge = {mode = "act"}\n', "[judge]\nmode = 7\n", "[judge\n"])
def test_a_file_that_cannot_be_edited_stays(desk: Desk, text: str) -> None:
    """Exit code 2, and nothing is written; without a choice the plugin is set up all the same."""
    desk.write(text, settings_file(desk))
    before = desk.tree()
    assert desk("--judge", "offline") == 2
    assert str(settings_file(desk)) in desk.err
    assert desk.tree() == before
    assert desk() == 0
    assert desk.file.exists()
    assert settings_file(desk).read_text() == text
    assert ("error" in desk.json()["judge"]) is ("act" not in text)


def test_a_dry_run_and_a_removal_choose_nothing(desk: Desk) -> None:
    """The diff of both files is shown; a judge is not chosen while the plugin is removed."""
    before = desk.tree()
    assert desk("--judge", "offline", "--dry-run") == 0
    assert '+claude_code = "offline"' in desk.out
    assert "reflectd@reflectd" in desk.out
    assert desk.tree() == before
    assert desk("--judge", "offline", "--remove") == 2
    assert "--remove" in desk.err


def test_what_counts_more_than_the_file_is_said(desk: Desk) -> None:
    """A variable that overrides the file, and a key that a service would not see. The key is not shown."""
    desk.env |= {"ANTHROPIC_API_KEY": "sk-ant-" + "k" * 40, "REFLECTD_JUDGE_CLAUDE_CODE": "offline"}
    assert desk("--judge", "anthropic") == 0
    assert "REFLECTD_JUDGE_CLAUDE_CODE in your environment counts more" in desk.out
    assert "service does not see it and needs anthropic.key_file" in desk.out
    assert "judge:  the rules" in desk.out
    del desk.env["REFLECTD_JUDGE_CLAUDE_CODE"]
    assert in_force(desk) == ("anthropic", "auto")
    assert "kkkk" not in desk.out + desk.err


def test_a_key_of_the_environment_is_not_sent_unasked(desk: Desk) -> None:
    """A daemon that a host starts does not take it for `auto`: nobody chose where it goes."""
    desk.env["OPENAI_API_KEY"] = "k"
    assert desk() == 0
    assert RULES in desk.out


@pytest.mark.parametrize(
    ("address", "goes"), [("", "https://api.anthropic.com"), ("https://gw.test/", "https://gw.test")]
)
def test_a_choice_records_the_variable_and_its_address(desk: Desk, address: str, goes: str) -> None:
    """That is what a daemon uses which a host starts, whatever the host's environment says then."""
    desk.env |= {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": address}
    assert desk("--judge", "anthropic") == 0
    assert f"goes to {goes};" in desk.out
    settings = config.load({}, settings_file(desk))
    assert (settings.anthropic.key_env, settings.anthropic.base_url) == ("ANTHROPIC_API_KEY", goes)
    keys = load_keys(
        {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "https://x.test"}, settings, by_host=True
    )
    assert keys.anthropic[:2] == ("k", goes)
    desk.env["ANTHROPIC_BASE_URL"] = "https://moved.test"
    assert desk("--judge", "anthropic") == 0
    assert config.load({}, settings_file(desk)).anthropic.base_url == "https://moved.test"


def test_a_gateway_of_the_persons_own_stays(desk: Desk) -> None:
    """Who named another variable and an address keeps both, whatever else the shell holds."""
    desk.write("[anthropic]\nkey_env = 'GW_KEY'\nbase_url = 'https://gw.test'\n", settings_file(desk))
    desk.env |= {"ANTHROPIC_API_KEY": "k", "GW_KEY": "g"}
    assert desk("--judge", "anthropic") == 0
    kept = config.load({}, settings_file(desk)).anthropic
    assert (kept.key_env, kept.base_url) == ("GW_KEY", "https://gw.test")


def test_a_server_that_needs_no_key_gets_none(desk: Desk) -> None:
    """With an address of the person's own, a key that happens to be there is not recorded for it."""
    desk.write(SERVER, settings_file(desk))
    desk.env["OPENAI_API_KEY"] = "k"
    assert desk("--judge", "openai") == 0
    settings = config.load({}, settings_file(desk))
    assert (settings.openai.key_env, settings.openai.base_url) == ("", "http://127.0.0.1:11434/v1")


def test_the_figure_is_that_of_the_page_on_cost() -> None:
    """How much a judged turn takes is measured in one place; the choices are those of the setting."""
    assert USUAL in " ".join((REPO / "docs" / "cost.md").read_text("utf-8").replace("**", "").split())
    assert set(CHOICES) == set(config.SETTINGS["judge.claude_code"].choices) - {""}


def test_a_login_that_no_hook_has_is_said(desk: Desk) -> None:
    """The only login is a token in this shell's variable: each run says the way, until it is taken. A login
    that Claude Code stored is enough.
    """
    a_claude(desk)
    desk.env[TOKEN] = "sk-ant-oat01-" + "k" * 40
    for argv in (("--judge", "claude-cli"), ()):
        assert desk(*argv) == 0
        assert "set claude_cli.token_file" in desk.out
        assert "kkkk" not in desk.out + desk.err
    for file, env in (
        (desk.file.with_name(".credentials.json"), {}),
        (desk.root / "token", {"REFLECTD_CLAUDE_CLI_TOKEN_FILE": str(desk.root / "token")}),
    ):
        desk.write("{}", file)
        desk.env |= env
        assert desk() == 0
        assert "token_file" not in desk.out
        file.unlink()
        desk.env = {k: v for k, v in desk.env.items() if k not in env}
    del desk.env[TOKEN]
    assert desk() == 0
    assert "token_file" not in desk.out
