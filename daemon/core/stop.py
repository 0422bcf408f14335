"""A stop: the moment in a past session at which the agent ended its turn, with what came next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .transcript import Transcript

After = Literal["person", "feedback", "host", "end"]


@dataclass(frozen=True, slots=True)
class Stop:
    """``transcript``: as the host would have told it at that moment, up to the answer that ended the turn.

    ``after``: who spoke next. ``feedback`` is ours; ``host``: the agent was woken by itself, for example when
    something ended in the background; ``end``: nobody did. ``said``: what the person typed next, if they did.
    """

    transcript: Transcript
    after: After
    said: str = ""
