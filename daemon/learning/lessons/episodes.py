"""Episodes: tasks that ended badly, each with the lesson that was drawn from it (AC-2.6.2, AC-2.6.3).

Their type and form, which may be kept, which lesson may be shown, which one confirms another, and what is
forgotten: lessons that say what another says, that nobody needed, that did not help, and those above the cap
of a project. Decisions only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ...core.errors import BadReply
from ...core.given import folded
from ...redact import redact
from ..texts import CHARS, refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

State = Literal["quarantined", "confirmed", "dismissed"]
"""``quarantined``: kept apart until another session or a person confirms it. ``dismissed``: a person took it
back, or the verdict that it rests on was disputed; it is kept so that it is not learned again.
"""
Outcome = Literal["given", "helped", "failed"]
SIMILAR: Final = 0.70
"""The similarity above which the API and MCP call an episode similar (AC-2.6.4)."""
TOP_K: Final = 3
DAY_MS: Final = 86_400_000
UNUSED_DAYS: Final = 180  # an unconfirmed lesson that no task came for
DISMISSED_DAYS: Final = 90  # so long a dismissed lesson is kept, so that it is not learned again
CONTRADICTED: Final = 2  # bad verdicts after a lesson was given, more than good ones
COUNTS: Final = ("given", "helped", "failed", "last")
LONGEST: Final = 20_000  # characters of a text from elsewhere
LISTED: Final = 50
ITEM: Final = 1_000
_Text = Annotated[str, msgspec.Meta(max_length=LONGEST)]
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？])\s+")  # noqa: RUF001 - the ends of sentences in other scripts


class Episode(Struct, frozen=True):
    """A task that ended badly, and what to do next time.

    ``id``: 32 hexadecimal digits. ``project``: what names the repository for all its worktrees. ``query``:
    the task in the person's words. ``reward``: -1 to 1. ``reflection``: the model's whole reply, ``problem``
    and ``lesson`` its parts. ``triggers``: commands of the checks that failed to the end. ``cites``: paths
    and commands that the lesson names. ``files``: what the task changed. ``proof``: the decisive evidence
    row, empty when only a model's opinion says that the task failed. ``author``: who learned it. ``task``:
    the person's message that began it. ``at``: epoch ms. ``theirs``: it came from a store that several people
    share. ``given``: sessions that it was put in front of; ``helped`` and ``failed``: of these, whose first
    verdict afterwards was good or bad; ``last``: when that was. ``similarity``: of a search by meaning, the
    cosine.
    """

    id: str
    project: str
    query: str
    reward: float
    problem: str
    lesson: str
    reflection: str
    state: State = "quarantined"
    triggers: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    proof: str = ""
    author: str = ""
    session: str = ""
    turn: str = ""
    task: str = ""
    at: int = 0
    theirs: bool = False
    given: int = 0
    helped: int = 0
    failed: int = 0
    last: int = 0
    similarity: float | None = None

    @property
    def vouched(self) -> bool:
        """Learned here, or confirmed by this person (I51)."""
        return not self.theirs or self.state == "confirmed"

    def as_json(self) -> dict[str, Any]:
        """For our own clients, and for ``export``."""
        row: dict[str, Any] = to_builtins(self)
        del row["similarity"]
        return row | {"use": {name: row.pop(name) for name in COUNTS}}


class _Brought(msgspec.Struct):
    """An episode as ``export`` writes it, without what counts only where it was learned."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]
    query: Annotated[str, msgspec.Meta(pattern=r"\S", max_length=LONGEST)]
    lesson: _Text
    reward: float
    problem: _Text = ""
    reflection: _Text = ""
    author: _Text = ""
    session: _Text = ""
    turn: _Text = ""
    task: _Text = ""
    at: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)] = 0
    triggers: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def brought(one: object, project: str) -> Episode:
    """An episode from elsewhere: nothing in it is believed. Raises ``BadReply``."""
    try:
        given = msgspec.convert(one, type=_Brought)
    except msgspec.ValidationError as error:
        raise BadReply(f"it is no episode: {error}") from None
    return checked(Episode(project=project, **msgspec.structs.asdict(given)))


def checked(e: Episode) -> Episode:
    """The episode as it may be kept: without secrets, no more than whole sentences of a long lesson, and no
    problem that no agent may be given. Raises ``BadReply``: why its lesson may not be kept.
    """
    if not -1 <= e.reward <= 1:
        raise BadReply("its reward is no number from -1 to 1")
    kept: dict[str, Any] = {}
    for name, value in msgspec.structs.asdict(e).items():
        if isinstance(value, tuple):
            kept[name] = tuple(redact(text[:ITEM]) for text in value[:LISTED])
        elif isinstance(value, str) and name not in {"id", "project", "state"}:
            kept[name] = redact(value)
    lesson, problem = shortened(kept["lesson"]), shortened(kept["problem"])
    if why := refusal(lesson):
        raise BadReply(f"this lesson may not be kept: {why}")
    return replace(e, **kept | {"lesson": lesson, "problem": "" if refusal(problem) else problem})


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


def may_show(episode: Episode, project: str) -> bool:
    """Says whether its lesson may be put in front of an agent in this project. A quarantined one may where it
    was learned, when a row of its own case proves the failure.
    """
    proven = episode.state == "quarantined" and episode.proof != "" and not episode.theirs
    here = proven and project == episode.project != ""
    return (episode.state == "confirmed" or here) and not refusal(episode.lesson)


def confirms(new: Episode, old: Episode) -> bool:
    """Says whether a new episode shows by a row that an older one of another session was right: both hung on
    the same check, in the same project.
    """
    same = new.project == old.project and new.session != old.session and old.vouched
    return same and bool(new.proof) and not set(new.triggers).isdisjoint(old.triggers)


def prune(episodes: Iterable[Episode], now_ms: int, keep: int) -> tuple[Collection[str], Collection[str]]:
    """Of the episodes of one project the ids to forget, and those to dismiss.

    Dismissed is what was contradicted. Forgotten is what no task came for in a long time, what was dismissed
    long ago (of both at most a day's worth at once: a clock may be wrong), what says word for word what a
    better one says, and of more than ``keep`` the least useful.
    """
    ranked = sorted(episodes, key=_rank, reverse=True)
    wrong = {e.id for e in ranked if e.failed - e.helped >= CONTRADICTED and e.state != "dismissed"}
    stale = [e for e in ranked if e.id not in wrong and _is_stale(e, now_ms)]
    oldest = min(map(_used, stale), default=0)
    forget = {e.id for e in stale if _used(e) < oldest + DAY_MS}
    texts, kept = set[str](), 0
    for e in ranked:
        if e.id in wrong or e.id in forget:
            continue
        text = folded(e.lesson)
        if kept >= keep or (text in texts and e.state != "dismissed"):
            forget.add(e.id)
            continue
        kept += 1
        texts.add(text)
    return forget, wrong


def _is_stale(e: Episode, now_ms: int) -> bool:
    days = {"dismissed": DISMISSED_DAYS, "quarantined": UNUSED_DAYS}.get(e.state)
    return days is not None and now_ms - _used(e) >= days * DAY_MS


def _used(e: Episode) -> int:
    return max(e.at, e.last)


def _rank(e: Episode) -> tuple[int, bool, int, int, int, str]:
    """The more useful, the larger: state, proof, verdicts after it, how often it was given, age."""
    state = ("dismissed", "quarantined", "confirmed").index(e.state)
    return state, state == 1 and e.proof != "", e.helped - e.failed, e.given, _used(e), e.id
