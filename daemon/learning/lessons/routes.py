"""The memory's routes for our own clients: the command line, MCP and the library (``/v1/features/memory/…``).

The form of a question is a struct; one of another form is ``BadReply``. A store that can't be reached is
``Unavailable``. ``import`` trusts nothing: each lesson belongs to the project that it is brought into and is
kept apart until confirmed, since its proof is elsewhere. Lessons that are here already, dismissed ones too,
stay as they are.
"""

from __future__ import annotations

import asyncio
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from ...core.errors import BadReply
from ...engine.feature import Route
from ...learning import tables
from ...store import ledger
from ...store.ledger import by_name as costs
from ..texts import has_hidden, refusal
from .citations import cites
from .episodes import LONGEST, SIMILAR, TOP_K, Episode, State, brought, checked, may_show
from .questions import EVALUATION, REFLEXION, reflection
from .repositories import project_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from ...engine.world import World
    from .store import Episodes

MOST: Final = 1_000
MOST_FOUND: Final = 200
MOST_TAKEN: Final = 200
NAME: Final = 100
MOST_COUNTED: Final = 10**9
Json = dict[str, Any]
Text = Annotated[str, Meta(pattern=r"\S", max_length=LONGEST)]
Directory = Annotated[str, Meta(pattern=r"^[^\0]*\Z")]
Q = TypeVar("Q")


class Search(Struct):
    """For agents: nothing of others that the person did not confirm."""

    query: Text
    directory: Directory = ""
    min_similarity: Annotated[float, Meta(ge=-1, le=1)] = SIMILAR
    top_k: Annotated[int, Meta(ge=1, le=100)] = TOP_K


class Project(Struct):
    """``directory``: "" for all projects."""

    directory: Directory = ""


class Add(Struct):
    """An episode of a program or a person."""

    query: Text
    reflection: Text
    reward: float
    directory: Directory = ""


class Take(Struct):
    """``episodes`` as ``export`` writes them."""

    episodes: Annotated[list[Any], Meta(min_length=1, max_length=MOST_TAKEN)]
    directory: Directory = ""
    dry_run: bool = False


class Settle(Struct):
    """Says whether these lessons count from now on."""

    ids: Annotated[list[str], Meta(min_length=1, max_length=MOST)]
    yes: bool


class Withdraw(Struct):
    """A verdict of this session was wrong."""

    session: Text


class EpisodeRoutes:
    """One for the daemon."""

    def __init__(
        self,
        world: World,
        store: Episodes,
        changed: Callable[[Iterable[str]], Awaitable[None]],
        withdraw: Callable[[str], Awaitable[int]],
    ) -> None:
        """``changed``: tells others of lessons. ``withdraw``: takes back what a session taught."""
        self._world, self._store, self._vectors = world, store, world.embeddings
        self._changed, self._withdraw = changed, withdraw

    def all(self) -> Sequence[Route]:
        """The routes, by name."""
        return (
            _route("GET", "search", Search, self.search),
            _route("GET", "stats", Project, self.stats),
            _route("POST", "add", Add, self.add),
            _route("POST", "import", Take, self.take),
            _route("POST", "settle", Settle, self.settle),
            _route("POST", "withdraw", Withdraw, self.withdraw),
            _route("POST", "log", ledger.Entry, self.log),
        )

    async def search(self, asked: Search) -> Json:
        """``episodes``, best first: those with a similarity above ``min_similarity``."""
        project = await asyncio.to_thread(project_of, asked.directory)
        vector = await self._vectors.one(asked.query)
        near: list[Episode] = []
        if vector is not None:
            near = await self._store.search(asked.query, vector, [project], MOST_FOUND)
        found = [e for e in near if (e.similarity or 0) > asked.min_similarity and not refusal(e.lesson)]
        return {
            "project": project,
            "model": self._vectors.model,
            "episodes": [_row(_for_agents(e), project) for e in found[: asked.top_k]],
        }

    async def stats(self, asked: Project) -> Json:
        """How many episodes, by state; ``chooses``: whether there is a model that chooses among them."""
        projects = [await asyncio.to_thread(project_of, asked.directory)] if asked.directory else None
        calls = self._world.calls
        return {
            "episodes": await asyncio.to_thread(self._store.counts, projects),
            "enabled": self._world.settings.memory.enabled,
            "threshold": self._world.settings.memory.threshold,
            "chooses": any(map(calls.models, calls.judges)),
            "reflexion": tables.counts(self._world.db, "memory."),
            "costs": costs(self._world.db),
        }

    async def add(self, asked: Add) -> Json:
        """Store an episode, kept apart until a person or another session confirms it."""
        said = reflection(asked.reflection)
        if said is None:
            raise BadReply("`reflection` has no `Lesson:`")
        project = await asyncio.to_thread(project_of, asked.directory)
        if not project:
            where = asked.directory or "no folder"
            raise BadReply(f"a lesson is about a project, and {where} is none; go to one, or name it")
        given = Episode(
            secrets.token_hex(16),
            project,
            asked.query.strip(),
            asked.reward,
            said.problem,
            said.lesson,
            said.full,
            at=self._world.clock.now_ms(),
        )
        made = await asyncio.to_thread(checked, given)
        made = replace(made, cites=await asyncio.to_thread(cites, made.lesson, asked.directory))
        await self._store.add(made, await self._vectors.one(made.query))
        await self._changed([project])
        return {"episode": made.as_json()}

    async def take(self, asked: Take) -> Json:
        """Store those that are not here."""
        project = await asyncio.to_thread(project_of, asked.directory)
        found: dict[str, Episode] = {}
        refused = []
        for one in asked.episodes:
            try:
                made = await asyncio.to_thread(brought, one, project)
            except BadReply as error:
                id_ = one.get("id", "") if isinstance(one, dict) else ""
                refused.append({"id": str(id_)[:40], "why": str(error)})
            else:
                found.setdefault(made.id, made)
        # what another project has is taken over under an id of its own, the same each time; not what the
        # person dismissed there
        for e in await self._store.get(list(found)):
            if e.project != project and e.state != "dismissed":
                own = sha256(f"{e.id} {project}".encode()).hexdigest()[:32]
                found[own] = replace(found.pop(e.id), id=own)
        known = {e.id for e in await self._store.get(list(found))}
        new = [made for id_, made in found.items() if id_ not in known]
        for made in [] if asked.dry_run else new:
            await self._store.add(made)
        return {"new": len(new), "known": len(known), "refused": refused}

    async def settle(self, asked: Settle) -> Json:
        """A person's word on lessons."""
        found = await self._store.get(asked.ids)
        for e in found if asked.yes else []:
            if why := refusal(e.lesson):
                raise BadReply(f"{e.id} may not be offered to agents: {why}")
        state: State = "confirmed" if asked.yes else "dismissed"
        changed = await self._store.settle(asked.ids, state)
        await self._changed(e.project for e in found)
        return {"ids": asked.ids, "changed": changed, "yes": asked.yes, "said": state}

    async def withdraw(self, asked: Withdraw) -> Json:
        """The lessons of a session are taken back."""
        return {"session": asked.session, "withdrawn": await self._withdraw(asked.session)}

    async def log(self, asked: ledger.Entry) -> Json:
        """Write a call that a client of the library made into the ledger."""
        counts = (asked.input, asked.output, asked.ms, asked.attempt)
        if asked.purpose not in {EVALUATION, REFLEXION} or not all(0 <= n <= MOST_COUNTED for n in counts):
            raise BadReply(f"log: a call of {EVALUATION} or {REFLEXION}, with its tokens")
        if not (asked.currency.isalpha() and asked.currency.isupper() and len(asked.currency) == 3):
            raise BadReply("log: `currency` is a code of three letters, such as EUR")
        if asked.cost is not None and not 0 <= asked.cost <= MOST_COUNTED:
            raise BadReply("log: `cost` is no amount")
        entry = replace(asked, at=self._world.clock.now_ms(), session="", account="asked")
        await self._world.db.commit(ledger.add(entry))
        return {"logged": to_builtins(entry)}


def _route(
    method: Literal["GET", "POST"], name: str, form: type[Q], answer: Callable[[Q], Awaitable[Json]]
) -> Route:
    async def answered(given: Mapping[str, Any]) -> Json:
        try:
            asked = msgspec.convert(given, form, strict=method == "POST")
        except msgspec.ValidationError as error:
            raise BadReply(f"{name}: {error}") from None
        return await answer(asked)

    return Route(method, name, answered)


def _row(e: Episode, project: str) -> Json:
    """The row of the requirements, ``query``, ``reward``, ``reflection``, ``similarity``, and more."""
    names = ("query", "reward", "reflection", "id", "problem", "lesson", "state", "project", "author", "at")
    similarity = None if e.similarity is None else round(e.similarity, 4)
    return {n: getattr(e, n) for n in names} | {"similarity": similarity, "shows": may_show(e, project)}


def _for_agents(e: Episode) -> Episode:
    """Of the texts only those that were looked at, without characters that nobody sees."""
    problem = "" if refusal(e.problem) else e.problem
    said = f"Problem: {problem}\nLesson: {e.lesson}" if problem else f"Lesson: {e.lesson}"
    query, author = _visible(e.query[:LONGEST]), _visible(e.author[:NAME])
    return replace(e, query=query, problem=problem, reflection=said, author=author)


def _visible(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if not has_hidden(c))
