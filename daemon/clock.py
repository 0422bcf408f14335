"""The real clock (``core.ports.Clock``)."""

from __future__ import annotations

import time


class SystemClock:
    """Wall time and monotonic time of this machine."""

    def now_ms(self) -> int:
        """Epoch ms."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()
