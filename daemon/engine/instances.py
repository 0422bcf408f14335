"""The hosts that said hello: their streams of orders, and the calls they answer.

Orders queue while an instance's stream is away, up to a bound. A call that gets no answer in time, or whose
host goes away, raises ``Unavailable``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..core.errors import Unavailable
from .hosts.host import Answers, Instance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ..core.errors import Fault
    from .hosts.host import Host, Mode

INSTANCES_KEPT = 2_000
HEARTBEAT_S = 15.0
FOLDER_CHARS = 200  # of a folder in an error


class Instances:
    """The registry. Bounded: the oldest that is not connected goes first (I44)."""

    def __init__(self, boot: str) -> None:
        self._all: dict[str, Instance] = {}
        self.answers = Answers(boot)

    def __iter__(self) -> Iterator[Instance]:
        return iter(list(self._all.values()))

    def add(
        self, identity: str, host: Host, mode: Mode, pid: int, directory: str, *, debug: bool = False
    ) -> Instance:
        """Register an instance, or refresh the one that says hello again."""
        known = self._all.pop(identity, None)
        if known is None:
            known = Instance(identity, host, mode, pid, directory, self.answers, debug=debug)
        known.debug, known.mode, known.pid, known.directory = debug, mode, pid, directory
        self._all[identity] = known
        if len(self._all) > INSTANCES_KEPT:
            gone = next((i for i in self._all.values() if not i.connected), None)
            if gone is not None:
                del self._all[gone.id]
        return known

    def get(self, instance: str) -> Instance | None:
        """The instance, if it said hello to this daemon."""
        return self._all.get(instance)

    def connected(self, instance: str, directory: str = "") -> Instance | None:
        """The instance if it is connected; else, given a directory, the newest there that shares its
        sessions.
        """
        found = self._all.get(instance)
        if found is not None and found.connected:
            return found
        if directory:
            there = (i for i in reversed(self._all.values()) if i.connected and i.directory == directory)
            return next((i for i in there if i.can.shares_sessions), None)
        return None

    def telling(self, directory: str) -> Instance:
        """A host of this folder that can be asked for its past sessions. Raises ``Unavailable``."""
        there = (i for i in self._all.values() if i.connected and i.can.tells_history)
        found = next((i for i in there if i.directory == directory), None)
        if found is None:
            raise Unavailable(f"no opencode is open in {directory[:FOLDER_CHARS]}")
        return found

    async def lines(self, instance: Instance, heartbeat_s: float = HEARTBEAT_S) -> AsyncIterator[bytes]:
        """The stream of orders, with a blank line as heartbeat. A newer stream ends this one."""
        instance.stream += 1
        mine, queue = instance.stream, instance.renew()
        instance.connected, instance.left, instance.away_at = True, False, None
        try:
            yield b"\n"
            while instance.stream == mine:
                try:
                    async with asyncio.timeout(heartbeat_s):
                        line = await queue.get()
                except TimeoutError:
                    line = b"\n"
                if line is None:
                    continue
                yield line
        finally:
            if instance.stream == mine:
                self.gone(instance, "its stream closed")

    def gone(self, instance: Instance, why: str) -> None:
        """Its host ends: nobody carries out orders there, or answers."""
        instance.connected = False
        # `opencode run` ends while it is judged as a matter of course; then the rules may judge
        fault: Fault = "" if instance.mode == "run" else "gone"
        self.answers.fail(instance.id, why, fault)

    def close(self) -> None:
        """End all streams and calls."""
        for instance in self._all.values():
            instance.stream += 1
            instance.connected = False
            if not instance.queue.full():
                instance.queue.put_nowait(None)
        self.answers.fail("", "the daemon stops")
