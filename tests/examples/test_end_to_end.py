"""A real daemon, a turn that is really judged, ``reflectd watch --exec``, and a script behind it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox, sandbox
from harness.machine.waiting import wait_until
from tests.examples.running import CONSUMERS, SECRET, BotApi, bot_api, refused
from tests.support.hosts.wire import WireHost, unfinished

STATES = ("--states", "incomplete,sent_back,complete,awaiting_user")


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        yield box


@pytest.fixture
def api() -> Iterator[BotApi]:
    with bot_api() as api:
        yield api


Errors = Callable[[], str]


@contextmanager
def watching(box: Sandbox, script: str, *args: str, **env: str) -> Iterator[Errors]:
    """``reflectd watch --exec 'python3 …/script'``, as a person types it; what it wrote to stderr."""

    def errors() -> str:
        found = (box.root / "watch.err").read_text("utf-8")
        assert "Traceback" not in found, found
        return found

    command = shlex.join([sys.executable, str(CONSUMERS / script), *args])
    environment = box.env(PYTHONPATH=str(REPO), PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1") | env
    with (box.root / "watch.out").open("wb") as out, (box.root / "watch.err").open("wb") as err:
        watch = [sys.executable, "-m", "daemon", "watch", "--exec", command]
        process = processes.start(watch, environment, box.project, out, err)
    try:
        wait_until(lambda: "watching" in errors(), "watching", errors)
        yield errors
    finally:
        processes.end_group(process, gently=0)


def judged(box: Sandbox, daemon: Daemon, session: str, **texts: str) -> None:
    """A turn of this session is judged incomplete by the rules, and its feedback delivered."""
    with WireHost(box.socket, box.project, unfinished(box.project, **texts), f"host-{session}") as host:
        host.send(host.turn(session))
        daemon.wait_verdict(session, "incomplete")


@pytest.mark.shows("I46")
def test_judged_turns_are_sent_in_order(box: Sandbox, api: BotApi) -> None:
    """One message per verdict; a refusal is a line and stops nothing; secrets were taken out before."""
    key = "sk-ant-api03-abcdefghijklmnop1234567890"
    api.script.append(refused(403, "Forbidden: bot was blocked by the user"))
    with Daemon(box) as daemon, watching(box, "telegram.py", *STATES, **api.env) as errors:
        for n in range(3):
            judged(box, daemon, f"ses_{n}", command=f"API_KEY={key} pytest -q run_{n}")
        wait_until(lambda: len(api.messages) == 3, "three messages", errors)
        wait_until(lambda: "exit code 1" in errors(), "the refusal", errors)
        assert "telegram.py: not sent: 403 Forbidden" in errors()
        assert SECRET not in errors()
    assert all(t.startswith("project: not finished, the agent goes on\n- ") for t in api.texts)
    assert [n for n, t in enumerate(api.texts) if f"run_{n}" in t] == [0, 1, 2]
    assert key not in "".join(api.texts)


def test_work_that_goes_on_is_quiet(box: Sandbox, api: BotApi) -> None:
    """By default, feedback that reached the agent is not told; when it could not be delivered, it is."""
    usual = unfinished(box.project)

    def refuses(order: dict[str, Any]) -> dict[str, Any] | None:
        return {"status": "failed", "error": "no"} if order["kind"] == "feedback" else usual(order)

    with Daemon(box) as daemon, watching(box, "telegram.py", **api.env) as errors:
        judged(box, daemon, "ses_goes_on")
        with WireHost(box.socket, box.project, refuses, "host-2") as host:
            host.send(host.turn("ses_alone"))
            wait_until(lambda: api.messages, "a message", errors)
        assert "--exec" not in errors()
    (text,) = api.texts
    assert text.startswith("project: not finished\n- ")
