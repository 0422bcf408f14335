"""What git lists as changed in the workspaces: asked when a task begins, and when a case is made.

Only with the setting ``judge.git_status``, and only where the person trusts git (``files.workspace``). Nobody
waits for the first answer, and a case waits at most ``WAIT_S``. One git runs at a time. Where there is no
answer a case says nothing of it; the log says why, once a session.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.errors import ReflectdError, Unavailable
from ..core.workspace import changed_files
from ..files.git import Slow

if TYPE_CHECKING:
    from ..core.session import Session
    from ..core.workspace import ChangedFiles, Entry
    from ..files.workspace import Workspace
    from .world import World

WAIT_S: Final = 3.0  # the list of the start may still be under way
LATE_MS: Final = 3_000  # a list that is made later than this may hold the agent's first changes
KEPT: Final = 100
Answer = tuple["Entry", ...] | ReflectdError


@dataclass(frozen=True, slots=True)
class _Start:
    """What git listed in ``directory`` when ``task`` began; ``None`` when that came too late."""

    task: str
    directory: str
    listed: asyncio.Future[Answer | None]


class Workspaces:
    """Asks git for the sessions' folders. Of each session the start of its newest task is kept."""

    def __init__(self, world: World, workspace: Workspace) -> None:
        self._world = world
        self._workspace = workspace
        self._one = asyncio.Lock()
        self._starts: OrderedDict[str, _Start] = OrderedDict()
        self._told: OrderedDict[str, bool] = OrderedDict()  # session → whether git was too slow

    def began(self, s: Session, at: int) -> None:
        """A task began, at epoch ms ``at``. Must not wait."""
        self._starts.pop(s.id, None)
        if not self._asks(s) or s.parent or s.judge or not self._world.limits(s).enabled:
            return
        self._starts[s.id] = _Start(s.task, s.directory, self._ask(s.directory, at))
        while len(self._starts) > KEPT:
            self._starts.popitem(last=False)

    def ended(self, session: str) -> None:
        """The session's task is over."""
        self._starts.pop(session, None)

    async def changed(self, s: Session) -> ChangedFiles | None:
        """What changed in the session's folder, since its task began if that is known. None: unknown."""
        if not self._asks(s):
            return None
        start = self._starts.get(s.id)
        if start is not None and (start.task, start.directory) != (s.task, s.directory):
            start = None
        try:
            async with asyncio.timeout(WAIT_S):
                before = None if start is None else await asyncio.shield(start.listed)
                now = await self._ask(s.directory)
        except TimeoutError:
            now = Unavailable("git was busy with other folders")
        if now is None or isinstance(now, ReflectdError):
            self._tell(s, now or Unavailable("nobody asked git"))
            return None
        return changed_files(now, before if isinstance(before, tuple) else None)

    def _asks(self, s: Session) -> bool:
        return (
            self._world.settings.judge.git_status and s.directory.startswith("/") and not self._told.get(s.id)
        )

    def _ask(self, directory: str, at: int = 0) -> asyncio.Future[Answer | None]:
        """Ask git in the background."""
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()

        async def ask() -> None:
            found: Answer | None = None
            try:
                async with self._one:
                    late = at and abs(self._world.clock.now_ms() - at) >= LATE_MS
                    if not late and not answer.done():  # done: nobody waits any more
                        found = await asyncio.to_thread(self._workspace.entries, directory)
            except ReflectdError as e:
                found = e
            finally:
                if not answer.done():
                    answer.set_result(found)

        self._world.spawn(ask(), "git status", "look")
        return answer

    def _tell(self, s: Session, why: ReflectdError) -> None:
        """Say it once a session. Where git is too slow it is not asked again."""
        slow = isinstance(why, Slow)
        if s.id not in self._told:
            self._world.logger(s).info("git status not used", reason=str(why), again=not slow)
        self._told[s.id] = slow
        while len(self._told) > KEPT:
            self._told.popitem(last=False)
