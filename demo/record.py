"""``python -m demo.record``: records the session that ``make demo``, the benchmark and tests play back.

Drives the real opencode with the real shim (needs ``make setup hosts``) against a scripted model, with a
real daemon behind a proxy that writes down what the shim sent. The file holds, per round, the event batches
and the messages the host gave when it was asked; the machine's paths are replaced by ``{workspace}``.
Fails, and leaves the old file, when the session does not go as scripted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession, UnixConnector, web

from harness.hosts.opencode import OpencodeServe
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox, sandbox
from harness.models.server import ModelServer, bash, text, write

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]

FILE = REPO / "tests" / "data" / "sessions" / "opencode_slugify.json"
WORKSPACE = "{workspace}"
INSTANCE = "opencode-recorded"
REQUEST = "Add slugify() to text.py: lower case, words joined by single hyphens. `make test` must pass."

MAKEFILE = "test:\n\tpython3 -m unittest -q test_text\n"
TESTS = """\
import unittest

from text import slugify


class Slugify(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slugify("Hello World"), "hello-world")

    def test_runs_of_other_characters(self):
        self.assertEqual(slugify("Hello,  World!"), "hello-world")
"""
FIRST = """\
def slugify(title):
    return title.lower().replace(" ", "-")
"""
SECOND = """\
import re


def slugify(title):
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))
"""


class Recorder:
    """A proxy between shim and daemon. ``seen``: (what, JSON) in the order it passed."""

    def __init__(self, daemon: Path) -> None:
        self._daemon = daemon
        self.seen: list[tuple[str, Json]] = []

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Pass one request on, and the answer back; a stream line by line."""
        body = await request.read()
        if body:
            self.seen.append((request.path, json.loads(body)))
        async with (
            ClientSession(connector=UnixConnector(str(self._daemon))) as client,
            client.request(request.method, f"http://reflectd{request.path_qs}", data=body) as answer,
        ):
            if request.path != "/v1/orders":
                return web.Response(
                    body=await answer.read(), status=answer.status, content_type="application/json"
                )
            response = web.StreamResponse(status=answer.status)
            await response.prepare(request)
            async for line in answer.content:
                if line.strip():
                    self.seen.append(("order", json.loads(line)))
                await response.write(line)
            return response


async def record() -> Json:
    """Run the session; the recording as it is stored."""
    with sandbox() as box:
        recorder = Recorder(box.socket)
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", recorder.forward)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        proxy = box.root / "run" / "proxy.sock"
        await web.UnixSite(runner, proxy).start()
        try:
            version = await asyncio.to_thread(_session, box, proxy)
        finally:
            await runner.cleanup()
        return _clean(_recording(recorder.seen, version), box)


def _session(box: Sandbox, proxy: Path) -> str:
    """Two rounds: the agent stops with a failing test, hears of it, and mends it. opencode's version."""
    box.file("Makefile", MAKEFILE)
    box.file("test_text.py", TESTS)
    with (
        Daemon(box) as daemon,
        ModelServer() as llm,
        OpencodeServe(box, llm.url, REFLECTD_SOCKET=str(proxy)) as host,
    ):
        session = host.create_session(title="Add slugify()")
        llm.script(
            write("text.py", FIRST),
            bash("make test"),
            text("All done! I added slugify() to text.py."),
            write("text.py", SECOND),
            bash("make test"),
            text("Done: slugify() now treats punctuation as a separator, and `make test` passes."),
            session=session.id,
        )
        session.prompt(REQUEST)
        daemon.wait_verdict(session.id, "complete")
        host.wait_toast("Task complete")
        if llm.unscripted or [v["state"] for v in daemon.verdicts(session.id)] != ["complete", "incomplete"]:
            sys.exit(f"the session went another way; nothing is written\n{session.outline()}\n{daemon.log()}")
        return str(host.request("GET", "/global/health").get("version", ""))


def _recording(seen: list[tuple[str, Json]], version: str) -> Json:
    """The rounds: a feedback order ends the first. Of several reads in a round the last one counts."""
    recording: Json = {"host": f"opencode {version}".strip(), "request": REQUEST, "hello": {}, "rounds": []}
    reads: set[str] = set()
    this: Json = {"batches": [], "read": {}}
    for what, body in seen:
        match what:
            case "/v1/hello":
                recording["hello"] = {k: v for k, v in body.items() if k not in {"instance", "pid"}}
            case "/v1/events":
                this["batches"].append(body["events"])
            case "order" if body["kind"] == "read":
                reads.add(body["id"])
            case "order":
                this["order"] = {"id": body["id"], "kind": body["kind"]}
                recording["rounds"].append(this)
                this = {"batches": [], "read": {}}
            case "/v1/results" if body["id"] in reads:
                this["read"] = body["data"]
            case _:
                pass
    return recording


def _clean(recording: Json, box: Sandbox) -> Json:
    """Without the machine's paths; refuses what still looks like one."""
    said = json.dumps(recording, ensure_ascii=False).replace(str(box.project), WORKSPACE)
    left = re.findall(r"(?:/(?:tmp|home|root|work|usr|var)/|https?://)[^\"\\ ]*", said)
    if left:
        sys.exit(f"the recording would hold machine paths or addresses: {sorted(set(left))}")
    found: Json = json.loads(said)
    return found


def main() -> None:
    """Record and write the file."""
    argparse.ArgumentParser(prog="python -m demo.record", description=__doc__).parse_args()
    recording = asyncio.run(record())
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(recording, ensure_ascii=False, indent=1) + "\n", "utf-8")
    batches = [len(r["batches"]) for r in recording["rounds"]]
    print(f"{FILE.relative_to(REPO)}: {recording['host']}, batches of events per round {batches}")


if __name__ == "__main__":
    main()
