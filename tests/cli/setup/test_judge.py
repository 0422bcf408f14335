"""``reflectd setup claude-code`` asks who shall judge, or ``--judge`` says it: on files and a terminal."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pexpect
import pytest

from daemon import config
from daemon.cli.judging import found
from daemon.cli.setup.judge import CHOICES, SERVERS, USUAL, servers_here
from daemon.keys import TOKEN, load_keys
from harness.machine.sandbox import REPO, Sandbox
from tests.cli.setup.test_setup import a_program, settings_of
from tests.support.hosts.claude_code_settings import Desk
from tests.support.machine.command_line import reflectd, said

SERVER = '# mine\n[openai]  # local\nbase_url = "http://127.0.0.1:11434/v1"\n'
RULES = "the rules (no model, so they miss much; run `reflectd setup claude-code` to choose a judge)"
QUESTION = "? Enter keeps the rules (nothing is learned): "
ANSWERED = {
    "REFLECTD_PROOF_ENABLED": "false",
    "REFLECTD_PLAYBOOK_ENABLED": "false",
    "REFLECTD_MEMORY_ENABLED": "false",
}  # whether it learns is the question of test_learning.py


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.env["PATH"] = "/nowhere"
    return desk


def settings_file(desk: Desk) -> Path:
    return desk.root / "home" / ".config" / "reflectd" / "config.toml"


def in_force(desk: Desk) -> tuple[str, str]:
    """What a daemon reads: (judge.claude_code, judge.provider)."""
    judge = config.load(desk.env, settings_file(desk)).judge
    return judge.claude_code, judge.provider


def a_claude(desk: Desk, script: str = "") -> None:
    program = desk.root / "home" / ".local" / "bin" / "claude"
    desk.write(f"#!/bin/sh\n{script}\n", program)
    program.chmod(0o755)


@contextmanager
def asked(desk: Desk, columns: int = 80, **env: str) -> Iterator[pexpect.spawn[str]]:
    """The command on a terminal, at its question. Afterwards it has ended with exit code 0."""
    child: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        ["-m", "daemon", "setup", "claude-code"],
        env={**desk.env, "PYTHONPATH": str(REPO), **ANSWERED, **env},  # type: ignore[arg-type]
        cwd=str(desk.project),
        dimensions=(24, columns),
        encoding="utf-8",
        timeout=60,
    )
    try:
        child.expect_exact(QUESTION)
        yield child
        child.expect(pexpect.EOF)
        desk.out = child.before or ""
    finally:
        child.close()
    assert child.exitstatus == 0, desk.out


@contextmanager
def a_server(
    body: bytes, port: int = 0, head: bytes = b"HTTP/1.0 200 OK"
) -> Iterator[tuple[int, list[bytes]]]:
    """Something that answers one request each time on this machine: its port, and what it was sent."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", port)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    link, _ = listening.accept()
                    with link:
                        requests.append(link.recv(65_536))
                        if body != b"hangs":
                            link.sendall(head + b"\r\n\r\n" + body)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1], requests
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def models(*names: str) -> bytes:
    return json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()


@pytest.mark.full("a pseudo-terminal is driven")
def test_on_a_terminal_it_asks_while_nobody_was_chosen(desk: Desk) -> None:
    """One line for each judge that can be chosen: what it costs and where the text goes. No line is wider
    than the screen.
    """
    a_claude(desk)
    with asked(desk) as child:
        short = (child.before or "").partition("Who shall judge")[2].replace("\r", "").splitlines()
        numbered = [line[:25] for line in short if line[:3].strip().isdecimal()]
        assert numbered == ["  1  your own Claude Code", "  2  the rules, without a"]
        child.send("3\r")
        child.expect_exact("Type a number from 1 to 2")
        child.expect_exact(QUESTION)
        shown = " ".join(" ".join(short).split())
        for words in (
            USUAL,
            "takes from the limits of your plan",
            "nothing leaves the machine",
            "not set up: openai, anthropic",
        ):
            assert words in shown, words
        assert [line for line in short if len(line) > 80] == []
        assert not settings_file(desk).exists()
        child.send("2\r")
    assert in_force(desk) == ("offline", "auto")
    assert "judge:  the rules" in desk.out


@pytest.mark.full("a pseudo-terminal is driven")
def test_enter_keeps_what_is_in_force(desk: Desk) -> None:
    """The plugin is set up, and no setting is written."""
    a_claude(desk)
    with asked(desk) as child:
        child.send("\r")
    assert " ".join(RULES.split()) in " ".join(desk.out.split())
    assert desk.file.exists()
    assert not settings_file(desk).exists()


def test_a_model_server_on_its_usual_port_is_found(desk: Desk) -> None:
    """It gets a GET of its list of models and nothing else; the first model that is none for embeddings is
    taken. `--judge openai` then needs no settings; opencode does not ask it.
    """
    for port, name in SERVERS.items():
        with suppress(OSError), a_server(models("nomic-embed-text", "qwen3:8b"), port) as (_, requests):
            desk.env["OPENAI_API_KEY"] = ""
            assert desk("--judge", "openai") == 0
            assert f"asks qwen3:8b at 127.0.0.1:{port}, this machine" in " ".join(desk.out.split())
            assert f'openai.base_url = "http://127.0.0.1:{port}/v1"' in " ".join(desk.out.split()), name
            assert "on this machine: at most 500,000 tokens a day" in " ".join(desk.out.split())
            assert requests  # another test of this machine may look at the same port
            for request in requests:
                assert request.startswith(b"GET /v1/models HTTP/1.1\r\n")
                assert request.endswith(b"\r\n\r\n")
            break
    settings = config.load({}, settings_file(desk))
    assert (settings.openai.model, settings.judge.claude_code) == ("qwen3:8b", "openai")
    asks = found(settings, desk.env, by_host=True)
    assert asks["claude-code"].asked == ("openai",)
    assert asks["opencode"].asked == ("host", "offline")


def test_the_address_of_the_judge_of_before_is_no_fallback_of_opencode(desk: Desk) -> None:
    """A server that was chosen for Claude Code goes with that choice; one that opencode may ask stays."""
    desk.write(
        "[openai]\nbase_url = 'http://127.0.0.1:9/v1'\n[judge]\nclaude_code = 'openai'\n", settings_file(desk)
    )
    assert desk("--judge", "offline") == 0
    settings = config.load({}, settings_file(desk))
    assert settings.openai.base_url == ""
    assert found(settings, desk.env, by_host=True)["opencode"].asked == ("host", "offline")
    both = (
        "[openai]\nbase_url = 'http://127.0.0.1:9/v1'\n[judge]\nprovider = 'openai'\nclaude_code = 'openai'\n"
    )
    desk.write(both, settings_file(desk))
    assert desk("--judge", "offline") == 0
    assert config.load({}, settings_file(desk)).openai.base_url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"hangs",
        b"[]",
        b'{"data": 3}',
        b'{"data": [{"id": "\\u0007"}]}',
        b"[" * 100_000,
        models("embed-x", "\u202eevil", "m" * 10_000),
    ],
)
def test_what_is_no_model_server_is_not_offered(body: bytes) -> None:
    """Another program on such a port, whatever it answers, holds setup up for less than a second or two."""
    began = time.monotonic()
    with a_server(body) as (port, _):
        assert servers_here({port: "x"}) == []
    assert time.monotonic() - began < 20
    with a_server(models("m"), head=b"HTTP/1.0 302 Found\r\nLocation: http://example.org/") as (port, _):
        assert servers_here({port: "x"}) == []


def test_the_flag_alone_chooses_the_judge_and_nothing_else(box: Sandbox) -> None:
    """No agent is connected by it."""
    env = a_program(box, "claude")
    said(reflectd(box, "setup", "--judge", "claude-cli", **env), 0, "judge:  your own Claude Code")
    found = json.loads(reflectd(box, "setup", "--judge", "claude-cli", "--json", **env).stdout)
    assert (found["agents"], found["judge"]["asked"], found["judge"]["changed"]) == (
        [],
        ["claude-cli"],
        False,
    )
    assert settings_of(box) == {"opencode": False, "claude-code": False}


def test_a_key_or_an_address_of_the_persons_own_is_kept_from_other_servers(desk: Desk) -> None:
    """With one of them no server is looked for."""
    desk.write(SERVER, settings_file(desk))
    assert desk("--judge", "openai") == 0
    assert in_force(desk) == ("openai", "auto")
    assert config.load({}, settings_file(desk)).openai.base_url == "http://127.0.0.1:11434/v1"


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
    assert "`reflectd config undo`" in desk.out
    assert "at most 500,000 tokens a day" in desk.out
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
    """Exit code 2, and nothing is written; a file that the daemon can read is enough to set up the plugin."""
    desk.write(text, settings_file(desk))
    before = desk.tree()
    assert desk("--judge", "offline") == 2
    assert str(settings_file(desk)) in desk.err
    assert desk.tree() == before
    valid = "act" in text
    assert desk() == (0 if valid else 2)
    assert desk.file.exists() is valid
    assert settings_file(desk).read_text() == text


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
    assert "judge:  the rules" in desk.out
    del desk.env["REFLECTD_JUDGE_CLAUDE_CODE"]
    assert desk() == 0
    assert "service does not see it and needs anthropic.key_file" in desk.out
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
