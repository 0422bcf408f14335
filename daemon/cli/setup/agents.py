"""Which coding agents are on this machine, and which of them load reflectd.

Reads settings, changes nothing and runs no program.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from .claude_code import CLAUDE_CODE
from .codex import CODEX
from .opencode import OPENCODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .connect import Host

HOST: Final[dict[str, Host]] = {host.host: host for host in (OPENCODE, CLAUDE_CODE, CODEX)}


class Agent(Struct, frozen=True):
    """One agent. ``program``: its path, "" when it is not there; ``loads``: the settings files that load us;
    ``silenced``: what keeps it from running our hooks.
    """

    host: str
    program: str
    loads: tuple[Path, ...]
    silenced: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """For a person."""
        head = f"{HOST[self.host].name:12} {self.program or missing(self.host)}"
        if not self.loads:
            return [head, *([f"  not connected: reflectd setup {self.host}"] if self.program else [])]
        loads = [f"  connected  {file}" for file in self.loads]
        return [head, *loads, *(f"  SILENCED   {why}" for why in self.silenced)]


def missing(host: str) -> str:
    """That the agent is not there, and where it is to be had."""
    return f"{HOST[host].absent} ({HOST[host].address})"


def neither() -> str:
    """The programs of all agents, of which none is there."""
    return f"neither {' nor '.join(f'`{host.program}`' for host in HOST.values())}"


def look(env: Mapping[str, str], folder: Path) -> list[Agent]:
    """All agents that reflectd knows, as they are when started in ``folder``."""
    return [
        Agent(name, host.find(env), tuple(host.loads(env, folder)), tuple(host.silenced(env, folder)))
        for name, host in HOST.items()
    ]
