"""A simulated opencode in front of the real engine: real parts, real SQLite, no process and no socket.

``SimHost`` stands where the host is. It keeps sessions and messages as opencode does, tells the engine by
the shim's own events, and carries out orders with the shim's own checks. Whatever reaches the agent is
recorded in ``prompts``, so that a test can say what must never happen.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from daemon import config, paths
from daemon.app import FEATURES, Daemon
from daemon.core.errors import ReflectdError
from daemon.core.settings import Settings
from daemon.engine.engine import MakeFeature
from daemon.engine.hosts.host import Instance, Mode
from daemon.engine.intake import Wire
from daemon.testing import FakeClock, ScriptedLLM


@dataclass
class SimSession:
    """One session as the host keeps it."""

    id: str
    parent: str = ""
    busy: bool = False
    messages: list[dict[str, Any]] = field(default_factory=list)
    todos: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Prompted:
    """One message of ours that reached the agent. ``aborted``: after Esc, of which the daemon could know."""

    session: str
    task: str
    turn: str
    text: str
    was_busy: bool
    aborted: bool
    kind: str = "feedback"
    order: str = ""


class SimHost:
    """One opencode process in one directory."""

    def __init__(self, directory: str, clock: FakeClock, instance: str = "host-1") -> None:
        self.directory = directory
        self.clock = clock
        self.id = instance
        self.sessions: dict[str, SimSession] = {}
        self.aborted: set[str] = set()
        self.prompts: list[Prompted] = []
        self.put_in: set[str] = set()
        self.toasts: list[str] = []
        self.orders: list[dict[str, Any]] = []
        self.backlog: list[Wire] = []
        self.deaf = False  # orders arrive and are not answered
        self.deaf_to = ""  # orders of this kind arrive and are not answered
        self.fails_to = ""  # orders of this kind are answered with a failure
        self.mute = False  # events are kept back
        self.past: list[dict[str, Any]] = []  # pages of past sessions
        self.ignores = False  # a prompt is stored, and the agent does not begin
        self._seq = 0
        self._ids = 0
        self._done: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._daemon: Daemon | None = None
        self._instance: Instance | None = None

    def next_id(self, prefix: str) -> str:
        """Ids sort by time, as opencode's do."""
        self._ids += 1
        return f"{prefix}_{self._ids:06d}"

    # --- the connection -------------------------------------------------------------------------

    async def connect(self, daemon: Daemon, mode: Mode = "serve") -> None:
        """Hello, order stream, and what was kept back meanwhile."""
        await self.disconnect()
        self._daemon = daemon
        self._instance = await daemon.engine.intake.hello("opencode", self.id, mode, 1, self.directory)
        self._task = asyncio.create_task(self._serve(daemon, self._instance))
        await asyncio.sleep(0)
        await self.flush()

    async def disconnect(self) -> None:
        """The stream breaks."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._task = self._daemon = self._instance = None

    async def flush(self) -> None:
        """Send what is kept back; it stays kept when the daemon refuses."""
        if self._daemon is None or self._instance is None or self.mute or not self.backlog:
            return
        batch = list(self.backlog)
        with contextlib.suppress(ReflectdError):
            await self._daemon.engine.intake.accept(self._instance, batch)
            del self.backlog[: len(batch)]

    async def emit(self, kind: str, **data: Any) -> None:
        """One event of the shim."""
        self._seq += 1
        self.backlog.append(Wire(self._seq, self.clock.ms, kind, msgspec.Raw(json.dumps(data).encode())))
        await self.flush()

    async def _serve(self, daemon: Daemon, instance: Instance) -> None:
        lines = daemon.engine.intake.orders(instance)
        try:
            async for line in lines:
                if not line.strip() or self.deaf:
                    continue
                order = json.loads(line)
                if order["kind"] != self.deaf_to:
                    await self._carry_out(daemon, order)
        finally:
            await lines.aclose()  # type: ignore[attr-defined]

    # --- what people and agents do --------------------------------------------------------------

    async def create(self, session: str, parent: str = "") -> SimSession:
        """A session begins."""
        s = self.sessions[session] = SimSession(session, parent)
        info = {"id": session, "title": "t", "directory": self.directory}
        if parent:
            info["parentID"] = parent
        await self.emit("session.created", sessionID=session, info=info)
        return s

    async def types(self, session: str, text: str = "Do the thing", agent: str = "build") -> str:
        """A person types, in a new session if there is none of this id; the agent starts."""
        if session not in self.sessions:
            await self.create(session)
        message = self._add(session, "user", text, agent=agent)
        self.aborted.discard(session)
        await self.emit("chat.message", sessionID=session, messageID=message, agent=agent, human=True)
        await self.busy(session)
        return message

    async def puts_in(self, session: str, text: str) -> str:
        """Another plugin stores a user message without asking for an answer, and does not mark it. The shim
        tells of it only where it comes while the agent works; at rest nothing follows it.
        """
        busy = self.sessions[session].busy
        message = self._add(session, "user", text, **({"steers": True} if busy else {}))
        self.put_in.add(message)
        if busy:
            await self.emit("chat.message", sessionID=session, messageID=message, human=True, steers=True)
        return message

    def types_unseen(self, session: str, text: str) -> str:
        """A user message of which no event tells."""
        return self._add(session, "user", text)

    async def busy(self, session: str) -> None:
        """The agent works."""
        self.sessions[session].busy = True
        await self.emit("session.status", sessionID=session, status={"type": "busy"})

    async def answers(
        self,
        session: str,
        text: str = "All done.",
        finish: str = "stop",
        tools: tuple[dict[str, Any], ...] = (),
        **info: Any,
    ) -> str:
        """The agent's last message of this turn; no idle yet."""
        return self._add(session, "assistant", text, finish=finish, tools=tools, **info)

    async def idle(self, session: str) -> None:
        """The agent stops."""
        self.sessions[session].busy = False
        await self.emit("session.idle", sessionID=session)

    async def works(self, session: str, text: str = "All done.", **more: Any) -> str:
        """A whole turn: an answer, then idle."""
        message = await self.answers(session, text, **more)
        await self.idle(session)
        return message

    async def escapes(self, session: str) -> None:
        """Esc: the error, and an idle."""
        self.aborted.add(session)
        s = self.sessions[session]
        if s.busy and s.messages:
            if s.messages[-1]["info"]["role"] == "assistant" and not s.messages[-1]["info"].get("finish"):
                s.messages[-1]["info"]["error"] = {"name": "MessageAbortedError", "message": "Aborted"}
            else:
                self._add(
                    session, "assistant", "", error={"name": "MessageAbortedError", "message": "Aborted"}
                )
        error = {"name": "MessageAbortedError", "message": "Aborted"}
        await self.emit("session.error", sessionID=session, error=error)
        await self.idle(session)

    async def compacts(
        self,
        session: str,
        *,
        auto: bool = False,
        continued: bool = False,
        busy: bool = False,
        summary: str = "Goal: the thing.",
    ) -> str:
        """The host replaces the context by a summary (its id is given) and stops; ``continued``: it says "go
        on" to itself and the agent works; ``busy``: the agent works on without a word.
        """
        await self.busy(session)
        asked = self._add(session, "user", "", marked={"type": "compaction", "auto": auto})
        await self.emit("chat.message", sessionID=session, messageID=asked, human=False)
        made = self._add(session, "assistant", summary, finish="stop", summary=True, agent="compaction")
        await self.emit("session.compacted", sessionID=session)
        if continued:
            synthetic = {"type": "text", "text": "Continue if you have next steps", "synthetic": True}
            message = self._add(session, "user", "", marked=synthetic)
            await self.emit("chat.message", sessionID=session, messageID=message, human=False)
        elif not busy:
            await self.idle(session)
        return made

    def last(self, session: str, role: str = "assistant") -> str:
        """Id of the last message of this role, or empty."""
        found = [m["info"]["id"] for m in self.sessions[session].messages if m["info"]["role"] == role]
        return found[-1] if found else ""

    def human(self, session: str) -> str:
        """Id of the last message a person typed."""
        found = [
            m["info"]["id"]
            for m in self.sessions[session].messages
            if m["info"]["role"] == "user"
            and not {"order", "auto", "synthetic"} & m["parts"][0].keys()
            and m["info"]["id"] not in self.put_in
        ]
        return found[-1] if found else ""

    # --- the shim's side ------------------------------------------------------------------------

    async def _carry_out(self, daemon: Daemon, order: dict[str, Any]) -> None:
        self.orders.append(order)
        if order["id"] not in self._done:  # it goes on when the stream breaks meanwhile, as the plugin does
            self._done[order["id"]] = asyncio.ensure_future(self._do(order))
        known = await asyncio.shield(self._done[order["id"]])
        data = msgspec.Raw(json.dumps(known.get("data")).encode())
        await daemon.engine.intake.result(order["id"], known["status"], data, known.get("error", ""))

    async def _do(self, order: dict[str, Any]) -> dict[str, Any]:
        s = self.sessions.get(order["session"])
        if order["kind"] == self.fails_to:
            return {"status": "failed", "error": "no"}
        match order["kind"]:
            case "toast":
                self.toasts.append(order["data"]["message"])
                return {"status": "done"}
            case "read":
                if s is None:
                    return {"status": "done", "data": {"missing": True}}
                info = {"id": s.id, "title": "t", "directory": self.directory, "parentID": s.parent or None}
                data = {
                    "missing": False,
                    "busy": s.busy,
                    "session": info,
                    "messages": s.messages,
                    "todos": s.todos,
                }
                return {"status": "done", "data": data}
            case "feedback" | "nudge":
                only = order["if"]
                if s is None or s.busy or self.human(s.id) != only["task"]:
                    return {"status": "stale"}
                if only["turn"] != self.last(s.id):
                    return {"status": "stale"}
                turn = self.last(s.id)
                self.prompts.append(
                    Prompted(
                        s.id,
                        self.human(s.id),
                        turn,
                        order["data"]["text"],
                        s.busy,
                        s.id in self.aborted and not self.mute,
                        order["kind"],
                        order["id"],
                    )
                )
                message = self._add(s.id, "user", order["data"]["text"], order=order["id"])
                await self.emit(
                    "chat.message", sessionID=s.id, messageID=message, human=False, order=order["id"]
                )
                if not self.ignores:
                    await self.busy(s.id)
                return {"status": "done"}
            case "cancel" | "delete" | "renew":
                return {"status": "done"}
            case "history":
                return {"status": "done", "data": self.past.pop(0)}
            case _:
                return {"status": "failed", "error": "unknown order"}

    def _add(
        self,
        session: str,
        role: str,
        text: str,
        *,
        order: str = "",
        tools: tuple[dict[str, Any], ...] = (),
        marked: dict[str, Any] | None = None,
        **info: Any,
    ) -> str:
        message = self.next_id("msg")
        part: dict[str, Any] = {"id": message + "p", **(marked or {"type": "text", "text": text})}
        if order:
            part["order"] = order
        parts = [
            {"type": "tool", "id": f"{message}t{i}", "callID": f"c{i}", **tool}
            for i, tool in enumerate(tools)
        ]
        body = {"id": message, "role": role, "time": {"created": self.clock.ms}, **info}
        self.sessions[session].messages.append({"info": body, "parts": [*parts, part]})
        return message


def bash(command: str, exit_code: int = 0, output: str = "") -> dict[str, Any]:
    """A finished shell call."""
    state = {"status": "completed", "input": {"command": command}, "output": output, "exit": exit_code}
    return {"tool": "bash", "state": state}


def write(path: str) -> dict[str, Any]:
    """A finished write."""
    return {"tool": "write", "state": {"status": "completed", "input": {"filePath": path}, "output": "ok"}}


def short_socket(folder: Path) -> Path:
    """A socket path that the kernel takes, however long the names of tests are."""
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    return Path(os.environ["HOME"]) / "s" / name


def make_daemon(
    folder: Path,
    clock: FakeClock,
    provider: ScriptedLLM | None = None,
    settings: Settings | None = None,
    features: Sequence[MakeFeature] = FEATURES,
) -> Daemon:
    """A daemon with its state in ``folder``; run ``daemon.run()`` as a task, or ``SimDaemon``."""
    where = paths.resolve(
        {
            "HOME": str(folder),
            "REFLECTD_STATE_DIR": str(folder / "state"),
            "REFLECTD_SOCKET": str(short_socket(folder)),
        }
    )
    settings = settings or config.from_text()
    return Daemon(settings, where, clock=clock, provider=provider, features=features)


class SimDaemon:
    """A running daemon that can be killed (nothing drained, nothing flushed) and started again."""

    def __init__(
        self,
        folder: Path,
        clock: FakeClock,
        provider: ScriptedLLM | None = None,
        settings: Settings | None = None,
        features: Sequence[MakeFeature] = FEATURES,
    ) -> None:
        self.folder, self.clock, self.provider, self.settings = folder, clock, provider, settings
        self.features = features
        self.daemon: Daemon = None  # type: ignore[assignment]
        self._task: asyncio.Task[None] | None = None

    def make(self) -> Daemon:
        """A daemon that does not run yet."""
        self.daemon = make_daemon(self.folder, self.clock, self.provider, self.settings, self.features)
        return self.daemon

    async def start(self) -> Daemon:
        """Open the database and run the workers."""
        self.make()
        self._task = asyncio.create_task(self.daemon.run())
        await asyncio.sleep(0)
        return self.daemon

    async def stop(self) -> None:
        """SIGTERM."""
        if self._task is not None:
            self.daemon.stopping.set()
            await self._task
            self._task = None

    async def kill(self) -> None:
        """SIGKILL: every task dies where it is; what was not committed is gone."""
        if self._task is None:
            return
        mine = [*self.daemon._tasks, self._task]
        for task in mine:
            task.get_coro()
        self.daemon.stopping = asyncio.Event()
        self.daemon.db._closed = True  # nothing more is stored
        for task in mine:
            task.cancel()
        self.daemon._drain = _nothing  # type: ignore[method-assign]
        await asyncio.gather(*mine, return_exceptions=True)
        self.daemon.db._closed = False
        self.daemon.db.close()
        self._task = None

    async def later(self, seconds: float) -> None:
        """Time passes, and what is then due is done."""
        self.clock.advance(seconds)
        self.daemon.engine.timers.wake()
        self.daemon.engine.jobs.wake()
        await asyncio.sleep(0)
        await self.settle()

    async def settle(self) -> None:
        """Until nothing is under way (bounded)."""
        quiet = 0
        for _ in range(4000):
            busy = bool(self.daemon._tasks) or self.daemon.engine.filing.waiting
            quiet = 0 if busy else quiet + 1
            if quiet >= 3:
                await self.daemon.engine.filing.drain()
                return
            await asyncio.sleep(0.0005)
        names = [t.get_name() for t in self.daemon._tasks]
        raise AssertionError(f"still under way: {names}")


async def _nothing() -> None:
    return None
