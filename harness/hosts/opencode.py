"""The real opencode: found, served, run once. (The terminal UI is in ``tui``.)

Whatever is started runs in a sandbox, in its own process group, and is gone when the block ends.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import platform
import random
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.machine import processes
from harness.machine.sandbox import REPO, Sandbox, opencode_env
from harness.machine.waiting import PATIENCE_S, wait_until

HOSTS = REPO / "tests" / "e2e" / "hosts" / "node_modules"
Json = dict[str, Any]
CAUGHT_UP = "reflectd-tests caught up"


def find_opencode() -> Path | None:
    """The pinned binary that ``make hosts`` installed, for this machine; None when it is not there."""
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, sys.platform)
    arch = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower(), ""
    )
    package = f"opencode-{system}-{arch}"
    variants = [package, f"{package}-musl", f"{package}-baseline", f"{package}-baseline-musl"]
    if Path("/etc/alpine-release").exists():
        variants.sort(key=lambda name: not name.endswith("musl"))
    places = [HOSTS / name / "bin" / "opencode" for name in variants]
    places += [HOSTS / "opencode-ai" / "bin" / "opencode"]
    return next((p for p in places if p.is_file()), None)


def binary() -> Path:
    """``find_opencode`` or a message that says how to get it."""
    found = find_opencode()
    assert found is not None, "the opencode binary is missing: run `make hosts`"
    return found


def free_port() -> int:
    """A port below the ephemeral range, so that no outgoing connection takes it first."""
    for port in random.Random().sample(range(20_000, 32_000), 50):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


# --- serve ---------------------------------------------------------------------------------------


class OpencodeServe:
    """``with OpencodeServe(box, llm.url) as host``: one ``opencode serve`` and its event stream."""

    def __init__(
        self, box: Sandbox, model_url: str, *, plugin: bool = True, config: Json | None = None, **env: str
    ) -> None:
        self.box = box
        self.events = Events()
        self._env = opencode_env(box, model_url, plugin=plugin, config=config) | env
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self._port = free_port()
        self._out, self._err = self.box.root / "serve.out", self.box.root / "serve.err"
        command: list[str | Path] = [binary(), "serve", "--hostname", "127.0.0.1", "--port", str(self._port)]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = processes.start(command, self._env, self.box.project, out, err)
        try:
            wait_until(self._listening, "line 'listening on' from opencode serve", self.printed)
            self._skip = len(self.printed())
            self.events.connect(self._port)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        self.events.close()
        if self._process is not None:
            processes.end_group(self._process)

    def _listening(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"opencode serve died:\n{self.printed()}"
        return "listening on" in self._out.read_text("utf-8", "replace")

    def printed(self) -> str:
        """Everything on its stdout and stderr so far."""
        return self._out.read_text("utf-8", "replace") + self._err.read_text("utf-8", "replace")

    def printed_since_ready(self) -> str:
        """What was printed after the line that says that it listens: nothing, if all is well (I34)."""
        return self.printed()[self._skip :]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def request(self, method: str, path: str, body: Json | None = None) -> Any:
        """One call of the server's HTTP API; its JSON. A status of 400 or more fails the test."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"content-type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        assert answer.status < 400, f"{method} {path}: {answer.status} {text[:500]}"
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(text)
        return text

    def create_session(self, *, title: str = "", agent: str = "", model: Json | None = None) -> Session:
        """A new session, whose prompts go to ``agent`` and ``model`` unless they say otherwise."""
        body = {"title": title} if title else {}
        return Session(self, self.request("POST", "/session", body)["id"], agent, model)

    def sessions(self) -> list[Json]:
        """All sessions of the project, as the host lists them."""
        listed: list[Json] = self.request("GET", "/session?limit=1000")
        return listed

    def toasts(self) -> list[Json]:
        """The toasts shown since the last ``events.clear()``: ``{title?, message, variant}``."""
        shown = [e["properties"] for e in self.events.of("tui.toast.show")]
        return [t for t in shown if not t["message"].startswith(CAUGHT_UP)]

    def catch_up(self) -> None:
        """Until every event that the server has published by now is in ``events``.

        A toast of our own is the last of them; ``toasts`` leaves it out.
        """
        last = f"{CAUGHT_UP} {uuid.uuid4().hex}"
        self.request("POST", "/tui/show-toast", {"message": last, "variant": "info"})

        def seen() -> bool:
            return any(e["properties"]["message"] == last for e in self.events.of("tui.toast.show"))

        wait_until(seen, "the last event")

    def wait_toast(self, words: str) -> Json:
        """Until a toast has ``words`` in its title or message."""

        def hit() -> Json | None:
            said = ((t, f"{t.get('title') or ''} {t['message']}") for t in self.toasts())
            return next((t for t, full in said if words in full), None)

        found = wait_until(hit, f"toast {words!r}", self.toasts)
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a served opencode. Prompts carry ``agent`` and ``model`` when they are set."""

    host: OpencodeServe
    id: str
    agent: str = ""
    model: Json | None = None

    def _body(self, text: str, more: Json) -> Json:
        body: Json = {"parts": [{"type": "text", "text": text}]}
        if self.agent:
            body["agent"] = self.agent
        if self.model:
            body["model"] = self.model
        return body | more

    def prompt(self, text: str, **more: Any) -> Json:
        """What a person types; waits until the agent stops and returns its last message."""
        path = f"/session/{self.id}/message"
        answer: Json = self.host.request("POST", path, self._body(text, more))
        return answer

    def prompt_async(self, text: str, **more: Any) -> None:
        """The same without waiting."""
        self.host.request("POST", f"/session/{self.id}/prompt_async", self._body(text, more))

    def abort(self) -> None:
        """What Esc does."""
        self.host.request("POST", f"/session/{self.id}/abort")

    def delete(self) -> None:
        self.host.request("DELETE", f"/session/{self.id}")

    def summarize(self, model: Json) -> None:
        """Compact the session, as ``/compact`` does."""
        self.host.request("POST", f"/session/{self.id}/summarize", model)

    def command(self, name: str, arguments: str = "") -> Json:
        answer: Json = self.host.request(
            "POST", f"/session/{self.id}/command", {"command": name, "arguments": arguments}
        )
        return answer

    def children(self) -> list[Json]:
        answer: list[Json] = self.host.request("GET", f"/session/{self.id}/children")
        return answer

    def messages(self) -> list[Json]:
        """The stored messages, oldest first: ``{info, parts}``."""
        answer: list[Json] = self.host.request("GET", f"/session/{self.id}/message")
        return answer

    def users(self) -> list[Json]:
        """The user-role messages: what people typed, and feedback."""
        return [m for m in self.messages() if m["info"]["role"] == "user"]

    def feedback(self) -> list[Json]:
        """The messages that reflectd sent."""
        return [m for m in self.users() if is_feedback(m)]

    def busy(self) -> bool:
        status: Json = self.host.request("GET", "/session/status")
        return bool(status.get(self.id, {}).get("type", "idle") != "idle")

    def wait_idle(self) -> None:
        """Until the agent has stopped."""
        wait_until(lambda: not self.busy(), f"idle of {self.id}", self.outline)

    def wait_users(self, count: int) -> list[Json]:
        """Until there are ``count`` user-role messages."""
        return wait_until(
            lambda: u if len(u := self.users()) >= count else [],
            f"{count} user messages",
            self.outline,
        )

    def outline(self) -> str:
        """The conversation, a line per message."""
        return "\n".join(
            f"{m['info']['role']:<9} {m['info'].get('finish') or ''} {text_of(m)[:160]!r}"
            for m in self.messages()
        )


def text_of(message: Json) -> str:
    """The text parts of a stored message."""
    return "\n".join(p["text"] for p in message["parts"] if p["type"] == "text")


def is_feedback(message: Json) -> bool:
    """Whether a part carries our mark."""
    return any((p.get("metadata") or {}).get("reflectd") for p in message["parts"])


class Events:
    """The server's ``/event`` stream, read in a thread and kept in order."""

    def __init__(self) -> None:
        self._seen: list[Json] = []
        self._connection: http.client.HTTPConnection | None = None
        self._thread: threading.Thread | None = None

    def connect(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        self._connection.request("GET", "/event")
        answer = self._connection.getresponse()
        self._thread = threading.Thread(target=self._read, args=(answer,), name="events", daemon=True)
        self._thread.start()

    def _read(self, answer: http.client.HTTPResponse) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            while line := answer.readline():
                if line.startswith(b"data:"):
                    self._seen.append({"at": time.monotonic()} | json.loads(line[5:]))

    def of(self, *kinds: str, session: str = "") -> list[Json]:
        """The events of these kinds (all, without kinds) since the last ``clear``."""
        found = [e for e in self._seen if not kinds or e["type"] in kinds]
        return [e for e in found if session in {"", e["properties"].get("sessionID")}]

    def clear(self) -> None:
        self._seen = []

    def wait(self, kind: str, session: str = "", count: int = 1) -> list[Json]:
        """Until ``count`` events of a kind came (for one session)."""
        return wait_until(
            lambda: e if len(e := self.of(kind, session=session)) >= count else [],
            f"{count} event(s) {kind}",
            lambda: [e["type"] for e in self._seen[-40:]],
        )

    def close(self) -> None:
        if self._connection is not None and self._connection.sock is not None:
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join(PATIENCE_S)
        if self._connection is not None:
            self._connection.close()


# --- run -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ran:
    """How an ``opencode run`` ended. ``stdout`` is free of colour codes."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float


def opencode_run(
    box: Sandbox,
    model_url: str,
    message: str,
    *args: str,
    plugin: bool = True,
    config: Json | None = None,
    **env: str,
) -> Ran:
    """``opencode run`` with the message on stdin (argv is wrapped in quotes by opencode)."""
    with OpencodeRun(box, model_url, message, *args, plugin=plugin, config=config, **env) as run:
        return run.wait()


class OpencodeRun(processes.Program):
    """An ``opencode run`` in flight, for tests that do something meanwhile."""

    def __init__(
        self,
        box: Sandbox,
        model_url: str,
        message: str,
        *args: str,
        plugin: bool = True,
        config: Json | None = None,
        **env: str,
    ) -> None:
        env = opencode_env(box, model_url, plugin=plugin, config=config) | env
        super().__init__(box.root, [str(binary()), "run", *args], message, env, box.project)

    def wait(self) -> Ran:
        code, out, err, seconds = self.ended()
        return Ran(code, plain(out), plain(err), seconds)


def plain(text: str) -> str:
    """Without colour and cursor codes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
