"""The shared surroundings of the engine's parts. Built once, in ``app``; holds no logic."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from ..core.errors import ReflectdError, Unavailable
from ..core.guards import Limits
from ..core.ports import Client, Clock
from ..core.settings import Settings
from ..files.project import ProjectRules
from ..files.prompts import Prompts
from ..learning.embed.vectors import Embeddings
from ..log import Logger
from ..store.db import Database
from ..store.ledger import DeadLetters, Ledger
from ..store.outbox import Outbox
from ..store.sessions import Sessions
from ..store.verdicts import Verdicts
from .calls import Calls
from .hosts.host import capabilities
from .projects import Projects
from .stream import Hub

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from ..core.session import Session
    from ..store.db import Statement

# What does not work right now, by name: each fault is set and cleared on its own.
#
# A fault is logged once when it begins and once when it ends. ``reflectd status`` and ``doctor`` show those
# that last. Names in use: `database`, and `files in <folder>` for each folder.

DATABASE: Final = "database"
KEPT: Final = 50


@dataclass(slots=True)
class Health:
    """The faults that last. Bounded: with more than ``KEPT`` names the oldest is forgotten."""

    log: Logger
    _faults: dict[str, str] = field(default_factory=dict)

    def failed(self, name: str, error: str) -> None:
        """``name`` does not work; ``error`` says what happened, where, and what to do."""
        if name not in self._faults:
            self.log.warning("fault", fault=name, error=error)
        self._faults[name] = error
        if len(self._faults) > KEPT:
            del self._faults[next(iter(self._faults))]

    def works(self, name: str) -> bool:
        """``name`` works. True when it did not before."""
        if self._faults.pop(name, None) is None:
            return False
        self.log.info("fault over", fault=name)
        return True

    @property
    def faults(self) -> Mapping[str, str]:
        """Name of each fault that lasts, and its newest error."""
        return dict(self._faults)

    @property
    def text(self) -> str:
        """All errors in one line; empty when everything works."""
        return "; ".join(self._faults.values())


Group = Literal["judge", "look", ""]
"""Work that may be given up when the daemon stops: a judgement, a look at a session. The rest is finished."""
DAY_MS = 86_400_000


class Tasks:
    """Work beside everything else. A failure is a bug of ours: logged with its trace, never fatal."""

    def __init__(self, log: Logger) -> None:
        self.running: dict[asyncio.Task[None], Group] = {}
        self._log = log

    def spawn(self, work: Coroutine[Any, Any, None], name: str, group: Group = "") -> asyncio.Task[None]:
        """Run it; returns its task."""
        task = asyncio.get_running_loop().create_task(self.guarded(work, name), name=name)
        self.running[task] = group
        task.add_done_callback(self.running.pop)
        task.add_done_callback(lambda _: work.close())  # cancelled before it ever ran
        return task

    async def guarded(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """The work, with its failures logged."""
        try:
            await work
        except ReflectdError as e:
            self._log.warning("task failed", task=name, error=str(e))
        except Exception:  # noqa: BLE001 - the last line of defence of a daemon
            self._log.exception("bug", task=name)


async def _load_evidence() -> None:
    await asyncio.to_thread(import_module, "..evidence.collect", __package__)


@dataclass(slots=True)
class World:
    """The daemon's parts. ``health`` says what does not work right now. ``embeddings``: the one model for
    them.
    """

    settings: Settings
    clock: Clock
    db: Database
    sessions: Sessions
    outbox: Outbox
    verdicts: Verdicts
    ledger: Ledger
    calls: Calls
    dead_letters: DeadLetters
    prompts: Prompts
    project_rules: ProjectRules
    log: Logger
    tasks: Tasks
    health: Health
    embeddings: Embeddings
    stream: Hub = field(default_factory=Hub)
    projects: Projects = field(init=False)
    _near: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """The projects' settings follow from the person's."""
        self.projects = Projects(self.settings, self.clock, self.log)

    def spawn(self, work: Coroutine[Any, Any, None], name: str, group: Group = "") -> asyncio.Task[None]:
        """See ``Tasks.spawn``."""
        return self.tasks.spawn(work, name, group)

    def near(self) -> None:
        """A session works, so a judgement is near: what it needs is loaded now, in threads. Then it would
        take seconds, and a daemon without sessions needs neither the evidence's patterns nor an SDK.
        """
        if self._near:
            return
        self._near = True
        self.spawn(_load_evidence(), "warm")
        for provider in self.calls.providers:
            if isinstance(provider, Client):
                self.spawn(provider.warm(), "warm")

    @staticmethod
    def nonce() -> str:
        """Fences the untrusted text of one call to a model."""
        return secrets.token_hex(8)

    def later(self, *statements: Statement) -> None:
        """Store something nobody waits for (ledger rows, marks)."""

        async def store() -> None:
            try:
                await self.db.commit(*statements)
            except Unavailable as e:
                self.health.failed(DATABASE, str(e))

        self.spawn(store(), "later")

    def project(self, directory: str) -> Settings:
        """The settings tightened by the project in ``directory``, as they were last read (``projects``)."""
        return self.projects.settings(directory)

    def prompt_texts(self, directory: str) -> Mapping[str, str]:
        """The prompts in force for a workspace, by name. Reads files: call it in a thread. The problem of an
        overriding one is logged once.
        """
        found = self.prompts.templates(directory)
        for problem in found.problems:
            self.log.warning("prompt", problem=problem)
        return found.texts

    def limits(self, s: Session) -> Limits:
        """The limits of the guards for this session."""
        settings = self.project(s.directory)
        can = capabilities(s.host)
        return Limits(
            enabled=settings.enabled and not self.sessions.is_off(s.directory),
            observe=settings.judge.mode == "observe",
            toasts=settings.toasts,
            max_attempts=min(settings.judge.max_attempts, can.prompts or settings.judge.max_attempts),
            max_per_hour=settings.judge.max_per_hour,
            wait_s=settings.wait_s(s.host, can.wait_s),
            usd_per_day=settings.spend.cents_per_day / 100,
            usd_per_session=settings.spend.cents_per_session / 100,
            tokens_per_day=settings.spend.tokens_per_day,
            learning_percent=settings.spend.learning_percent,
        )

    def logger(self, s: Session, *, debug: bool = False) -> Logger:
        """A logger that names the session."""
        return self.log.bind(session=s.id, debug=True) if debug else self.log.bind(session=s.id)
