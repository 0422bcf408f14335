"""Tells those who watch what happens, as it happens: verdicts, starts of judging, and refusals by guards.

Publishing never waits and never fails. Each reader has a bounded queue that loses its oldest entry when it is
full; the next entry says how many were lost (``dropped``). Readers are bounded too: one too many is
``Unavailable``. Nothing is stored. The newest refusal of each session is kept in memory, for ``reflectd
why``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from ..core.errors import Unavailable
from ..redact import redact_head

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Kind = Literal["verdict", "judging", "skip", "stuck", "nudge"]
Entry = dict[str, Any]
QUEUE = 256
READERS = 16
SKIPS_KEPT = 500
REASON_CHARS = 500
HEARTBEAT_S = 15.0


class Reader(Struct, eq=False):
    """One who watches. ``session`` is the beginning of an id, ``directory`` counts with what is below it."""

    session: str = ""
    directory: str = ""
    queue: deque[Entry] = field(default_factory=lambda: deque(maxlen=QUEUE))
    dropped: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def wants(self, entry: Entry) -> bool:
        there = str(entry.get("directory", ""))
        inside = not self.directory or there == self.directory or there.startswith(f"{self.directory}/")
        return inside and str(entry["session"]).startswith(self.session)

    def push(self, entry: Entry) -> None:
        if len(self.queue) == QUEUE:
            self.dropped += 1
        self.queue.append(entry)
        self.news.set()


class Hub:
    """Publishes to every reader. All methods belong to the loop's thread."""

    def __init__(self) -> None:
        self._readers: set[Reader] = set()
        self._skips: OrderedDict[str, Entry] = OrderedDict()
        self._closed = False

    @property
    def watched(self) -> bool:
        """Somebody reads. If nobody does, no entry need be built."""
        return bool(self._readers)

    def publish(self, kind: Kind, entry: Entry) -> None:
        """``entry``: ``session``, ``at`` (epoch ms), ``directory``; of a skip guard and reason."""
        if kind == "skip":
            entry = {**entry, "reason": redact_head(str(entry["reason"]), REASON_CHARS)}
            self._skips.pop(entry["session"], None)
            self._skips[entry["session"]] = entry
            if len(self._skips) > SKIPS_KEPT:
                self._skips.popitem(last=False)
        told = {"kind": kind, **entry}
        for reader in self._readers:
            if reader.wants(told):
                reader.push(told)

    def last_skip(self, session: str) -> Entry | None:
        """The newest refusal by a guard for this session, since the daemon started."""
        return self._skips.get(session)

    async def entries(
        self, session: str = "", directory: str = "", heartbeat_s: float = HEARTBEAT_S
    ) -> AsyncIterator[Entry | None]:
        """Entries as they come; None at once and after each quiet ``heartbeat_s``. Ends with ``close``."""
        if len(self._readers) >= READERS:
            raise Unavailable(f"{READERS} are watching already; end one of them")
        reader = Reader(session, directory.rstrip("/"))
        self._readers.add(reader)
        try:
            yield None
            while not self._closed:
                if not reader.queue:
                    reader.news.clear()
                    try:
                        async with asyncio.timeout(heartbeat_s):
                            await reader.news.wait()
                    except TimeoutError:
                        yield None
                    continue
                entry, lost, reader.dropped = reader.queue.popleft(), reader.dropped, 0
                yield {**entry, "dropped": lost} if lost else entry
        finally:
            self._readers.discard(reader)

    def close(self) -> None:
        self._closed = True
        for reader in self._readers:
            reader.news.set()
