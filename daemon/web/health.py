"""The page Health: what does not work right now, and what waits, as the daemon itself knows it; and what
``reflectd doctor`` finds outside the daemon, when a person asks for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .doctor import look

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .source import Source

Json = dict[str, Any]


async def read(source: Source, query: Mapping[str, str]) -> Json:
    """Faults, providers, useless replies, jobs, hosts, and the daemon. ``doctor``: run that, too."""
    doctor = await look(source.paths) if query.get("doctor") == "1" else None
    status = source.status.status()
    return {
        "doctor": doctor,
        "faults": status["faults"],
        "down": status["providers_down"],
        "judges": status["judges"],
        "dead": status["dead_letters"],
        "jobs": {kind: n for kind, n in status["jobs"].items() if n},
        "filing": status["filing"],
        "upgrade": status["upgrade"],
        "standstill": status["standstill"],
        "keys_unused": status["keys_unused"],
        "instances": status["instances"],
        "off": status["off"],
        "daemon": {
            k: status[k]
            for k in (
                "version",
                "pid",
                "started_at",
                "rss_mb",
                "mode",
                "socket",
                "state_dir",
                "events",
                "sessions",
            )
        },
        "verdicts": status["verdicts"],
    }
