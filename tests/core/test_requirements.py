"""Requests cut into requirements, and what they ask for and rule out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.requirements import MAX_REQUIREMENTS, MAX_TEXT, requirements, topics, wants
from daemon.core.topics import gate_lines, read_clause


def texts(*messages: str) -> list[str]:
    return [r.text for r in requirements(messages)]


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("Fix the bug", ["Fix the bug"]),
        ("The login fails with an empty password.", ["The login fails with an empty password."]),
        (
            "The login fails. Please fix it, add a test and commit.",
            ["Please fix it", "add a test", "commit."],
        ),
        (
            "Do this:\n1. add a flag\n2. document it\n   in the README\n3. run the tests",
            ["add a flag", "document it in the README", "run the tests"],
        ),
        ("- add a flag\n- [ ] remove the old one\n\nThanks!", ["add a flag", "remove the old one"]),
        (
            "Fix this:\n```\nTraceback\nAdd a flag. Run it.\n```\nThen run the tests.",
            ["Fix this:", "Then run the tests."],
        ),
        ("Fix it\n> please add a flag\n> and run it", ["Fix it"]),
        ("What does a.py do?", ["What does a.py do?"]),
        (
            "Can you rename foo to bar, then update the docs?",
            ["Can you rename foo to bar", "update the docs?"],
        ),
    ],
)
def test_what_is_one_requirement(message: str, found: list[str]) -> None:
    """I28: list items, sentences and joined imperatives; quotes, code and small talk are none."""
    assert texts(message) == found


def test_later_messages_win() -> None:
    """I28: what a later message takes back or changes is marked and no longer asked for."""
    found = requirements(
        ("Add a login page. Push when done.", "Actually, don't push. Skip the login page styling.")
    )
    assert [r.by for r in found] == [3, 2, -1, -1]
    asks, forbids = topics(found)
    assert (asks, forbids) == ((), ("push",))
    assert requirements(("Fix the parser", "Scratch that, never mind.", "Add a flag"))[0].by == 1
    assert [r.by for r in requirements(("Fix the parser", "and add a test for it"))] == [-1, -1]


def test_a_later_request_overrules_an_earlier_ban() -> None:
    """The latest word on a topic counts, both ways."""
    assert topics(requirements(("Fix it, no commit please.", "Looks good, commit it now.")))[0] == ("commit",)
    assert topics(requirements(("Fix it and commit.", "No commit, please.")))[1] == ("commit",)


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
    """I26: only plain wording asks for a gate."""
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


def test_a_ban_reaches_over_and() -> None:
    """ "Don't commit and push" forbids both."""
    assert topics(requirements(("Fix the bug, but don't commit and push.",))) == ((), ("commit", "push"))


@pytest.mark.parametrize(
    ("project", "asks", "forbids"),
    [
        ("- Always run `make lint` before committing.", {"lint"}, set()),
        ("You must run the tests before you finish.", {"tests"}, set()),
        ("`cargo test` must pass.", {"tests"}, set()),
        ("Run tests: `npm test`", set(), set()),
        ("Never commit unless asked.", set(), {"commit"}),
        ("Do not push to main.", set(), set()),
    ],
)
def test_project_rules(project: str, asks: set[str], forbids: set[str]) -> None:
    """I26: a line of the project's rules is a gate only where it obliges; a description is none."""
    found = gate_lines(project)
    assert {t for _, said in found for t in said.asks} == asks
    assert {t for _, said in found for t in said.forbids} == forbids


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("Fix the login bug", "change"),
        ("Can you add a flag?", "change"),
        ("What does a.py do?", "answer"),
        ("Run the tests and tell me what fails", "answer"),
        ("Make a plan for the migration", "plan"),
        ("Don't change anything yet, look at the parser", "plan"),
        ("How would you refactor this?", "plan"),
        ("hm", "unclear"),
    ],
)
def test_what_is_wanted(message: str, wanted: str) -> None:
    """I25: a change, an answer or a plan."""
    assert wants((message,), requirements((message,))) == wanted


@given(st.lists(st.text(alphabet="add run tests.don't\n-1) *`>?,and commit", max_size=200), max_size=4))
def test_any_messages(messages: list[str]) -> None:
    """No text makes it fail; caps hold; a marked requirement points at a later one."""
    found = requirements(messages)
    assert len(found) <= MAX_REQUIREMENTS
    assert all(len(r.text) <= MAX_TEXT for r in found)
    assert all(r.by == -1 or i < r.by < len(found) for i, r in enumerate(found))
    asks, forbids = topics(found)
    assert not set(asks) & set(forbids)


def test_many_requirements_keep_the_first_and_the_last() -> None:
    """The cap drops the middle, so that the latest word stays."""
    found = texts("\n".join(f"- add flag {i}" for i in range(100)))
    assert len(found) == MAX_REQUIREMENTS
    assert (found[0], found[-1]) == ("add flag 0", "add flag 99")
