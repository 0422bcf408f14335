"""``reflectd setup`` asks first, and in one sentence, whether it may learn; a script says it with a flag."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon import config
from daemon.learning.playbook.questions import CURATOR_TOKENS, REFLECTOR_TOKENS
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox
from tests.cli.setup.test_setup import CONNECT, LEARN, a_program, asked, settings_file, settings_of
from tests.support.machine.command_line import reflectd, said

AUTO = {"REFLECTD_JUDGE_PROVIDER": "auto"}
MIND = "# mine\n[judge]  # as I like it\nmode = 'observe'\n"


def answer(box: Sandbox) -> bool | None:
    """What the person's file says; None where it says nothing."""
    found = config.load({"HOME": str(box.home)}, settings_file(box))
    assert ("playbook.enabled" in found.sources) == ("memory.enabled" in found.sources), "one answer for both"
    assert found.playbook.enabled == found.memory.enabled
    return found.playbook.enabled if "playbook.enabled" in found.sources else None


def as_json(box: Sandbox, *args: str) -> dict[str, Any]:
    done = reflectd(box, "setup", *args, "--json", **a_program(box, "opencode", "claude"))
    assert done.returncode == 0, done
    found: dict[str, Any] = json.loads(done.stdout)["learning"]
    return found


@pytest.mark.shows("LEARN-11")
@pytest.mark.full("a pseudo-terminal is driven")
def test_it_asks_first_and_once_in_one_sentence(box: Sandbox) -> None:
    """The sentence says what it does, what it costs at most and how it is undone, in three lines of 80
    columns. A yes is two lines in the settings; a second run does not ask.
    """
    settings_file(box).parent.mkdir(parents=True)
    settings_file(box).write_text(MIND)
    with asked(box, a_program(box, "opencode") | AUTO, columns=80) as child:
        child.expect_exact(LEARN)
        shown = str(child.before).replace("\r", "")
        sentence = shown.partition("May reflectd learn?")[2]
        assert len(sentence.strip().splitlines()) == 3
        for words in ("for at most 50 % of what judging costs", "`reflectd learned`"):
            assert words in " ".join(sentence.split())
        child.send("maybe\r")
        child.expect_exact("Type y or n.")
        child.expect_exact(LEARN)
        assert [line for line in shown.split("\n") if len(line) > 80] == []
        child.send("y\r")
        child.expect_exact(CONNECT)
        assert answer(box) is None, "nothing is written before the last answer"
        child.send("\r")
        child.expect_exact("learns: from judged sessions, for at most 50 %")
        child.expect_exact("Next: restart opencode.")
    assert answer(box) is True
    assert settings_file(box).read_text().startswith(MIND.partition("\n")[0])
    assert settings_of(box)["opencode"]
    with asked(box, a_program(box, "opencode")) as child:
        child.expect_exact("nothing to do")
        assert LEARN not in str(child.before)


@pytest.mark.shows("LEARN-11")
@pytest.mark.full("a pseudo-terminal is driven")
def test_after_an_upgrade_it_stays_off_until_it_was_asked_once(box: Sandbox) -> None:
    """Agents that are connected and settings without an answer: the next `setup` asks, and Enter is a no.
    `doctor` says it as long as it is so.
    """
    for host in ("opencode", "claude-code"):
        said(reflectd(box, "setup", host, **a_program(box, "opencode", "claude")), 0, "nobody was asked yet")
    assert answer(box) is None
    with Daemon(box) as daemon:
        assert daemon.status()["features"] == {}
        asks = "nothing, and nobody was asked yet: `reflectd setup` says what it costs"
        assert asks in " ".join(reflectd(box, "doctor").stdout.split())
        with asked(box, a_program(box, "opencode")) as child:
            child.expect_exact(LEARN)
            child.send("\r")
            child.expect_exact("learns: nothing (playbook.enabled, memory.enabled)")
            child.expect_exact("Next: `reflectd restart`.")
    assert answer(box) is False
    assert "nobody was asked" not in reflectd(box, "doctor").stdout


@pytest.mark.parametrize("key", ["\x03", "\x04"])
@pytest.mark.full("a pseudo-terminal is driven")
def test_no_answer_changes_nothing_and_is_asked_again(box: Sandbox, key: str) -> None:
    """Ctrl-C and the end of input, at any question: exit code 1."""
    for before in ((), (LEARN,)):
        with asked(box, a_program(box, "opencode"), code=1) as child:
            for question in before:
                child.expect_exact(question)
                child.send("y\r")
            child.expect_exact(CONNECT if before else LEARN)
            child.send(key)
            child.expect_exact("Nothing was changed.")
    assert not settings_file(box).exists()
    assert settings_of(box) == {"opencode": False, "claude-code": False}


@pytest.mark.shows("LEARN-11")
def test_a_script_says_it_with_a_flag(box: Sandbox) -> None:
    """Nothing is asked or decided without a terminal or for `--json`. The flag alone changes that setting
    and nothing else; a dry run writes nothing; what counts more than the file is said.
    """
    env = a_program(box, "opencode", "claude") | AUTO
    said(reflectd(box, "setup", "opencode", **env), 0, "nobody was asked yet")
    assert as_json(box, "opencode") == {
        "enabled": False, "lessons": False, "answered": False, "changed": False,
        "file": str(settings_file(box)), "diff": "", "backup": None, "warnings": [],
    }  # fmt: skip
    said(reflectd(box, "setup", "--learning", "on", "--dry-run", **env), 0, "+enabled = true")
    assert answer(box) is None
    said(
        reflectd(box, "setup", "--learning", "on", **env), 0, "learns: from judged sessions", "next start on"
    )
    assert answer(box) is True
    assert settings_of(box) == {"opencode": True, "claude-code": False}
    found = as_json(box, "--learning", "off")
    assert (found["enabled"], found["answered"], found["changed"]) == (False, True, True)
    assert Path(found["backup"]).read_text() == "[playbook]\nenabled = true\n\n[memory]\nenabled = true\n"
    assert as_json(box, "--yes", "--learning", "on")["enabled"] is True
    assert settings_of(box) == {"opencode": True, "claude-code": True}
    more = reflectd(box, "setup", "--learning", "on", REFLECTD_PLAYBOOK_ENABLED="false", **env)
    said(more, 0, "REFLECTD_PLAYBOOK_ENABLED in your environment counts more than playbook.enabled = true")
    for wrong in (["opencode", "--remove"], ["claude-code", "--undo"]):
        said(reflectd(box, "setup", *wrong, "--learning", "on", **env), 2, "--learning")
    said(reflectd(box, "setup", "--learning", "maybe", **env), 2, "invalid choice")


def test_a_yes_with_no_model_to_learn_from_is_said(box: Sandbox) -> None:
    """Whoever lets it learn and keeps the rules as judge reads that nothing will come of it."""
    words, env = "nothing is learned by itself from sessions of", a_program(box, "claude")
    said(reflectd(box, "setup", "claude-code", "--learning", "on", **env), 0, f"{words} Claude Code")
    assert words not in said(reflectd(box, "setup", "claude-code", "--learning", "off", **env), 0)
    said(reflectd(box, "setup", "--learning", "on", **env), 0, "learns: nothing by itself: no agent")
    told = " ".join(reflectd(box, "doctor", **env).stdout.split())
    assert "learning nothing by itself: no agent that is connected has a model that judges" in told


def test_settings_with_a_mistake_stay_as_they_are(box: Sandbox) -> None:
    """It is said, and nothing is written, but what was connected can be disconnected."""
    settings_file(box).parent.mkdir(parents=True)
    settings_file(box).write_text("[judge]\nmode = 'act")
    for more in ([], ["--yes"], ["--learning", "on"]):
        said(reflectd(box, "setup", "opencode", *more), 2, "not valid TOML")
    settings_file(box).unlink()
    said(reflectd(box, "setup", "opencode", REFLECTD_JUDGE_PROVIDER="wrong"), 2, "judge.provider")
    assert settings_of(box)["opencode"] is False
    said(reflectd(box, "setup", "opencode"), 0)
    settings_file(box).write_text("[judge]\nmode = 'act")
    said(reflectd(box, "setup", "opencode", "--undo"), 0)
    assert settings_of(box)["opencode"] is False
    assert settings_file(box).read_text() == "[judge]\nmode = 'act"


def test_an_answer_about_one_of_the_two_is_an_answer(box: Sandbox) -> None:
    """Who decided about points is not asked about lessons, which stay off; what is off is said."""
    settings_file(box).parent.mkdir(parents=True)
    for points, words in (("false", "learns: nothing (playbook.enabled"), ("true", "; no lessons (memory.e")):
        settings_file(box).write_text(f"[playbook]\nenabled = {points}\n")
        text = said(reflectd(box, "setup", "opencode", **a_program(box, "opencode"), **AUTO), 0, words)
        assert "nobody was asked" not in text


def test_the_figures_are_those_of_the_page_on_cost() -> None:
    """The most that a look back asks."""
    page = " ".join((REPO / "docs" / "cost.md").read_text("utf-8").split())
    assert f"at most {REFLECTOR_TOKENS:,} and {CURATOR_TOKENS:,} tokens" in page
