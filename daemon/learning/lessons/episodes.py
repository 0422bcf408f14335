"""Episodes: tasks that ended badly, each with the lesson that was drawn from it (AC-2.6.2, AC-2.6.3).

Their types, which lesson may be shown, and what is forgotten: lessons whose subject is gone, that say what
another says, that nobody needed, that did not help, and those above the cap of a project. Decisions only: the
caller looks at the disk and changes the store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from ...core.given import folded
from ..texts import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

State = Literal["quarantined", "confirmed", "dismissed"]
"""``quarantined``: kept apart until another session or a person confirms it. ``dismissed``: a person took it
back, or the verdict that it rests on was disputed; it is kept so that it is not learned again.
"""
TriggerKind = Literal["command"]
SIMILAR: Final = 0.70
"""The similarity above which the API and MCP call an episode similar (AC-2.6.4)."""
TOP_K: Final = 3
DAY_MS: Final = 86_400_000
UNUSED_DAYS: Final = 180  # an unconfirmed lesson that no task came for
DISMISSED_DAYS: Final = 90  # so long a dismissed lesson is kept, so that it is not learned again
CONTRADICTED: Final = 2  # bad verdicts after a lesson was given, more than good ones
MOST_CITED: Final = 8
_CODE: Final = re.compile(r"`([^`\n]{2,120})`")
_TOKEN: Final = re.compile(r"[\w./@+-]+")
_PROGRAM: Final = re.compile(r"[a-z][a-z0-9_.+-]*\Z")


@dataclass(frozen=True, slots=True)
class Trigger:
    """What a failure hung on: the command of a check that failed to the end."""

    kind: TriggerKind
    text: str


@dataclass(frozen=True, slots=True)
class Episode:
    """A task that ended badly, and what to do next time.

    ``id``: 32 hexadecimal digits. ``project``: what names the repository for all its worktrees; empty for
    an episode that a client of the API stored without one. ``query``: the task in the person's words.
    ``reward``: -1 to 1. ``reflection``: the model's whole reply, ``problem`` and ``lesson`` its parts.
    ``proof``: the decisive evidence row, empty when only a model's opinion says that the task failed.
    ``cites``: paths and commands that the lesson names. ``files``: what the task changed. ``author``: who
    learned it, shown where a store is shared. ``task``: the person's message that began it. ``at``: epoch ms.
    """

    id: str
    project: str
    query: str
    reward: float
    problem: str
    lesson: str
    reflection: str
    state: State = "quarantined"
    triggers: tuple[Trigger, ...] = ()
    cites: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    proof: str = ""
    author: str = ""
    session: str = ""
    turn: str = ""
    task: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class Use:
    """What became of an episode's lesson. ``given``: sessions that it was put in front of. ``helped`` and
    ``failed``: of these, whose first verdict afterwards was good or bad. ``last``: epoch ms, 0 for never.
    """

    given: int = 0
    helped: int = 0
    failed: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """An episode that a search found. ``similarity``: the cosine of its query's vector, None without one.
    ``bm25``: how well its words match, higher is better, None when it was not found by its words.
    ``vouched``: whether this daemon wrote it or its person settled it, and nobody changed it since; of a
    store of one's own all are.
    """

    episode: Episode
    similarity: float | None = None
    bm25: float | None = None
    use: Use = Use()
    vouched: bool = True


def may_show(episode: Episode, project: str) -> bool:
    """Whether its lesson may be put in front of an agent in this project. A quarantined one may where it was
    learned, when a row of its own case proves the failure.
    """
    if episode.state == "confirmed":
        return not refusal(episode.lesson)
    proven = episode.state == "quarantined" and bool(episode.proof) and episode.project == project
    return proven and bool(project) and not refusal(episode.lesson)


def cites(text: str, there: Callable[[str], bool]) -> tuple[str, ...]:
    """The paths and commands that a lesson names and that exist now, as ``there`` says.

    What does not exist when the lesson is learned can't be gone later: the lesson may tell to make it.
    """
    marked = [" ".join(code.split()) for code in _CODE.findall(text)]
    commands = [code for code in marked if is_command(code)]
    plain = _CODE.sub(" ", text) + " " + " ".join(code for code in marked if code not in commands)
    words = (word.rstrip("./@+-") for word in _TOKEN.findall(plain))
    paths = [word for word in words if is_path(word)]
    found = dict.fromkeys([*paths, *commands])
    return tuple(name for name in found if there(name))[:MOST_CITED]


def is_path(text: str) -> bool:
    """Whether a citation is a path in the project: with a folder or an extension, relative."""
    if " " in text or text.startswith(("/", "-", "@", "..")) or "://" in text:
        return False
    if len(text) < 3 or text.endswith("/") or not any(c.isalpha() for c in text):
        return False
    return "/" in text or bool(re.search(r"\w\.[a-z][a-z0-9]{0,5}\Z", text))


def is_command(text: str) -> bool:
    """Whether a citation is a command line: a program and at least one argument."""
    first, _, rest = text.partition(" ")
    return bool(rest) and bool(_PROGRAM.match(first)) and not is_path(text)


def gone(episode: Episode, there: Callable[[str], bool]) -> tuple[str, ...]:
    """What the lesson cites and no longer exists. Anything gone: it is not shown.

    ``there`` is given a path in the project or a whole command line.
    """
    return tuple(name for name in episode.cites if not there(name))


def prune(episodes: Iterable[Candidate], now_ms: int, keep: int) -> tuple[Collection[str], Collection[str]]:
    """Of the episodes of one project the ids to forget, and those to dismiss.

    Dismissed is what was contradicted. Forgotten is what no task came for in a long time, what was dismissed
    long ago (of both at most a day's worth at once: a clock may be wrong), what says word for word what a
    better one says, and of more than ``keep`` the least useful.
    """
    ranked = sorted(episodes, key=_rank, reverse=True)
    wrong = [c for c in ranked if c.use.failed - c.use.helped >= CONTRADICTED]
    dismiss = {c.episode.id for c in wrong if c.episode.state != "dismissed"}
    stale = [c for c in ranked if c.episode.id not in dismiss and _is_stale(c, now_ms)]
    oldest = min(map(_last, stale), default=0)
    forget = {c.episode.id for c in stale if _last(c) < oldest + DAY_MS}
    texts, kept = set[str](), 0
    for episode in (c.episode for c in ranked):
        if episode.id in dismiss or episode.id in forget:
            continue
        text = folded(episode.lesson)
        if kept >= keep or (text in texts and episode.state != "dismissed"):
            forget.add(episode.id)
            continue
        kept += 1
        texts.add(text)
    return forget, dismiss


def _is_stale(one: Candidate, now_ms: int) -> bool:
    days = {"dismissed": DISMISSED_DAYS, "quarantined": UNUSED_DAYS}.get(one.episode.state)
    return days is not None and now_ms - _last(one) >= days * DAY_MS


def _last(one: Candidate) -> int:
    return max(one.episode.at, one.use.last)


def _rank(one: Candidate) -> tuple[int, int, int, int, str]:
    """The more useful, the larger: state, verdicts after it, how often it was given, age."""
    state = ("dismissed", "quarantined", "confirmed").index(one.episode.state)
    use = one.use
    return state, use.helped - use.failed, use.given, _last(one), one.episode.id
