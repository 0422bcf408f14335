"""The review in a real terminal: it asks about each pattern, and does what the person says, at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.machine.command_line import environment, reflectd, said
from tests.support.reflecting import (
    BUN,
    DAYS,
    LINT,
    STRICT,
    Wish,
    journal,
    learned,
    review,
    said_before,
    statuses,
    worked,
)

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox

WIDE = (200, 24)
UP, DOWN, ENTER, ESC, CTRL_C, CTRL_D = "\x1b[A", "\x1b[B", "\r", "\x1b", "\x03", "\x04"


def rules_file(box: Sandbox, name: str = "CLAUDE.md") -> str:
    path = box.project / name
    return path.read_text("utf-8") if path.exists() else ""


# --- from sessions to rules ----------------------------------------------------------------------------


def test_new_sessions_are_read_before_anything_is_asked(box: Sandbox) -> None:
    """FR4: transcripts, journal, pattern at its threshold, the person's yes, CLAUDE.md. The second review
    reads nothing again and asks nothing; a third one finds what a new session adds.
    """
    for number, day in enumerate(DAYS[:2]):
        worked(
            box, f"0{number}-session", day, ("I installed it with npm.", "No, always use bun instead of npm.")
        )
    with review(box, size=(100, 40)) as terminal:
        text = " ".join(terminal.screen.split())
        assert "Read 2 sessions (0 unchanged), 4 new messages of yours. 1 pattern in " in text
        assert "(2 occurrences)" in text
        assert '"No, always use bun instead of npm."' in text
        assert f"{DAYS[0]} 00-session" in text
        assert f"{DAYS[1]} 01-session" in text
        terminal.press("a")
        assert terminal.ended() == 0
    assert "use bun instead of npm" in rules_file(box)
    with review(box, size=(100, 40), ready="came up often enough") as terminal:
        assert "Read 0 sessions (2 unchanged), 0 new messages of yours." in terminal.screen
        assert terminal.ended() == 0
    worked(box, "02-session", DAYS[2], ("I used tabs.", "Never use tabs in this project!!"))
    with review(box, size=(100, 40)) as terminal:
        assert "Read 1 session (2 unchanged)" in terminal.screen
        assert "tabs" in terminal.screen
        terminal.press("q")
        assert terminal.ended() == 0


# --- the four answers ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(40, 24), (80, 24), (200, 24)])
def test_a_pattern_is_shown_with_quotes_file_and_the_four_options(
    box: Sandbox, size: tuple[int, int]
) -> None:
    """FR4: the words, how often, the severity, three quotes with day and session, the file's path, the four
    options; on terminals of 40, 80 and 200 columns.
    """
    said_before(box, STRICT)
    with review(box, size=size) as terminal:
        terminal.wait_for("Quit")
        found = " ".join(terminal.screen.split())
        assert "Found pattern: Use strict TypeScript mode (3 occurrences)" in found
        assert "severity high" in found
        for day, text in zip(("2025-11-20", "2025-11-24", "2025-11-27"), STRICT.words, strict=True):
            assert day in found
            assert f'"{text}"' in found
        assert "00-session-o" in found
        if size[0] > 40:  # a long path is cut on a narrow terminal
            assert f"{box.project}/CLAUDE.md" in found
        for option in ("Add to CLAUDE.md", "Add to Workshop", "Dismiss", "Skip for now"):
            assert option in found
        assert max(len(line.rstrip()) for line in terminal.screen.splitlines()) <= size[0]
        terminal.press("q")
        assert terminal.ended() == 0


def test_letters_decide(box: Sandbox) -> None:
    """``a`` adds a rule, ``d`` dismisses, ``s`` skips; the summary says what became of each."""
    said_before(box, STRICT, LINT, BUN)
    with review(box, size=(80, 60)) as terminal:
        terminal.answer("a", "Use bun")
        terminal.answer("d", "Run lint")
        terminal.press("s")
        assert terminal.ended() == 0
        text = " ".join(terminal.screen.split())
    assert "Added to CLAUDE.md as rule-001: Use strict TypeScript mode" in text
    assert "3 decisions rules added: 1 rule-001 Use strict TypeScript mode (CLAUDE.md) dismissed: 1" in text
    assert "skipped for now: 1 Run lint before committing" in text
    assert "- **[rule-001]** Use strict TypeScript mode (learned: " in rules_file(box)
    assert statuses(box) == {
        STRICT.content: "promoted",
        BUN.content: "dismissed",
        LINT.content: "pending",
    }


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
        terminal.press(ENTER)
        assert terminal.ended() == 0
    assert "Use strict TypeScript mode" in rules_file(box)


def test_enter_alone_writes_nothing(box: Sandbox) -> None:
    """POISON_PATH, auto-apply: somebody who only presses Enter, again and again, has approved nothing."""
    said_before(box, STRICT, BUN, LINT)
    with review(box, size=(80, 60)) as terminal:
        for wish in (STRICT, BUN, LINT):
            terminal.asked(wish.content)
            terminal.press(ENTER)
        assert terminal.ended() == 0
        assert "skipped for now: 3" in terminal.screen
    assert rules_file(box) == ""
    assert set(statuses(box).values()) == {"pending"}


def test_a_preference_goes_to_the_file_where_workshop_is_not_installed(box: Sandbox) -> None:
    """FR6: "Add to Workshop" says where it will be kept, and keeps it there."""
    said_before(box, STRICT)
    with review(box) as terminal:
        terminal.wait_for("a preference, in .claude/memory/preferences.md")
        terminal.press("w")
        assert terminal.ended() == 0
    assert "Use strict TypeScript mode" in rules_file(box, ".claude/memory/preferences.md")
    assert rules_file(box) == ""
    assert journal(box)["learned_rules"][0]["target"] == "workshop_preference"


def test_workshop_keeps_the_preference_where_it_is_installed(box: Sandbox) -> None:
    """FR6: "Add to Workshop" runs its command; undo says that Workshop itself is not told."""
    program, ran = box.root / "bin" / "workshop", box.root / "ran"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {ran}\n', "utf-8")
    program.chmod(0o755)
    said_before(box, STRICT, BUN)
    with review(box, size=(80, 40), PATH=f"{program.parent}:{box.env()['PATH']}") as terminal:
        terminal.wait_for("a preference, kept by Workshop")
        terminal.answer("w", BUN.content)
        assert "Added to Workshop as rule-001: Use strict TypeScript mode" in terminal.screen
        assert ran.read_text("utf-8").endswith("preference Use strict TypeScript mode --category reflect\n")
        terminal.answer("u", STRICT.content)
        assert "Workshop is not told" in terminal.screen
        terminal.press("q")
        assert terminal.ended() == 0
    assert set(statuses(box).values()) == {"pending"}


def test_agents_md_is_named_where_the_project_has_it(box: Sandbox) -> None:
    """The option names the file to which the rule goes, and so does its path."""
    box.file("AGENTS.md", "# Ours\n")
    (box.project / "CLAUDE.md").symlink_to("AGENTS.md")
    said_before(box, STRICT)
    with review(box, size=WIDE) as terminal:
        terminal.wait_for("Add to AGENTS.md")
        assert f"{box.project}/AGENTS.md" in terminal.screen
        terminal.press("a")
        assert terminal.ended() == 0
    assert "[rule-001]" in rules_file(box, "AGENTS.md")
    assert (box.project / "CLAUDE.md").is_symlink()


def test_of_two_files_the_person_chooses_one(box: Sandbox) -> None:
    """CLAUDE.md and AGENTS.md that have nothing to do with each other: it is asked once, before the first
    pattern.
    """
    box.file("AGENTS.md", "# For agents\n")
    box.file("CLAUDE.md", "# For Claude\n")
    said_before(box, STRICT)
    with review(box, ready="Which one shall it be?") as terminal:
        terminal.wait_for("> 1 CLAUDE.md")
        terminal.answer("2", STRICT.content)
        terminal.press("a")
        assert terminal.ended() == 0
    assert "[rule-001]" in rules_file(box, "AGENTS.md")
    assert rules_file(box) == "# For Claude\n"


def test_where_no_file_may_be_written_a_rule_is_not_offered(box: Sandbox) -> None:
    """A CLAUDE.md that leads out of the project: the review says why, and the other answers are there."""
    outside = box.home / "CLAUDE.md"
    outside.write_text("# Mine\n", "utf-8")
    (box.project / "CLAUDE.md").symlink_to(outside)
    said_before(box, STRICT)
    with review(box, size=WIDE) as terminal:
        terminal.wait_for("leads out of the project")
        assert "Add to CLAUDE.md" not in terminal.screen
        terminal.press("a")  # stands for nothing here
        terminal.press("d")
        assert terminal.ended() == 0
    assert outside.read_text("utf-8") == "# Mine\n"
    assert statuses(box)[STRICT.content] == "dismissed"


# --- wording, undo, conflicts ------------------------------------------------------------------------


def test_the_wording_can_be_edited(box: Sandbox) -> None:
    """``e`` puts the text into a line to edit; the rule has the person's words."""
    said_before(box, STRICT)
    with review(box) as terminal:
        terminal.press("e")
        terminal.wait_for("Rule: Use strict TypeScript mode")
        terminal.type(" everywhere")
        terminal.enter()
        terminal.wait_for("wording   Use strict TypeScript mode everywhere")
        terminal.asked(STRICT.content)
        terminal.press("a")
        assert terminal.ended() == 0
    assert "] Use strict" not in rules_file(box)
    assert "** Use strict TypeScript mode everywhere (learned" in rules_file(box)


def test_esc_leaves_the_wording_as_it_was(box: Sandbox) -> None:
    """Esc in the line to edit goes back to the question, with the old words."""
    said_before(box, STRICT)
    with review(box) as terminal:
        terminal.press("e")
        terminal.type(" nonsense")
        terminal.escape()
        terminal.asked(STRICT.content)
        terminal.press("a")
        assert terminal.ended() == 0
    assert "nonsense" not in rules_file(box)


def test_a_wording_that_cannot_be_a_rule_is_refused_and_asked_again(box: Sandbox) -> None:
    """A secret in the new wording: it is said why, nothing is written, and the same pattern stays."""
    said_before(box, STRICT)
    with review(box, size=WIDE) as terminal:
        terminal.press("e")
        terminal.type(" sk-ant-api03-" + "a1B2" * 12)
        terminal.enter()
        terminal.wait_for("wording")
        terminal.asked(STRICT.content)
        terminal.press("a")
        terminal.wait_for("holds a secret")
        terminal.asked(STRICT.content)
        assert rules_file(box) == ""
        terminal.press("q")
        assert terminal.ended() == 0
    assert statuses(box)[STRICT.content] == "pending"


def test_the_last_decision_is_undone(box: Sandbox) -> None:
    """``u`` takes a rule, a dismissal and a skip back, one after the other, newest first, and asks again."""
    before = box.file("CLAUDE.md", "# Shop\n").read_bytes()
    said_before(box, STRICT, BUN, LINT)
    with review(box, size=(80, 70)) as terminal:
        for key, following in (("a", BUN), ("d", LINT)):
            terminal.answer(key, following.content)
        assert "[rule-001]" in rules_file(box)
        assert statuses(box)[BUN.content] == "dismissed"
        terminal.answer("u", BUN.content)
        assert statuses(box)[BUN.content] == "pending"
        terminal.answer("u", STRICT.content)
        terminal.wait_gone("Undo the last decision")
        terminal.press("q")
        assert terminal.ended() == 0
        assert "0 decisions not decided: 3" in " ".join(terminal.screen.split())
    assert (box.project / "CLAUDE.md").read_bytes() == before
    assert set(statuses(box).values()) == {"pending"}


def test_a_conflict_is_asked_about_and_replaces_the_rule(box: Sandbox) -> None:
    """FR7: both texts are shown, with the three options; "Replace existing rule" archives the old one."""
    learned(box, "Use npm for package management")
    said_before(box, BUN)
    with review(box) as terminal:
        terminal.press("a")
        terminal.wait_for("CONFLICT DETECTED")
        terminal.wait_for("Keep both (different contexts)")
        found = " ".join(terminal.screen.split())
        assert 'New rule: "Use bun for package management"' in found
        assert 'Conflicts with: "Use npm for package management" [rule-001]' in found
        assert "Replace existing rule" in found
        assert "Keep existing, dismiss new" in found
        terminal.press("r")
        assert terminal.ended() == 0
    active, _, archived = rules_file(box).partition("### Archived Rules")
    assert "**[rule-002]** Use bun for package management" in active
    assert "npm" not in active
    assert "**[rule-001]** Use npm for package management (archived: " in archived


@pytest.mark.parametrize(("key", "status"), [("d", "dismissed"), ("b", "promoted")])
def test_a_conflict_keeps_the_existing_or_both(box: Sandbox, key: str, status: str) -> None:
    """FR7: "Keep existing, dismiss new" dismisses the pattern, "Keep both" adds it beside the other."""
    learned(box, "Use npm for package management")
    said_before(box, BUN)
    with review(box) as terminal:
        terminal.press("a")
        terminal.wait_for("Keep both (different contexts)")
        terminal.press(key)
        assert terminal.ended() == 0
    assert statuses(box)[BUN.content] == status
    assert ("Use bun" in rules_file(box)) is (status == "promoted")
    assert "**[rule-001]** Use npm for package management (learned: " in rules_file(box)


def test_a_line_of_a_persons_own_hand_is_not_replaced(box: Sandbox) -> None:
    """It is named as a conflict, and "Replace existing rule" is not offered; going back decides nothing."""
    box.file("CLAUDE.md", "# Shop\n\nUse npm for package management.\n")
    said_before(box, BUN)
    with review(box, size=(80, 40)) as terminal:
        terminal.press("a")
        terminal.wait_for("CLAUDE.md:3: they choose")
        terminal.wait_for("reflectd never changes that line, edit it yourself")
        terminal.wait_for("> g  Go back")
        assert "Replace existing rule" not in terminal.screen
        terminal.answer("g", BUN.content)
        terminal.press("q")
        assert terminal.ended() == 0
    assert rules_file(box) == "# Shop\n\nUse npm for package management.\n"
    assert statuses(box)[BUN.content] == "pending"


def test_a_file_that_was_edited_meanwhile_is_asked_about_again(box: Sandbox) -> None:
    """While a conflict is asked about, somebody edits CLAUDE.md: nothing is written, and the pattern is asked
    about again, with what the file says by now.
    """
    box.file("CLAUDE.md", "Use npm for package management.\n")
    said_before(box, BUN)
    with review(box, size=(80, 40)) as terminal:
        terminal.press("a")
        terminal.wait_for("> g  Go back")
        box.file("CLAUDE.md", "Use yarn for package management.\n")
        terminal.press("b")
        terminal.wait_for("was edited while you were asked")
        terminal.asked(BUN.content)
        assert rules_file(box) == "Use yarn for package management.\n"
        terminal.press("a")
        terminal.wait_for('Conflicts with: "Use yarn')
        terminal.wait_for("> g  Go back")
        terminal.press("b")
        assert terminal.ended() == 0
    assert rules_file(box).startswith("Use yarn for package management.\n")
    assert "[rule-001]** Use bun" in rules_file(box)


def test_a_rule_that_says_nearly_the_same_gets_the_new_text(box: Sandbox) -> None:
    """FR5, update a rule's text: the pattern's words take the place of the old ones, under the same id, and
    undo brings the old ones back.
    """
    learned(box, "Run the integration tests before pushing")
    before = rules_file(box)
    near = Wish("Run the integration tests locally before pushing", ("locally!", "again: locally"))
    said_before(box, near, LINT)
    with review(box, size=(80, 60)) as terminal:
        terminal.press("a")
        terminal.wait_for("rule-001 says nearly the same")
        terminal.wait_for("> g  Go back")
        terminal.answer("t", LINT.content)
        assert "**[rule-001]** Run the integration tests locally before pushing (learned: " in rules_file(box)
        terminal.answer("u", near.content)
        assert rules_file(box) == before
        terminal.press("q")
        assert terminal.ended() == 0


def test_what_a_rule_says_already_belongs_to_it(box: Sandbox) -> None:
    """A pattern in the words of a rule that stands: no second rule, the pattern is one of its sources."""
    learned(box, "Always run lint")
    said_before(box, Wish("Run lint everywhere", ("lint!",)))
    with review(box) as terminal:
        terminal.press("e")
        terminal.press("\x15")  # Ctrl-U: an empty line
        terminal.type("Always run lint")
        terminal.enter()
        terminal.wait_for("wording")
        terminal.asked("Run lint everywhere")
        terminal.press("a")
        terminal.wait_for("There already as rule-001 in CLAUDE.md")
        assert terminal.ended() == 0
    assert rules_file(box).count("Always run lint") == 1
    (rule,) = journal(box)["learned_rules"]
    assert rule["source_signals"] == [journal(box)["signals"][0]["id"]]
    assert statuses(box) == {"Run lint everywhere": "promoted"}


# --- leaving ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "code"), [(CTRL_C, 130), (CTRL_D, 0)])
def test_ctrl_c_keeps_what_was_decided(box: Sandbox, key: str, code: int) -> None:
    """Leaving in the middle: what was decided stands, and the summary says so."""
    said_before(box, STRICT, BUN)
    with review(box, size=(80, 40)) as terminal:
        terminal.answer("a", "Use bun")
        terminal.press(key)
        assert terminal.ended() == code
        assert "not decided: 1" in terminal.screen
    assert statuses(box) == {STRICT.content: "promoted", BUN.content: "pending"}


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
        terminal.press("q")
        assert terminal.ended() == 0


def test_two_reviews_at_once_ask_once(box: Sandbox) -> None:
    """What one review decided, the other one does not ask about any more."""
    said_before(box, STRICT, BUN)
    with review(box, size=(80, 40)) as one, review(box, size=(80, 40)) as two:
        two.answer("s", BUN.content)
        two.press("d")
        assert two.ended() == 0
        one.press("s")
        assert one.ended() == 0
        assert "Decided elsewhere meanwhile: Use bun" in one.screen
    assert statuses(box)[BUN.content] == "dismissed"


# --- the terminal -------------------------------------------------------------------------------------


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
        terminal.press("a")
        assert terminal.ended() == 0
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
        terminal.press("a")
        assert terminal.ended() == 0
    assert "[rule-001]" in rules_file(box)


def test_what_the_terminal_cannot_show_is_escaped(box: Sandbox) -> None:
    """A terminal of another encoding, and a quote that is no text at all: shown as escapes, no crash."""
    said_before(box, Wish("Schreibe \N{LATIN SMALL LETTER A WITH DIAERESIS} nie", ("\N{SNOWMAN} \ud800",)))
    with review(box, PYTHONIOENCODING="ascii") as terminal:
        assert "Schreibe \\xe4 nie" in terminal.screen
        assert "\\u2603 \\ud800" in terminal.screen
        terminal.press("a")
        assert terminal.ended() == 0
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
        terminal.press("q")
        assert terminal.ended() == 0


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
        terminal.press("\n")
        assert terminal.ended() == 0
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
        terminal.press("q")
        assert terminal.ended() == 0
    assert statuses(box) == {STRICT.content: "promoted", BUN.content: "pending", LINT.content: "pending"}


def test_other_actions_do_not_load_the_menu(box: Sandbox) -> None:
    """prompt-toolkit costs a tenth of a second: only a review that asks something pays it."""
    said_before(box, STRICT)
    code = (
        "import sys; from daemon.cli.main import main; main(sys.argv[1:]);"
        "print([n for n in sys.modules if n.startswith(('prompt_toolkit', 'asyncio'))])"
    )
    for args in (["reflect", "status"], ["reflect", "--json"], ["reflect", "--help"], ["reflect", "history"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *args],
            env=environment(box),
            cwd=box.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.endswith("[]\n") or args[1] == "--help", done
        assert "prompt_toolkit" not in done.stdout


# --- without a person ---------------------------------------------------------------------------------


def test_without_a_terminal_nothing_is_changed(box: Sandbox) -> None:
    """An agent's shell is no terminal: the review refuses, says how, and touches no file."""
    said_before(box, STRICT)
    before = journal(box)
    for stdin in (None, b"a\na\n"):
        said(
            reflectd(box, "reflect", stdin=stdin), 2, "on a terminal", "--json", "Nothing was read or changed"
        )
    assert journal(box) == before
    assert rules_file(box) == ""


def test_json_shows_the_patterns_and_changes_nothing(box: Sandbox) -> None:
    """``--json``: patterns with quotes, the file, the options and what each contradicts."""
    box.file("CLAUDE.md", "Use npm for package management.\n")
    names = said_before(box, STRICT, BUN)
    before = journal(box)
    found = json.loads(said(reflectd(box, "reflect", "--json"), 0))
    assert [p["id"] for p in found["patterns"]] == names
    assert found["patterns"][0]["quotes"][0]["text"] == "No, use strict mode"
    assert found["patterns"][1]["conflicts"][0]["where"] == "CLAUDE.md:1"
    assert found["files"] == [str(box.project / "CLAUDE.md")]
    assert found["options"] == ["Add to CLAUDE.md", "Add to Workshop", "Dismiss", "Skip for now"]
    assert journal(box) == before
    assert rules_file(box) == "Use npm for package management.\n"


def test_nothing_to_decide_asks_nothing(box: Sandbox) -> None:
    """A journal without a pattern at its threshold: one line, exit code 0."""
    said_before(box, Wish("Run lint before committing", ("lint", "lint"), "low"))
    with review(box, ready="came up often enough") as terminal:
        assert terminal.ended() == 0


def test_a_journal_that_cannot_be_used_is_kept_aside(box: Sandbox) -> None:
    """A corrupt journal is named and kept, and a new one is begun from the sessions; what only looks says
    that it can't be used.
    """
    said_before(box, STRICT)
    file = box.file(".claude/orchestration/temp/reflect-journal.json", "{")
    said(reflectd(box, "reflect", "--json"), 2, "no journal that can be used")
    worked(box, "02-session", DAYS[2], ("I used tabs.", "Never use tabs in this project!!"))
    with review(box, size=(200, 40)) as terminal:
        assert "it is kept as reflect-journal.json.corrupt-" in " ".join(terminal.screen.split())
        assert "tabs" in terminal.screen
        terminal.press("q")
        assert terminal.ended() == 0
    (kept,) = file.parent.glob("reflect-journal.json.corrupt-*")
    assert kept.read_text("utf-8") == "{"


def test_a_rule_that_was_contradicted_is_named_at_the_end(box: Sandbox) -> None:
    """FR8: unlearning is suggested, and nothing follows from it by itself."""
    learned(box, "Use npm for package management")
    later = "2099-01-01"
    for number in range(2):
        worked(box, f"0{number}-session", later, ("I ran npm.", "No, use bun for package management."))
    with review(box, size=(100, 50)) as terminal:
        terminal.press("s")
        assert terminal.ended() == 0
        text = " ".join(terminal.screen.split())
        assert "perhaps to be unlearned rule-001 Use npm for package management" in text
    assert "**[rule-001]** Use npm for package management (learned: " in rules_file(box)
