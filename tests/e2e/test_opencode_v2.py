"""The plugin's part for opencode 2, with the real daemon.

The host is the double of the plugin's own tests, in the real host's Bun: this shows that daemon and plugin
agree, not that opencode 2 does.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import pytest

from harness.hosts.opencode import binary
from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import PATIENCE_S, wait_until
from harness.models.scripts import CLAIM, DONE, HEADING, REQUEST

Json = dict[str, Any]
DOUBLE = REPO / "plugin-shim" / "opencode" / "test" / "v2" / "process.ts"
SESSION = "ses_work"


class Host:
    """One conversation in the double. Each turn adds to it and tells its events."""

    def __init__(self, box: Sandbox) -> None:
        self._box = box
        self._ids = itertools.count(1)
        self._messages: list[Json] = []
        self.calls: list[Json] = []

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [str(binary()), "run", str(DOUBLE), str(self._box.project)],
            env=self._box.env(BUN_BE_BUN="1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._thread = threading.Thread(target=self._read, name="double", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        processes.end_group(self._process)
        self._thread.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def leave(self) -> int:
        """What opencode does at its end: the plugin's cleanup is waited for. The exit code."""
        self._send({"close": True})
        return self._process.wait(PATIENCE_S)

    def turn(self, said: Json, *content: Json, end: str = "succeeded", **more: Any) -> str:
        """A message comes in, the agent answers with ``content``, and the work ends. The message's id."""
        message = self._id("msg_")
        answer = self._id("msg_")
        time = {"created": 1}
        self._messages.append({"id": message, "time": time} | said)
        finish = {"finish": "stop", "agent": "build", "model": {"providerID": "fake", "id": "fake-1"}}
        self._messages.append(
            {"id": answer, "type": "assistant", "time": time, "content": list(content)} | finish
        )
        item = {"type": said["type"], "payload": said}
        self._send({"messages": {SESSION: self._messages}})
        self._say("session.inbox.enqueued", inboxID=message, item=item)
        self._say("session.execution.started")
        self._say("session.step.started", assistantMessageID=answer)
        self._say(f"session.execution.{end}", **more)
        return message

    def called(self, name: str, count: int = 1) -> list[Json]:
        """Until the plugin made this call so often; what it passed."""
        return wait_until(
            lambda: f if len(f := [c["input"] for c in self.calls if c["name"] == name]) >= count else [],
            f"{count} call(s) of {name}",
            lambda: self.calls,
        )

    def tool(self, name: str, output: str, /, **given: Any) -> Json:
        """A call that ended; a shell's exit code is 0 or ``exit``."""
        code = given.pop("exit", 0)
        state = {"status": "completed", "input": given, "content": [{"type": "text", "text": output}]}
        metadata = {"metadata": {"exit": code}} if name == "shell" else {}
        return {"type": "tool", "id": self._id("call_"), "name": name, "state": state | metadata}

    def unfinished(self) -> list[Json]:
        """A file is written, the tests fail, the agent says that all is done."""
        write = self.tool("write", "Wrote file", filePath="hello.py", content="print('hello')\n")
        failed = self.tool("shell", "1 failed: no answer.txt", command="make test", exit=2)
        return [write, failed, words(CLAIM)]

    def _id(self, prefix: str) -> str:
        return f"{prefix}{next(self._ids):06}"

    def _say(self, kind: str, **data: Any) -> None:
        event = {"id": self._id("evt_"), "type": kind, "data": {"sessionID": SESSION} | data}
        self._send({"say": [event]})

    def _send(self, line: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.calls.extend(json.loads(line) for line in self._process.stdout)


def words(text: str) -> Json:
    return {"type": "text", "id": "t", "text": text}


@pytest.fixture
def daemon(own_box: Sandbox) -> Iterator[Daemon]:
    with Daemon(own_box) as running:
        yield running


@pytest.fixture
def replayed(own_box: Sandbox, daemon: Daemon) -> Iterator[Host]:
    with Host(own_box) as running:
        wait_until(lambda: daemon.status()["instances"], "the plugin's hello")
        yield running


@pytest.mark.shows("I2", "I4", "I5")
@pytest.mark.main("opencode 2")
def test_unfinished_work_goes_on_and_finished_work_is_left_alone(daemon: Daemon, replayed: Host) -> None:
    """Feedback is known as ours when it comes back, and the turn after it is judged as the same task."""
    task = replayed.turn({"type": "user", "text": REQUEST}, *replayed.unfinished())
    (instance,) = daemon.status()["instances"]
    assert (instance["host"], instance["mode"]) == ("opencode", "unknown")
    (feedback,) = replayed.called("session.synthetic")
    assert feedback["sessionID"] == SESSION
    assert feedback["text"].startswith(HEADING)
    assert daemon.wait_verdict(SESSION, "incomplete")["task"] == task
    passed = replayed.tool("shell", "1 passed", command="echo 42 > answer.txt && make test")
    ours = {k: feedback[k] for k in ("text", "metadata")}
    replayed.turn({"type": "synthetic"} | ours, passed, words(DONE))
    assert daemon.wait_verdict(SESSION, "complete")["task"] == task
    assert replayed.leave() == 0
    assert len(replayed.called("session.synthetic")) == 1
    wait_until(lambda: not daemon.status()["instances"], "the goodbye")


@pytest.mark.shows("I11", "I13")
def test_what_a_person_stopped_is_left_alone(daemon: Daemon, replayed: Host) -> None:
    """A refused permission ends the turn and nothing follows; the next message is a task that is judged."""
    said = {"type": "user", "text": REQUEST}
    replayed.turn(said, *replayed.unfinished(), end="interrupted", reason="shutdown")
    later = replayed.turn(said, *replayed.unfinished())
    assert daemon.wait_verdict(SESSION, "incomplete")["task"] == later
    (feedback,) = replayed.called("session.synthetic")
    assert feedback["text"].startswith(HEADING)
