"""A finding of ``reflectd doctor``, and what its checks look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daemon.core.settings import Settings
    from daemon.paths import Paths

Outcome = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """One finding; ``mend`` says what to do when it is not ``ok``."""

    name: str
    outcome: Outcome
    text: str
    mend: str = ""


class About(NamedTuple):
    """What the checks look at. ``status`` is the running daemon's, None when none answers."""

    env: Mapping[str, str]
    settings: Settings
    where: Paths
    status: dict[str, Any] | None
