"""What the checks of ``reflectd doctor`` are given, and what each of them finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.settings import Settings
    from ...paths import Paths

Outcome = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """One finding; ``mend`` says what to do when it is not ``ok``."""

    name: str
    outcome: Outcome
    text: str
    mend: str = ""


class About(NamedTuple):
    """What the checks look at. ``status`` is the running daemon's answer, None when none answers."""

    env: Mapping[str, str]
    settings: Settings
    where: Paths
    status: dict[str, Any] | None
