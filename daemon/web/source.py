"""What the pages read, and what their buttons reach: the same parts of the daemon that the socket serves."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.ports import Clock
from ..engine.features.registry import Features
from ..engine.intake import Intake
from ..engine.status import StatusReport
from ..log import Logger
from ..paths import Paths


@dataclass(frozen=True, slots=True)
class Source:
    """Handed to each page."""

    status: StatusReport
    features: Features
    intake: Intake
    clock: Clock
    paths: Paths
    log: Logger
