"""`learned undo` of a rule, and `unlearn`: a person takes back what was learned."""

from __future__ import annotations

import pytest

from daemon.cli.reflect.decisions import meant
from daemon.core.errors import UserError
from daemon.learning.rules.standing import Note, Standing
from harness.machine.sandbox import Sandbox
from tests.cli.reflect.past import asked
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said
from tests.support.reflecting import LINT, book_of, journal, learned, rules_file, said_before

DRIVEN = pytest.mark.full("a pseudo-terminal is driven")


def yes(box: Sandbox, *args: str, answers: tuple[str, ...] = ("y",)) -> str:
    """What a command shows a person who answers so."""
    code, screen = at_a_terminal(box, args, *answers, columns=300)
    assert code == 0, screen
    return screen


@DRIVEN
def test_an_undo_is_never_over_an_edit(box: Sandbox) -> None:
    """Nor without a person's yes."""
    learned(box, "Use bun")
    before = rules_file(box)
    said(reflectd(box, "learned", "undo", "r1", "--json"), 0)
    said(reflectd(box, "learned", "undo", "r1", stdin=b"y\n"), 2, "a person's decision: do it on a terminal")
    assert at_a_terminal(box, ["learned", "undo", "r1"], "")[0] == 1
    assert rules_file(box) == before
    said(reflectd(box, "learned", "undo", "r7"), 2, "there is no change 7")
    edited = box.file("CLAUDE.md", f"{rules_file(box)}mine\n").read_text()
    code, screen = at_a_terminal(box, ["learned", "undo", "r1"], "y", columns=300)
    assert (code, "an edit that is not reflectd's" in screen) == (2, True)
    assert rules_file(box) == edited


def row(number: int, text: str, *, active: bool = True, note: Note = "") -> Standing:
    return Standing(f"rule-{number:03d}", text, active, False, "CLAUDE.md", line=number, note=note)


ROWS = [
    row(1, "Use npm for package management"),
    row(2, "Run npm test before each commit"),
    row(3, "Use tabs, not spaces"),
    row(4, "Answer in English", note="another"),
    row(5, "Use yarn", active=False),
]


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("rule about npm", r'several rules, name one by its id: rule-001 "Use npm .*"; rule-002 "'),
        ("the rule about npm test", "rule-002 *"),
        ("rule-003", "rule-003 *"),
        ('rule about "Tabs"', "rule-003 *"),
        ("rule about docker", "no rule is like"),
        ("rule about", "no rule is like"),
        ("rule-009", "no rule is like"),
        ("answer in English", r"rule-004 in CLAUDE\.md:4 is somebody else's"),
        ("rule-005", "archived already; --delete removes it"),
    ],
)
def test_which_rule_a_text_means(text: str, means: str) -> None:
    """All of its words, or an id; else the reason."""
    if means.endswith(" *"):
        assert meant(ROWS, text).id == means[:-2]
    else:
        with pytest.raises(UserError, match=means):
            meant(ROWS, text)
    assert meant(ROWS, "yarn", archived=True).id == "rule-005"


@pytest.mark.shows("FR8", "AC-REFLECT-07")
@DRIVEN
def test_reflect_unlearn_archives_or_removes_a_rule(box: Sandbox) -> None:
    """Found, confirmed, archived with the reason or removed, in both files; an
    edited rule is shown as it is now.
    """
    for text in ("Use npm", "Run the npm audit each week"):
        learned(box, text)
    box.file("CLAUDE.md", rules_file(box).replace("Use npm", "Use npm 11"))
    screen = yes(box, "reflect", "unlearn", "use npm", "--why", "we use bun now", answers=("a",))
    assert 'Shall this rule no longer apply? "Use npm 11" [rule-001 in CLAUDE.md:5]' in screen
    assert "**[rule-001]** Use npm 11 (archived: " in rules_file(box)
    assert ", reason: we use bun now)" in rules_file(box)
    yes(box, "reflect", "unlearn", "rule-002", "--delete", answers=("x",))
    assert "rule-002" not in rules_file(box)
    found = asked(box, "history")["rules"]
    assert [(r["id"], r["active"], r["reason"]) for r in found] == [("rule-001", False, "we use bun now")]


@DRIVEN
def test_what_is_dismissed_is_not_suggested_again_until_that_is_undone(box: Sandbox) -> None:
    """Not after it came up again, nor in a new journal; undo takes the tombstone back too."""
    (signal,) = said_before(box, LINT)
    assert [s["id"] for s in asked(box, "status")["suggested"]] == [signal]
    yes(box, "learned", "forget", signal)
    book_of(box).path.unlink()
    said_before(box, LINT)
    assert asked(box, "status")["suggested"] == []
    assert [s["status"] for s in journal(box)["signals"]] == ["dismissed"]
    assert f"Undo r1: dismissed {signal}?" in yes(box, "learned", "undo", "r1")
    assert [s["occurrences"] for s in asked(box, "status")["suggested"]] == [3]
