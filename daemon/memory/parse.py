"""Replies of reflexion and evaluation, read (AC-2.6.2)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.errors import BadReply
from ..core.reply import wanted_object

if TYPE_CHECKING:
    from ..core.llm import Reply

_SECTION: Final = re.compile(
    r"[*_#\s>-]{0,8}(problem|lesson)[*_]{0,2}\s{0,4}:[*_]{0,2}\s*(.*)", re.IGNORECASE
)
MAX_REASONING: Final = 4_000


@dataclass(frozen=True, slots=True)
class Reflection:
    """``problem``: what went wrong. ``lesson``: what to do next time. ``full``: the whole reply."""

    problem: str
    lesson: str
    full: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """``reward``: -1 to 1."""

    reward: float
    reasoning: str


def reflection(text: str) -> Reflection | None:
    """The two sections of a reply; each goes to the next one's name, its lines joined by spaces. None for a
    reply without ``Lesson:``: whatever else a model said is no lesson.
    """
    full = text.strip()
    parts: dict[str, list[str]] = {}
    current = ""
    for raw in full.splitlines():
        line = raw.strip()
        match = _SECTION.fullmatch(line)
        if match is not None:
            current = match[1].lower()
            parts[current] = [match[2].strip()]
        elif current and line:
            parts[current].append(line)
    problem, lesson = (" ".join(filter(None, parts.get(name, ()))) for name in ("problem", "lesson"))
    return Reflection(problem, lesson, full) if lesson else None


def or_whole(text: str) -> Reflection:
    """The same, and of a reply without ``Lesson:`` the whole reply as lesson: for callers of the library, who
    look at it themselves.
    """
    return reflection(text) or Reflection("", text.strip(), text.strip())


def evaluation(reply: Reply, nonce: str) -> Evaluation:
    """The reward, brought into -1 to 1, and its reasons. Raises ``BadReply``."""
    found = wanted_object(reply, nonce, "reward", "reasoning", what="evaluation")
    reward, reasoning = found["reward"], found["reasoning"]
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        raise BadReply("the reward is no number", raw=reply.text)
    if not isinstance(reasoning, str):
        raise BadReply("the reasoning is no text", raw=reply.text)
    return Evaluation(max(-1.0, min(1.0, float(reward))), reasoning.strip()[:MAX_REASONING])
