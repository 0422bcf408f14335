"""What follows from a reward and from a reflection: whether to ask, and the episode to store (AC-2.6.3)."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ..core.episodes import Episode
from ..core.learned import CHARS, refusal
from ..core.redact import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .case import Failure
    from .parse import Reflection

THRESHOLD: Final = 0.3
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？])\s+")  # noqa: RUF001 - the ends of sentences in other scripts
MARK: Final = "Lesson from Episode Memory"
SAID: Final = "Past experience from similar query suggests: {}"


def should_reflect(reward: float | None, threshold: float = THRESHOLD) -> bool:
    """Whether a reward is so low that a lesson is drawn."""
    return reward is not None and reward < threshold


def identity(session: str, task: str) -> str:
    """The id of the one episode of a task."""
    return sha256(f"{session}\0{task}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def shortened(text: str, most: int = CHARS) -> str:
    """The whole sentences at its beginning that fit; the text itself when the first one is too long."""
    if len(text) <= most:
        return text
    kept = ""
    for sentence in _SENTENCE.split(text):
        longer = f"{kept} {sentence}".strip()
        if len(longer) > most:
            break
        kept = longer
    return kept or text


def episode(
    found: Failure, said: Reflection, *, project: str, author: str = "", cites: Sequence[str] = ()
) -> Episode | str:
    """The episode; why it may not be stored, when its lesson must not be put in front of an agent."""
    lesson, problem = shortened(redact(said.lesson)), shortened(redact(said.problem))
    if why := refusal(lesson):
        return why
    return Episode(
        id=identity(found.session, found.task),
        project=project,
        query=found.query,
        reward=found.reward,
        problem="" if refusal(problem) else problem,
        lesson=lesson,
        reflection=redact(said.full),
        triggers=found.triggers,
        cites=tuple(cites),
        files=found.files,
        proof=found.proof,
        author=author,
        session=found.session,
        turn=found.turn,
        task=found.task,
        at=found.at,
    )


def may_show(episode: Episode, project: str) -> bool:
    """Whether its lesson may be put in front of an agent in this project. A quarantined one may where it was
    learned, when a row of its own case proves the failure.
    """
    if episode.state == "confirmed":
        return not refusal(episode.lesson)
    proven = episode.state == "quarantined" and bool(episode.proof) and episode.project == project
    return proven and bool(project) and not refusal(episode.lesson)


def confirms(new: Episode, old: Episode) -> bool:
    """Whether a new episode shows by a row that an older one of another session was right: both hung on the
    same, in the same project.
    """
    same = new.project == old.project and new.session != old.session
    return same and bool(new.proof) and not set(new.triggers).isdisjoint(old.triggers)
