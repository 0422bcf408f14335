"""Which coding agents are on this machine, and which of them load reflectd.

Reads settings, changes nothing and runs no program.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ... import config, paths
from ...core.errors import UserError
from ..judging import found, who_judges
from . import copies
from .claude_code import CLAUDE_CODE
from .codex import CODEX
from .opencode import OPENCODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .connect import Host

HOST: Final[dict[str, Host]] = {host.host: host for host in (OPENCODE, CLAUDE_CODE, CODEX)}
_COPY: Final = {
    "different": "not as this version and your settings want it: `reflectd restart` mends that",
    "linked": "a link, which reflectd leaves alone",
}


class Agent(Struct, frozen=True):
    """One agent. ``program``: its path, "" when it is not there; ``loads``: the settings files that load us;
    ``judge``: who judges its sessions, in words. ``silenced``: what keeps it from running our hooks.
    """

    host: str
    program: str
    loads: tuple[Path, ...]
    copy: copies.State
    judge: str
    silenced: tuple[str, ...] = ()

    def lines(self, env: Mapping[str, str]) -> list[str]:
        """For a person."""
        head = f"{HOST[self.host].name:12} {self.program or missing(self.host)}"
        if not self.loads:
            return [head, *([f"  not connected: reflectd setup {self.host}"] if self.program else [])]
        folder = copies.place(env, self.host)
        copy = [f"  plugin     {folder} ({_COPY[self.copy]})"] if self.copy in _COPY else []
        loads = [f"  connected  {file}" for file in self.loads]
        loads += [f"  SILENCED   {why}" for why in self.silenced]
        return [head, *loads, *copy, f"  judge      {self.judge}"]


def missing(host: str) -> str:
    """That the agent is not there, and where it is to be had."""
    return f"{HOST[host].absent} ({HOST[host].address})"


def neither() -> str:
    """The programs of all agents, of which none is there."""
    return f"neither {' nor '.join(f'`{host.program}`' for host in HOST.values())}"


def look(env: Mapping[str, str], folder: Path) -> list[Agent]:
    """All agents that reflectd knows, as they are when started in ``folder``."""
    judges = _judges(env)
    return [
        Agent(
            name,
            host.find(env),
            tuple(host.loads(env, folder)),
            copies.state(env, name),
            judges[name],
            tuple(host.silenced(env, folder)),
        )
        for name, host in HOST.items()
    ]


def _judges(env: Mapping[str, str]) -> dict[str, str]:
    try:
        judges = found(config.load(env, paths.config_file(env)), env, by_host=True)
    except UserError as error:
        return dict.fromkeys(HOST, f"the daemon will not start with these settings: {error}")
    return {host: who_judges(host, judging) for host, judging in judges.items()}
