"""A person's preferences: offered to each session before anything that was learned (design/rules.md).

They come from the project's file of preferences; of it only what the person typed or trusted is given, and
only what ``learning.texts.refusal`` has nothing against. Preferences that Workshop keeps, Workshop gives. A
file that can't be read gives nothing, and the log says why.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from ...core.errors import Unavailable, UserError
from ...core.given import folded, known_as
from ...core.offers import Moment, Offer
from ...engine.features.feature import Feature, Parts
from ..playbook.playbooks import rules_of
from ..state import ReflectState
from .preferences import those_that_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.session import Session

DIRECTORIES_KEPT: Final = 50
HEADING: Final = (
    "What the person prefers in this project (what they ask for in the session and the project's own rules "
    "come first):"
)


class Preferences(Feature):
    """Reads and offers them."""

    name: ClassVar = "preferences"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._world = parts.world
        self._state = lru_cache(DIRECTORIES_KEPT)(lambda of: ReflectState(parts.world.db.path.parent, of))
        self._read: OrderedDict[str, tuple[Offer, ...]] = OrderedDict()

    def gives(self, directory: str) -> bool:
        """Where the person vouched for one. Asked with each batch of a host's events."""
        return self._state(directory).has("preferences")

    async def ready(self, s: Session, moment: Moment) -> None:
        """Read the project's file."""
        if not moment.begins or not self.gives(s.directory):
            return
        self._read[s.directory] = await asyncio.to_thread(self._look, s.directory)
        self._read.move_to_end(s.directory)
        while len(self._read) > DIRECTORIES_KEPT:
            self._read.popitem(last=False)

    def offers(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """When a session starts, and when it lost its context."""
        return self._read.get(s.directory, ()) if moment.begins and self.gives(s.directory) else ()

    def _look(self, directory: str) -> tuple[Offer, ...]:
        try:
            said = folded("\n".join(rules_of(directory)))
            return tuple(
                Offer(f"preference:{known_as(p.text)[:16]}", "preference", f"- {p.text}", 0.0, HEADING)
                for p in those_that_count(Path(directory), self._state(directory))
                if p.known and not p.refused and folded(p.text) not in said
            )
        except (UserError, Unavailable) as error:
            self._world.log.warning("no preferences are offered", directory=directory, error=str(error))
            return ()
