"""The example scripts as processes, the programs of the outside world they call, a Bot API on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from harness.machine.sandbox import REPO
from harness.machine.waiting import PATIENCE_S

CONSUMERS = REPO / "examples" / "consumers"
TOKEN = "123456789:AAE-a_token-of-a-bot_for_tests_only"
SECRET = TOKEN.partition(":")[2]
CHAT = "-1001234567890"
Json = dict[str, Any]
Done = subprocess.CompletedProcess[str]


def verdict(state: str = "complete", **more: Any) -> Json:
    """What ``reflectd watch --exec`` gives: a sample of the daemon's, with what the stream adds."""
    path = REPO / ".reflection" / "samples" / f"verdict.{state}.json"
    known = path if path.exists() else path.with_name("verdict.stopped.json")
    found: Json = json.loads(known.read_text("utf-8"))
    stream = {"kind": "verdict", "at": found["timestamp"], "title": "a title", "directory": "/home/a/shop"}
    return found | {"state": state} | stream | {"feedback_sent": False} | more


def run(script: str, what: Json | bytes, *args: str, **env: str) -> Done:
    """One script with this on its stdin; it never shows a trace."""
    data = what if isinstance(what, bytes) else json.dumps(what).encode()
    done = subprocess.run(
        [sys.executable, str(CONSUMERS / script), *args],
        input=data,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"} | env,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    text = subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in text.stderr, text.stderr
    return text


def stand_in(folder: Path, name: str, body: str = "") -> dict[str, str]:
    """A program of the outside world: keeps its arguments and its stdin; the PATH that finds it first."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib, sys\n"
        f"with pathlib.Path({str(folder / 'calls')!r}).open('a') as calls:\n"
        "    text = '' if sys.stdin.isatty() else sys.stdin.read()\n"
        "    print(json.dumps({'args': sys.argv[1:], 'stdin': text}), file=calls)\n" + body
    )
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def calls(folder: Path) -> list[Json]:
    """What the stand-in was called with."""
    path = folder / "calls"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def sent(text: str = "x") -> tuple[int, Json]:
    """The Bot API's answer to a message that was sent."""
    return 200, {"ok": True, "result": {"message_id": 1, "date": 1, "chat": {"id": 1}, "text": text}}


def refused(code: int, description: str, **parameters: int) -> tuple[int, Json]:
    """The Bot API's no."""
    more = {"parameters": parameters} if parameters else {}
    return code, {"ok": False, "error_code": code, "description": description, **more}


@dataclass
class BotApi:
    """Messages that arrived, and answers to give before the usual one. An answer may act by itself."""

    messages: list[Json] = field(default_factory=list)
    script: list[tuple[int, Json] | Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=list)
    url: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def env(self) -> dict[str, str]:
        return {"TELEGRAM_API": self.url, "TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_CHAT_ID": CHAT}

    @property
    def texts(self) -> list[str]:
        return [m["text"] for m in self.messages]


@contextlib.contextmanager
def bot_api() -> Iterator[BotApi]:
    """A Bot API server: the real wire format, also its refusals of a wrong token, chat or text."""
    api = BotApi()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            form = self.headers["Content-Type"] != "application/json"
            message: Json = dict(parse_qsl(data.decode())) if form else json.loads(data)
            api.messages.append(message)
            if api.script:
                answer = api.script.pop(0)
            elif self.path != f"/bot{TOKEN}/sendMessage":
                answer = refused(401, "Unauthorized")
            elif message["chat_id"] != CHAT:
                answer = refused(400, "Bad Request: chat not found")
            elif not message["text"].strip():
                answer = refused(400, "Bad Request: message text is empty")
            elif len(message["text"].encode("utf-16-le")) > 8192:
                answer = refused(400, "Bad Request: message is too long")
            else:
                answer = sent(message["text"])
            if not isinstance(answer, tuple):
                answer(self)
                return
            self.reply(answer[0], json.dumps(answer[1]).encode())

        def reply(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api
    finally:
        api.over.set()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)


def cut(handler: BaseHTTPRequestHandler) -> None:
    """The connection breaks without an answer (a reset)."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.close()


def half(handler: BaseHTTPRequestHandler) -> None:
    """It breaks in the middle of the answer."""
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"ok":')
    handler.close_connection = True


def answers(status: int, body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """These bytes."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.reply(status, body, **headers)  # type: ignore[attr-defined]

    return answer
