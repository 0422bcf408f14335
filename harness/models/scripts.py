"""What the scripted model says in the usual cases: work left undone, work done, a judge's verdict.

``INCOMPLETE`` is what no evidence row proves, so a second look follows it: ``UNDEFENDED``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from harness.models.server import Request, Step, bash, text, write

HEADING = "## Reflection-3: Task Incomplete"
REQUEST = "Write hello.py; make test must pass"
CLAIM = "All done."
DONE = "Done: make test passes."


def unfinished(*then: Step) -> list[Step]:
    """A file is written, the tests fail, the agent says that all is done (or goes on with ``then``)."""
    return [write("hello.py", "print('hello')\n"), bash("make test"), *(then or (text(CLAIM),))]


def finished(*then: Step) -> list[Step]:
    """All that was asked for is written, the tests pass."""
    work = [write("hello.py", "print('hello')\n"), bash("echo 42 > answer.txt && make test")]
    return [*work, *(then or (text(DONE),))]


def nonce_of(request: Request) -> str:
    """The marker of the data in a judge's prompt."""
    found = re.search(r"^The marker of this data is (\w+)\.$", request.prompt, re.MULTILINE)
    assert found, f"the judge's prompt has no nonce:\n{request.prompt[:2000]}"
    return found[1]


def row_of(request: Request, words: str) -> str:
    """The id of the evidence row that has ``words``."""
    found = re.search(rf"^(\w+) \[.*{re.escape(words)}", request.prompt, re.MULTILINE)
    assert found, f"no row with {words!r}:\n{request.prompt[:2000]}"
    return found[1]


def verdict(
    *,
    complete: bool,
    severity: str = "NONE",
    missing: Iterable[tuple[str, str]] = (),
    next_actions: Iterable[str] = (),
    feedback: str = "",
    human: bool = False,
    row: str = "",
) -> Callable[[Request], str]:
    """A judge's reply, with the nonce of the call. ``missing``: (item, what it cites); with ``row`` each
    item cites the evidence row that has these words.
    """

    def reply(request: Request) -> str:
        answer: dict[str, Any] = {
            "requirements": ["scripted"],
            "reasons": "scripted",
            "nonce": nonce_of(request),
            "complete": complete,
            "severity": severity,
            "missing": [
                {"item": item, "cites": row_of(request, row) if row else cites} for item, cites in missing
            ],
            "next_actions": list(next_actions),
            "requires_human_action": human,
            "feedback": feedback,
        }
        return f"I looked at the evidence.\n```json\n{json.dumps(answer)}\n```"

    return reply


def UNDEFENDED(request: Request) -> str:  # noqa: N802 - it stands beside INCOMPLETE
    """The answer of the second look: nobody can defend this stop."""
    return json.dumps({"reasons": "scripted", "nonce": nonce_of(request), "defended": False})


INCOMPLETE = verdict(
    complete=False,
    severity="HIGH",
    missing=[("the tests do not pass", "make test must pass")],
    next_actions=["make the tests pass"],
    feedback="make test fails: write answer.txt.",
)
COMPLETE = verdict(complete=True)
