"""What repeats itself: found in a transcript off the loop, and named in the feedback that goes out anyway."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.orders import SendFeedback
from ..stuck.loops import loop_in, loop_text

if TYPE_CHECKING:
    from ..core.transcript import Transcript
    from ..judge.decide import Decision
    from ..stuck.loops import Loop


async def worked_in_circles(transcript: Transcript) -> Loop | None:
    """What repeated itself up to the last call, whatever the agent says of it: for a turn that is judged."""
    return await find_loop(silent(transcript)) if transcript.turn is not None else None


def silent(transcript: Transcript) -> Transcript:
    """The transcript without the words of the last answer, which are no part of what repeats itself."""
    turn = transcript.turn
    messages = tuple(replace(m, text="") if m is turn else m for m in transcript.messages)
    return replace(transcript, messages=messages)


async def find_loop(transcript: Transcript) -> Loop | None:
    """What repeats itself at the end of the work. It is read in a thread: few calls may be long ones."""
    return await asyncio.to_thread(loop_in, transcript)


def naming_loop(decision: Decision, loop: Loop | None) -> Decision:
    """The same feedback with what repeats itself: that is then the one time that the agent is told."""
    if loop is None or not any(isinstance(o, SendFeedback) for o in decision.orders):
        return decision
    orders = tuple(
        replace(o, text=f"{o.text}\n\n{loop_text(loop)}") if isinstance(o, SendFeedback) else o
        for o in decision.orders
    )
    session = replace(decision.session, loop=loop.key, loop_count=loop.count)
    return replace(decision, session=session, orders=orders)
