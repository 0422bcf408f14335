"""A journal that is no journal stops no verb (I43): what looks tells of it and leaves it; what changes
something keeps it aside, tells that once, and goes on.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.machine.sandbox import Sandbox
from tests.cli.reflect.past import asked, session
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said
from tests.support.reflecting import book_of, learned, rules_file

NO_JOURNAL = "is no journal that can be used"
LATER = "the next change keeps it aside and begins a new one"
KEPT = "it is kept as reflect-journal.json.corrupt-"
RULES = ("Use npm for package management", "Run lint before each commit")


@pytest.fixture
def broken(box: Sandbox) -> Path:
    """The journal of a project with two rules, cut off in the middle."""
    for text in RULES:
        learned(box, text)
    path = book_of(box).path
    path.write_bytes(path.read_bytes()[:200])
    return path


def kept(broken: Path) -> list[bytes]:
    return [path.read_bytes() for path in broken.parent.glob("*.corrupt-*")]


@pytest.mark.parametrize("args", [("reflect", "status"), ("learned",), ("reflect", "unlearn", "npm")])
def test_what_looks_goes_on(box: Sandbox, broken: Path, args: tuple[str, ...]) -> None:
    """The rules are those of the files; the journal stays as it is, whatever it is now."""
    before = broken.read_bytes()
    found = json.loads(said(reflectd(box, *args, "--json"), 0))
    if "unlearn" in args:
        assert [asked["stands"][0]["id"] for asked in found["ask"]] == ["rule-001"]
    else:
        (problem,) = found["problems"]
        assert NO_JOURNAL in problem
        assert LATER in problem
        text = said(reflectd(box, *args), 0, NO_JOURNAL, LATER)
        assert text.count(NO_JOURNAL) == 1
        assert "2 active rules" in text if "status" in args else RULES[1] in text
    assert (broken.read_bytes(), kept(broken)) == (before, [])


@pytest.mark.parametrize(
    ("args", "answer", "change"),
    [
        (("reflect", "learn", "Answer in English"), "a", "**[rule-003]** Answer in English (learned"),
        (("learned", "undo", "r2"), "y", ""),
    ],
)
@pytest.mark.full("a pseudo-terminal is driven")
def test_what_changes_something_keeps_it_aside_once(
    box: Sandbox, broken: Path, args: tuple[str, ...], answer: str, change: str
) -> None:
    """`learn` and `undo`: the change is made, ids go on, and the next command tells nothing."""
    before = broken.read_bytes()
    code, screen = at_a_terminal(box, args, answer, columns=300)
    assert code == 0, screen
    assert screen.count(KEPT) == 1
    assert change in rules_file(box)
    assert (RULES[1] in rules_file(box)) is bool(change), "undo takes the second rule back"
    assert kept(broken) == [before]
    found = json.loads(said(reflectd(box, "reflect", "history", "--json"), 0))
    assert found["problems"] == []
    left = {"rule-001", "rule-002"} if change else {"rule-001"}
    assert left <= {rule["id"] for rule in found["rules"]}
    assert NO_JOURNAL not in said(reflectd(box, "reflect", "status"), 0)


@pytest.mark.shows("I43")
def test_a_scan_mends_it(box: Sandbox, broken: Path) -> None:
    """What it was is kept aside, and the messages are there."""
    before = broken.read_bytes()
    session(box, "a", "Always run the tests first")
    assert [c["text"] for c in asked(box)["candidates"]] == ["Always run the tests first"]
    assert kept(broken) == [before]
