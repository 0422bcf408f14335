"""What the daemon says about itself: read only, for the CLI and a dashboard."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from daemon import __version__
from daemon.engine.explain import report_object, resolve, session_object, why
from daemon.engine.world import DAY_MS
from daemon.files.verdict import verdict_object
from daemon.store import ledger
from daemon.store.readonly import ReadOnly

if TYPE_CHECKING:
    from daemon.engine.instances import Instance, Instances
    from daemon.engine.intake import Intake
    from daemon.engine.stream import Hub
    from daemon.engine.world import World
    from daemon.paths import Paths


class StatusReport:
    """Builds the answers; holds nothing but references."""

    def __init__(self, world: World, instances: Instances, intake: Intake, paths: Paths) -> None:
        self._world = world
        self._instances = instances
        self._intake = intake
        self._paths = paths
        self._started = world.clock.monotonic()

    def hello(self, instance: Instance) -> dict[str, Any]:
        """The answer to hello: what hooks may read without asking."""
        run = self._world.project(instance.directory).run
        return {
            "version": __version__,
            "pid": os.getpid(),
            "state": {"gate": run.gate, "gate_ms": int(run.gate_timeout_s * 1000)},
        }

    def status(self) -> dict[str, Any]:
        """``GET /v1/status``."""
        world = self._world
        return {
            "version": __version__,
            "pid": os.getpid(),
            "uptime_s": round(world.clock.monotonic() - self._started, 1),
            "socket": str(self._paths.socket),
            "state_dir": str(self._paths.state_dir),
            "provider": world.calls.providers[0].name,
            "providers": [p.name for p in world.calls.providers],
            "providers_down": world.calls.down,
            "dead_letters": world.dead_letters.summary(),
            "limits": {
                "cents_per_day": world.settings.spend.cents_per_day,
                "cents_per_session": world.settings.spend.cents_per_session,
                "tokens_per_day": world.settings.spend.tokens_per_day,
            },
            "spent_today": asdict(world.ledger.spent("", world.clock.now_ms() - DAY_MS)),
            "mode": world.settings.judge.mode,
            "degraded": world.degraded,
            "instances": [
                {"instance": i.id, "host": i.host, "mode": i.mode, "pid": i.pid, "directory": i.directory}
                for i in self._instances
                if i.connected
            ],
            "sessions": len(world.sessions.in_memory()),
            "events": self._intake.events,
            "verdicts": world.verdicts.counts(),
            "rss_mb": rss_mb(),
        }

    def sessions(self, limit: int) -> list[dict[str, Any]]:
        """``GET /v1/sessions``: newest first."""
        return [session_object(self._world, s) for s in self._world.sessions.recent(limit) if not s.judge]

    @property
    def stream(self) -> Hub:
        """``GET /v1/stream``."""
        return self._world.stream

    async def why(self, session: str, directory: str) -> dict[str, Any] | None:
        """``GET /v1/why``: None when there is no such session. Raises ``BadReply`` when there are several."""
        return await why(self._world, self._paths, session, directory)

    async def ledger(self, session: str, since: int, limit: int, by: ledger.By | None) -> dict[str, Any]:
        """``GET /v1/ledger``. In a thread and on a connection of its own: it may sum a year of calls."""
        identity = session and (resolve(self._world, session) or session)

        def read() -> ledger.Report:
            with ReadOnly(self._paths.database) as db:
                return ledger.report(db, session=identity, since=since, limit=limit, by=by)

        return report_object(await asyncio.to_thread(read))

    def verdicts(self, session: str, limit: int) -> list[dict[str, Any]]:
        """``GET /v1/verdicts``: newest first."""
        found = self._world.verdicts.newest(session, limit)
        return [{**verdict_object(v.verdict), "directory": v.directory} for v in found]


def rss_mb() -> float:
    """Resident memory now (Linux) or at its peak (elsewhere), in MB."""
    try:
        with open("/proc/self/statm", encoding="ascii") as f:  # noqa: PTH123 - a pseudo file
            pages = int(f.read().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(peak / (1e6 if sys.platform == "darwin" else 1e3), 1)
