"""What does not work right now, by name: each fault is set and cleared on its own.

A fault is logged once when it begins and once when it ends. ``reflectd status`` and ``doctor`` show those
that last. Names in use: `database`, and `files in <folder>` for each folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..log import Logger

if TYPE_CHECKING:
    from collections.abc import Mapping

DATABASE: Final = "database"
KEPT: Final = 50


@dataclass(slots=True)
class Health:
    """The faults that last. Bounded: with more than ``KEPT`` names the oldest is forgotten."""

    log: Logger
    _faults: dict[str, str] = field(default_factory=dict)

    def failed(self, name: str, error: str) -> None:
        """``name`` does not work; ``error`` says what happened, where, and what to do."""
        if name not in self._faults:
            self.log.warning("fault", fault=name, error=error)
        self._faults[name] = error
        if len(self._faults) > KEPT:
            del self._faults[next(iter(self._faults))]

    def works(self, name: str) -> bool:
        """``name`` works. True when it did not before."""
        if self._faults.pop(name, None) is None:
            return False
        self.log.info("fault over", fault=name)
        return True

    @property
    def faults(self) -> Mapping[str, str]:
        """Name of each fault that lasts, and its newest error."""
        return dict(self._faults)

    @property
    def text(self) -> str:
        """All errors in one line; empty when everything works."""
        return "; ".join(self._faults.values())
