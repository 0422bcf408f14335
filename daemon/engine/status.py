"""The daemon's account of itself: read only, for the CLI and the dashboard."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import to_builtins

from .. import __version__
from ..config import digests
from ..core.errors import BadReply
from ..core.policy import Judging, in_force
from ..paths import MODULE, Paths
from ..store import ledger
from ..store.readonly import ReadOnly
from .history import History, report_object, session_object, verdict_rows
from .jobs import standstills
from .world import DAY_MS, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..core.session import Session
    from ..core.settings import Settings
    from ..keys import Keys
    from .engine import Engine
    from .hosts.host import Instance
    from .upgrade import Upgrade

T = TypeVar("T")
_NAMES: Final = {"open": "idle", "awaiting_user": "waiting"}


def line(world: World, stuck: Mapping[str, str], session: str, directory: str) -> dict[str, Any]:
    """``GET /v1/line``. ``session``: the beginning of an id; empty means the newest session in ``directory``
    or below it, else in the nearest folder above it that has one. When several begin like that, none of them
    is shown. ``stuck``: the sessions of which a person was told so.
    """
    identity, nothing = "", "none"
    try:
        identity = world.sessions.only(session) if session else world.sessions.newest_in(directory)
    except BadReply:
        nothing = "several"
    s = world.sessions.peek(identity) if identity else None
    now = world.clock.now_ms()
    spent = world.ledger.spent("", now - DAY_MS)
    return {
        "state": state_of(world, stuck, s) if s is not None else nothing,
        "session": s.id if s is not None else "",
        "host": s.host if s is not None else "",
        "directory": s.directory if s is not None else "",
        "round": s.attempts if s is not None else 0,
        "usd_today": spent.today,
        "tokens_today": spent.tokens,
        "waiting": len(waiting(world, now)),
    }


def state_of(world: World, stuck: Mapping[str, str], s: Session) -> str:
    """Where a session stands, in one word."""
    if s.off or not world.limits(s).enabled:
        return "off"
    if s.waiting:
        return "waiting"
    if s.phase == "judging":
        return "judging"
    if s.busy:
        return "stuck" if s.id in stuck else "working"
    return _NAMES.get(s.phase, s.phase)


def waiting(world: World, now_ms: int) -> list[Session]:
    """A person's own sessions that ask something or were judged to need an answer, in the last 24 hours."""
    since, known = now_ms - DAY_MS, world.sessions
    return [
        s
        for s in known.perhaps_waiting(since)
        if (s.waiting or (s.phase == "awaiting_user" and not s.busy))
        and s.active_at > since
        and not (s.deleted or s.off or known.is_off(s.directory))
    ]


def judging_object(world: World, host: str, settings: Settings) -> dict[str, Any]:
    """The judge of a host's sessions, with the settings that count there."""
    found = Judging(*settings.judge.of(host), world.calls.judges.get(host, ()))
    return in_force(settings, found)._asdict()


OFF_SHOWN = 200  # folders
LOOK_S = 1.0  # between looks at whether a host was told what counts


class StatusReport:
    """Builds the answers; holds nothing but references."""

    def __init__(
        self, engine: Engine, paths: Paths, keys: Keys, upgrade: Upgrade, settings_file: Path
    ) -> None:
        self._engine = engine
        self._world = engine.world
        self._paths = paths
        self._keys = keys
        self._upgrade = upgrade
        self._settings = {"file": str(settings_file), "digests": digests(settings_file)}
        self.stream = engine.world.stream
        self._started_at = engine.world.clock.now_ms()
        self._started = engine.world.clock.monotonic()

    def hello(self, instance: Instance) -> dict[str, Any]:
        """The answer to hello: what hooks may read without asking."""
        instance.told, instance.looked_at = self._state(instance), self._world.clock.monotonic()
        return {"version": __version__, "pid": os.getpid(), "state": instance.told}

    def is_outdated(self, instance: Instance) -> bool:
        """Says whether hello would be answered otherwise by now, as after a person's first preference. Looked
        at once in ``LOOK_S``: features look into files for it, and a host sends many batches in a second.
        """
        now = self._world.clock.monotonic()
        if not instance.told or now - instance.looked_at < LOOK_S:
            return False
        instance.looked_at = now
        return instance.told != self._state(instance)

    def _state(self, instance: Instance) -> dict[str, Any]:
        """Where its host has to ask before it goes on, and how long it waits there."""
        settings = self._world.project(instance.directory)
        places = self._engine.features.has_context(instance.directory) if settings.offer.enabled else {}
        return {
            "gate": settings.run.gate,
            "gate_ms": settings.gate_s * 1000,
            "context": "context" in places,
            **{str(place): ms for place, ms in places.items() if place != "context"},
        }

    def status(self) -> dict[str, Any]:
        """``GET /v1/status``."""
        world = self._world
        return {
            "version": __version__,
            "pid": os.getpid(),
            "started_at": self._started_at,
            "program": [sys.executable, MODULE],
            "settings": self._settings,
            "upgrade": self._upgrade.status(),
            "uptime_s": round(world.clock.monotonic() - self._started, 1),
            "socket": str(self._paths.socket),
            "state_dir": str(self._paths.state_dir),
            "provider": world.calls.providers[0].name,
            "providers": [p.name for p in world.calls.providers],
            "judges": {host: judging_object(world, host, world.settings) for host in world.calls.judges},
            "providers_down": world.calls.down,
            "providers_refused": list(world.calls.refused),
            "by_host": self._keys.by_host,
            "keys_unused": dict(self._keys.unused),
            "claude_token": self._keys.claude.place,
            "dead_letters": world.dead_letters.summary(),
            "limits": to_builtins(world.settings.spend),
            "spent_today": to_builtins(world.ledger.spent("", world.clock.now_ms() - DAY_MS)),
            "asked_today": to_builtins(world.ledger.spent("", world.clock.now_ms() - DAY_MS, "asked")),
            "month": [to_builtins(m) for m in world.ledger.month(world.clock.now_ms())],
            "mode": world.settings.judge.mode,
            "off": world.sessions.off_folders()[:OFF_SHOWN],
            "degraded": world.health.text,
            "faults": world.health.faults,
            "features": self._engine.features.status(),
            "jobs": self._engine.jobs.waiting(),
            "instances": [
                {"instance": i.id, "host": i.host.name, "mode": i.mode, "pid": i.pid}
                | {"directory": i.directory, "mod": i.mod}
                for i in self._engine.instances
                if i.connected
            ],
            "filing": self._engine.filing.status(),
            "sessions": len(world.sessions.in_memory()),
            "events": self._engine.intake.events,
            "verdicts": world.verdicts.counts(),
            "standstill": standstills(world),
            "rss_mb": rss_mb(),
        }

    def sessions(self, limit: int) -> list[dict[str, Any]]:
        """``GET /v1/sessions``: newest first."""
        known = self._world.sessions
        return [session_object(s, off=known.is_off(s.directory)) for s in known.recent(limit) if not s.judge]

    def line(self, session: str, directory: str) -> dict[str, Any]:
        stuck: Mapping[str, str] = self._engine.features.status().get("stuck", {}).get("stuck", {})
        return line(self._world, stuck, session, directory)

    async def why(self, session: str, directory: str, number: int = 0) -> dict[str, Any] | None:
        """``GET /v1/why``: None for no session. Raises ``BadReply`` for several, or no such round."""
        world = self._world
        found = await asyncio.to_thread(History(world.db, self._paths).explain, session, directory, number)
        if found is None:
            return None
        identity = (found["session"] or found["verdicts"][0])["session"]
        s, judge = world.sessions.get(identity), None
        if s is not None:
            await world.projects.read(s.directory)
            judge = {"host": s.host, **judging_object(world, s.host, world.project(s.directory))}
            found["session"] = session_object(s, off=world.sessions.is_off(s.directory))
        return {**found, "judge": judge, "guard": world.stream.last_skip(identity)}

    async def history(self, **query: Any) -> dict[str, Any] | None:  # noqa: ANN401 - as `History.page` takes it
        """``GET /v1/history``: see ``History.page``."""
        return await asyncio.to_thread(self._reading, lambda db: History(db, self._paths).page(**query))

    def _reading(self, read: Callable[[ReadOnly], T]) -> T:
        with ReadOnly(self._paths.database) as db:
            return read(db)

    async def folders(self) -> list[str]:
        return sorted(await asyncio.to_thread(self._world.verdicts.folders))

    async def ledger(
        self, session: str, since: int, limit: int, by: ledger.By | None, *, work: bool = True
    ) -> dict[str, Any]:
        """See ``ledger.report``."""
        identity = session and (self._world.sessions.only(session) or session)
        read = partial(ledger.report, session=identity, since=since, limit=limit, by=by, work=work)
        return report_object(await asyncio.to_thread(self._reading, read))

    def verdicts(self, session: str, limit: int) -> list[dict[str, Any]]:
        return verdict_rows(self._world.db, session, limit)


def rss_mb() -> float:
    """Resident memory now (Linux) or at its peak (elsewhere), in MB."""
    try:
        with open("/proc/self/statm", encoding="ascii") as f:  # noqa: PTH123 - a pseudo file
            pages = int(f.read().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(peak / (1e6 if sys.platform == "darwin" else 1e3), 1)
