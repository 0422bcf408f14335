"""What ``reflectd doctor`` finds: the command runs beside the daemon, in its environment, when a person asks.

It starts programs and looks at files of the hosts, which takes a second and is none of the daemon's work.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from ..paths import MODULE

if TYPE_CHECKING:
    from ..paths import Paths

LONGEST_S: Final = 60.0
WHY_CHARS: Final = 500
OUTCOMES: Final = {"ok": "good", "warn": "warn", "fail": "bad"}
Json = dict[str, Any]
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
