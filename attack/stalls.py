"""Long and hostile texts, everywhere where a host may put one: none stops the loop for long.

While each is worked on, a small request is sent again and again. What counts is how much processor time the
daemon used between the request and its answer: on a busy machine it comes later, and this does not change.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil

from attack.host import Host, Json, until
from attack.outcome import SHOWN, Deadline, Outcome
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox, sandbox
from harness.pattern_attack import texts
from harness.patterns import patterns_of

if TYPE_CHECKING:
    from harness.patterns import Place

STALL_S = 0.25  # of processor time
BODY = 7_900_000  # bytes of a request: 8 MiB are allowed
FILE = 17_000_000  # of a transcript
CALLS = 5_000
PAUSE_S = 0.002
WORKED_S = 120.0
QUIET_S, QUIET_CPU_S = 0.4, 0.1
PROBE = b"GET /v1/nothing HTTP/1.1\r\nHost: reflectd\r\n\r\n"
PUMPS = (
    "a", "a-", "\\", '\\"', "\n", "😀", "(", "x=", "| `a` ", "/a", "- [ ] do it\n", "E1 ", "<a>", "\ud83d",
    "password=", "echo ", "FAILED a::b - c\n", "diff --git a/b b/c\n", "1.1", "\x1b[3", "$(", "# ", "`",
    "[](", "\x01", "password |\n", "token | x\n", "pwd is x1y2z3 ", " -pX",
)  # fmt: skip


class Pulse:
    """Sends the probe all the time; ``worst`` is the most processor time that one of them saw."""

    def __init__(self, daemon: Daemon, box: Sandbox) -> None:
        self._process = psutil.Process(daemon.status()["pid"])
        self._path = str(box.socket)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.worst = 0.0
        self.count = 0
        self.silent_s = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def used(self) -> float:
        """Seconds of processor time that the daemon used so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def take(self) -> float:
        """The worst since this was asked last."""
        worst, self.worst = self.worst, 0.0
        return worst

    def _run(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.connect(self._path)
            while not self._stop.wait(PAUSE_S):
                used, began = self.used(), time.monotonic()
                s.sendall(PROBE)
                answer = b""
                while b'"error"' not in answer:
                    answer += s.recv(65_536)
                self.worst = max(self.worst, self.used() - used)
                self.silent_s = max(self.silent_s, time.monotonic() - began)
                self.count += 1

    async def quiet(self) -> None:
        """Until the daemon rests."""
        end = time.monotonic() + WORKED_S
        while time.monotonic() < end:
            before = self.used()
            await asyncio.sleep(QUIET_S)
            if self.used() - before < QUIET_CPU_S:
                return


class Story:
    """One text after the other, each put into another place."""

    def __init__(self, box: Sandbox, host: Host, pulse: Pulse, rng: random.Random) -> None:
        self.box, self.host, self.pulse, self.rng = box, host, pulse, rng
        self.places: list[Place] = patterns_of("daemon")
        self.number = 0
        self.ways: tuple[Callable[[Callable[[int], str]], Coroutine[Any, Any, object]], ...] = (
            self.messages, self.messages, self.transcript, self.title, self.events, self.question,
            self.prompt, self.answer, self.result,
        )  # fmt: skip

    def text(self) -> Callable[[int], str]:
        """Makes a text that takes so many bytes as JSON. Half of them end with half of a character."""
        end = self.rng.choice(("", "\ud83d"))
        if self.rng.random() < 0.5:
            pump = self.rng.choice(PUMPS)
            many: Callable[[int], str] = lambda length: pump * (length // len(pump))  # noqa: E731
        else:
            place = self.rng.choice(self.places)
            many = self.rng.choice(texts(place.pattern, place.flags)).of
        share = 1_000 / len(json.dumps(many(1_000)))
        return lambda size: many(int(size * share)) + end

    async def step(self) -> str:
        """The name of what was done."""
        self.number += 1
        make, way = self.text(), self.ways[self.number % len(self.ways)]
        with suppress(OSError, asyncio.TimeoutError):
            await way(make)
        await self.pulse.quiet()
        return f"{way.__name__}, {make(100)[:60]!r}"

    async def messages(self, make: Callable[[int], str]) -> None:
        """The messages of a turn: a few long texts, or many that are as long as a text may be."""
        chat = self.host.create(f"ses_{self.number:06d}")
        self.host.types(chat)
        size = self.rng.choice((32_000, 1_000_000))
        count = BODY // size - 2
        state = {"status": "completed", "input": {"command": make(size), "filePath": make(300)}}
        tool = [
            {"type": "tool", "callID": f"c{n}", "tool": "bash", "state": {**state, "output": make(size)}}
            for n in range(max(1, (count - 1) // 2))
        ]
        chat.messages[-1]["parts"][0]["text"] = make(size)
        self.host.answers(chat, finished=True)
        chat.messages[-1]["parts"] += [*tool, {"type": "text", "text": make(size)}]
        await until(lambda: self.host.settled, WORKED_S)

    async def transcript(self, make: Callable[[int], str]) -> None:
        """A task of Claude Code with thousands of calls."""
        session, file = f"claude{self.number}", self.box.home / f"{self.number}.jsonl"
        size = FILE // CALLS // 2
        each = json.dumps(make(size))[1:-1]
        with file.open("w", encoding="utf-8") as out:
            out.write(_line(0, "user", {"role": "user", "content": "Do it"}, origin={"kind": "human"}))
            for n in range(1, CALLS, 2):
                use = {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": "@"}}
                done = {"type": "tool_result", "tool_use_id": f"t{n}", "content": "@"}
                message = {"id": f"m{n}", "role": "assistant", "content": [use]}
                out.write(_line(n, "assistant", message).replace('"@"', f'"{each}"'))
                line = _line(n + 1, "user", {"role": "user", "content": [done]})
                out.write(line.replace('"@"', f'"{each}"'))
            said = {"id": "end", "role": "assistant", "content": [{"type": "text", "text": "Done."}]}
            out.write(_line(CALLS + 1, "assistant", said))
        asked = {"prompt": "Do it", "prompt_id": "u0"}
        await self.hook(session, "UserPromptSubmit", transcript_path=str(file), **asked)
        await self.hook(session, "Stop", transcript_path=str(file), last_assistant_message="Done.")
        file.unlink()

    async def title(self, make: Callable[[int], str]) -> None:
        info = {"id": f"ses_t{self.number}", "title": make(BODY), "directory": str(self.host.folder)}
        await self.post(
            "/v1/events", self.batch([("session.created", {"sessionID": info["id"], "info": info})])
        )

    async def events(self, make: Callable[[int], str]) -> None:
        """As many events as a batch may have, with long texts in all fields."""
        session, text = f"ses_e{self.number}", make(BODY // 500 // 8)
        data = {"sessionID": session, "messageID": text, "tool": text, "call": text, "result": text}
        kinds = ("chat.message", "tool", "session.error", "permission.asked", "session.status")
        more = {"error": {"name": text, "data": {"message": text}}, "status": {"type": text}, "agent": text}
        found = [(kinds[n % len(kinds)], {**data, **more, "human": True}) for n in range(500)]
        await self.post("/v1/events", self.batch(found))

    async def question(self, make: Callable[[int], str]) -> None:
        """The gate of `opencode run`."""
        chat = self.host.create(f"ses_q{self.number}")
        self.host.types(chat)
        await until(lambda: self.host.settled or chat.busy, WORKED_S)
        data = {"sessionID": chat.id, "messageID": "m", "text": make(BODY)}
        await self.post("/v1/ask", {"instance": self.host.name, "what": "gate", "data": data})
        self.host.answers(chat, finished=True)

    async def prompt(self, make: Callable[[int], str]) -> None:
        await self.hook(f"claude{self.number}", "UserPromptSubmit", prompt=make(BODY))

    async def answer(self, make: Callable[[int], str]) -> None:
        """The end of a turn whose file is not there."""
        await self.hook(f"claude{self.number}", "Stop", last_assistant_message=make(BODY))

    async def result(self, make: Callable[[int], str]) -> None:
        """The outcome of an order that nobody gave."""
        body = {
            "instance": self.host.name,
            "id": "rfl_none",
            "status": "failed",
            "error": make(BODY // 2 - 100),
        }
        await self.post("/v1/results", body | {"data": {"x": make(BODY // 2 - 100)}})

    def batch(self, found: list[tuple[str, Json]]) -> Json:
        """The next events of a second host."""
        now = int(time.time() * 1000)
        told = [
            {"seq": self.number * 1_000 + n, "t": now, "kind": k, "data": d} for n, (k, d) in enumerate(found)
        ]
        return {"instance": "second", "events": told}

    async def hook(self, session: str, event: str, **fields: Any) -> None:
        where = {"session_id": session, "cwd": str(self.box.project), "hook_event_name": event}
        await self.post(f"/v1/hooks/{event}", {"background_tasks": [], **where, **fields})

    async def post(self, route: str, body: Json) -> None:
        """Whatever the answer is."""
        data = json.dumps(body).encode()
        reader, writer = await asyncio.open_unix_connection(str(self.box.socket))
        head = f"POST {route} HTTP/1.1\r\nHost: reflectd\r\nX-CC-Entrypoint: cli\r\nX-CC-Attended: 1\r\n"
        head += (
            f"X-CC-Project: {self.box.project}\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        try:
            writer.write(head.encode() + data)
            async with asyncio.timeout(WORKED_S):
                await reader.read()
        finally:
            writer.close()


def _line(number: int, kind: str, message: Json, **more: Any) -> str:
    """One line of a transcript of Claude Code."""
    body = {
        "type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None,
        "isSidechain": False, "timestamp": "2026-11-22T00:00:00.000Z", "sessionId": "s",
        "userType": "external", "promptId": "u0", "message": message, **more,
    }  # fmt: skip
    return json.dumps(body) + "\n"


async def attack(count: int, seed: int, deadline: Deadline, box: Sandbox, daemon: Daemon) -> Outcome:
    found = Outcome("stalls", count)
    hello = {"host": "opencode", "mode": "serve", "pid": 1, "directory": str(box.project)}
    daemon.call("POST", "/v1/hello", {"instance": "second", **hello})
    pulse, worst = Pulse(daemon, box), (0.0, "")
    async with Host(box.socket, box.project, "first") as host:
        story = Story(box, host, pulse, random.Random(seed))
        await pulse.quiet()
        pulse.start()
        while found.done < count and not deadline.over and len(found.findings) < SHOWN:
            name = await story.step()
            found.done += 1
            took = pulse.take()
            worst = max(worst, (took, name))
            if took > STALL_S:
                found.findings.append(f"{took:.2f} s: seed {seed}, {found.done}: {name}")
        pulse.stop()
    found.figures = (
        f"{pulse.count:,} probes, longest stall {worst[0] * 1000:.0f} ms of processor time ({worst[1]}), "
        f"{pulse.silent_s:.1f} s by the clock"
    )
    found.check_log(daemon)
    return found


def run(count: int, seed: int, deadline: Deadline) -> Outcome:
    with sandbox() as box, Daemon(box) as daemon:
        return asyncio.run(attack(count, seed, deadline, box, daemon))
