"""``reflectd setup`` says what learning costs and asks; ``--learning`` says it in a script: real commands,
and a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest

from daemon import config
from daemon.cli.setup.learning import FAILED, USUAL
from daemon.learning.playbook.project_playbook import ACE
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox
from tests.cli.setup.test_setup import a_program, settings_of
from tests.support.machine.command_line import environment, reflectd, said

QUESTION = "Learn? [y/N; Enter is no, and you are not asked again] "
ASKED = "Shall reflectd learn from your sessions?"
MIND = "# mine\n[judge]  # as I like it\nmode = 'observe'\n"


def settings_file(box: Sandbox) -> Path:
    return box.home / ".config" / "reflectd" / "config.toml"


def answer(box: Sandbox) -> bool | None:
    """What the person's file says; None where it says nothing."""
    found = config.load({"HOME": str(box.home)}, settings_file(box))
    assert ("playbook.enabled" in found.sources) == ("memory.enabled" in found.sources), "one answer for both"
    assert found.playbook.enabled == found.memory.enabled
    return found.playbook.enabled if "playbook.enabled" in found.sources else None


class Screen:
    """What a terminal showed."""

    text = ""


@contextmanager
def at_a_terminal(
    box: Sandbox, *args: str, columns: int = 300
) -> Iterator[tuple[pexpect.spawn[str], Screen]]:
    """The command on a terminal; afterwards it has ended with exit code 0."""
    screen = Screen()
    child: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        ["-m", "daemon", "setup", *args],
        env=environment(box, TERM="dumb", **a_program(box, "opencode", "claude")),  # type: ignore[arg-type]
        cwd=str(box.project),
        dimensions=(60, columns),
        encoding="utf-8",
        timeout=60,
    )
    try:
        yield child, screen
        child.expect(pexpect.EOF)
        screen.text = str(child.before)
    finally:
        child.close()
    assert child.exitstatus == 0, child.before


def as_json(box: Sandbox, *args: str) -> dict[str, Any]:
    done = reflectd(box, "setup", *args, "--json", **a_program(box, "opencode", "claude"))
    assert done.returncode == 0, done
    found: dict[str, Any] = json.loads(done.stdout)["learning"]
    return found


@pytest.mark.shows("LEARN-11")
@pytest.mark.parametrize("host", ["opencode", "claude-code"])
@pytest.mark.full("a pseudo-terminal is driven")
def test_it_says_what_it_costs_and_asks_once(box: Sandbox, host: str) -> None:
    """Before the answer: cost, where the text goes, what is written. A yes is one line in the settings; a
    second run does not ask.
    """
    settings_file(box).parent.mkdir(parents=True)
    settings_file(box).write_text(MIND)
    with at_a_terminal(box, host) as (child, screen):
        if host == "claude-code":
            child.expect_exact("Add /reflect?")
            child.send("n\r")
            child.expect_exact("Enter keeps what is in force: ")
            child.send("4\r")
        child.expect_exact(QUESTION)
        told = " ".join(str(child.before).split())
        for words in (
            ASKED, USUAL, FAILED, "a lesson from each task that ended badly",
            "at most 50 % of what judging cost",
            "Where only the rules judge it learns nothing",
            "To the provider that judges, with known secrets taken out", "opencode: ",
            "for seven days at most",
            ".reflection/playbook.json, and nothing else: no CLAUDE.md and no AGENTS.md",
        ):  # fmt: skip
            assert words in told, words
        assert answer(box) is None
        child.send("maybe\r")
        child.expect_exact("Type y or n.")
        child.expect_exact(QUESTION)
        child.send("y\r")
    assert "learns: from judged sessions, for at most 50 %" in screen.text
    assert "`reflectd restart`" in screen.text
    assert answer(box) is True
    assert settings_file(box).read_text().startswith(MIND.partition("\n")[0])
    assert settings_of(box)[host]
    with at_a_terminal(box, host) as (child, screen):
        if host == "claude-code":
            child.expect_exact("Add /reflect?")
            child.send("n\r")
            child.expect_exact("Enter keeps what is in force: ")
            child.send("\r")
    assert ASKED not in screen.text


@pytest.mark.shows("LEARN-11")
@pytest.mark.full("a pseudo-terminal is driven")
def test_after_an_upgrade_it_stays_off_until_it_was_asked_once(box: Sandbox) -> None:
    """Agents that are connected and settings without an answer: the next `setup` asks, and a no is an answer.
    `status` says it once, `doctor` as long as it is so.
    """
    for host in ("opencode", "claude-code"):
        said(reflectd(box, "setup", host, **a_program(box, "opencode", "claude")), 0, "nobody was asked yet")
    assert answer(box) is None
    assert "nobody was asked" not in said(reflectd(box, "status"), 3), "nothing ran here before"
    with Daemon(box) as daemon:
        assert daemon.status()["features"] == {}
        asks = "nothing, and nobody was asked yet: `reflectd setup` says what it costs"
        assert "nobody was asked" not in reflectd(box, "status", "--json").stdout
        said(reflectd(box, "status"), 0, asks)
        assert "nobody was asked" not in said(reflectd(box, "status"), 0)
        for _ in range(2):
            assert asks in " ".join(reflectd(box, "doctor").stdout.split())
    with at_a_terminal(box) as (child, screen):
        child.expect_exact("nothing to do")
        child.expect_exact(ASKED)
        child.expect_exact(QUESTION)
        child.send("\r")
    assert "learns: nothing (playbook.enabled, memory.enabled)" in screen.text
    assert answer(box) is False
    assert "nobody was asked" not in reflectd(box, "doctor").stdout
    with at_a_terminal(box) as (child, screen):
        pass
    assert ASKED not in screen.text


@pytest.mark.parametrize("key", ["\x03", "\x04"])
@pytest.mark.full("a pseudo-terminal is driven")
def test_no_answer_leaves_it_off_and_asks_again(box: Sandbox, key: str) -> None:
    """Ctrl-C and the end of input: the plugin is set up, nothing is written, the next run asks."""
    for _ in range(2):
        with at_a_terminal(box, "opencode") as (child, screen):
            child.expect_exact(QUESTION)
            child.send(key)
        assert "That is no answer: it stays off" in screen.text
        assert not settings_file(box).exists()
    assert settings_of(box)["opencode"]


@pytest.mark.full("a pseudo-terminal is driven")
def test_who_connects_nothing_is_not_asked(box: Sandbox) -> None:
    """Without an agent there is nothing to learn from."""
    with at_a_terminal(box) as (child, screen):
        for _ in range(2):
            child.expect_exact("[Y/n] ")
            child.send("n\r")
    assert "Nothing was changed." in screen.text
    assert ASKED not in screen.text


@pytest.mark.shows("LEARN-11")
def test_a_script_says_it_with_a_flag(box: Sandbox) -> None:
    """Nothing is asked or decided without a terminal or for `--json`; the flag counts before and after the
    agent's name; a dry run writes nothing; what counts more than the file is said.
    """
    env = a_program(box, "opencode", "claude")
    said(reflectd(box, "setup", "opencode", **env), 0, "nobody was asked yet")
    assert as_json(box, "--yes") == {
        "enabled": False, "lessons": False, "answered": False, "changed": False,
        "file": str(settings_file(box)), "diff": "", "backup": None, "warnings": [],
    }  # fmt: skip
    would = said(reflectd(box, "setup", "opencode", "--learning", "on", "--dry-run", **env), 0)
    assert "+enabled = true" in would
    assert answer(box) is None
    said(reflectd(box, "setup", "opencode", "--learning", "on", **env), 0, "learns: from judged sessions")
    assert answer(box) is True
    found = as_json(box, "--learning", "off", "claude-code")
    assert (found["enabled"], found["answered"], found["changed"]) == (False, True, True)
    assert Path(found["backup"]).read_text() == "[playbook]\nenabled = true\n\n[memory]\nenabled = true\n"
    assert as_json(box, "--yes", "--learning", "on")["enabled"] is True
    more = reflectd(box, "setup", "opencode", "--learning", "on", REFLECTD_PLAYBOOK_ENABLED="false", **env)
    said(more, 0, "REFLECTD_PLAYBOOK_ENABLED in your environment counts more than playbook.enabled = true")
    for wrong in (["--status"], ["opencode", "--remove"], ["claude-code", "--undo"]):
        said(reflectd(box, "setup", *wrong, "--learning", "on", **env), 2, "--learning")
    said(reflectd(box, "setup", "--learning", "on", **env), 2, "add --yes")
    said(reflectd(box, "setup", "--learning", "maybe", **env), 2, "invalid choice")


@pytest.mark.full("a pseudo-terminal is driven")
def test_settings_that_cannot_be_edited_stay_as_they_are(box: Sandbox) -> None:
    """With a mistake in them the plugin is set up and the mistake is said; nobody is asked."""
    settings_file(box).parent.mkdir(parents=True)
    settings_file(box).write_text("[judge]\nmode = 'act")
    with at_a_terminal(box, "opencode") as (_, screen):
        pass
    assert "learns: the daemon will not start with these settings" in " ".join(screen.text.split())
    assert settings_file(box).read_text() == "[judge]\nmode = 'act"
    assert "error" in as_json(box, "opencode")


@pytest.mark.full("a pseudo-terminal is driven")
def test_the_question_fits_the_screen(box: Sandbox) -> None:
    """No line of it is wider than 80 columns."""
    with at_a_terminal(box, "opencode", columns=80) as (child, _):
        child.expect_exact(QUESTION)
        shown = str(child.before).partition(ASKED)[2]
        child.send("n\r")
    lines = shown.replace("\r", "").split("\n")
    assert len([line for line in lines if len(line) > 60]) > 5
    assert [line for line in lines if len(line) > 80] == []


def test_setup_offers_the_playbook_of_another_program(box: Sandbox) -> None:
    """That of the ACE plugin in the current project, in words, after all else."""
    (box.project / ".claude").mkdir()
    (box.project / ACE).write_text(json.dumps({"key_points": ["Use pathlib."]}))
    done = reflectd(box, "setup", "opencode", **a_program(box, "opencode"))
    said(done, 0, f"{ACE} of this project has 1 point", f"`reflectd playbook import {ACE}`")
    assert "of this project" not in said(reflectd(box, "setup", "opencode", "--remove"), 0)


@pytest.mark.full("a pseudo-terminal is driven")
def test_who_answered_before_there_were_lessons_is_asked_about_them_alone(box: Sandbox) -> None:
    """Part 0 of the memory: an earlier no to points stays a no; the yes is for lessons."""
    settings_file(box).parent.mkdir(parents=True)
    settings_file(box).write_text("[playbook]\nenabled = false\n")
    with at_a_terminal(box, "opencode") as (child, screen):
        child.expect_exact(QUESTION)
        assert "`reflectd playbook`" not in str(child.before)
        child.send("y\r")
    assert "learns: lessons from tasks that ended badly" in screen.text
    found = config.load({"HOME": str(box.home)}, settings_file(box))
    assert (found.playbook.enabled, found.memory.enabled) == (False, True)


def test_the_figures_are_those_of_the_page_on_cost() -> None:
    """What a look back and a reflexion ask is said in one way."""
    page = " ".join((REPO / "docs" / "cost.md").read_text("utf-8").split())
    assert USUAL in page
    assert FAILED.removeprefix("It ") in page
