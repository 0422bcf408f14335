"""The result of a ``providers`` order: which models opencode's providers offer.

A bad item (a provider, a model) is left out; only a body that is no JSON object raises ``BadReply`` (I36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Raw, Struct, field

from ...core.errors import BadReply
from ..wire import Wire, decode

if TYPE_CHECKING:
    from ...core.fast import Offered

MOST: Final = 10_000  # model ids in all; the shim sends at most half as many
LONGEST: Final = 200


class _Provider(Struct):
    id: str = ""
    models: list[object] = field(default_factory=list)


class _Read(Struct):
    providers: list[Raw] = field(default_factory=list)


def parse_providers(data: Wire) -> Offered:
    """Provider id to model ids, in the host's order, without repeats. Empty when the host has none."""
    found: dict[str, tuple[str, ...]] = {}
    left = MOST
    for item in decode(data, _Read).providers:
        try:
            provider = decode(item, _Provider)
        except BadReply:
            continue
        ids = dict.fromkeys(m for m in provider.models if isinstance(m, str) and 0 < len(m) <= LONGEST)
        kept = tuple(ids)[:left]
        if 0 < len(provider.id) <= LONGEST and provider.id not in found and kept:
            found[provider.id] = kept
            left -= len(kept)
    return found
