"""The checks that may be run: the person strikes one out, allows it again, or chooses the project's own."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct

from ...core.errors import Rejected
from ...core.proof import Known
from ...store import proofs
from ..feature import Feature, Route, route
from ..world import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...store.db import Statement
    from ..engine import Engine


class _Change(Struct):
    """``directory``: the project's; ``do`` with the check."""

    directory: str
    do: Literal["use", "forbid", "allow"]
    command: str
    folder: str = ""


class Proofs(Feature):
    """Carries out the changes of `reflectd proof`. The runs themselves are in ``engine/proving``."""

    name: ClassVar = "proof"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self._world = parts.world
        self._proving = parts.proving
        parts.world.spawn(parts.proving.clear(), "proof")

    def routes(self) -> Sequence[Route]:
        return (route("POST", "change", _Change, self._change),)

    async def _change(self, wanted: _Change) -> Mapping[str, Any]:
        """Raises ``Rejected`` for a command that is never run or not known."""
        from ...proof.choice import refused

        project = await asyncio.to_thread(os.path.realpath, wanted.directory)
        known = Known(wanted.command, wanted.folder)
        if wanted.do == "use":
            if why := refused(known.command):
                raise Rejected(f"`{known.command[:200]}` is never run: {why}")
            await self._world.db.commit(*proofs.choose(project, known, self._world.clock.now_ms()))
        else:
            there = {c.known.key for c in self._proving.proofs.commands(project)}
            if known.key not in there:
                raise Rejected(f"`{known.command[:200]}` is no known check of {project}")
            await self._world.db.commit(proofs.strike(project, known, struck=wanted.do == "forbid"))
        return {"changed": True}

    def status(self) -> Mapping[str, Any]:
        """The minutes that were used in 24 hours, what runs now, and the newest run; {} where it is off."""
        settings, read = self._world.settings.proof, self._proving.proofs
        if not settings.enabled:
            return {}
        used = round(read.spent_ms(self._world.clock.now_ms() - DAY_MS) / 60_000, 1)
        found = read.last()
        last = {**found[1].proof.published, "project": found[0], "at": found[1].proof.at} if found else None
        return {"minutes": used, "limit": settings.minutes_a_day, "runs": self._proving.runs, "last": last}

    def prune(self, now_ms: int) -> Sequence[Statement]:
        return proofs.prune(now_ms)
