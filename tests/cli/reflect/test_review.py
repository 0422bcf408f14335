"""The review in a real terminal: it asks about each pattern, and does what the person says, at once."""

from __future__ import annotations

import json

import pytest

from daemon.files.findings import unread
from daemon.learning.rules.candidates import for_a_model
from harness.machine.sandbox import Sandbox
from harness.models.server import ModelServer
from tests.cli.reflect.person import leaves
from tests.support.machine.command_line import reflectd, said
from tests.support.reflecting import (
    BUN,
    DAYS,
    LINT,
    STRICT,
    Wish,
    book_of,
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

WIDE = (200, 24)


BUN_WORDS = "No, always use bun instead of npm."


@pytest.mark.shows("FR4", "PATH_DECISION-2")
def test_without_a_model_the_person_words_what_they_said(box: Sandbox) -> None:
    """New sessions are read first. Each quote comes with the agent's words, and becomes a rule only in words
    that the person types; the second review reads nothing again and asks nothing.
    """
    talk = ("I installed it with npm.", BUN_WORDS)
    for number, day in enumerate(DAYS[:2]):
        worked(box, f"0{number}-session", day, talk)
    with review(box, size=(100, 40), ready="e Word it yourself") as terminal:
        text = " ".join(terminal.screen.split())
        assert "Read 2 sessions (0 unchanged), 4 new messages of yours. 0 patterns in " in text
        assert "2 messages of yours that no model read. Nothing is written" in text
        assert f'Your words: "{BUN_WORDS}" (2 occurrences) agent "I installed it with npm."' in text
        assert f"because correction, instruction, repeated, {DAYS[0]} to {DAYS[1]}" in text
        assert "Add to CLAUDE.md" not in text
        terminal.press("e")
        terminal.wait_for("Rule:")
        terminal.type("Use bun, not npm")
        terminal.enter()
        terminal.wait_for("wording   Use bun, not npm")
        terminal.wait_for("a  Add to CLAUDE.md")
        terminal.press("a")
        terminal.wait_for('Your words: "Add the price list."')
        terminal.wait_for("q  Quit")
        leaves(terminal, "d")
    assert "**[rule-001]** Use bun, not npm (learned" in rules_file(box)
    (signal,) = journal(box)["signals"]
    assert (signal["occurrences"], signal["status"]) == (2, "promoted")
    with review(box, size=(100, 40), ready="came up often enough") as terminal:
        assert "Read 0 sessions (2 unchanged), 0 new messages of yours." in terminal.screen
        assert terminal.ended() == 0


def test_words_that_teach_nothing_are_dismissed(box: Sandbox) -> None:
    """And come back with undo; skipped ones are asked about in the next review."""
    worked(box, "0-session", DAYS[0], ("Done.", "No, wait"), ("Done.", "Never mind, it always fails"))
    with review(box, size=(100, 50), ready='Your words: "No, wait') as terminal:
        terminal.wait_for("q  Quit")
        terminal.press("d")
        terminal.wait_for('Your words: "Never mind')
        terminal.wait_for("q  Quit")
        terminal.press("u")
        terminal.wait_for("Undone.")
        terminal.wait_for("s  Skip for now")
        terminal.press("d")
        terminal.wait_for("u  Undo the last decision")
        text = leaves(terminal, "s")
    assert "dismissed: 1" in text
    assert "skipped for now: 1 Never mind, it always fails" in text
    assert [c.text for c in for_a_model(unread(book_of(box)))] == ["Never mind, it always fails"]
    assert rules_file(box) == ""


@pytest.mark.shows("FR4", "AC-REFLECT-04", "RULES-04")
@pytest.mark.parametrize("size", [(40, 24), (80, 24), (200, 24)])
@pytest.mark.main("the review asks")
def test_a_pattern_is_shown_with_quotes_file_and_the_four_options(
    box: Sandbox, size: tuple[int, int]
) -> None:
    """The words, how often, the severity, three quotes with day and session, the file's path, the four
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
        leaves(terminal)


@pytest.mark.shows("FR4", "FR6", "AC-REFLECT-05")
def test_letters_decide(box: Sandbox) -> None:
    """``a`` adds a rule, ``w`` a preference, in the file that is named, ``d`` dismisses, ``s`` skips; the
    summary says so.
    """
    brief = Wish("Answer briefly", ("brief!",))
    said_before(box, STRICT, LINT, BUN, brief)
    with review(box, size=(80, 70)) as terminal:
        terminal.wait_for("a preference, in .claude/memory/preferences.md")
        for key, following in (("a", brief), ("w", BUN), ("d", LINT)):
            terminal.answer(key, following.content)
        text = leaves(terminal, "s")
    assert "Added to CLAUDE.md as rule-001: Use strict TypeScript mode" in text
    assert "4 decisions rules added: 1 rule-001 Use strict TypeScript mode (CLAUDE.md)" in text
    assert "dismissed: 1" in text
    assert "skipped for now: 1 Run lint before committing" in text
    assert "- **[rule-001]** Use strict TypeScript mode (learned: " in rules_file(box)
    assert "Answer briefly" in rules_file(box, ".claude/memory/preferences.md")
    targets = [rule["target"] for rule in journal(box)["learned_rules"]]
    assert targets == ["claude_md", "workshop_preference"]
    assert sorted(statuses(box).values()) == ["dismissed", "pending", "promoted", "promoted"]


@pytest.mark.shows("FR6", "AC-REFLECT-05")
def test_workshop_keeps_the_preference_where_it_is_installed(box: Sandbox) -> None:
    """ "Add to Workshop" runs its command; undo says that Workshop itself is not told."""
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
        leaves(terminal)
    assert set(statuses(box).values()) == {"pending"}


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
        leaves(terminal, "a")
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
        leaves(terminal, "d")
    assert outside.read_text("utf-8") == "# Mine\n"
    assert statuses(box)[STRICT.content] == "dismissed"


@pytest.mark.main("the review asks")
def test_without_a_terminal_nothing_is_changed(box: Sandbox) -> None:
    """An agent's shell is no terminal: the review refuses, says how, and touches no file."""
    said_before(box, STRICT)
    before = journal(box)
    for stdin in (None, b"a\na\n"):
        words = ("on a terminal", "--json", "Nothing was read or changed")
        said(reflectd(box, "reflect", stdin=stdin), 2, *words)
    assert journal(box) == before
    assert rules_file(box) == ""


@pytest.mark.main("the review asks")
def test_json_shows_the_patterns_and_changes_nothing(box: Sandbox) -> None:
    """``--json``: patterns with quotes, the words that nobody read, the file and the options."""
    box.file("CLAUDE.md", "Use npm for package management.\n")
    names = said_before(box, STRICT, BUN)
    before = journal(box)
    found = json.loads(said(reflectd(box, "reflect", "--json"), 0))
    assert [p["id"] for p in found["patterns"]] == names
    assert found["patterns"][0]["quotes"][0]["text"] == "No, use strict mode"
    assert found["unread"] == []
    assert found["files"] == [str(box.project / "CLAUDE.md")]
    assert found["options"] == ["Add to CLAUDE.md", "Add to Workshop", "Dismiss", "Skip for now"]
    assert journal(box) == before
    assert rules_file(box) == "Use npm for package management.\n"


@pytest.mark.shows("FR8")
def test_a_rule_that_was_contradicted_is_named_at_the_end(box: Sandbox, llm: ModelServer) -> None:
    """As the model read it. Unlearning is suggested, and nothing follows from it by itself."""
    learned(box, "Use npm for package management")
    for number in range(2):
        worked(box, f"0{number}-session", "2099-01-01", ("I ran npm.", "No, use bun for package management."))
    llm.api(teaches(("bun", "Use bun for package management", "medium"), against="npm"))
    with review(box, size=(100, 50), ready="Ask the model?", **model_of(llm.url)) as terminal:
        terminal.type("y")
        terminal.enter()
        terminal.asked("Use bun for package management")
        leaves(terminal, "s")
        text = " ".join(terminal.screen.split())
        assert "perhaps to be unlearned rule-001 Use npm for package management" in text
    assert "**[rule-001]** Use npm for package management (learned: " in rules_file(box)
