"""What the final text says was done and no call shows: a claim, which proves nothing by itself.

The row is closed. Anything that may have done it counts as shown, so the row is missing rather than wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...core.evidence import Row, Topic
from ..answer.claims import claims
from ..words import shorten

if TYPE_CHECKING:
    from ..facts import Facts

_SHOWN_BY: Final[dict[Topic, tuple[Topic, ...]]] = {
    "tests": ("tests",),
    "build": ("build", "tests"),
    "lint": ("lint", "build"),  # a type checker that builds counts as both
    "commit": ("commit",),
    "push": ("push",),
    "pr": ("pr",),
}
_MISSING: Final[dict[Topic, str]] = {
    "tests": "no test run after the last edit",
    "build": "no build after the last edit",
    "lint": "no linter or type checker after the last edit",
    "commit": "no commit",
    "push": "no push",
    "pr": "no pull request",
}


def claimed(facts: Facts) -> list[Row]:
    """The rows of kind ``claim``, without ids, one for each topic."""
    return [
        Row(
            "", "claim", f'the agent says "{shorten(c.text)}"; the log has {_MISSING[c.topic]}', topic=c.topic
        )
        for c in claims(facts.final)
        if c.topic in _SHOWN_BY and not any(facts.work.shows(t) for t in _SHOWN_BY[c.topic])
    ]
