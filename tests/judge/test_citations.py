"""What counts as a citation. ``test_flow`` shows it within a whole round."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from daemon.core.evidence import FAILED, Act, FileChange, Row
from daemon.core.verdict import Judgement, Missing, Severity
from daemon.judge.citations import cited_rows, is_cited, is_excuse, without_destruction
from daemon.testing import make_case


@pytest.mark.parametrize(
    ("cites", "found"),
    [
        ("E2", True),
        ("E99", False),
        ("run the tests", True),
        ('"Run  the\nTESTS"', True),
        ("deploy it", False),
        ("a", False),
        ("", False),
        ("M1", True),
        ("M2", False),
        ("A3", True),
        ("A3.2", True),
        ("A4", False),
        ("A0", False),
        ("see A2: red", True),
    ],
)
def test_citations(cites: str, *, found: bool) -> None:
    """An item counts when it names a row, quotes the request word for word, or names a message (``M1``), a
    call (``A3``), a call of a sub-agent (``A3.2``).
    """
    assert is_cited(Missing("x", cites), make_case()) is found


DESTROYS = [
    "Run `git push --force`.",
    "Force-push the branch.",
    "git push origin main -f.",
    "Use --force-with-lease.",
    "Rewrite the git history without it.",
    "Run git filter-repo --path .env.",
    "Use BFG to drop it.",
    "Remove the key from the git history.",
    "git reset --hard HEAD~1 and push again.",
    "git push origin --delete topic.",
    "Delete the remote branch.",
]


@pytest.mark.parametrize("order", DESTROYS)
def test_feedback_never_asks_to_destroy(order: str) -> None:
    """No forced push, no rewritten history, no remote deletion; what stands beside it stays."""
    found = Judgement(
        complete=False,
        severity=Severity.BLOCKER,
        feedback=f"`.env` was pushed. {order} Add it to .gitignore.",
        next_actions=("git rm --cached .env", order),
        missing=(Missing("`.env` is tracked", "E2"), Missing(order, "E2")),
    )
    clean = without_destruction(found, make_case())
    assert clean == replace(
        found,
        feedback="`.env` was pushed. Add it to .gitignore.",
        next_actions=("git rm --cached .env",),
        missing=found.missing[:1],
    )
    bare = replace(found, feedback=order, next_actions=(order,), missing=found.missing[1:])
    assert without_destruction(bare, make_case()) is None
    asked = make_case(requests=("Rebase it and force-push the branch",))
    assert without_destruction(found, asked) is found  # the person asked for it


@pytest.mark.parametrize(
    "said",
    [
        "Stop tracking it: `git rm --cached .env`, add it to .gitignore, and commit that.",
        "Leave the history as it is; the person has to rotate the key.",
        "The push was rejected: pull, then push again.",
        "Delete the unused function.",
    ],
)
def test_what_destroys_nothing_stays_word_for_word(said: str) -> None:
    """With its line breaks."""
    found = Judgement(complete=False, feedback=f"1. {said}\n2. Run the tests.", next_actions=(said,))
    assert without_destruction(found, make_case()) is found


@pytest.mark.parametrize("cites", ["E2", "[E2]", "E2, R99", '"E2"', "E2: pytest failed", "see E2"])
def test_rows_are_found_in_what_is_cited(cites: str) -> None:
    """Models write a row's id in many ways; only rows of the case count."""
    assert cited_rows(Missing("x", cites), make_case()) == ("E2",)


@pytest.mark.shows("I24", "I27")
@pytest.mark.parametrize(
    ("cites", "check", "leak"),
    [
        ("run the tests", True, True),
        ('M1: "Run the tests"', True, True),
        ("[M1] run the tests", True, True),
        ("A1", True, False),  # failed before the change
        ("A2", False, False),  # is the change
        ("A3", False, False),  # failed after it
        ("A4", False, False),
        ("M1", False, False),
        ("E2", False, False),
        ("it is old", False, False),
        ("", False, False),
    ],
)
def test_an_excuse_is_the_persons_words_or_an_older_failure(cites: str, *, check: bool, leak: bool) -> None:
    """The number of a message or of any call excuses nothing, and secrets are excused by the person alone."""
    case = make_case()
    log = (
        Act("A1", "bash `make test` → exit 2", rank=FAILED),
        Act("A2", "edit a.py → done", rank=2),
        Act("A3", "bash `make test` → exit 2", rank=FAILED),
    )
    changed = replace(case.evidence, log=log, files=(FileChange("a.py", "edited", ("A2",)),))
    case = replace(case, evidence=changed)
    kinds = (Row("E2", "check", "failed"), Row("E2", "leak", "secrets"))
    assert [is_excuse(Missing("E2", cites), case, row) for row in kinds] == [check, leak]
