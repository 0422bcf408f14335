"""How good the verdicts were, as far as the person said so: a page of the dashboard, and nothing else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from ..pages.quality import Figures
from .feature import Feature, Page, Parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Quality(Feature):
    """Shows figures; hears nothing."""

    name: ClassVar = "quality"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._world = parts.world
        self._alone = asyncio.Lock()
        self._figures = Figures(parts.world.db.path)

    def pages(self) -> Sequence[Page]:
        """What was disputed, how often the labels agree, how turns ended."""
        return (Page("quality", "Quality", self._read),)

    async def _read(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        async with self._alone:
            return await asyncio.to_thread(self._figures.read, query, self._world.clock.now_ms())
