"""A host on the daemon's socket that outlives it: what opencode and its plugin do, as far as the wire shows.

Events are kept until they are acknowledged, results until they are taken, and an order is carried out once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp

Json = dict[str, Any]
AGAIN_S = 0.02
BATCH = 100
GONE = (aiohttp.ClientError, OSError, TimeoutError)


@dataclass(slots=True)
class Chat:
    """One session as the host keeps it. ``human``: the person's last message; ``turn``: the agent's."""

    id: str
    messages: list[Json] = field(default_factory=list)
    busy: bool = False
    human: str = ""
    turn: str = ""
    aborted: bool = False


@dataclass(frozen=True, slots=True)
class Prompted:
    """A prompt of the daemon that reached the agent."""

    session: str
    turn: str
    order: str


class Host:
    """``async with Host(socket, folder, name)``. ``prompted`` is called when the agent is prompted."""

    def __init__(
        self, socket: Path, folder: Path, name: str, prompted: Callable[[Chat], None] = lambda _: None
    ) -> None:
        self.name, self.folder, self._prompted = name, folder, prompted
        self.chats: dict[str, Chat] = {}
        self.prompts: list[Prompted] = []
        self.latencies: list[float] = []
        self._http = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(str(socket), limit=0), timeout=aiohttp.ClientTimeout(sock_read=30)
        )
        self._backlog: list[Json] = []
        self._results: dict[str, Json] = {}
        self._done: dict[str, Json] = {}
        self._news = asyncio.Event()
        self._seq = self._ids = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(work()) for work in (self._listen, self._send)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.close()

    @property
    def settled(self) -> bool:
        """Nothing is kept back, and no agent works."""
        return not (self._backlog or self._results or any(c.busy for c in self.chats.values()))

    # --- what people and agents do --------------------------------------------------------------

    def create(self, session: str) -> Chat:
        chat = self.chats[session] = Chat(session)
        info = {"id": session, "title": session, "directory": str(self.folder)}
        self.tell("session.created", sessionID=session, info=info)
        return chat

    def types(self, chat: Chat) -> None:
        chat.human = self._add(chat, "user", [{"type": "text", "text": "Add a login page with tests"}])
        chat.aborted = False
        self.tell("chat.message", sessionID=chat.id, messageID=chat.human, human=True)
        self._busy(chat)

    def answers(self, chat: Chat, *, finished: bool) -> None:
        """The agent's turn, with a test run that is green or red; then it is idle."""
        output, code = ("5 passed in 0.1s", 0) if finished else ("2 failed, 3 passed in 0.1s", 1)
        run = {"status": "completed", "input": {"command": "pytest -q"}, "output": output, "exit": code}
        given = {"filePath": "a.py", "content": "x = 1"}
        write = {"status": "completed", "input": given, "output": "ok"}
        parts: list[Json] = [
            {"type": "tool", "callID": "c1", "tool": "write", "state": write},
            {"type": "tool", "callID": "c2", "tool": "bash", "state": run},
            {"type": "text", "text": "The login page and its tests are done."},
        ]
        chat.turn = self._add(chat, "assistant", parts, finish="stop")
        chat.busy = False
        self.tell("session.idle", sessionID=chat.id)

    def escapes(self, chat: Chat) -> None:
        chat.aborted, chat.busy = True, False
        self.tell("session.error", sessionID=chat.id, error={"name": "MessageAbortedError"})
        self.tell("session.idle", sessionID=chat.id)

    def tell(self, kind: str, **data: Any) -> None:
        """One event; it is sent soon, and until it is acknowledged."""
        self._seq += 1
        self._backlog.append({"seq": self._seq, "t": int(time.time() * 1000), "kind": kind, "data": data})
        self._news.set()

    # --- the plugin's side ----------------------------------------------------------------------

    async def hello(self) -> None:
        body = {"instance": self.name, "host": "opencode", "mode": "serve", "pid": 1}
        await self._post("/v1/hello", body | {"directory": str(self.folder)})

    async def _post(self, route: str, body: Json) -> tuple[int, Json]:
        async with self._http.post(f"http://reflectd{route}", json=body) as answer:
            return answer.status, await answer.json()

    async def _send(self) -> None:
        while True:
            self._news.clear()
            with suppress(*GONE):
                await self._send_all()
            if not (self._backlog or self._results):
                await self._news.wait()
            else:
                await asyncio.sleep(AGAIN_S)

    async def _send_all(self) -> None:
        while self._backlog or self._results:
            if self._backlog:
                batch = self._backlog[:BATCH]
                began = time.perf_counter()
                status, found = await self._post("/v1/events", {"instance": self.name, "events": batch})
                if status == 200:
                    self.latencies.append(time.perf_counter() - began)
                    self._backlog = [e for e in self._backlog if e["seq"] > found["seq"]]
            else:
                order, result = next(iter(self._results.items()))
                status, _ = await self._post("/v1/results", {"instance": self.name, "id": order, **result})
                if status in {200, 400}:
                    self._results.pop(order, None)
            if status == 409:
                await self.hello()
            elif status not in {200, 400}:
                return

    async def _listen(self) -> None:
        forever = aiohttp.ClientTimeout(total=None, sock_read=None)
        while True:
            with suppress(*GONE):
                await self.hello()
                url = f"http://reflectd/v1/orders?instance={self.name}"
                async with self._http.get(url, timeout=forever) as stream:
                    async for line in stream.content:
                        if line.startswith(b"{"):
                            self._take(json.loads(line))
            await asyncio.sleep(AGAIN_S)

    def _take(self, order: Json) -> None:
        known = self._done.get(order["id"])
        if known is None:
            known = self._carry_out(order)
            if order["kind"] != "read":
                self._done[order["id"]] = known
        self._results[order["id"]] = known
        self._news.set()

    def _carry_out(self, order: Json) -> Json:
        chat = self.chats.get(order["session"])
        if order["kind"] == "read":
            if chat is None:
                return {"status": "done", "data": {"missing": True}}
            session = {"id": chat.id, "title": chat.id, "directory": str(self.folder)}
            kept = {"missing": False, "busy": chat.busy, "session": session, "todos": []}
            return {"status": "done", "data": {**kept, "messages": chat.messages}}
        if order["kind"] in {"feedback", "nudge"}:
            only = order["if"]
            if chat is None or chat.busy or (chat.human, chat.turn) != (only["task"], only["turn"]):
                return {"status": "stale"}
            self.prompts.append(Prompted(chat.id, chat.turn, order["id"]))
            part = {"type": "text", "text": order["data"]["text"], "order": order["id"]}
            message = self._add(chat, "user", [part])
            told = {"human": False, "order": order["id"]}
            self.tell("chat.message", sessionID=chat.id, messageID=message, **told)
            self._busy(chat)
            self._prompted(chat)
        return {"status": "done"}

    def _busy(self, chat: Chat) -> None:
        chat.busy = True
        self.tell("session.status", sessionID=chat.id, status={"type": "busy"})

    def _add(self, chat: Chat, role: str, parts: list[Json], **info: Any) -> str:
        self._ids += 1
        message = f"msg_{self.name}_{self._ids:08d}"
        body = {"id": message, "role": role, "time": {"created": int(time.time() * 1000)}, **info}
        numbered = [{"id": f"{message}p{n}", **part} for n, part in enumerate(parts)]
        chat.messages.append({"info": body, "parts": numbered})
        return message


async def until(what: Callable[[], bool], seconds: float) -> bool:
    """Whether it became true in time."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.1)
    return True
