"""The shared surroundings of the engine's parts: settings, clock, stores, hosts, features, faults, tasks."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from msgspec import Struct

from .. import config
from ..core.errors import ReflectdError, Unavailable, words
from ..core.guards import Limits
from ..core.ports import Client, Clock
from ..core.settings import Settings
from ..files.project import ProjectRules
from ..files.prompts import Prompts
from ..learning.embed.vectors import Embeddings
from ..log import Logger
from ..store.db import Database, Statement
from ..store.ledger import DeadLetters, Ledger
from ..store.outbox import Outbox
from ..store.sessions import Sessions
from ..store.verdicts import Verdicts
from .calls import Calls
from .feature import Features
from .hosts.host import Instances, capabilities
from .stream import Hub
from .threads import on_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from ..core.session import Session

DATABASE: Final = "database"
KEPT: Final = 50


@dataclass(slots=True)
class Health:
    """The faults that last, by name: `database`, `cases`, and `files in <folder>`. Each is logged once when
    it begins and once when it ends. Bounded: with more than ``KEPT`` names the oldest is forgotten.
    """

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
        return dict(self._faults)

    @property
    def text(self) -> str:
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
        try:
            await work
        except ReflectdError as e:
            self._log.warning("task failed", task=name, error=str(e))
        except Exception:  # noqa: BLE001 - the last line of defence of a daemon
            self._log.exception("bug", task=name)


async def _load_evidence() -> None:
    await asyncio.to_thread(import_module, "..evidence.collect", __package__)


TTL_MS: Final = 2_000
PROJECTS_KEPT: Final = 500
FIRST_S: Final = 2.0
AGAIN_S: Final = 0.2


class _Found(NamedTuple):
    """The project's file: its text, or why it can't be read."""

    text: str = ""
    error: str = ""


_Understood = tuple[_Found, Settings | None, list[str]]
"""The file, its settings (None: as before), and its problems."""


class _Project(Struct, eq=False):
    """``until``: how long those who wait for ``reading`` wait for it (monotonic seconds)."""

    settings: Settings
    at_ms: int | None = None
    found: _Found | None = None
    reading: asyncio.Future[_Understood] | None = None
    until: float = 0.0


class Projects:
    """The settings that count in each project: the person's, tightened by the project's own file.

    ``read`` has the file read in a thread, at most every two seconds, and understood anew when its text
    changed. Only those who await it wait, for a moment, so a disk that hangs holds up nobody but its own
    project: what was read last counts, and a project that was never read is only observed. The engine awaits
    it where something begins (a hello, a hook, a judgement, a timer), and after each long wait.

    ``settings`` never raises; any thread may ask it. ``read`` belongs to the loop's thread. Bounded: the
    project asked for longest ago is forgotten (I44).
    """

    def __init__(
        self,
        base: Settings,
        clock: Clock,
        log: Logger,
        read: Callable[[Path], str] = config.read_project,
        *,
        first_s: float = FIRST_S,
        again_s: float = AGAIN_S,
    ) -> None:
        self._base = base
        self._unread, _ = config.unread(base, "it was not read yet")
        self._clock = clock
        self._log = log
        self._read_file = read
        self._first_s = first_s
        self._again_s = again_s
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Project] = OrderedDict()

    def settings(self, directory: str) -> Settings:
        """The settings in force in this folder, as they were last read."""
        return self._project(directory).settings if directory else self._base

    async def read(self, directory: str) -> None:
        """Returns when the settings are two seconds old at most, or the disk does not answer."""
        if not directory:
            return
        known, now = self._project(directory), self._clock.now_ms()
        if known.at_ms is not None and 0 <= now - known.at_ms < TTL_MS:
            return
        loop = asyncio.get_running_loop()
        if known.reading is None:
            known.reading = on_disk(partial(self._look, Path(directory), known.found))
            known.reading.add_done_callback(partial(self._learned, known, directory, now))
            known.until = loop.time() + (self._first_s if known.at_ms is None else self._again_s)
        await asyncio.wait([known.reading], timeout=max(0.0, known.until - loop.time()))
        if known.at_ms is None and known.found is None:
            known.found = _Found(error="its disk does not answer")
            _, problems = config.unread(self._base, known.found.error)
            self._tell(directory, problems)

    def _project(self, directory: str) -> _Project:
        with self._lock:
            known = self._known.setdefault(directory, _Project(self._unread))
            self._known.move_to_end(directory)
            if len(self._known) > PROJECTS_KEPT:
                self._known.popitem(last=False)
            return known

    def _look(self, directory: Path, before: _Found | None) -> _Understood:
        """In a thread."""
        try:
            found = _Found(text=self._read_file(directory))
        except (OSError, ValueError) as e:
            found = _Found(error=words(e))
        if found == before:
            return found, None, []
        if found.error:
            return found, *config.unread(self._base, found.error)
        return found, *config.tighten(self._base, found.text)

    def _learned(
        self, known: _Project, directory: str, at_ms: int, reading: asyncio.Future[_Understood]
    ) -> None:
        known.reading, known.at_ms = None, at_ms
        error = reading.exception()
        if error is None:
            known.found, settings, problems = reading.result()
        else:  # no thread could be started
            known.found = _Found(error=str(error))
            settings, problems = config.unread(self._base, known.found.error)
        known.settings = settings or known.settings
        self._tell(directory, problems)

    def _tell(self, directory: str, problems: list[str]) -> None:
        if problems:
            self._log.warning("project settings", directory=directory, problems=problems)


@dataclass(slots=True)
class World:
    """The daemon's parts. ``embeddings``: the one model for them."""

    settings: Settings
    clock: Clock
    db: Database
    instances: Instances
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
    features: Features = field(init=False)
    _near: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.projects = Projects(self.settings, self.clock, self.log)
        self.features = Features(self.log)

    def spawn(self, work: Coroutine[Any, Any, None], name: str, group: Group = "") -> asyncio.Task[None]:
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

    def later(self, *statements: Statement) -> asyncio.Task[None]:
        """Store something nobody has to wait for (ledger rows, marks)."""

        async def store() -> None:
            try:
                await self.db.commit(*statements)
            except Unavailable as e:
                self.health.failed(DATABASE, str(e))

        return self.spawn(store(), "later")

    def project(self, directory: str) -> Settings:
        """The settings tightened by the project in ``directory``, as they were last read (``projects``)."""
        return self.projects.settings(directory)

    def prompt_texts(self, directory: str) -> Mapping[str, str]:
        """The prompts in force for a workspace, by name. Reads files: call it in a thread."""
        found = self.prompts.templates(directory)
        for problem in found.problems:
            self.log.warning("prompt", problem=problem)
        return found.texts

    def limits(self, s: Session) -> Limits:
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
        return self.log.bind(session=s.id, debug=True) if debug else self.log.bind(session=s.id)
