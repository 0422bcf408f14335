"""What the calls may have done about a kind of work: doubt counts as yes. ``tools`` holds names only."""

from __future__ import annotations

import pytest

from daemon.core.evidence import Topic
from daemon.core.transcript import ToolCall
from daemon.evidence.calls.reading import read
from tests.support.transcripts import COMMIT, PUSH, TEST, bash, edit

AGENT = ToolCall("t", "task", "completed", {"subagent_type": "general", "prompt": "Do it"}, "Done.")


@pytest.mark.shows("I26")
@pytest.mark.parametrize(
    ("topic", "calls", "shown"),
    [
        ("tests", (edit(), TEST), True),
        ("tests", (TEST, edit()), False),
        ("tests", (edit(), bash("./scripts/verify.sh")), True),
        ("build", (edit(), TEST), True),
        ("lint", (edit(), TEST), False),
        ("new_tests", (edit("tests/test_a.py"),), True),
        ("new_tests", (edit(),), False),
        ("docs", (edit("docs/use.md"),), True),
        ("changelog", (edit("README.md"),), False),
        ("changelog", (edit("CHANGELOG.md"),), True),
        ("commit", (edit(), COMMIT), True),
        ("commit", (edit(), bash("git commit -m x", "nothing to commit", 1)), False),
        ("push", (edit(), COMMIT), False),
        ("push", (edit(), PUSH), True),
        ("pr", (edit(), bash("gh pr create", "https://github.com/a/b/pull/1")), True),
        ("ci", (PUSH, bash("gh pr checks", "unit\tfail\t22s\thttps://x", 1)), False),
        ("browser", (bash("npm start"),), True),
        *((topic, (AGENT,), True) for topic in ("tests", "new_tests", "docs", "commit", "pr", "deploy")),
    ],
)
def test_shown(topic: Topic, calls: tuple[ToolCall, ...], *, shown: bool) -> None:
    """A run after the last edit, a written file, a commit; a sub-agent may have done anything."""
    assert read(calls, "/repo").shows(topic) is shown


def test_positions_and_counts() -> None:
    """Documents and scratch files are no code; what a script wrote can't be named."""
    work = read((edit("a.md"), edit("src/a.py"), bash("echo x > /tmp/y"), TEST), "/repo")
    assert (len(work.writes), work.code_writes, work.last_code, work.blind_writes) == (2, 1, 2, False)
    assert read((bash("python -c \"open('a', 'w').write('b')\""),), "/repo").blind_writes
