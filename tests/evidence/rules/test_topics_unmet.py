"""Work that was asked for and that nothing shows. ``facts`` has no test of its own: the rules show it."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from tests.support.tables import tables
from tests.support.transcripts import COMMIT, PUSH, TEST, bash, edit, evidence_of, opened

ROWS = tables("requests")

URL = "https://github.com/a/b/pull/12"


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    ("ask", "calls", "topic"),
    [
        ("Fix it and run the tests", (edit(),), "tests"),
        ("Fix it and run the tests", (TEST, edit()), "tests"),
        ("Fix it and add a test", (edit(), TEST), "new_tests"),
        ("Fix it and update the docs", (edit(), TEST), "docs"),
        ("Fix it and update the changelog", (edit(), edit("README.md")), "changelog"),
        ("Fix it and commit", (edit(), TEST), "commit"),
        ("Fix it, commit and push", (edit(), COMMIT), "push"),
        ("Fix it and open a PR", (edit(), COMMIT, PUSH), "pr"),
        ("Fix it. Make sure it builds.", (edit(),), "build"),
        ("Fix it and run the linter", (edit(), TEST), "lint"),
        ("Fix it and push", (edit(), bash("git push", "! [rejected] main -> main (fetch first)", 1)), "push"),
    ],
)
def test_asked_and_not_done(ask: str, calls: tuple[ToolCall, ...], topic: str) -> None:
    """The request names it and nothing in the calls may have done it."""
    (row,) = opened(ask, *calls)
    assert (row.kind, row.topic) == ("unmet", topic)
    assert row.cites[0].startswith("R")


@pytest.mark.shows("I26")
@pytest.mark.parametrize(
    ("ask", "calls", "final"),
    [
        ("Fix it", (edit(),), "Done."),
        ("Fix it and run the tests", (edit(), TEST), "Done."),
        ("Fix it and run the tests", (edit(), bash("./scripts/verify.sh")), "Done."),
        ("Fix it and run the tests", (edit(),), "Fixed. I could not run the tests: pytest is not installed."),
        ("Fix it, don't run the tests", (edit(),), "Done."),
        ("Fix it and add a test", (edit(), edit("tests/test_a.py")), "Done."),
        ("Fix it and add a test", (edit("src/a.rs", "", "#[test]\nfn works() {}"),), "Done."),
        ("Fix it and commit", (edit(), COMMIT), "Done."),
        ("Fix it and commit", (edit(), bash("./commit.sh")), "Done."),
        ("Fix it and commit", (edit(),), "There is no git repository here, so I could not commit."),
        ("Fix it, commit and push", (edit(), COMMIT, PUSH), "Done."),
        ("Fix it and open a PR", (edit(), COMMIT, bash("gh pr create --fill", URL)), "Done."),
        ("Fix it and update the docs", (edit(), edit("docs/usage.md")), "Done."),
        ("Add a note to CHANGELOG.md", (edit("CHANGELOG.md"),), "Done."),
        ("Fix it and push", (edit(), ToolCall("t", "task", "completed", {"prompt": "push it"})), "Done."),
        ("If the tests pass, commit", (edit(), TEST), "Done."),
    ],
)
def test_nothing_missing(ask: str, calls: tuple[ToolCall, ...], final: str) -> None:
    """Done, forbidden, explained, never asked for, or out of sight: no open row."""
    assert opened(ask, *calls, final=final) == []


def test_reasons() -> None:
    """One leaves a closed row, which no rule decides; counters such as "0 failed" are none."""
    evidence = evidence_of("Fix it and push", edit(), final="I could not push: authentication failed.")
    assert [(r.topic, r.open) for r in evidence.of("unmet")] == [("push", False)]
    assert opened("Implement elo and write unit tests", edit(), TEST, final="`pytest`: 14 passed, 0 failed.")


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
@pytest.mark.parametrize("ask", ROWS["must_pass"])
def test_a_command_that_must_pass_is_asked_for(ask: str) -> None:
    """A check named as a command, quoted or not, has to run after the last edit."""
    rows = evidence_of(ask, TEST, edit()).open
    assert [(r.kind, r.topic) for r in rows] == [("unmet", "tests")]
    assert not evidence_of(ask, edit(), bash("cargo test && ./gradlew check && make test && npm test")).open


@pytest.mark.shows("I24")
@pytest.mark.parametrize("ask", ["The upload should pass the token", "Fix it: the badge must be green"])
def test_other_things_pass_too(ask: str) -> None:
    """ "pass" and "green" alone ask for no check."""
    assert "tests" not in evidence_of(ask, edit()).asks


@pytest.mark.shows("I24")
def test_red_ci_after_a_push_without_edits() -> None:
    """CI that was to be green and was last seen red is unfinished, with no file written too."""
    checks = bash("gh pr checks", "unit\tfail\t22s\thttps://github.com/a/b/actions/1\n", 1)
    push = bash("git push", "   1a2b3c4..5d6e7f8  main -> main")
    (row,) = evidence_of("Push and make sure CI is green", push, checks, final="Pushed.").open
    assert row.topic == "ci"
    told = "CI fails because the runner has no disk left."
    assert not evidence_of("Push and make sure CI is green", push, checks, final=told).open


@pytest.mark.shows("I26")
@pytest.mark.parametrize(("ask", "topic"), ROWS["asked"])
def test_asked_in_other_languages(ask: str, topic: str) -> None:
    """A topic asked for in German, French, Spanish or Portuguese is asked for."""
    assert topic in [r.topic for r in evidence_of(ask, edit()).of("unmet")]


@pytest.mark.shows("I26")
@pytest.mark.parametrize("ask", ROWS["ruled_out"])
def test_ruled_out_in_other_languages(ask: str) -> None:
    """What is ruled out in another language is asked for by no rule."""
    assert not set(evidence_of(ask, edit()).asks) & {"new_tests", "commit", "push", "pr", "changelog"}
    assert not [r for r in opened(ask, edit()) if r.topic != "tests" or "cabal" not in ask]
