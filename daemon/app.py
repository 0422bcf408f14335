"""Composition root: builds every part, owns the one TaskGroup, the signals and the shutdown (DESIGN §2).

SIGTERM and SIGINT drain: no new evaluation, files written, state stored, socket and lock given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import secrets
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daemon.imports import without_certificates

with without_certificates():
    from aiohttp import web

from daemon import __version__, log, paths
from daemon.clock import SystemClock
from daemon.config import Keys
from daemon.core.errors import ReflectdError, Unavailable
from daemon.core.ports import Client
from daemon.engine.budget import Budget
from daemon.engine.calls import Calls
from daemon.engine.claude_code import ClaudeCode
from daemon.engine.compaction import Compaction
from daemon.engine.delivery import Delivery
from daemon.engine.evaluation import Evaluations
from daemon.engine.fast import HostModels
from daemon.engine.filing import Filing
from daemon.engine.gate import Gate
from daemon.engine.instances import Instances
from daemon.engine.intake import Intake
from daemon.engine.nudges import Nudges
from daemon.engine.persist import Persist
from daemon.engine.status import StatusReport
from daemon.engine.stuck import Stuck
from daemon.engine.timers import Timers
from daemon.engine.world import World
from daemon.files import trust as trust_file
from daemon.files.atomic import write_atomic
from daemon.files.project import ProjectGates
from daemon.files.prompts import Prompts
from daemon.files.trust import Trust
from daemon.files.verdict import VerdictFiles
from daemon.files.watch import watch
from daemon.llm.offline import OfflineProvider
from daemon.llm.select import estimate_usd, providers
from daemon.server import listener
from daemon.server.codec import MAX_BODY
from daemon.server.routes import Routes
from daemon.store import ledger, outbox, sessions, verdicts
from daemon.store.db import Database
from daemon.store.dead_letters import DeadLetters
from daemon.store.outbox import Outbox
from daemon.store.sessions import Sessions
from daemon.store.verdicts import Verdicts

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine

    from msgspec import Raw

    from daemon.core.fast import Offered
    from daemon.core.llm import Prompt
    from daemon.core.orders import RunJudge
    from daemon.core.pending import Pending
    from daemon.core.ports import Clock, Provider
    from daemon.core.settings import Settings
    from daemon.engine.instances import Instance
    from daemon.paths import Paths

TICK_S = 5.0
JUMP_S = 60.0
PRUNE_S = 3600.0
DRAIN_S = 5.0


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
    ) -> None:
        """Open the database and build the parts. Nothing listens yet. Raises ``UserError``."""
        self.paths = where
        self.clock: Clock = clock or SystemClock()
        self.stopping = asyncio.Event()
        self._lasting = False
        self._own: dict[Path, tuple[int, int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = log.get("daemon")
        self.db = Database(where.database, self.clock.now_ms)
        aside = self.db.opened.aside
        if aside is not None:
            self._log.error(
                "the database was corrupt; it is kept aside and a new one begun", aside=str(aside)
            )
        trust = Trust(where.state_dir / trust_file.FILE, self.clock)
        self._settings_folder = paths.config_file(os.environ).parent
        prompts = Prompts(paths.shipped("prompts"), self._settings_folder / "prompts", trust)
        self.instances = Instances(secrets.token_hex(4))
        self.host_models = HostModels(self.instances, self.clock, self._log)
        self.world = World(
            settings=settings,
            clock=self.clock,
            db=self.db,
            sessions=Sessions(self.db),
            outbox=Outbox(self.db),
            verdicts=Verdicts(self.db),
            ledger=ledger.Ledger(self.db),
            calls=self._calls(settings, keys or Keys(), provider),
            dead_letters=DeadLetters(self.db),
            prompts=prompts,
            gates=ProjectGates(self.clock),
            nonce=lambda: secrets.token_hex(8),
            log=self._log,
            spawn=self.spawn,
        )
        self._clients = [p for p in self.world.calls.providers if isinstance(p, Client)]
        self.world.sessions.on_unreadable = lambda session, error: self._log.error(
            "a stored session cannot be read; it is kept aside and begun anew", session=session, error=error
        )
        home = Path(os.environ.get("HOME", "/"))
        self.filing = Filing(self.world, VerdictFiles(where.fallback_reflection, home))
        self.persist = Persist(self.world)
        self.delivery = Delivery(self.world, self.instances)
        self.evaluations = Evaluations(self.world, self.persist, self.instances, self.delivery, self.filing)
        self.gate = Gate(self.world, self.persist, self.evaluations, self.filing)
        self.timers = Timers(self.world, self.persist)
        nudges = Nudges(
            self.world, self.persist, self.instances, self.delivery, self.evaluations, self.timers
        )
        self.stuck = Stuck(self.world, self.instances, nudges, self.evaluations, self.filing, self.timers)
        self.compaction = Compaction(self.world, nudges, self.evaluations, self.timers)
        self.timers.on_due = self._due
        self.timers.on_watch = self.stuck.look
        self.timers.on_dropped = lambda p: self.evaluations.request(p.session)
        self.evaluations.on_verdict = self.stuck.judged
        self.intake = Intake(
            self.world,
            self.persist,
            self.instances,
            self.delivery,
            self.evaluations,
            self.gate,
            self.filing,
            self.stuck,
            self.compaction,
        )
        self.claude = ClaudeCode(self.world, self.instances, self.intake, self.evaluations)
        self.world.calls.serves = self._serves
        self.status = StatusReport(self.world, self.instances, self.intake, where)

    async def serve(
        self, ready: Callable[[], None] = lambda: None, inherited: socket.socket | None = None
    ) -> None:
        """Listen until SIGTERM, SIGINT or ``stopping``. Call with the lock held.

        A socket that was ``inherited`` from a service manager stays where it is, and so does its address.
        """
        routes = Routes(self.intake, self.instances, self.claude, self.status, os.getuid())
        app = web.Application(client_max_size=MAX_BODY)
        routes.add_to(app)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        self._lasting = inherited is not None
        sock = inherited or listener.bind(self.paths.socket)
        inode = self.paths.socket.stat().st_ino
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(ValueError, RuntimeError):  # not the main thread (tests)
                loop.add_signal_handler(number, self.stopping.set)
        try:
            await web.SockSite(runner, sock, backlog=listener.BACKLOG).start()
            await self.run(ready)
        finally:
            self.instances.close()
            await runner.cleanup()
            if not self._lasting:
                listener.remove(self.paths.socket, inode)

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """The workers without a socket (``serve`` adds it); ends when ``stopping`` is set."""
        filing = asyncio.create_task(self.filing.run(), name="filing")
        ticking = asyncio.create_task(self._tick(), name="tick")
        timing = asyncio.create_task(self._guarded(self.timers.run(), "timers"), name="timers")
        watching = asyncio.create_task(
            self._guarded(watch(self._settings_folder, self._edited), "watch"), name="watch"
        )
        try:
            left = self.filing.recover()
            self._announce()
            mine = (self.paths.lock, self.paths.database, self.paths.socket)
            self._own = {path: found for path in mine if (found := _identity(path)) is not None}
            self._log.info(
                "started", version=__version__, pid=os.getpid(), socket=str(self.paths.socket), unfiled=left
            )
            ready()
            for client in self._clients:
                self.spawn(client.warm(), "warm")
            gc.freeze()  # what start-up made stays; the collector need not look at it again
            await self.stopping.wait()
        finally:
            self._log.info("stopping")
            ticking.cancel()
            timing.cancel()
            watching.cancel()
            await self._drain()
            for client in self._clients:
                await client.close()
            filing.cancel()
            await asyncio.gather(filing, ticking, timing, watching, return_exceptions=True)
            with contextlib.suppress(OSError):
                if not self._lasting and self.paths.socket_file.read_text("utf-8").strip() == str(
                    self.paths.socket
                ):
                    self.paths.socket_file.unlink()
            self.db.close()
            self._log.info("stopped")

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run beside everything else. A failure is a bug of ours: logged with its trace, never fatal."""
        task = asyncio.get_running_loop().create_task(self._guarded(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # cancelled before it ever ran
        return task

    async def _guarded(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            await work
        except ReflectdError as e:
            self._log.warning("task failed", task=name, error=str(e))
        except Exception:  # noqa: BLE001 - the last line of defence of a daemon
            self._log.exception("bug", task=name)

    async def _drain(self) -> None:
        """Let what is under way finish, a few seconds at most; state is stored in any case."""
        self.evaluations.closed = True
        deadline = self.clock.monotonic() + DRAIN_S
        for task in list(self._tasks):
            if task.get_name().startswith(("evaluate", "look", "nudge", "idle", "compaction")):
                task.cancel()
        while self._tasks and self.clock.monotonic() < deadline:
            await asyncio.wait(self._tasks, timeout=0.5)
        with contextlib.suppress(ReflectdError):
            await self.persist.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self.filing.drain()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    def _serves(self, provider: Provider, prompt: Prompt) -> bool:
        """A host lends its models to its own sessions, and Claude Code lends none."""
        s = self.world.sessions.get(prompt.session)
        return provider.name != "host" or s is None or s.host == "opencode"

    async def _due(self, p: Pending) -> None:
        """A session's pending action."""
        await (self.compaction.due(p) if p.kind == "compaction" else self.stuck.due(p))

    async def _tick(self) -> None:
        """Clock jumps (sleep), idle exit, retention."""
        clock, idle_s = self.clock, self.world.settings.daemon.idle_exit_minutes * 60.0
        wall, mono, pruned = clock.now_ms(), clock.monotonic(), -PRUNE_S
        while True:
            if clock.monotonic() - pruned >= PRUNE_S:
                pruned = clock.monotonic()
                await self._prune()
            await asyncio.sleep(TICK_S)
            gone_s = (clock.now_ms() - wall) / 1000 - (clock.monotonic() - mono)
            wall, mono = clock.now_ms(), clock.monotonic()
            if abs(gone_s) > JUMP_S:
                self._log.info("the clock jumped; sessions are re-read", seconds=round(gone_s))
                self.intake.recheck_all()
                self.timers.wake()
            self.claude.sweep()
            quiet_s = clock.monotonic() - self.intake.last_event
            if idle_s and quiet_s > idle_s and not any(i.connected for i in self.instances):
                self._log.info("nobody was here for a while; exiting", minutes=round(quiet_s / 60))
                self.stopping.set()
            gone = [str(path) for path, was in self._own.items() if _identity(path) != was]
            if gone:
                self._log.error("our files are gone; exiting so that a new daemon can take over", gone=gone)
                self.stopping.set()

    async def _prune(self) -> None:
        now = self.clock.now_ms()
        statements = (*sessions.prune(now), *outbox.prune(now), verdicts.prune(now), ledger.prune(now))
        try:
            await self.db.commit(*statements)
        except Unavailable as e:
            self._log.warning("retention", error=str(e))

    def _edited(self) -> None:
        """The person changed a file in the settings folder: say at once what is wrong with a prompt."""
        self._log.info("the settings folder changed; prompts count at once, settings at the next start")
        self.world.templates("")

    def _announce(self) -> None:
        """Write down where we listen: ``XDG_RUNTIME_DIR`` differs between shells."""
        write_atomic(self.paths.socket_file, f"{self.paths.socket}\n", mode=0o600, durable=False)

    def _calls(self, settings: Settings, keys: Keys, provider: Provider | None) -> Calls:
        """Who may be asked; ``provider`` (a test's) is then the only one beside the rules."""
        budget = Budget(ledger.Ledger(self.db), self.clock, estimate_usd)

        async def store(entry: ledger.Entry) -> None:
            await self.db.commit(ledger.add(entry))
            budget.stored(entry)

        def record(entry: ledger.Entry) -> None:
            budget.ended(entry)
            self.spawn(store(entry), "ledger")

        def host_of(session: str) -> Instance | None:
            s = self.world.sessions.get(session)
            return self.instances.connected(s.instance, s.directory) if s is not None else None

        async def run(order: RunJudge, deadline_s: float) -> Raw:
            instance = host_of(order.session)
            if instance is None:
                raise Unavailable("the session's host is not connected")
            return await self.instances.call(instance, order, deadline_s)

        async def look(session: str) -> Offered | None:
            instance = host_of(session)
            return await self.host_models.of(instance) if instance is not None else None

        if provider is not None:
            found: tuple[Provider, ...] = (provider, OfflineProvider())
        else:
            found = providers(
                settings.judge.provider, settings, keys, run, look, folder=self.paths.judge_folder
            )
        return Calls(found, self.clock, self._log, record, budget, rules=OfflineProvider())


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode, None when there is nothing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
