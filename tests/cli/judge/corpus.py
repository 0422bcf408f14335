"""Past sessions of Claude Code in the sandbox, as many as a test wants."""

from __future__ import annotations

from pathlib import Path

from harness.machine.sandbox import Sandbox
from tests.support.hosts.claude_code_past import begun, kept


def session(box: Sandbox, number: int, *, passed: bool = False, then: str = "") -> Path:
    """A session with one task, whose tests failed or passed, and perhaps a second one that only asks."""
    story = begun(box, number)
    story.human(f"Fix the rounding in shop{number}.py and run the tests")
    story.tool("Write", {"file_path": f"{story.cwd}/shop{number}.py", "content": "x = 1"}, "ok")
    story.bash("pytest -q", "5 passed in 0.1s" if passed else "2 failed in 0.1s", code=0 if passed else 1)
    story.say(f"The rounding {number} is fixed.")
    story.stopped()
    if then:
        story.human(then)
        story.say("It is there. Shall I show it?")
        story.stopped()
    return kept(box, story)


def sessions(box: Sandbox, number: int) -> list[Path]:
    """So many, every third of which is finished; after every fourth the person asks for the same again."""
    return [
        session(
            box,
            n,
            passed=n % 3 == 0,
            then="" if n % 4 else f"Fix the rounding in shop{n}.py and run the tests!",
        )
        for n in range(1, number + 1)
    ]
