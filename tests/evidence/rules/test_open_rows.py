"""What a request leaves open. ``facts`` has no test of its own: the rules show it."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.core.transcript import ToolCall
from tests.support.tables import tables
from tests.support.transcripts import (
    COMMIT,
    PASSED,
    PUSH,
    RED,
    TEST,
    bash,
    edit,
    evidence_of,
    opened,
    read,
    write,
)

ROWS = tables("requests")
AGENT = ToolCall("t", "task", "completed", {"prompt": "push it"})
CALLS = {
    "TEST": TEST,
    "COMMIT": COMMIT,
    "PUSH": PUSH,
    "read": read(),
    "task": AGENT,
    "edit": edit(),
    "RED": RED,
}
ANSWER = "Two services write to it: checkout in OrderEvents.java:31 and refunds in Publisher.java:19. " * 2


def call(name: Any) -> ToolCall:
    """A name of ``CALLS``, ``edit PATH``, a command with its output and exit code, or a tool's arguments."""
    match name:
        case str():
            return CALLS.get(name) or edit(name.partition(" ")[2])
        case list():
            return bash(*name)
        case {"write": given}:
            return write(*given)
        case {"read": given}:
            return read(*given)
        case _:
            return edit(*name["edit"])


@pytest.mark.shows("I15", "I24", "I25", "I26")
@pytest.mark.parametrize(
    ("ask", "calls", "final", "expected"),
    ROWS["open"],
    ids=[f"{n} {row[0][:30]}" for n, row in enumerate(ROWS["open"])],
)
def test_what_is_open(ask: str, calls: list[Any], final: str, expected: list[str]) -> None:
    """Asked for and not done, offered or planned instead, in many languages; a stand-in for code; an edit, a
    run or a check that failed. Not what is done, forbidden, explained, out of sight, answered by a later run,
    older than the work, or more than was asked for.
    """
    rows = opened(ask, *map(call, calls), final=final)
    assert [f"{r.kind} {r.topic or ''}".strip() for r in rows] == expected
    assert all(r.cites[0].startswith("R") for r in rows if r.topic or r.kind == "offer")


def test_what_is_missing_is_named() -> None:
    """A file, a tag, a stub; a new test beside the code in Rust is one."""
    (row,) = opened("Add a flag. It has to be described, so add a line to docs/cli.md", edit(), TEST)
    assert "docs/cli.md" in row.text
    (row,) = opened("Change x and tag it v2.0.0", edit(), TEST)
    assert "tag" in row.detail
    (row,) = opened("Change a and b", edit("/repo/a.py"), edit("/repo/b.py", error="not found"), TEST)
    assert "b.py" in row.detail
    assert opened("Fix it and add a test", edit("src/a.rs", "", "#[test]\nfn works() {}")) == []
    stub, filled = (
        write("a.py", "raise NotImplementedError"),
        edit("a.py", "raise NotImplementedError", "return 1"),
    )
    for calls, shown in (((stub,), True), ((stub, filled), False)):
        assert ("not implemented" in evidence_of("Add it", *calls).of("write")[0].text) is shown


def test_a_lasting_shell_keeps_its_folder() -> None:
    """Claude Code's Bash stays where the last ``cd`` went."""
    for shell, is_open in (("Bash", False), ("bash", True)):
        red = bash("pytest", "2 failed, 5 passed in 0.12s", 1, tool=shell)
        calls = (bash("cd api", tool=shell), edit(), red, bash("cd api && pytest", PASSED))
        assert bool(evidence_of("Fix the bug", *calls).open) is is_open


def test_a_reason_leaves_a_closed_row() -> None:
    """The judge sees it, no rule decides it."""
    evidence = evidence_of("Fix it and push", edit(), final="I could not push: authentication failed.")
    assert [(r.topic, r.open) for r in evidence.of("unmet")] == [("push", False)]


@pytest.mark.shows("I26")
def test_a_rule_of_the_project() -> None:
    """A project's rule asks for its checks where code changed, and for nothing else."""
    rule = "Always run `make lint` before you finish."
    (row,) = opened("Fix it", edit(), TEST, project=rule)
    assert (row.topic, "project" in row.text) == ("lint", True)
    assert opened("Fix it", edit("README.md"), project=rule) == []
    assert opened("Fix it, no lint run please", edit(), TEST, project=rule) == []
    assert evidence_of("Fix it", edit(), project=rule).of("project_rule")[0].text.endswith(rule)
    assert evidence_of("Commit it", project="Never commit unless asked.").forbids == ()


@pytest.mark.shows("I24")
@pytest.mark.parametrize("ask", ["The upload should pass the token", "Fix it: the badge must be green"])
def test_other_things_pass_too(ask: str) -> None:
    """ "pass" and "green" alone ask for no check."""
    assert "tests" not in evidence_of(ask, edit()).asks


@pytest.mark.shows("I24")
def test_red_ci_after_a_push_without_edits() -> None:
    """CI that was to be green and was last seen red is unfinished, with no file written too."""
    checks = bash("gh pr checks", "unit\tfail\t22s\thttps://github.com/a/b/actions/1\n", 1)
    for final, topics in (("Pushed.", ["ci"]), ("CI fails because the runner has no disk left.", [])):
        rows = evidence_of("Push and make sure CI is green", PUSH, checks, final=final).open
        assert [row.topic for row in rows] == topics


@pytest.mark.shows("I26")
@pytest.mark.parametrize("ask", ROWS["ruled_out"])
def test_ruled_out_in_other_languages(ask: str) -> None:
    """What is ruled out in another language is asked for by no rule."""
    assert not set(evidence_of(ask, edit()).asks) & {"new_tests", "commit", "push", "pr", "changelog"}
    assert not [r for r in opened(ask, edit()) if r.topic != "tests" or "cabal" not in ask]


@pytest.mark.shows("I25")
@pytest.mark.parametrize(
    ("final", "rows"),
    [
        (f"{ANSWER}\n\nDo you want me to drop the old subscription?", [False]),
        ("Do you want me to drop the old subscription?", []),
        (f"{ANSWER}\n\nShould I look further?", []),
        (f"{ANSWER}\n\nWhich one do you mean?", []),
    ],
)
def test_an_answer_and_an_offer_on_top(final: str, rows: list[bool]) -> None:
    """A question that is answered is done, whatever change is offered on top."""
    found = evidence_of("Which services write to orders.v2?", final=final)
    assert [r.open for r in found.of("offer")] == rows


@pytest.mark.shows("I24")
@pytest.mark.parametrize(("heading", "only_extras"), [("Next steps (optional)", True), ("Next steps", False)])
def test_optional_next_steps(heading: str, *, only_extras: bool) -> None:
    """A list that calls itself optional holds back nothing; another list may."""
    final = f"Renamed; all tests pass.\n\n## {heading}\n- Tell the users in the newsletter"
    found = evidence_of("Rename the package foo to bar", edit(), TEST, final=final)
    assert found.ending == "next_steps"
    assert bool(found.of("offer")) is only_extras
