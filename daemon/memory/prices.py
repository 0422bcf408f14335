"""What reflexion and evaluation cost by the requirements: EUR 0.001 and 0.005 for 1,000 tokens in and out,
for the model that they name. Any other model has its price from the table of prices, in USD. The two are
never summed.
"""

from __future__ import annotations

from typing import Final

EUR: Final = "EUR"
PRICED: Final = frozenset({"claude-3-5-haiku-20241022"})
IN_PER_1K: Final = 0.001
OUT_PER_1K: Final = 0.005


def cost_eur(input_tokens: int, output_tokens: int) -> float | None:
    """EUR for one call; None when no tokens were told: unknown is never 0 (I41)."""
    if input_tokens <= 0 and output_tokens <= 0:
        return None
    return input_tokens / 1000 * IN_PER_1K + output_tokens / 1000 * OUT_PER_1K
