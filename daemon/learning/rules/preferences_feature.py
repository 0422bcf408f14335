"""A person's preferences: offered to each session before anything that was learned (design/rules.md).

They come from the project's file of preferences; of it only what the person typed or trusted is given, and
only what ``learning.texts.refusal`` has nothing against. Preferences that Workshop keeps, Workshop gives. A
file that can't be read gives nothing, and the log says why.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from ...core.errors import Unavailable, UserError
from ...core.given import folded, known_as
from ...core.offers import Moment, Offer
from ...engine.features.feature import Feature, Parts, Place
from ..playbook.playbooks import RULES, identity, rules_of
from ..state import ReflectState
from .preferences import place, those_that_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.session import Session

DIRECTORIES_KEPT: Final = 50
HEADING: Final = (
    "What the person prefers in this project (what they ask for in the session and the project's own rules "
    "come first):"
)
Read = tuple[tuple[object, ...], tuple[Offer, ...]]


class Preferences(Feature):
    """Reads and offers them."""

    name: ClassVar = "preferences"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._world = parts.world
        self._read: OrderedDict[str, Read] = OrderedDict()
        self._states: OrderedDict[str, ReflectState] = OrderedDict()

    def has_context(self, directory: str) -> Mapping[Place, int]:
        """Where the person vouched for one. Asked with each batch of a host's events."""
        return {"context": 0} if self._state(directory).has("preferences") else {}

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """Read the project's file, if anything changed since it was last read."""
        if not moment.begins or not self.has_context(s.directory):
            return
        self._read[s.directory] = await asyncio.to_thread(
            self._look, s.directory, self._read.get(s.directory)
        )
        self._read.move_to_end(s.directory)
        while len(self._read) > DIRECTORIES_KEPT:
            self._read.popitem(last=False)

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """When a session starts, and when it lost its context."""
        found = self._read.get(s.directory)
        return () if found is None or not moment.begins or not self.has_context(s.directory) else found[1]

    def _state(self, directory: str) -> ReflectState:
        found = self._states.get(directory)
        if found is None:
            found = self._states[directory] = ReflectState(self._world.db.path.parent, directory)
            while len(self._states) > DIRECTORIES_KEPT:
                self._states.popitem(last=False)
        return found

    def _look(self, directory: str, known: Read | None) -> Read:
        project, state = Path(directory), self._state(directory)
        try:
            file = place(project).path
            paths = (file, state.folder / "preferences.json", *(project / name for name in RULES))
            stamp = tuple(map(identity, paths))
            if known is not None and known[0] == stamp:
                return known
            said = folded("\n".join(rules_of(directory)))
            found = [
                Offer(f"preference:{known_as(p.text)[:16]}", "preference", f"- {p.text}", 0.0, HEADING)
                for p in those_that_count(project, state)
                if p.known and not p.refused and folded(p.text) not in said
            ]
        except (UserError, Unavailable) as error:
            self._world.log.warning("no preferences are offered", directory=directory, error=str(error))
            return (), ()
        return stamp, tuple(found)
