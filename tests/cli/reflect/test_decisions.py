"""What a person decides in the review is done at once: wording, undo, conflicts, others' edits."""

from __future__ import annotations

import pytest

from harness.machine.sandbox import Sandbox
from harness.models.server import ModelServer
from tests.cli.reflect.person import leaves
from tests.support.reflecting import (
    BUN,
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
)

WIDE = (200, 24)


def test_the_wording_can_be_edited(box: Sandbox) -> None:
    """``e`` puts the text into a line to edit; the rule has the person's words. Esc leaves the old ones."""
    said_before(box, STRICT)
    with review(box) as terminal:
        terminal.press("e")
        terminal.type(" nonsense")
        terminal.escape()
        terminal.asked(STRICT.content)
        terminal.press("e")
        terminal.wait_for("Rule: Use strict TypeScript mode")
        terminal.type(" everywhere")
        terminal.enter()
        terminal.wait_for("wording   Use strict TypeScript mode everywhere")
        terminal.asked(STRICT.content)
        leaves(terminal, "a")
    assert "] Use strict" not in rules_file(box)
    assert "** Use strict TypeScript mode everywhere (learned" in rules_file(box)


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
        leaves(terminal)
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
        leaves(terminal)
        assert "0 decisions not decided: 3" in " ".join(terminal.screen.split())
    assert (box.project / "CLAUDE.md").read_bytes() == before
    assert set(statuses(box).values()) == {"pending"}


@pytest.mark.shows("FR7")
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
    with review(box, **model_of(llm.url)) as terminal:
        terminal.press("a")
        terminal.wait_for("CONFLICT DETECTED")
        terminal.wait_for("Keep both (different contexts)")
        found = " ".join(terminal.screen.split())
        assert 'New rule: "Use bun for package management"' in found
        assert 'Conflicts with: "Use npm for package management" [rule-001]' in found
        assert "Replace existing rule" in found
        assert "Keep existing, dismiss new" in found
        leaves(terminal, key)
    stand, _, archived = rules_file(box).partition("### Archived Rules")
    assert {n for n in (1, 2) if f"[rule-00{n}]" in stand} == active
    assert ("**[rule-001]** Use npm for package management (archived: " in archived) is (1 not in active)
    assert statuses(box)[BUN.content] == status


def test_a_line_of_a_persons_own_hand_is_not_replaced(box: Sandbox, llm: ModelServer) -> None:
    """It is named as a conflict, and "Replace existing rule" is not offered; going back decides nothing."""
    box.file("CLAUDE.md", "# Shop\n\nUse npm for package management.\n")
    said_before(box, BUN)
    llm.api(compares(contradicts="npm"))
    with review(box, size=(80, 40), **model_of(llm.url)) as terminal:
        terminal.press("a")
        terminal.wait_for("CLAUDE.md:3; reflectd never changes that line, edit it yourself")
        terminal.wait_for("> g  Go back")
        assert "Replace existing rule" not in terminal.screen
        terminal.answer("g", BUN.content)
        leaves(terminal)
    assert rules_file(box) == "# Shop\n\nUse npm for package management.\n"
    assert statuses(box)[BUN.content] == "pending"


def test_a_file_that_was_edited_meanwhile_is_asked_about_again(box: Sandbox, llm: ModelServer) -> None:
    """While a conflict is asked about, somebody edits CLAUDE.md: nothing is written, and the pattern is asked
    about again, with what the file says by now.
    """
    box.file("CLAUDE.md", "Use npm for package management.\n")
    said_before(box, BUN)
    llm.api(compares(contradicts="npm"), compares(contradicts="yarn"))
    with review(box, size=(80, 40), **model_of(llm.url)) as terminal:
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
        leaves(terminal, "b")
    assert rules_file(box).startswith("Use yarn for package management.\n")
    assert "[rule-001]** Use bun" in rules_file(box)


@pytest.mark.shows("FR5")
def test_a_rule_that_says_the_same_in_other_words_gets_the_new_text(box: Sandbox, llm: ModelServer) -> None:
    """Update a rule's text: the pattern's words take the place of the old ones, under the same id, and undo
    brings the old ones back.
    """
    learned(box, "Run the integration tests before pushing")
    before = rules_file(box)
    near = Wish("Run the integration tests locally before pushing", ("locally!", "again: locally"))
    said_before(box, near, LINT)
    llm.api(compares(same="before pushing"))
    with review(box, size=(80, 60), **model_of(llm.url)) as terminal:
        terminal.press("a")
        terminal.wait_for("rule-001 says the same in other words")
        terminal.wait_for("> g  Go back")
        terminal.answer("t", LINT.content)
        assert "**[rule-001]** Run the integration tests locally before pushing (learned: " in rules_file(box)
        terminal.answer("u", near.content)
        assert rules_file(box) == before
        leaves(terminal)


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


@pytest.mark.shows("RULES-13")
def test_an_answer_after_another_review_s_changes_nothing(box: Sandbox) -> None:
    """Both show the same pattern: who answers last is told, and neither undoes nor repeats the first. What
    one decided before the other came to it is not asked about any more.
    """
    said_before(box, STRICT, BUN, LINT)
    with review(box, size=(80, 70)) as one, review(box, size=(80, 70)) as two:
        one.answer("a", BUN.content)
        two.answer("d", BUN.content)
        assert f"Decided elsewhere meanwhile: {STRICT.content}" in two.screen
        two.answer("d", LINT.content)
        leaves(two, "d")
        leaves(one, "a")
        for wish in (BUN, LINT):
            assert f"Decided elsewhere meanwhile: {wish.content}" in one.screen
    left = {STRICT.content: "promoted", BUN.content: "dismissed", LINT.content: "dismissed"}
    assert statuses(box) == left
    assert rules_file(box).count("**[rule-") == 1
    assert len(Changes(book_of(box).state).all()) == 1
