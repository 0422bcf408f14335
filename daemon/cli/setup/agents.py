"""Which coding agents are on this machine, and which of them load reflectd.

Reads settings, changes nothing and runs no program.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ...core.errors import UserError
from ...core.words import HOSTS
from ..judging import who_judges
from . import claude_code, codex, copies, opencode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Why = Callable[[Mapping[str, str], Path], Iterable[str]]


def _nothing(*_: object) -> tuple[str, ...]:
    return ()


class Host(Struct, frozen=True):
    """A coding agent: its module, its program, where its installers put that below the home (a shell that is
    older than the installation does not have it on its PATH), and where it is to be had.

    The module has ``setup``, ``loads`` and ``traces``; the plugin's source is in ``copies``.
    ``silenced``: what keeps the agent from running our hooks.
    """

    module: ModuleType
    program: str
    places: tuple[str, ...]
    address: str
    silenced: Why = _nothing


HOST: Final = {
    "opencode": Host(
        opencode, "opencode", (".opencode/bin/opencode", ".local/bin/opencode"), "https://opencode.ai"
    ),
    "claude-code": Host(
        claude_code,
        "claude",
        (".local/bin/claude", ".claude/local/claude"),
        "https://claude.com/claude-code",
        claude_code.silenced,
    ),
    "codex": Host(codex, "codex", (codex.PLACE,), "https://developers.openai.com/codex", codex.silenced),
}
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

    @property
    def name(self) -> str:
        """As people call it."""
        return HOSTS[self.host]

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        known = {"host": self.host, "name": self.name, "program": self.program or None}
        return {
            **known,
            "loads": list(map(str, self.loads)),
            "copy": self.copy,
            "judge": self.judge,
            "silenced": list(self.silenced),
        }

    def lines(self, env: Mapping[str, str]) -> list[str]:
        """For a person."""
        there = self.program or missing(self.host)
        if not self.loads:
            return [f"{self.name:12} {there}", f"  not connected: reflectd setup {self.host}"]
        folder = copies.place(env, self.host)
        copy = [f"  plugin     {folder} ({_COPY[self.copy]})"] if self.copy in _COPY else []
        loads = [f"  connected  {file}" for file in self.loads]
        loads += [f"  SILENCED   {why}" for why in self.silenced]
        return [f"{self.name:12} {there}", *loads, *copy, f"  judge      {self.judge}"]


def find(env: Mapping[str, str], host: str) -> str:
    """The program's path, from PATH or from where its installer puts it; "" when there is none."""
    found = shutil.which(HOST[host].program, path=env.get("PATH", ""))
    home = env.get("HOME", "")
    usual = (Path(home, place) for place in HOST[host].places if home)
    return found or next((str(p) for p in usual if p.is_file() and os.access(p, os.X_OK)), "")


def absent(host: str) -> str:
    """That the agent is not there."""
    return f"there is no `{HOST[host].program}` on PATH"


def missing(host: str) -> str:
    """That the agent is not there, and where it is to be had."""
    return f"{absent(host)} ({HOST[host].address})"


def neither() -> str:
    """The programs of all agents, of which none is there."""
    return f"neither {' nor '.join(f'`{program}`' for program in (host.program for host in HOST.values()))}"


def look(env: Mapping[str, str], folder: Path) -> list[Agent]:
    """All agents that reflectd knows, as they are when started in ``folder``."""
    judges = _judges(env)
    return [
        Agent(
            host,
            find(env, host),
            loads(env, host, folder),
            copies.state(env, host),
            judges[host],
            tuple(HOST[host].silenced(env, folder)),
        )
        for host in HOSTS
    ]


def loads(env: Mapping[str, str], host: str, folder: Path) -> tuple[Path, ...]:
    """The settings files through which the agent loads us when it is started in ``folder``."""
    return tuple(dict.fromkeys(HOST[host].module.loads(env, folder)))


def _judges(env: Mapping[str, str]) -> dict[str, str]:
    from ... import config, paths
    from ..judging import found

    try:
        judges = found(config.load(env, paths.config_file(env)), env, by_host=True)
    except UserError as error:
        return dict.fromkeys(HOSTS, f"the daemon will not start with these settings: {error}")
    return {host: who_judges(host, judging) for host, judging in judges.items()}
