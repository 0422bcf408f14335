"""The price of a call in USD, by the installed table ``genai-prices``: no network, no updates.

An unknown price is None, never 0 (I41): for an unknown model, provider or server, when no tokens are
reported, and when the table says 0. A server on this machine counts as unknown too: it may be a gateway to a
paid model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..core.llm import Usage

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot

# opencode's provider ids (models.dev) that the table knows by another name
_NAMES: Final = {
    "amazon-bedrock": "aws",
    "fireworks-ai": "fireworks",
    "gemini": "google",
    "google-vertex": "google",
    "google-vertex-anthropic": "google",
    "togetherai": "together",
    "xai": "x-ai",
}


def cost_usd(
    provider: str, model: str, usage: Usage, *, base_url: str = "", written: int = 0
) -> float | None:
    """The price of ``usage``, or None. ``provider``: a name of ours or of opencode. For ``host``, ``model``
    is ``provider/model``. ``base_url``: the server's address, if it is not the provider's own. ``written``:
    the input tokens that were written to a cache. The first call imports the table (0.1 to 0.4 s).
    """
    if usage.input <= 0 and usage.output <= 0:
        return None
    if provider == "host":
        provider, _, model = model.partition("/")
    if not model:
        return None
    from genai_prices import Usage as Counts
    from genai_prices import calc_price

    cached = min(max(usage.cached, 0), usage.input)
    try:
        counts = Counts(
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=cached,
            cache_write_tokens=min(max(written, 0), usage.input - cached),
        )
        if base_url:
            total = calc_price(counts, model, provider_api_url=base_url).total_price
        elif (known := _known(provider)) is not None:
            total = calc_price(counts, model, provider_id=known).total_price
        else:
            return None
    except (LookupError, ValueError, re.error):
        return None
    return float(total) or None


def estimate_usd(
    provider: str, model: str, input_tokens: int, output_tokens: int, *, base_url: str = ""
) -> float | None:
    """The highest price of a call of this size (nothing from a cache), or None."""
    return cost_usd(provider, model, Usage(input_tokens, output_tokens), base_url=base_url)


def load() -> None:
    """Import the table in the caller's thread and look something up, because the first time takes longer."""
    cost_usd("", "-", Usage(1, 1), base_url="-")


def _known(provider: str) -> str | None:
    """The table's id of a provider. The table would also match a part of a name, but a gateway that is called
    ``my-openai`` is not OpenAI.
    """
    from genai_prices.data_snapshot import get_snapshot

    snapshot: DataSnapshot = get_snapshot()
    name = _NAMES.get(provider.lower(), provider.lower())
    return name if any(each.id == name for each in snapshot.providers) else None
