"""The review in a real terminal: it asks about each pattern, and does what the person says, at once."""

from __future__ import annotations

import json
import os
import shlex
import signal

import pytest

from daemon.learning.rules.candidates import for_a_model
from daemon.learning.rules.learned_rules import changes_of
from harness.machine.sandbox import Sandbox
from harness.models.server import ModelServer
from tests.cli.reflect.person import leaves
from tests.support.machine.command_line import COMMAND, reflectd, said
from tests.support.reflecting import (
    BUN,
    DAYS,
    LINT,
    STRICT,
    Wish,
    book_of,
    compares,
    journal,
    learned,
    model_of,
    review,
    rules_file,
    said_before,
    statuses,
    teaches,
    worked,
)

CTRL_C, CTRL_D, CTRL_Z = "\x03", "\x04", "\x1a"
TALL = (80, 100)
REFLECT = shlex.join([*COMMAND, "reflect"])
BUN_WORDS = "No, always use bun instead of npm."


# --- what is shown ---------------------------------------------------------------------------------


@pytest.mark.shows("FR4", "AC-REFLECT-04", "RULES-04")
@pytest.mark.parametrize("size", [(40, 40), (80, 24), (200, 24)])
@pytest.mark.main("the review asks")
def test_a_pattern_is_shown_with_quotes_file_and_the_four_options(
    box: Sandbox, size: tuple[int, int]
) -> None:
    """The words, how often, quotes with their days, the file's path, the four options; on terminals of 40, 80
    and 200 columns, and also where colours and Unicode are none.
    """
    said_before(box, STRICT)
    env = {"NO_COLOR": "1", "LANG": "C", "LC_ALL": "C"} if size[0] == 80 else {}
    with review(box, size=size, **env) as terminal:
        found = " ".join(terminal.screen.split())
        assert 'Found pattern: "Use strict TypeScript mode" (3 occurrences)' in found
        for day, text in zip(DAYS[:2], STRICT.words, strict=False):
            assert f'You said: "{text}" ({day})' in found
        if size[0] > 40:  # a long path is a line of its own
            assert f"{box.project}/CLAUDE.md" in found
        for option in ("Add to CLAUDE.md", "Add to Workshop", "Dismiss", "Skip for now"):
            assert option in found
        if env:
            assert terminal.screen.isascii()
            styles = {(c.fg, c.bg, c.bold, c.reverse) for row in terminal.cells for c in row}
            assert styles == {("default", "default", False, False)}
        leaves(terminal)


def test_a_quote_gives_the_terminal_no_orders(box: Sandbox) -> None:
    """Escape sequences, control characters and secrets of a quote do not reach the screen; what a terminal of
    another encoding can't show is escaped.
    """
    evil = f"\x1b[2J\x1b]0;owned\x07\x9b31mgone\r\nsk-ant-api03-{'a1B2' * 12} \N{SNOWMAN} \ud800"
    said_before(box, Wish("Schreibe \N{LATIN SMALL LETTER A WITH DIAERESIS} nie", (evil,)))
    with review(box, PYTHONIOENCODING="ascii") as terminal:
        shown = "".join(terminal.screen.split())
        assert "Schreibe\\xe4nie" in shown
        assert "\\x1b[2J\\x1b]0;owned\\x07\\x9b31mgone" in shown
        assert "\\u2603\\ud800" in shown
        assert "a1B2a1B2" not in shown
        leaves(terminal, "a")
    assert "Schreibe \N{LATIN SMALL LETTER A WITH DIAERESIS} nie" in rules_file(box)


@pytest.mark.main("the review asks")
def test_without_a_terminal_nothing_is_changed(box: Sandbox) -> None:
    """An agent's shell is no terminal: the review refuses and says how. ``--json`` shows the patterns with
    quotes, the words that nobody read, the file and the options.
    """
    box.file("CLAUDE.md", "Use npm for package management.\n")
    names = said_before(box, STRICT, BUN)
    before = journal(box)
    for stdin in (None, b"a\na\n"):
        words = ("on a terminal", "--json", "Nothing was read or changed")
        said(reflectd(box, "reflect", stdin=stdin), 2, *words)
    found = json.loads(said(reflectd(box, "reflect", "--json"), 0))
    assert [p["id"] for p in found["patterns"]] == names
    assert found["patterns"][0]["quotes"][0]["text"] == "No, use strict mode"
    assert found["candidates"] == []
    assert found["file"] == str(box.project / "CLAUDE.md")
    assert found["options"] == ["Add to CLAUDE.md", "Add to Workshop", "Dismiss", "Skip for now"]
    assert journal(box) == before
    assert rules_file(box) == "Use npm for package management.\n"


# --- what is decided -------------------------------------------------------------------------------


@pytest.mark.shows("FR4", "FR6", "AC-REFLECT-05")
def test_letters_decide(box: Sandbox) -> None:
    """``a`` adds a rule, ``w`` a preference, in the file that is named, ``d`` dismisses, ``s`` skips; another
    letter is asked about again, and the summary says all of it.
    """
    brief = Wish("Answer briefly", ("brief!",))
    said_before(box, STRICT, LINT, BUN, brief)
    with review(box, size=TALL) as terminal:
        terminal.wait_for("a preference, in .claude/memory/preferences.md")
        terminal.press("9\r")
        terminal.wait_for("Type one of a, w, d, s, q.")
        terminal.ends()
        for key, following in (("a", brief), ("w", BUN), ("d", LINT)):
            terminal.answer(key, following.content)
        text = leaves(terminal, "s")
    assert "Rule added rule-001 in CLAUDE.md: Use strict TypeScript mode" in text
    told = "4 decisions. rule added: 1, preference added: 1, dismissed: 1, skipped for now: 1"
    assert told in text
    assert "- **[rule-001]** Use strict TypeScript mode (learned: " in rules_file(box)
    assert "Answer briefly" in rules_file(box, ".claude/memory/preferences.md")
    targets = [rule["target"] for rule in journal(box)["learned_rules"]]
    assert targets == ["claude_md", "workshop_preference"]
    assert sorted(statuses(box).values()) == ["dismissed", "pending", "promoted", "promoted"]


@pytest.mark.shows("POISON_PATH-1")
def test_nothing_is_decided_by_accident(box: Sandbox) -> None:
    """What was typed while the review was starting decides nothing, and Enter alone has approved nothing."""
    said_before(box, STRICT, BUN, LINT)
    with review(box, size=TALL, ready="") as terminal:
        terminal.press("a\ra\r")
        terminal.asked(STRICT.content)
        assert rules_file(box) == ""
        for following in (BUN, LINT):
            terminal.answer("", following.content)
        assert "skipped for now: 3" in leaves(terminal, "")
    assert rules_file(box) == ""
    assert set(statuses(box).values()) == {"pending"}


@pytest.mark.shows("FR4", "PATH_DECISION-2")
def test_without_a_model_the_person_words_what_they_said(box: Sandbox) -> None:
    """New sessions are read first. Each quote comes with the agent's words, and becomes a rule only in words
    that the person types. What teaches nothing is dismissed; what was skipped waits
    for the next review, which reads only what is new.
    """
    talk = ("I installed it with npm.", BUN_WORDS)
    for number, day in enumerate(DAYS[:2]):
        worked(box, f"0{number}-session", day, talk)
    asks = "(Enter skips, - if it teaches nothing, q quits):"
    with review(box, size=TALL, ready=asks) as terminal:
        text = " ".join(terminal.screen.split())
        assert "Read 2 sessions (0 unchanged), 4 new messages of yours. 0 patterns in " in text
        assert "2 messages of yours that no model read. Nothing is written" in text
        assert f'Your words: "{BUN_WORDS}" (2 occurrences, correction, instruction, repeated)' in text
        assert 'The agent before: "I installed it with npm."' in text
        assert "Add to CLAUDE.md" not in text
        terminal.press("Use it, sk-ant-api03-" + "a1B2" * 12 + "\r")
        terminal.wait_for("holds a secret")
        terminal.ends(asks)
        terminal.press("Use bun, not npm\r")
        terminal.asked("Use bun, not npm")
        terminal.press("a\r")
        terminal.wait_for('Your words: "Add the price list."')
        terminal.ends(asks)
        terminal.press("-\r")
        terminal.wait_for("Teaches nothing: Add the price list.")
        assert terminal.ended() == 0
    assert "**[rule-001]** Use bun, not npm (learned" in rules_file(box)
    (signal_,) = journal(box)["signals"]
    assert (signal_["occurrences"], signal_["status"]) == (2, "promoted")
    worked(box, "1-session", DAYS[2], ("Done.", "No, wait"), ("Done.", "Never mind, it always fails"))
    with review(box, size=TALL, ready='Your words: "No, wait') as terminal:
        terminal.ends(asks)
        terminal.press("-\r")
        terminal.wait_for('Your words: "Never mind')
        terminal.ends(asks)
        text = leaves(terminal, "")
    assert "teaches nothing: 1, skipped for now: 1" in text
    assert [c.text for c in for_a_model(book_of(box).unread())] == ["Never mind, it always fails"]


# --- what stands against it ------------------------------------------------------------------------


@pytest.mark.shows("FR7", "AC-REFLECT-08")
@pytest.mark.parametrize(
    ("key", "status", "active"), [("r", "promoted", {2}), ("d", "dismissed", {1}), ("b", "promoted", {1, 2})]
)
def test_a_conflict_is_asked_about(
    box: Sandbox, llm: ModelServer, key: str, status: str, active: set[int]
) -> None:
    """Both texts are shown, with the three options: "Replace existing rule" archives the old one, "Keep
    existing, dismiss new" dismisses the pattern, "Keep both" adds it beside the other.
    """
    learned(box, "Use npm for package management")
    said_before(box, BUN)
    llm.api(compares(contradicts="npm"))
    with review(box, size=TALL, **model_of(llm.url)) as terminal:
        terminal.press("a\r")
        terminal.wait_for("CONFLICT DETECTED")
        terminal.ends()
        found = " ".join(terminal.screen.split())
        assert 'CONFLICT DETECTED New (CLAUDE.md): "Use bun for package management"' in found
        assert 'Conflicts with: "Use npm for package management" [rule-001 in CLAUDE.md' in found
        for option in ("Replace existing rule", "Keep existing, dismiss new", "Keep both (different"):
            assert option in found
        leaves(terminal, key)
    stand, _, archived = rules_file(box).partition("### Archived Rules")
    assert {n for n in (1, 2) if f"[rule-00{n}]" in stand} == active
    assert ("**[rule-001]** Use npm for package management (archived: " in archived) is (1 not in active)
    assert statuses(box)[BUN.content] == status


def test_a_line_of_a_persons_own_hand_is_not_replaced(box: Sandbox, llm: ModelServer) -> None:
    """It is named as a conflict, and "Replace existing rule" is not offered. When somebody edits the file
    meanwhile, nothing is written, and the pattern is asked about again.
    """
    box.file("CLAUDE.md", "# Shop\n\nUse npm for package management.\n")
    said_before(box, BUN)
    llm.api(compares(contradicts="npm"), compares(contradicts="yarn"))
    with review(box, size=(80, 120), **model_of(llm.url)) as terminal:
        terminal.press("a\r")
        terminal.wait_for("CONFLICT DETECTED")
        terminal.ends()
        assert '"Use npm for package management." [CLAUDE.md:3]' in " ".join(terminal.screen.split())
        assert "Replace existing rule" not in terminal.screen
        box.file("CLAUDE.md", "Use yarn for package management.\n")
        terminal.press("b\r")
        terminal.wait_for("was changed while the person was asked")
        terminal.asked(BUN.content)
        assert rules_file(box) == "Use yarn for package management.\n"
        terminal.press("a\r")
        terminal.wait_for('Conflicts with: "Use yarn')
        terminal.ends()
        leaves(terminal, "b")
    assert rules_file(box).startswith("Use yarn for package management.\n")
    assert "[rule-001]** Use bun" in rules_file(box)


@pytest.mark.shows("FR5")
def test_a_rule_that_says_the_same_in_other_words_gets_the_new_text(box: Sandbox, llm: ModelServer) -> None:
    """Update a rule's text: the pattern's words take the place of the old ones, under the same id."""
    learned(box, "Run the integration tests before pushing")
    near = Wish("Run the integration tests locally before pushing", ("locally!", "again: locally"))
    said_before(box, near, LINT)
    llm.api(compares(same="before pushing"))
    with review(box, size=TALL, **model_of(llm.url)) as terminal:
        terminal.press("a\r")
        terminal.wait_for("The same stands in other words:")
        terminal.ends()
        terminal.answer("t", LINT.content)
        assert "**[rule-001]** Run the integration tests locally before pushing (learned: " in rules_file(box)
        leaves(terminal)


@pytest.mark.shows("FR8")
def test_a_rule_that_was_contradicted_is_named_at_the_end(box: Sandbox, llm: ModelServer) -> None:
    """As the model read it. Unlearning is suggested, and nothing follows from it by itself."""
    learned(box, "Use npm for package management")
    for number in range(2):
        worked(box, f"0{number}-session", "2099-01-01", ("I ran npm.", "No, use bun for package management."))
    llm.api(teaches(("bun", "Use bun for package management", "medium"), against="npm"))
    with review(box, size=TALL, ready="Ask the model?", **model_of(llm.url)) as terminal:
        terminal.press("y\r")
        terminal.asked("Use bun for package management")
        text = leaves(terminal, "s")
        assert "perhaps to be unlearned rule-001 Use npm for package management" in text
    assert "**[rule-001]** Use npm for package management (learned: " in rules_file(box)


# --- how it is left --------------------------------------------------------------------------------


@pytest.mark.shows("RULES-12")
@pytest.mark.parametrize(
    ("end", "code"), [(CTRL_C, 130), (CTRL_D, 0), (signal.SIGKILL, -1), (signal.SIGTERM, -1)]
)
def test_what_was_decided_is_kept(box: Sandbox, end: str | signal.Signals, code: int) -> None:
    """Ctrl-C, a closed terminal and a kill while the second pattern is asked about: the first decision is
    whole, and the next review asks about the rest.
    """
    said_before(box, STRICT, BUN)
    with review(box, size=TALL) as terminal:
        terminal.answer("a", BUN.content)
        if isinstance(end, str):
            terminal.press(end)
            terminal.wait_for("not decided: 1")
        else:
            os.kill(terminal.pid, end)
        assert terminal.ended() == code
    assert statuses(box) == {STRICT.content: "promoted", BUN.content: "pending"}
    assert "[rule-001]" in rules_file(box)
    with review(box, size=TALL) as terminal:
        assert "Use bun" in terminal.screen
        leaves(terminal)


@pytest.mark.shows("RULES-13")
def test_an_answer_after_another_review_s_changes_nothing(box: Sandbox) -> None:
    """Both show the same pattern: who answers last is told, and neither undoes nor repeats the first. What
    one decided before the other came to it is not asked about any more.
    """
    said_before(box, STRICT, BUN, LINT)
    with review(box, size=TALL) as one, review(box, size=TALL) as two:
        one.answer("a", BUN.content)
        two.answer("d", BUN.content)
        assert f"Decided elsewhere meanwhile: {STRICT.content}" in two.screen
        two.answer("d", LINT.content)
        leaves(two, "d")
        text = leaves(one, "a")
        for wish in (BUN, LINT):
            assert f"Decided elsewhere meanwhile: {wish.content}" in text
    left = {STRICT.content: "promoted", BUN.content: "dismissed", LINT.content: "dismissed"}
    assert statuses(box) == left
    assert rules_file(box).count("**[rule-") == 1
    assert len(changes_of(book_of(box).state).all()) == 3
