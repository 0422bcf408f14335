"""``reflectd reflect unlearn``: which rule a text means, and what a yes does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from daemon.cli.reflect.unlearn import meant
from daemon.core.errors import UserError
from daemon.rules.rows import Note, Standing
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox


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
    ("text", "ids"),
    [
        ("rule about npm", ["rule-001", "rule-002"]),
        ("the rule about testing with npm", ["rule-002"]),
        ("rule-003", ["rule-003"]),
        ("spaces", ["rule-003"]),
        ('rule about "Tabs"', ["rule-003"]),
    ],
)
def test_what_a_text_means(text: str, ids: list[str]) -> None:
    """All of its words, whatever their endings, or an id."""
    assert [r.id for r in meant(ROWS, text)] == ids


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rule about docker", "no rule is like"),
        ("rule about", "no rule is like"),
        ("rule-009", "no rule is like"),
        ("answer in English", r"rule-004 in CLAUDE\.md:4 is somebody else's"),
        ("rule-005", "archived already; --delete removes it"),
        ("yarn", "no rule is like"),
    ],
)
def test_what_means_none(text: str, why: str) -> None:
    """Each with the reason."""
    with pytest.raises(UserError, match=why):
        meant(ROWS, text)
    assert [r.id for r in meant(ROWS, "yarn", archived=True)] == ["rule-005"]


def learned(box: Sandbox, *texts: str) -> None:
    for text in texts:
        assert at_a_terminal(box, ["reflect", "learn", text], "y")[0] == 0


@pytest.mark.shows("FR8", "AC-REFLECT-07")
@pytest.mark.full("a pseudo-terminal is driven")
def test_reflect_unlearn_archives_or_removes_a_rule(box: Sandbox) -> None:
    """Found, confirmed, archived with the reason or removed, in both files."""
    learned(box, "Use npm for package management", "Run lint before each commit")
    file = box.project / "CLAUDE.md"
    code, screen = at_a_terminal(box, ["reflect", "unlearn", "rule about npm"], "y", "we use bun now")
    assert code == 0, screen
    assert f'Shall rule-001 "Use npm for package management" be archived in {file}? [y/N]' in screen
    assert "**[rule-001]** Use npm for package management (archived: " in file.read_text()
    assert ", reason: we use bun now)" in file.read_text()
    code, screen = at_a_terminal(box, ["reflect", "unlearn", "rule-002", "--delete"], "y")
    assert code == 0, screen
    assert "be removed entirely in" in screen
    assert "rule-002" not in file.read_text()
    found = json.loads(reflectd(box, "reflect", "history", "--json").stdout)["rules"]
    assert [(r["id"], r["active"], r["reason"]) for r in found] == [("rule-001", False, "we use bun now")]


@pytest.mark.shows("I47")
@pytest.mark.full("a pseudo-terminal is driven")
def test_a_no_and_no_terminal_change_nothing(box: Sandbox) -> None:
    """Neither a pipe nor a flag; `--json` and `--dry-run` only show which rule is meant."""
    learned(box, "Use npm")
    before = (box.project / "CLAUDE.md").read_text()
    assert at_a_terminal(box, ["reflect", "unlearn", "npm"], "n")[0] == 1
    said(reflectd(box, "reflect", "unlearn", "npm", stdin=b"y\n\n"), 2, "do it on a terminal")
    found = json.loads(said(reflectd(box, "reflect", "unlearn", "npm", "--json"), 0))
    assert (found["changed"], [r["id"] for r in found["rules"]]) == (False, ["rule-001"])
    said(
        reflectd(box, "reflect", "unlearn", "npm", "--dry-run"), 0, 'shall rule-001 "Use npm" be archived in'
    )
    said(reflectd(box, "reflect", "unlearn", "docker"), 2, "no rule is like 'docker'")
    assert (box.project / "CLAUDE.md").read_text() == before


@pytest.mark.full("a pseudo-terminal is driven")
def test_of_several_the_person_names_one(box: Sandbox) -> None:
    """An edited rule is shown as it is now, and as it was learned."""
    learned(box, "Use npm", "Run the npm audit each week")
    file = box.project / "CLAUDE.md"
    file.write_text(file.read_text().replace("Use npm", "Use npm 11"))
    code, screen = at_a_terminal(box, ["reflect", "unlearn", "npm", "--why", "no"], "1", "y")
    assert code == 0, screen
    assert "2  rule-002  Run the npm audit each week" in screen
    assert 'Shall rule-001 "Use npm 11" (you learned it as "Use npm") be archived' in screen
    assert "**[rule-001]** Use npm 11 (archived: " in file.read_text()
