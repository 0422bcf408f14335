"""Commits, pushes, pull requests and runs: what came of each, as its row says it."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from tests.support.transcripts import COMMIT, PUSH, bash, edit, evidence_of

URL = "https://github.com/a/b/pull/12"


@pytest.mark.parametrize(
    ("call", "outcome", "text"),
    [
        (COMMIT, "passed", "[main 1a2b3c4] Fix"),
        (bash("git commit -m x", "nothing to commit, working tree clean", 1), "failed", "commit"),
        (PUSH, "passed", "git push"),
        (bash("git push | tail -1", "error: failed to push some refs to 'x'"), "failed", "push"),
        (bash("gh pr create --fill", f"Creating pull request\n{URL}\n"), "passed", f"#12 {URL}"),
        (bash("gh pr create", "pull request create failed: GraphQL: No commits", 1), "failed", "pr"),
        (bash("glab mr create", "https://gitlab.com/a/b/-/merge_requests/7"), "passed", "#7"),
        (bash("gh issue comment 3 -b x", "https://github.com/a/b/issues/3#issuecomment-1"), "passed", "#3"),
        (bash("gh pr checks", "build\tfail\t1m\thttps://x", 1), "failed", "ci"),
        (bash("cd x && git -C y push origin HEAD; echo ok", "Everything up-to-date"), "passed", "push"),
    ],
)
def test_git_rows(call: ToolCall, outcome: str, text: str) -> None:
    """Commits, pushes, pull requests and issues, with what came of them and their links."""
    (row,) = evidence_of("Fix it", edit(), call).of("git")
    assert (row.outcome, text in row.text) == (outcome, True)


def test_runs_and_deployments_are_bounded() -> None:
    """The program and pages that were run; the last five."""
    calls = [bash(f"python run_{i}.py") for i in range(30)] + [bash("npm run deploy", "", 0)]
    rows = evidence_of("Fix it", *calls).of("run")
    assert len(rows) == 5
    assert rows[-1].text.startswith("deploy at A31: `npm run deploy` done")
