"""What the daemon says about itself: read only, for the CLI and a dashboard."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..config import digests
from ..files.verdict import verdict_object
from ..paths import MODULE
from ..store import ledger
from ..store.readonly import ReadOnly
from ..store.verdicts import ALWAYS
from .explain import group_objects, judging_object, report_object, session_object, why
from .history import history
from .line import line
from .upkeep import standstills
from .world import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..keys import Keys
    from ..paths import Paths
    from ..store.ledger import By
    from .features.registry import Features
    from .filing import Filing
    from .hosts.host import Instance
    from .instances import Instances
    from .intake import Intake
    from .jobs import Jobs
    from .stream import Hub
    from .upgrade import Upgrade
    from .world import World

OFF_SHOWN = 200  # folders


class StatusReport:
    """Builds the answers; holds nothing but references."""

    def __init__(
        self,
        world: World,
        instances: Instances,
        intake: Intake,
        features: Features,
        jobs: Jobs,
        filing: Filing,
        paths: Paths,
        keys: Keys,
        upgrade: Upgrade,
        settings_file: Path,
    ) -> None:
        self._world = world
        self._features = features
        self._jobs = jobs
        self._filing = filing
        self._instances = instances
        self._intake = intake
        self._paths = paths
        self._keys = keys
        self._upgrade = upgrade
        self._settings = {"file": str(settings_file), "digests": digests(settings_file)}
        self._started_at = world.clock.now_ms()
        self._started = world.clock.monotonic()

    def hello(self, instance: Instance) -> dict[str, Any]:
        """The answer to hello: what hooks may read without asking."""
        instance.told = self._state(instance)
        return {"version": __version__, "pid": os.getpid(), "state": instance.told}

    def is_outdated(self, instance: Instance) -> bool:
        """Whether hello would be answered otherwise by now, as after a person's first preference."""
        return bool(instance.told) and instance.told != self._state(instance)

    def _state(self, instance: Instance) -> dict[str, Any]:
        settings = self._world.project(instance.directory)
        return {
            "gate": settings.run.gate,
            "gate_ms": int(settings.run.gate_timeout_s * 1000),
            "context": settings.offer.enabled and self._features.gives(instance.directory),
            **{str(place): ms for place, ms in self._features.places(instance.directory).items()},
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
            "limits": asdict(world.settings.spend),
            "spent_today": asdict(world.ledger.spent("", world.clock.now_ms() - DAY_MS)),
            "asked_today": asdict(world.ledger.spent("", world.clock.now_ms() - DAY_MS, "asked")),
            "month": [asdict(m) for m in world.ledger.month(world.clock.now_ms())],
            "mode": world.settings.judge.mode,
            "off": world.sessions.off_folders()[:OFF_SHOWN],
            "degraded": world.health.text,
            "faults": world.health.faults,
            "features": self._features.status(),
            "jobs": self._jobs.waiting(),
            "instances": [
                {
                    "instance": i.id,
                    "host": i.host.name,
                    "mode": i.mode,
                    "pid": i.pid,
                    "directory": i.directory,
                    "mod": i.mod,
                }
                for i in self._instances
                if i.connected
            ],
            "filing": self._filing.status(),
            "sessions": len(world.sessions.in_memory()),
            "events": self._intake.events,
            "verdicts": world.verdicts.counts(),
            "standstill": standstills(world),
            "rss_mb": rss_mb(),
        }

    def sessions(self, limit: int) -> list[dict[str, Any]]:
        """``GET /v1/sessions``: newest first."""
        return [session_object(self._world, s) for s in self._world.sessions.recent(limit) if not s.judge]

    def line(self, session: str, directory: str) -> dict[str, Any]:
        """``GET /v1/line``."""
        stuck: Mapping[str, str] = self._features.says("stuck").get("stuck", {})
        return line(self._world, stuck, session, directory)

    @property
    def stream(self) -> Hub:
        """``GET /v1/stream``."""
        return self._world.stream

    async def why(self, session: str, directory: str, number: int = 0) -> dict[str, Any] | None:
        """``GET /v1/why``: None when there is no such session. Raises ``BadReply`` when there are several, or
        no round of that number.
        """
        return await why(self._world, self._paths, session, directory, number)

    async def history(
        self,
        session: str,
        directory: str,
        since: int,
        limit: int,
        *,
        until: int = ALWAYS,
        after: str = "",
    ) -> dict[str, Any] | None:
        """``GET /v1/history``: None when there is no such session. Raises ``BadReply`` when there are
        several.

        In a thread and on a connection of its own, as ``ledger``.
        """

        def read() -> dict[str, Any] | None:
            with ReadOnly(self._paths.database) as db:
                return history(
                    db,
                    self._paths,
                    session=session,
                    directory=directory,
                    since=since,
                    until=until,
                    after=after,
                    limit=limit,
                )

        return await asyncio.to_thread(read)

    async def folders(self) -> list[str]:
        """The folders of the newest verdicts, by name."""
        return sorted(await asyncio.to_thread(self._world.verdicts.folders))

    async def ledger(
        self, session: str, since: int, limit: int, by: ledger.By | None, *, work: bool = True
    ) -> dict[str, Any]:
        """``GET /v1/ledger``; see ``ledger.report``. In a thread and on a connection of its own: it may sum a
        year of calls.
        """
        identity = session and (self._world.sessions.only(session) or session)

        def read() -> ledger.Report:
            with ReadOnly(self._paths.database) as db:
                return ledger.report(db, session=identity, since=since, limit=limit, by=by, work=work)

        return report_object(await asyncio.to_thread(read))

    async def groups(self, since: int, limit: int, by: Sequence[By]) -> dict[str, list[dict[str, Any]]]:
        """Several groupings of the ledger since then (epoch ms), each by its name."""

        def read() -> dict[str, list[dict[str, Any]]]:
            with ReadOnly(self._paths.database) as db:
                return {one: group_objects(ledger.groups(db, one, since=since, limit=limit)) for one in by}

        return await asyncio.to_thread(read)

    def verdicts(self, session: str, limit: int) -> list[dict[str, Any]]:
        """``GET /v1/verdicts``: newest first."""
        found = []
        for kept in self._world.verdicts.newest(session, limit):
            s = self._world.sessions.peek(kept.verdict.session)
            more = {"title": s.title if s else "", "feedback_sent": kept.verdict.will_prompt}
            found.append({**verdict_object(kept.verdict), "directory": kept.directory, **more})
        return found


def rss_mb() -> float:
    """Resident memory now (Linux) or at its peak (elsewhere), in MB."""
    try:
        with open("/proc/self/statm", encoding="ascii") as f:  # noqa: PTH123 - a pseudo file
            pages = int(f.read().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(peak / (1e6 if sys.platform == "darwin" else 1e3), 1)
