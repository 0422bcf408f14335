"""What our own clients ask of the memory: the command line, MCP and the library (``/v1/features/memory/…``).

A wrong body is ``BadReply`` with words for a person; a store that can't be reached is ``Unavailable``.
Nothing that ``import`` brings from elsewhere is believed: secrets are taken out, a lesson that may not be
kept is refused, each belongs to the project that it is brought into, and all are kept apart until confirmed:
what proved them is elsewhere. What is here already, dismissed ones too, stays as it is.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from dataclasses import asdict, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from ...core.errors import BadReply
from ...engine.features.feature import Route
from ...engine.threads import redacted
from ...learning import tables
from ...redact import redact
from ...store import ledger
from ...store.ledger import by_name as costs
from ..texts import has_hidden, refusal
from .episodes import SIMILAR, TOP_K, Episode, Trigger, cites, may_show
from .give import is_there
from .reflexion import EVALUATION, REFLEXION, reflection, shortened
from .rows import STATES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...engine.world import World
    from ..embed.vectors import Vectors
    from .episodes import Candidate
    from .give import FindLessons
    from .jobs import EpisodeJobs
    from .sqlite import Episodes

LONGEST: Final = 20_000
MOST: Final = 1_000
NEWEST: Final = 1 << 53
MOST_TAKEN: Final = 200
LISTED: Final = 50
ITEM: Final = 1_000
NAME: Final = 100
TEXTS: Final = ("query", "problem", "lesson", "reflection", "author", "session", "turn", "task")
Json = dict[str, Any]
Text = Annotated[str, msgspec.Meta(max_length=LONGEST)]


class _Brought(msgspec.Struct):
    """An episode as ``export`` writes it, without what counts only where it was learned."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    query: Text
    lesson: Text
    reward: float
    problem: Text = ""
    reflection: Text = ""
    author: Text = ""
    session: Text = ""
    turn: Text = ""
    task: Text = ""
    at: Annotated[int, msgspec.Meta(ge=0, le=NEWEST)] = 0
    triggers: list[Trigger] = []
    cites: list[str] = []
    files: list[str] = []


class EpisodeRoutes:
    """One for the daemon."""

    def __init__(
        self, world: World, store: Episodes, vectors: Vectors, find: FindLessons, jobs: EpisodeJobs
    ) -> None:
        self._world = world
        self._store = store
        self._vectors = vectors
        self._find = find
        self._jobs = jobs

    def all(self) -> Sequence[Route]:
        """The routes, by name."""
        return (
            Route("GET", "search", self.search),
            Route("GET", "show", self.show),
            Route("GET", "list", self.page),
            Route("GET", "stats", self.stats),
            Route("POST", "add", self.add),
            Route("POST", "import", self.take),
            Route("POST", "settle", self.settle),
            Route("POST", "forget", self.forget),
            Route("POST", "withdraw", self.withdraw),
            Route("POST", "log", self.log),
        )

    async def search(self, query: Mapping[str, Any]) -> Json:
        """``directory``, ``query``, ``min_similarity`` (0.70), ``top_k`` (3), ``by_words`` (for a person:
        where there is no model for embeddings), ``vouched`` (for agents: nothing of others that the person
        did not confirm) → ``episodes``.
        """
        text = _text(query, "query")
        least = _number(query, "min_similarity", SIMILAR, -1.0, 1.0)
        limit = int(_number(query, "top_k", TOP_K, 1, 100))
        project = await self._project(query)
        wants = {name: str(query.get(name, "")) in {"1", "true"} for name in ("by_words", "vouched")}
        found = await self._find.similar(project, text, least=least, limit=limit, **wants)
        return {
            "project": project,
            "model": self._vectors.model,
            "episodes": [_row(c, project, checked=wants["vouched"]) for c in found],
        }

    async def show(self, query: Mapping[str, Any]) -> Json:
        """``id`` → the whole episode, and what became of it."""
        wanted = _text(query, "id")
        found = await self._store.get([wanted])
        if not found:
            raise BadReply(f"there is no episode {wanted[:40]!r}; `reflectd memory search` lists them")
        return {"episode": _whole(found[0])}

    async def page(self, query: Mapping[str, Any]) -> Json:
        """``directory`` ("" for all), ``state``, ``after``, ``limit`` → ``episodes``, newest first;
        ``chooses``: whether there is a model that chooses among them.
        """
        state = str(query.get("state", "")) or None
        if state is not None and state not in STATES:
            raise BadReply(f"`state` is one of {', '.join(STATES)}")
        projects = [await self._project(query)] if query.get("directory") else None
        limit = int(_number(query, "limit", 100, 1, MOST))
        after = str(query.get("after", ""))
        found = await self._store.page(projects, state=state, after=after, limit=limit)
        calls = self._world.calls
        chooses = any(calls.models(host) for host in calls.judges)
        return {"episodes": [_whole(c) for c in found], "chooses": chooses}

    async def stats(self, query: Mapping[str, Any]) -> Json:
        """``directory`` ("" for all) → how many episodes, by state."""
        projects = [await self._project(query)] if query.get("directory") else None
        return {
            "episodes": dict(await self._store.counts(projects)),
            "enabled": self._world.settings.memory.enabled,
            "threshold": self._world.settings.memory.threshold,
            "reflexion": tables.counts(self._world.db, "memory."),
            "costs": costs(self._world.db),
        }

    async def add(self, body: Mapping[str, Any]) -> Json:
        """``query``, ``reward``, ``reflection``, ``directory``: store an episode, kept apart until a person
        or another session confirms it.
        """
        query, said = await redacted(_text(body, "query")), await redacted(_text(body, "reflection"))
        reward = _number(body, "reward", None, -1.0, 1.0)
        parsed = reflection(said)
        if parsed is None:
            raise BadReply("`reflection` has no `Lesson:`")
        lesson, problem = shortened(parsed.lesson), shortened(parsed.problem)
        if why := refusal(lesson):
            raise BadReply(f"this lesson may not be kept: {why}")
        project = await self._project(body)
        directory = body.get("directory", "")
        if not project:
            raise BadReply(
                f"a lesson is about a project, and {directory or 'no folder'} is none; go to one, or name it"
            )
        made = Episode(
            id=secrets.token_hex(16),
            project=project,
            query=query,
            reward=reward,
            problem="" if refusal(problem) else problem,
            lesson=lesson,
            reflection=parsed.full,
            cites=await asyncio.to_thread(cites, lesson, lambda name: is_there(directory, name)),
            at=self._world.clock.now_ms(),
        )
        await self._store.add(made, await self._vectors.one(made.query))
        return {"episode": asdict(made)}

    async def take(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``episodes`` as ``list`` gives them, ``dry_run``: store those that are not here."""
        project = await self._project(body)
        dry_run = body.get("dry_run") is True
        given = body.get("episodes")
        if not isinstance(given, list) or not 0 < len(given) <= MOST_TAKEN:
            raise BadReply(f"`episodes` is a list of 1 to {MOST_TAKEN}")
        found: dict[str, Episode] = {}
        refused = []
        for one in given:
            try:
                made = await asyncio.to_thread(brought, one, project)
            except BadReply as error:
                id_ = one.get("id", "") if isinstance(one, dict) else ""
                refused.append({"id": str(id_)[:40], "why": str(error)})
            else:
                found.setdefault(made.id, made)
        others = (c.episode for c in await self._store.get(list(found)) if c.episode.project != project)
        # what another project has is taken over under an id of its own, the same each time; not what the
        # person dismissed there
        own = {
            e.id: sha256(f"{e.id} {project}".encode()).hexdigest()[:32]
            for e in others
            if e.state != "dismissed"
        }
        found = {own.get(id_, id_): replace(m, id=own.get(id_, id_)) for id_, m in found.items()}
        known = {c.episode.id for c in await self._store.get(list(found))}
        new = [made for id_, made in found.items() if id_ not in known]
        for made in [] if dry_run else new:
            await self._store.add(made)
        return {"new": len(new), "known": len(known), "refused": refused}

    async def settle(self, body: Mapping[str, Any]) -> Json:
        """``ids`` and ``yes``: whether these lessons count from now on."""
        ids, yes = await self._ids(body), body.get("yes")
        if not isinstance(yes, bool):
            raise BadReply("say `yes`: true or false")
        if yes:
            for c in await self._store.get(ids):
                if why := refusal(c.episode.lesson):
                    raise BadReply(f"{c.episode.id} may not be offered to agents: {why}")
        changed = await self._store.settle(ids, "confirmed" if yes else "dismissed")
        return {"ids": ids, "changed": changed, "yes": yes, "said": "confirmed" if yes else "dismissed"}

    async def forget(self, body: Mapping[str, Any]) -> Json:
        """``ids``: delete these episodes for good."""
        ids = await self._ids(body)
        gone = await self._store.forget(ids)
        return {"ids": ids, "forgotten": gone, "said": "forgotten" if gone else "it was gone already"}

    async def withdraw(self, body: Mapping[str, Any]) -> Json:
        """``session``: a verdict of it was wrong, so what it taught is taken back."""
        session = _text(body, "session")
        return {"session": session, "withdrawn": await self._jobs.withdraw(session)}

    async def log(self, body: Mapping[str, Any]) -> Json:
        """``api_name``, ``model``, ``input_tokens``, ``output_tokens``, ``cost``, ``currency``: a call that a
        client of the library made, for the ledger.
        """
        name = _text(body, "api_name")
        if name not in {EVALUATION, REFLEXION}:
            raise BadReply(f"`api_name` is {EVALUATION} or {REFLEXION}")
        cost = body.get("cost")
        entry = ledger.Entry(
            at=self._world.clock.now_ms(),
            purpose=name,
            session="",
            provider=str(body.get("provider", ""))[:100],
            model=str(body.get("model", ""))[:200],
            input=int(_number(body, "input_tokens", 0, 0, 1e9)),
            output=int(_number(body, "output_tokens", 0, 0, 1e9)),
            cost=None if cost is None else _number(body, "cost", None, 0.0, 1e6),
            ms=int(_number(body, "ms", 0, 0, 1e9)),
            outcome="ok" if not body.get("error") else f"error: {body['error']}"[:300],
            account="asked",
            attempt=int(_number(body, "attempt", 1, 1, 100)),
            currency=_currency(body),
            directory=str(body.get("directory", ""))[:1_000],
        )
        await self._world.db.commit(ledger.add(entry))
        return {"logged": asdict(entry)}

    async def _project(self, query: Mapping[str, Any]) -> str:
        directory = query.get("directory", "")
        if not isinstance(directory, str) or "\0" in directory:
            raise BadReply("`directory` is a path")
        return await self._find.project(directory)

    async def _ids(self, body: Mapping[str, Any]) -> list[str]:
        ids = body.get("ids")
        if not isinstance(ids, list) or not ids or not all(isinstance(i, str) for i in ids):
            raise BadReply("name the episodes by `ids`, a list")
        return list(dict.fromkeys(ids))[:MOST]


def brought(one: object, project: str) -> Episode:
    """An episode out of what ``export`` wrote. Raises ``BadReply``."""
    try:
        given = msgspec.convert(one, type=_Brought)
    except msgspec.ValidationError as error:
        raise BadReply(f"it is no episode: {error}") from None
    if not -1 <= given.reward <= 1:
        raise BadReply("its reward is no number from -1 to 1")
    texts: dict[str, Any] = {name: redact(getattr(given, name)) for name in TEXTS}
    if not texts["query"].strip() or not texts["lesson"].strip():
        raise BadReply("it has no task or no lesson")
    if why := refusal(texts["lesson"]):
        raise BadReply(f"its lesson may not be kept: {why}")
    if refusal(texts["problem"]):
        texts["problem"] = ""
    for name in ("cites", "files"):
        texts[name] = tuple(redact(text[:ITEM]) for text in getattr(given, name)[:LISTED])
    triggers = tuple(Trigger(t.kind, redact(t.text[:ITEM])) for t in given.triggers[:LISTED])
    return Episode(id=given.id, project=project, reward=given.reward, triggers=triggers, at=given.at, **texts)


def _row(found: Candidate, project: str, *, checked: bool) -> Json:
    """The row of the requirements, ``query``, ``reward``, ``reflection``, ``similarity``, and more. With
    ``checked`` an agent may read it: of the reflection only what was looked at, nothing that nobody sees.
    """
    e, similarity, shows = found.episode, found.similarity, may_show(found.episode, project)
    if checked:
        problem = "" if refusal(e.problem) else e.problem
        said = f"Problem: {problem}\nLesson: {e.lesson}" if problem else f"Lesson: {e.lesson}"
        e = replace(
            e,
            query=visible(e.query[:LONGEST]),
            problem=problem,
            reflection=said,
            author=visible(e.author[:NAME]),
        )
    return {
        "query": e.query,
        "reward": e.reward,
        "reflection": e.reflection,
        "similarity": None if similarity is None else round(similarity, 4),
        **{k: getattr(e, k) for k in ("id", "problem", "lesson", "state", "project", "author", "at")},
        "shows": shows,
    }


def visible(text: str) -> str:
    """The text in one line, without what nobody sees."""
    return "".join(c for c in " ".join(text.split()) if not has_hidden(c))


def _whole(c: Candidate) -> Json:
    return {**asdict(c.episode), "use": asdict(c.use)}


def _currency(of: Mapping[str, Any]) -> str:
    value = of.get("currency", "USD")
    if not isinstance(value, str) or len(value) != 3 or not value.isascii() or not value.isupper():
        raise BadReply("`currency` is a code of three letters, such as EUR")
    return value


def _text(of: Mapping[str, Any], name: str) -> str:
    value = of.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadReply(f"`{name}` must be a text")
    if len(value) > LONGEST:
        raise BadReply(f"`{name}` has more than {LONGEST} characters")
    return value.strip()


def _number(of: Mapping[str, Any], name: str, usual: float | None, least: float, most: float) -> float:
    value = of.get(name, usual)
    try:
        found = float(value) if not isinstance(value, bool) and value is not None else math.nan
    except (TypeError, ValueError):
        found = math.nan
    if not least <= found <= most:
        raise BadReply(f"`{name}` must be a number from {least:g} to {most:g}")
    return found
