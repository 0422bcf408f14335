"""``Prompt`` and ``Reply``: a flow yields the one and is sent the other."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from .evidence import Evidence
from .guards import Skip
from .transcript import Model

Tier = Literal["fast", "judge", "reflect"]


class Usage(Struct, frozen=True):
    """Tokens and cost of one call. ``cost``: in ``currency``, None if unknown. ``input``: ``cached`` too."""

    input: int = 0
    output: int = 0
    cost: float | None = None
    cached: int = 0
    currency: str = "USD"


class Prompt(Struct, frozen=True):
    """One request to a model.

    ``evidence``: the rows that the provider ``offline`` judges by; they never leave the machine. ``schema``:
    the JSON Schema of the wanted object, for providers with structured output (``system`` asks for the object
    too). ``max_tokens`` limits the answer. ``temperature`` is not sent to a model that refuses it.
    ``host``: the session's, which says who may be asked; "" where the daemon knows it. ``wanted``: a model
    that answers a prompt of the tier ``fast`` where it is offered; else the small models of the settings do.
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
    host: str = ""
    wanted: str = ""


class Reply(Struct, frozen=True):
    """A model's answer. ``data`` is set when the provider answered with structured output. ``limit``: the cap
    on spending that had the rules answer.
    """

    text: str
    provider: str
    model: str = ""
    data: dict[str, object] | None = None
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    limit: Skip | None = None
