"""What a clause asks for and rules out. Shows ``topic_words`` too: its tables are read by nothing else."""

from __future__ import annotations

import pytest

from daemon.evidence.request.topics import read_clause
from tests.support.transcripts import TEST, edit, evidence_of


@pytest.mark.shows("I26")
@pytest.mark.parametrize(
    ("clause", "asks"),
    [
        ("run the tests", {"tests"}),
        ("make sure all tests still pass", {"tests"}),
        ("fix the failing tests", {"tests"}),
        ("make sure they pass", {"tests"}),
        ("run `make check` at the end", {"tests"}),
        ("add tests for it", {"new_tests"}),
        ("with tests", {"new_tests"}),
        ("add a test flag", set()),
        ("make sure it builds", {"build"}),
        ("fix the lint errors", {"lint"}),
        ("run mypy", {"lint"}),
        ("commit it", {"commit"}),
        ("commit and push", {"commit", "push"}),
        ("fix the commit message parser", set()),
        ("add push notifications", set()),
        ("open a PR", {"pr"}),
        ("create a pull request against main", {"pr"}),
        ("make CI green", {"ci"}),
        ("deploy it to staging", {"deploy"}),
        ("update the docs", {"docs"}),
        ("update the changelog", {"changelog"}),
        ("don't forget to run the tests", {"tests"}),
        ("if the tests pass, commit", set()),
        ("you can run the tests if you like", set()),
        ("how do I run the tests?", set()),
        ("can you run the tests?", {"tests"}),
        ("führe die Tests aus", {"tests"}),
        ("when you're done, run the tests", {"tests"}),
        ("before you finish, run the tests", {"tests"}),
        ("write unit tests and run them", {"new_tests"}),
        ("add a failing jest test for it", {"new_tests"}),
        ("add a note to the README", {"docs"}),
        ("the job should commit changes and push them", set()),
        ("the page needs a button to create a pull request", set()),
        ("add a command to run the tests in parallel", set()),
        ("write a script that tests the API", set()),
        ("write functions to begin, commit and roll back", set()),
        ("implement a queue with push and pop", set()),
        ("try to build a parser", set()),
        ("fix the linter config", set()),
        ("write a parser for the docs folder", set()),
        ("add a changelog page", set()),
        ("all tests must pass", {"tests"}),
        ("bitte danach die Tests laufen lassen", {"tests"}),
    ],
)
def test_asked(clause: str, asks: set[str]) -> None:
    """Only plain wording asks for anything."""
    assert read_clause(clause).asks == asks


@pytest.mark.parametrize(
    ("clause", "forbids"),
    [
        ("don't run the tests", {"tests"}),
        ("do not run any tests yet", {"tests"}),
        ("no tests please", {"tests", "new_tests"}),
        ("without running the tests", {"tests"}),
        ("skip the tests", {"tests", "new_tests"}),
        ("don't write tests", {"new_tests"}),
        ("don't commit", {"commit"}),
        ("don\u2019t commit anything", {"commit"}),
        ("do not commit or push", {"commit", "push"}),
        ("no commit", {"commit"}),
        ("never commit without asking me", {"commit"}),
        ("without a PR", {"pr"}),
        ("don't open a pull request", {"pr"}),
        ("don't deploy", {"deploy"}),
        ("keine Tests", {"tests", "new_tests"}),
        ("nicht committen", {"commit"}),
        ("ohne PR", {"pr"}),
        ("don't push to main", set()),
        ("don't commit secrets", set()),
        ("no tests should fail", set()),
        ("don't break the tests", set()),
        ("don't skip the tests", set()),
        ("run the tests", set()),
    ],
)
def test_forbidden(clause: str, forbids: set[str]) -> None:
    """What the person ruled out, and near misses that rule out something narrower."""
    said = read_clause(clause)
    assert said.forbids == forbids
    assert not said.asks & said.forbids


@pytest.mark.shows("I24")
def test_pull_request_in_other_words() -> None:
    """ "branch + PR" and "PR against develop" ask for one."""
    for ask in ("Change x, branch + PR against develop", "Change x:\n- clean up\n- PR against main"):
        assert "pr" in evidence_of(ask, edit(), TEST).asks
    assert "pr" not in evidence_of("Change x on the branch and PR template", edit(), TEST).asks
