"""How the review asks in a real terminal: keys, sizes, encodings, and how it is left."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys

import pytest

from harness.machine.sandbox import Sandbox
from tests.cli.reflect.person import leaves
from tests.support.machine.command_line import COMMAND, environment
from tests.support.reflecting import (
    BUN,
    LINT,
    STRICT,
    Reviewing,
    Wish,
    review,
    rules_file,
    said_before,
    statuses,
)

UP, DOWN, ENTER, CTRL_C, CTRL_D, CTRL_Z = "\x1b[A", "\x1b[B", "\r", "\x03", "\x04", "\x1a"
REFLECT = shlex.join([*COMMAND, "reflect"])


def test_arrow_keys_decide(box: Sandbox) -> None:
    """Up and down move, Enter chooses; they go round at both ends."""
    said_before(box, STRICT)
    with review(box) as terminal:
        terminal.wait_for("> s  Skip for now")
        terminal.press(UP)
        terminal.wait_for("> d  Dismiss")
        terminal.press(UP * 3)
        terminal.wait_for("> q  Quit")
        terminal.press(DOWN)
        terminal.wait_for("> a  Add to CLAUDE.md")
        leaves(terminal, ENTER)
    assert "Use strict TypeScript mode" in rules_file(box)


@pytest.mark.shows("POISON_PATH-1")
def test_enter_alone_writes_nothing(box: Sandbox) -> None:
    """Somebody who only presses Enter, again and again, has approved nothing."""
    said_before(box, STRICT, BUN, LINT)
    with review(box, size=(80, 60)) as terminal:
        for wish in (STRICT, BUN, LINT):
            terminal.asked(wish.content)
            terminal.press(ENTER)
        assert terminal.ended() == 0
        assert "skipped for now: 3" in terminal.screen
    assert rules_file(box) == ""
    assert set(statuses(box).values()) == {"pending"}


@pytest.mark.parametrize(("key", "code"), [(CTRL_C, 130), (CTRL_D, 0)])
def test_ctrl_c_keeps_what_was_decided(box: Sandbox, key: str, code: int) -> None:
    """Leaving in the middle: what was decided stands, and the summary says so."""
    said_before(box, STRICT, BUN)
    with review(box, size=(80, 40)) as terminal:
        terminal.answer("a", "Use bun")
        leaves(terminal, key, code=code)
        assert "not decided: 1" in terminal.screen
    assert statuses(box) == {STRICT.content: "promoted", BUN.content: "pending"}


@pytest.mark.shows("RULES-12")
def test_a_kill_keeps_what_was_decided(box: Sandbox) -> None:
    """``kill -9`` while the second pattern is asked about: the first decision is whole."""
    said_before(box, STRICT, BUN)
    with review(box) as terminal:
        terminal.answer("a", "Use bun")
        os.kill(terminal.pid, signal.SIGKILL)
        assert terminal.ended() == -1
    assert statuses(box) == {STRICT.content: "promoted", BUN.content: "pending"}
    assert "[rule-001]" in rules_file(box)
    with review(box) as terminal:
        assert "Use bun" in terminal.screen
        leaves(terminal)


@pytest.mark.parametrize("editing", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_is_told_to_end_gives_the_terminal_back(
    box: Sandbox, number: signal.Signals, editing: bool
) -> None:
    """At a question, and while the wording is edited: what was decided is kept, and the shell's terminal
    shows what is typed again.
    """
    said_before(box, STRICT, BUN)
    # the shell outlives the signal, which its whole group gets, as when a terminal or a session ends
    shell = ["sh", "-c", f"trap : TERM HUP; {REFLECT}; echo code=$?; stty -a"]
    with Reviewing(shell, environment(box), box.project, "q Quit", size=(100, 60)) as terminal:
        terminal.answer("a", BUN.content)
        if editing:
            terminal.press("e")
            terminal.wait_for(f"Rule: {BUN.content}")
        os.killpg(terminal.pid, number)
        terminal.wait_for(f"code={128 + number}")
        terminal.wait_for("opost")  # the modes come after the code
        assert terminal.ended() == 0
        modes = terminal.screen.partition("code=")[2].replace(";", " ").split()
    assert {"icanon", "echo", "isig", "icrnl", "opost"} <= set(modes)
    assert statuses(box) == {STRICT.content: "promoted", BUN.content: "pending"}
    assert "[rule-001]" in rules_file(box)


@pytest.mark.needs("bash")
def test_ctrl_z_and_fg(box: Sandbox) -> None:
    """Suspended at a question: the shell has its terminal, and back in the foreground the question is there
    again; what was decided before and after it is kept.
    """
    said_before(box, STRICT, BUN)
    shell = ["bash", "--norc", "--noprofile", "-i"]
    with Reviewing(shell, environment(box, PS1="ready> "), box.project, "ready>", size=(100, 60)) as terminal:
        terminal.press(f"{REFLECT}\r")
        terminal.asked(STRICT.content)
        terminal.answer("a", BUN.content)
        terminal.press(CTRL_Z)
        terminal.wait_for("Stopped")
        terminal.press("clear; stty -a; echo so it is\r")
        terminal.wait_for("so it is ready>")
        modes = terminal.screen.replace(";", " ").split()
        assert {"icanon", "echo", "isig", "icrnl", "opost"} <= set(modes)
        terminal.press("clear; fg\r")
        terminal.wait_for("> s Skip for now")
        terminal.press("d")
        terminal.wait_for("dismissed: 1")
        terminal.press("clear; echo code=$?\r")
        terminal.wait_for("code=0")
        leaves(terminal, "exit\r")
    assert statuses(box) == {STRICT.content: "promoted", BUN.content: "dismissed"}


def test_the_terminal_changes_its_size(box: Sandbox) -> None:
    """While a question is there: the choices are drawn for the new width, and the next pattern too."""
    said_before(box, STRICT, BUN)
    with review(box, size=(100, 40)) as terminal:
        terminal.wait_for("never suggest it again")
        terminal.resize(40, 40)
        terminal.wait_gone("never suggest it again")
        terminal.wait_for("> s  Skip for now")
        assert terminal.screen.count("Skip for now") == 1
        terminal.answer("s", "Use bun")
        terminal.resize(100, 40)
        terminal.wait_for("never suggest it again")
        leaves(terminal, "a")
    assert "Use bun" in rules_file(box)


def test_no_color_and_a_locale_without_unicode(box: Sandbox) -> None:
    """``NO_COLOR``: no cell has a colour or a style. ``LANG=C``: every mark of ours is ASCII."""
    said_before(box, STRICT)
    env = {"NO_COLOR": "1", "LANG": "C", "LC_ALL": "C"}
    with review(box, **env) as terminal:
        terminal.wait_for("Quit")
        assert terminal.screen.isascii()
        styles = {(c.fg, c.bg, c.bold, c.reverse) for row in terminal.cells for c in row}
        assert styles == {("default", "default", False, False)}
        leaves(terminal, "a")
    assert "[rule-001]" in rules_file(box)


def test_what_the_terminal_cannot_show_is_escaped(box: Sandbox) -> None:
    """A terminal of another encoding, and a quote that is no text at all: shown as escapes, no crash."""
    said_before(box, Wish("Schreibe \N{LATIN SMALL LETTER A WITH DIAERESIS} nie", ("\N{SNOWMAN} \ud800",)))
    with review(box, PYTHONIOENCODING="ascii") as terminal:
        assert "Schreibe \\xe4 nie" in terminal.screen
        assert "\\u2603 \\ud800" in terminal.screen
        leaves(terminal, "a")
    assert "Schreibe \N{LATIN SMALL LETTER A WITH DIAERESIS} nie" in rules_file(box)


def test_a_quote_gives_the_terminal_no_orders(box: Sandbox) -> None:
    """Escape sequences, control characters and secrets of a quote do not reach the screen."""
    evil = f"\x1b[2J\x1b]0;owned\x07\x9b31mgone\r\nsk-ant-api03-{'a1B2' * 12}"
    said_before(box, Wish("Use strict TypeScript mode", (evil,)))
    with review(box) as terminal:
        terminal.wait_for("Quit")
        assert "Found pattern: Use strict" in terminal.screen
        assert "\\x1b[2J\\x1b]0;owned\\x07\\x9b31mgone" in "".join(terminal.screen.split())
        assert "a1B2a1B2" not in terminal.screen
        leaves(terminal)


def test_a_dumb_terminal_is_asked_with_numbers(box: Sandbox) -> None:
    """``TERM=dumb``: numbered lines, in which a number, a letter or Enter answers; no escape sequence."""
    said_before(box, STRICT, BUN)
    with review(box, size=(80, 60), TERM="dumb", ready="Number (Enter is 4):") as terminal:
        assert "1  Add to CLAUDE.md: a rule that always holds" in terminal.screen
        terminal.press("nine\n")
        terminal.wait_for("Type a number from 1 to 6.")
        terminal.press("5\n")
        terminal.wait_for("(empty keeps it):")
        terminal.press("Always use strict TypeScript mode\n")
        terminal.wait_for("wording")
        terminal.asked(STRICT.content)
        terminal.answer("1\n", BUN.content)
        leaves(terminal, "\n")
    assert "Always use strict TypeScript mode" in rules_file(box)
    assert statuses(box)[BUN.content] == "pending"


def test_keys_from_before_a_question_are_no_answer(box: Sandbox) -> None:
    """What was typed while the review was starting decides nothing, and a key that is held down decides on
    one pattern only.
    """
    said_before(box, STRICT, BUN, LINT)
    with review(box, ready="") as terminal:
        terminal.press("aaa")
        terminal.asked(STRICT.content)
        assert rules_file(box) == ""
        terminal.answer("aaaaa", BUN.content)
        leaves(terminal)
    assert statuses(box) == {STRICT.content: "promoted", BUN.content: "pending", LINT.content: "pending"}


def test_other_actions_do_not_load_the_menu(box: Sandbox) -> None:
    """prompt-toolkit costs a tenth of a second: only a review that asks something pays it."""
    said_before(box, STRICT)
    code = (
        "import sys; from daemon.cli.main import main; main(sys.argv[1:]);"
        "print([n for n in sys.modules if n.startswith(('prompt_toolkit', 'asyncio'))])"
    )
    for args in (["reflect", "status"], ["reflect", "--json"], ["reflect", "--help"], ["reflect", "history"]):
        given = {"env": environment(box), "cwd": box.project, "input": "", "capture_output": True}
        done = subprocess.run([sys.executable, "-c", code, *args], text=True, check=False, **given)
        assert done.stdout.endswith("[]\n") or args[1] == "--help", done
        assert "prompt_toolkit" not in done.stdout
