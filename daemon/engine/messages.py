"""What the host knows of a session: its messages, and whether its sub-agents still work."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..core.bounds import bounded
from ..core.errors import ReflectdError, Unavailable
from ..core.given import without
from ..core.workspace import changed_files
from ..files.git import Slow
from ..judge.case import make_case
from ..store import injections

if TYPE_CHECKING:
    from ..core.session import Session
    from ..core.transcript import Transcript
    from ..core.workspace import ChangedFiles, Entry
    from ..files.workspace import Workspace
    from ..judge.case import Case
    from .hosts.host import Instance
    from .instances import Instances
    from .world import World

# What git lists as changed in the workspaces: asked when a task begins, and when a case is made.
#
# Only with the setting ``judge.git_status``, and only where the person trusts git (``files.workspace``).
# Nobody waits for the first answer, and a case waits at most ``WAIT_S``. One git runs at a time. Where
# there is no answer a case says nothing of it; the log says why, once a session.

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


FEW: Final = 200


class Messages:
    """Reads; changes nothing."""

    def __init__(self, world: World, instances: Instances, workspaces: Workspaces) -> None:
        self._world = world
        self._instances = instances
        self._workspaces = workspaces

    async def read(self, s: Session, instance: Instance) -> Transcript:
        """The session's messages: the truth, within bounds, because no text may stop the loop, and without
        what is recorded as given behind results of calls. Raises ``Unavailable`` or ``BadReply``. The
        settings of its project are as new as they.

        After a restart hundreds of sessions may have to be read. Each waits for its turn here, so that the
        time that the host has for one is not used up by the others.
        """
        async with instance.reading:
            if instance.can.order_stream and not instance.connected:
                raise Unavailable(f"{instance.id} went away before it was asked")
            found = replace(await instance.host.read(s, instance), begun=s.task)
        await self._world.projects.read(s.directory)
        found = without(found, injections.behind_calls(self._world.db, s.id))
        few = len(found.messages) < FEW and len(found.calls) < FEW
        return bounded(found) if few else await asyncio.to_thread(bounded, found)

    async def case(self, transcript: Transcript, s: Session) -> Case:
        """The case of the transcript's last turn."""
        world = self._world
        changed = await self._workspaces.changed(s)

        def make() -> Case:
            return make_case(
                transcript,
                at=world.clock.now_ms(),
                nonce=world.nonce(),
                templates=world.templates(s.directory),
                open_items=s.open_items,
                project=world.project_rules.lines(s.directory),
                changed=changed,
                prompt_tokens=world.project(s.directory).judge.prompt_tokens,
            )

        return await asyncio.to_thread(make)  # files of the project are read, and a transcript may be long

    def children_busy(self, session: str) -> bool:
        """Do sub-agents of this session work? Those of a host that died stay busy, and don't count."""
        return any(
            s.parent == session and s.busy and self._instances.connected(s.instance) is not None
            for s in self._world.sessions.in_memory()
        )
