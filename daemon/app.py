"""Composition root: builds every part, owns the tasks, the signals and the shutdown (design/architecture.md).

SIGTERM, SIGINT and SIGHUP drain: no new evaluation, files written, state stored, socket and lock given back.
All parts are built here and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import os
import secrets
import signal
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .imports import without_certificates

with without_certificates():
    from aiohttp import web

from . import __version__, log, paths
from .clock import SystemClock
from .core.errors import ReflectdError, Unavailable
from .core.ports import Client
from .engine.calls import Models
from .engine.engine import assemble
from .engine.features.backtest import Backtest
from .engine.features.compaction import Compaction
from .engine.features.gate import Gate
from .engine.features.proof import Proofs
from .engine.features.quality import Quality
from .engine.features.stuck import Stuck
from .engine.hosts.host import Instances
from .engine.status import StatusReport
from .engine.upgrade import Upgrade
from .engine.world import Health, Tasks, World
from .files.project import ProjectRules
from .files.prompts import TRUST_FILE, Prompts, Trust, watch
from .files.safe import remove_leftovers, write_atomic
from .files.verdict import VerdictFiles
from .keys import Keys
from .learning.embed.vectors import Embeddings
from .learning.lessons.feature import Memory
from .learning.lessons.give import GiveLessons
from .learning.page import LearnedPage
from .learning.playbook.feature import Playbook
from .learning.rules.feature import Preferences, Rules
from .server import listener
from .server.routes import MAX_BODY, Routes
from .store.db import Database
from .store.ledger import DeadLetters, Ledger
from .store.outbox import Outbox
from .store.sessions import Sessions
from .store.verdicts import Verdicts
from .web.reads import Source
from .web.site import Site

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from .core.ports import Clock, Provider
    from .core.settings import Settings
    from .engine.engine import MakeFeature
    from .learning.embed.vectors import Embedder
    from .paths import Paths

FEATURES: Final[tuple[MakeFeature, ...]] = (
    Stuck,
    Compaction,
    Gate,
    Playbook,
    Preferences,
    Rules,
    Memory,
    GiveLessons,
    LearnedPage,
    Backtest,
    Proofs,
    Quality,
)
"""The features. Their order is the order of calls."""
IDLE_EXIT_S: Final = 1_800.0  # without a host, for a daemon that a host started; the next host starts one
TICK_S = 5.0
JUMP_S = 60.0
DRAIN_S = 5.0
LEFT_NS = 60_000_000_000  # a temporary file that is older belongs to nobody any more
MOST_FOLDERS = 1_000  # of the state folder that are looked through for them


class Daemon:
    """One running daemon. ``serve`` returns when it was asked to stop."""

    def __init__(
        self,
        settings: Settings,
        where: Paths,
        *,
        clock: Clock | None = None,
        provider: Provider | None = None,
        keys: Keys | None = None,
        features: Sequence[MakeFeature] = FEATURES,
        leaves: bool = False,
    ) -> None:
        """Open the database and build the parts. Nothing listens yet. ``leaves``: whether somebody starts the
        next daemon, so that this one ends when its program was replaced. Raises ``UserError``.
        """
        self.paths = where
        self.clock: Clock = clock or SystemClock()
        self.stopping = asyncio.Event()
        self.idle_exit_s = IDLE_EXIT_S if keys is not None and keys.by_host else 0.0
        self._lasting = False
        self._own: dict[Path, tuple[int, int]] = {}
        self._log = log.get("daemon")
        tasks = Tasks(self._log)
        self._tasks = tasks.running
        self.db = Database(where.database, self.clock.now_ms)
        aside = self.db.opened.aside
        if aside is not None:
            self._log.error(
                "the database was corrupt; it is kept aside and a new one begun", aside=str(aside)
            )
        for table, rows in self.db.opened.rows.items():
            self._log.error(
                "damaged rows of the database are kept aside, in its table unreadable", table=table, rows=rows
            )
        self._settings_folder = paths.config_file(os.environ).parent
        trust = Trust(where.state_dir / TRUST_FILE, self.clock)
        error = self._log.error
        sessions = Sessions(
            self.db, partial(error, "a stored session cannot be read; it is kept aside and begun anew")
        )
        instances = Instances(secrets.token_hex(4))
        models = Models(self.db, sessions, instances, self.clock, self._log, tasks.spawn)
        calls = models.calls(settings, keys or Keys(), where.judge_folder, provider)
        self._clients = [p for p in calls.providers if isinstance(p, Client)]
        self.world = World(
            settings=settings,
            clock=self.clock,
            db=self.db,
            instances=instances,
            sessions=sessions,
            outbox=Outbox(self.db, partial(error, "a stored order cannot be read; it is not sent")),
            verdicts=Verdicts(
                self.db, partial(error, "a stored verdict cannot be read; it is left as it is")
            ),
            ledger=Ledger(self.db),
            calls=calls,
            dead_letters=DeadLetters(self.db),
            prompts=Prompts(paths.shipped("prompts"), self._settings_folder / "prompts", trust),
            project_rules=ProjectRules(self.clock),
            log=self._log,
            tasks=tasks,
            health=Health(self._log),
            embeddings=Embeddings(
                lambda: _embedder(settings, by_host=keys is not None and keys.by_host), self._log
            ),
        )
        files = VerdictFiles(where.fallback_reflection, Path(os.environ.get("HOME", "/")))
        self.engine = assemble(self.world, files, features)
        self.upgrade = Upgrade(self.world, self.engine.intake, self._idle, leaves=leaves)
        self.status = StatusReport(
            self.engine, where, keys or Keys(), self.upgrade, paths.config_file(os.environ)
        )
        source = Source(
            self.status, self.engine.features, self.engine.intake, self.clock, where, log.get("dashboard")
        )
        self.site = Site(source, tasks.spawn)

    async def serve(
        self,
        ready: Callable[[], None] = lambda: None,
        inherited: socket.socket | None = None,
    ) -> None:
        """Listen until SIGTERM, SIGINT or ``stopping``. Call with the lock held.

        ``inherited``: the socket of a service manager. It stays where it is, and so does its address.
        """
        routes = Routes(self.engine, self.status, self.site.asked, os.getuid())
        app = web.Application(client_max_size=MAX_BODY)
        routes.add_to(app)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        self._lasting = inherited is not None
        sock = inherited or listener.bind(self.paths.socket)
        inode = self.paths.socket.stat().st_ino
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_IGN:  # `nohup`
                continue
            with contextlib.suppress(ValueError, RuntimeError):  # not the main thread (tests)
                loop.add_signal_handler(number, self.stopping.set)
        assert runner.server is not None  # noqa: S101 - `setup` made it
        accepting = listener.Accepting(sock, runner.server, self.world.health)
        try:
            accepting.start()
            await self.run(ready)
        finally:
            accepting.stop()
            self.engine.instances.close()
            await runner.cleanup()
            if not self._lasting:
                listener.remove(self.paths.socket, inode)

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """The workers without a socket (``serve`` adds it); ends when ``stopping`` is set."""
        workers = [
            asyncio.create_task(self.world.tasks.guarded(work, name), name=name)
            for work, name in (
                (self._tick(), "tick"),
                (self.engine.run_timers(), "timers"),
                (self.engine.run_jobs(), "jobs"),
                (watch(self._settings_folder, self._edited), "watch"),
                (self._leave(), "upgrade"),
            )
        ]
        try:
            for folder, *_ in itertools.islice(os.walk(self.paths.state_dir), MOST_FOLDERS):
                remove_leftovers(Path(folder), time.time_ns() - LEFT_NS)
            self.engine.filing.tidy()
            unfiled = self.engine.filing.recover()
            self._announce()
            mine = (self.paths.lock, self.paths.database, self.paths.socket)
            self._own = {path: found for path in mine if (found := _identity(path)) is not None}
            ready()
            gc.freeze()  # what start-up made stays; the collector need not look at it again
            self.world.spawn(self._warm(unfiled), "warm")
            await self.stopping.wait()
        finally:
            self._log.info("stopping")
            await self.site.close()
            for worker in workers:
                worker.cancel()
            await self._drain()
            for client in self._clients:
                await client.close()
            await self.world.embeddings.close()
            self.engine.filing.close()
            await asyncio.gather(*workers, return_exceptions=True)
            with contextlib.suppress(OSError):
                if not self._lasting and self.paths.socket_file.read_text("utf-8").strip() == str(
                    self.paths.socket
                ):
                    self.paths.socket_file.unlink()
            self.db.close()
            self._log.info("stopped")

    async def _drain(self) -> None:
        """Let what is under way finish, a few seconds at most; state is stored in any case."""
        engine = self.engine
        engine.schedule.closed = True
        deadline = self.clock.monotonic() + DRAIN_S
        for task, group in list(self._tasks.items()):
            if group:  # it is done again after the next start
                task.cancel()
        while self._tasks and self.clock.monotonic() < deadline:
            await asyncio.wait(list(self._tasks), timeout=0.5)
        with contextlib.suppress(ReflectdError):
            await engine.commit.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await engine.filing.drain()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=1.0)

    async def _tick(self) -> None:
        """Clock jumps (sleep), idle exit, files that could not be written, processes that are gone."""
        engine = self.engine
        clock = self.clock
        wall, mono = clock.now_ms(), clock.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            gone_s = (clock.now_ms() - wall) / 1000 - (clock.monotonic() - mono)
            wall, mono = clock.now_ms(), clock.monotonic()
            if abs(gone_s) > JUMP_S:
                self._log.info("the clock jumped; sessions are re-read", seconds=round(gone_s))
                engine.intake.recheck_all()
                engine.timers.wake()
                engine.jobs.wake()
            looks = (
                engine.sweep,
                engine.intake.sweep,
                engine.filing.retry,
                engine.recover.sweep,
                self.upgrade.sweep,
                self.site.sweep,
            )
            for look in looks:
                try:
                    look()
                except Exception:  # noqa: BLE001 - one look that fails must not end all the others
                    self._log.exception("bug", task="tick")
            quiet_s = clock.monotonic() - engine.intake.last_event
            here = engine.intake.commands or self.site.is_open or any(i.connected for i in engine.instances)
            if self.idle_exit_s and quiet_s > self.idle_exit_s and not here:
                self._log.info("nobody was here for a while; exiting", minutes=round(quiet_s / 60))
                self.stopping.set()
            gone = [str(path) for path, was in self._own.items() if _identity(path) != was]
            if gone:
                self._log.error("our files are gone; exiting so that a new daemon can take over", gone=gone)
                self.stopping.set()

    def _idle(self) -> bool:
        """Nothing is done or written: no turn is judged, and nothing follows from one."""
        return not self._tasks and not self.engine.schedule.busy() and not self.engine.filing.waiting

    async def _warm(self, unfiled: int) -> None:
        """Load the parts that the first event and each line of the log need: later that would hold up
        callers, and sooner the first answer. The parts of a judgement are loaded when a session works
        (``World.near``).
        """
        await asyncio.to_thread(import_module, ".redact.search", __package__)
        gc.freeze()
        where = str(self.paths.socket)
        self._log.info("started", version=__version__, pid=os.getpid(), socket=where, unfiled=unfiled)

    async def _leave(self) -> None:
        await self.upgrade.wanted.wait()
        self._log.info("leaving for the program on the disk", version=__version__)
        self.stopping.set()

    def _edited(self) -> None:
        """The person changed a file in the settings folder: say at once what is wrong with a prompt."""
        self._log.info("the settings folder changed; prompts count at once, settings at the next start")
        self.world.prompt_texts("")

    def _announce(self) -> None:
        """Write down the socket's path, because ``XDG_RUNTIME_DIR`` differs between shells, the hooks that
        count, and the version that serves. A full disk ends nothing.
        """
        settings, paths = self.world.settings, self.paths
        marks = {paths.strict: settings.claude_code.strict, paths.codex_exec: settings.run.headless}
        said = {paths.socket_file: f"{paths.socket}\n", paths.served: f"{__version__}\n"}
        for path, text in {**said, **{mark: "" for mark, on in marks.items() if on}}.items():
            try:
                write_atomic(path, text, mode=0o600, durable=False)
            except Unavailable as e:
                self._log.warning("not announced", error=str(e))
        failed = paths.start_failed
        for path in (failed, failed.with_suffix(".told"), *(mark for mark, on in marks.items() if not on)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def _embedder(settings: Settings, *, by_host: bool) -> Embedder | None:
    """The embedder of the settings. Nothing of it is imported before it is needed. Raises ``UserError``."""
    from .learning.embed.models import choose, embedder

    return embedder(choose(settings, os.environ, by_host=by_host), settings)


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode, None when there is nothing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
