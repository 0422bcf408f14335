"""The page Health: what does not work right now, and what waits, as the daemon itself knows it; and what
``reflectd doctor`` finds outside the daemon, when a person asks for that.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from ..paths import MODULE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..paths import Paths
    from .source import Source

# What ``reflectd doctor`` finds: the command runs beside the daemon, in its environment, when a person
# asks.
#
# It starts programs and looks at files of the hosts, which takes a second and is none of the daemon's work.

LONGEST_S: Final = 60.0
WHY_CHARS: Final = 500
OUTCOMES: Final = {"ok": "good", "warn": "warn", "fail": "bad"}
_alone: Final = asyncio.Lock()


async def look(paths: Paths, longest_s: float = LONGEST_S) -> Json:
    """``checks``: name, outcome, text and mend of each; ``problem``: why there are none. One at a time."""
    flags = ("--state-dir", str(paths.state_dir), "--socket", str(paths.socket), "--json")
    command = (sys.executable, *(("-P",) if sys.flags.safe_path else ()), "-m", MODULE, "doctor", *flags)
    async with _alone:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=paths.state_dir,  # not a project, whose files Python would import
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as e:
            return _none(f"{sys.executable} can't be run: {e.strerror}")
        try:
            async with asyncio.timeout(longest_s):
                out, err = await process.communicate()
        except TimeoutError:
            return _none(f"reflectd doctor did not end within {longest_s:g} s")
        finally:
            if process.returncode is None:  # also when the daemon ends, or the person goes away
                process.kill()
                await process.wait()
    try:
        found = json.loads(out)["checks"]
        return {"checks": [_check(c) for c in found], "problem": ""}
    except (ValueError, TypeError, KeyError):
        return _none(f"reflectd doctor said: {err.decode('utf-8', 'replace')[:WHY_CHARS]}")


def _check(c: Json) -> Json:
    outcome = str(c["outcome"])
    texts = {name: str(c.get(name) or "") for name in ("name", "text", "mend")}
    return {**texts, "outcome": outcome, "looks": OUTCOMES.get(outcome, "warn")}


def _none(problem: str) -> Json:
    return {"checks": [], "problem": problem}


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
