"""What a model as the judge adds to a turn: one that answers at once, through the host and through an API."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from bench.stand import Server, Table, median, percentile
from bench.turns import PAUSE_S, Host

if TYPE_CHECKING:
    from collections.abc import Iterator

VERDICT = {
    "requirements": ["slugify: met by the last run"],
    "reasons": "The last run passed.",
    "complete": True,
    "severity": "NONE",
    "missing": [],
    "next_actions": [],
    "requires_human_action": False,
    "feedback": "",
}


def verdict(nonce: str) -> str:
    return json.dumps({**VERDICT, "nonce": nonce})


class Model(BaseHTTPRequestHandler):
    """Chat completions that cost no time: each says ``says``, and that it read ``tokens``."""

    says = verdict("any")
    tokens = 1500

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # one packet: the second of two would wait 40 ms for the first one's receipt

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": self.says, "refusal": None}
        answer = {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "bench",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": self.tokens,
                "completion_tokens": 100,
                "total_tokens": self.tokens + 100,
            },
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def model(handler: type[Model] = Model) -> Iterator[str]:
    """Its address while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def model_to_order(*, quick: bool) -> Table:
    """From the idle to the toast, with each judge."""
    turns = 30 if quick else 100
    table = Table(
        f"Event to order by judge ({turns} turns, a model that answers at once)", ("ms", "median", "p99")
    )
    with model() as url:
        for name, more in (
            ("offline", {}),
            ("host", {"REFLECTD_JUDGE_PROVIDER": "host"}),
            ("openai", {"REFLECTD_JUDGE_PROVIDER": "openai", "REFLECTD_OPENAI_BASE_URL": url}),
        ):
            ms = _measure(turns, {**more, "REFLECTD_SPEND_TOKENS_PER_DAY": "999999999"})
            table.rows.append((name, f"{median(ms):.2f}", f"{percentile(ms, 0.99):.2f}"))
            table.values[name] = {"median": median(ms), "p99": percentile(ms, 0.99)}
    table.notes = ["aim: idle to order with a model that costs no time < 50 ms"]
    return table


def _measure(turns: int, env: dict[str, str]) -> list[float]:
    found = []
    with tempfile.TemporaryDirectory(prefix="rdb-") as name:
        folder = Path(name).resolve()
        with (
            Server(folder / "d", more=env) as server,
            Host(server, folder / "w", "bench", judge=verdict) as host,
        ):
            for number in range(turns + 5):
                _, ordered = host.turn(number, finished=True)
                host.settled(number)
                time.sleep(PAUSE_S)
                if number >= 5:  # the first call imports the SDK
                    found.append(ordered * 1000)
    return found
