"""What the final text says and no call shows."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from tests.support.tables import tables
from tests.support.transcripts import COMMIT, PUSH, TEST, bash, edit, evidence_of

ROWS = tables("requests")

TSC = bash("npx tsc --noEmit")


def claims(final: str, *calls: ToolCall) -> list[str]:
    """The topics of the rows of kind ``claim``; none of them is open."""
    rows = evidence_of("Fix it", edit(), *calls, final=final).of("claim")
    assert not any(r.open for r in rows)
    return [r.topic for r in rows]


@pytest.mark.parametrize(("final", "topic"), ROWS["said"])
def test_said_and_not_shown(final: str, topic: str) -> None:
    """One row, with the words of the agent and what the log lacks."""
    assert claims(final) == [topic]
    (row,) = evidence_of("Fix it", edit(), final=final).of("claim")
    assert "; the log has no " in row.text


@pytest.mark.parametrize(
    ("final", "calls"),
    [
        ("Fixed. All tests pass.", (TEST,)),
        ("Fixed. The build succeeds.", (bash("npm run build"),)),
        ("Fixed; tsc reports no errors.", (TSC,)),
        ("Fixed, tsc --noEmit is clean and the types check.", (TSC,)),
        ("Fixed, lint is clean.", (bash("npx eslint ."),)),
        ("Fixed and committed.", (COMMIT,)),
        ("I pushed it to main.", (PUSH,)),
        ("I opened a pull request.", (bash("gh pr create --fill", "https://github.com/a/b/pull/1"),)),
        ("All tests pass.", (bash("./scripts/smoke_test_all.rb"),)),
        ("All tests pass.", (ToolCall("t", "task", "completed", {}),)),
        ("Fixed.", ()),
    ],
)
def test_what_may_have_shown_it_is_no_claim(final: str, calls: tuple[ToolCall, ...]) -> None:
    """A claim about tsc with a run of tsc gives no row; nor does anything that may be it."""
    assert claims(final, *calls) == []


def test_a_run_before_the_last_edit_does_not_show_it() -> None:
    """The claim is about the code as it is now."""
    assert claims("All tests pass.", TEST, edit()) == ["tests"]
