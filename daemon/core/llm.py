"""The model seam: a flow yields a ``Prompt`` and is sent a ``Reply`` (DESIGN §3, §6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from daemon.core.evidence import Evidence
from daemon.core.transcript import Model

Tier = Literal["fast", "judge", "reflect"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and USD of one call; ``cost`` is None when the price is unknown.

    ``input`` counts every input token; ``cached`` is the part of it that was read from a cache.
    """

    input: int = 0
    output: int = 0
    cost: float | None = None
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a model. ``evidence`` is for the deterministic provider and never leaves the machine.

    ``schema``: the JSON Schema of the wanted object, for providers with structured output; the object is
    asked for in ``system`` too. ``max_tokens`` bounds the answer. ``temperature`` is left out where a model
    refuses it.
    """

    purpose: str
    tier: Tier
    system: str
    text: str
    session: str = ""
    model: Model | None = None  # the session's own model, for the host provider
    nonce: str = ""
    evidence: Evidence | None = None
    schema: dict[str, object] | None = None
    max_tokens: int = 1_500
    temperature: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. ``data`` is set when the provider answered with structured output."""

    text: str
    provider: str
    model: str = ""
    data: dict[str, object] | None = None
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
