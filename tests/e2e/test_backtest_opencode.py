"""`reflectd backtest` over the past sessions of a real opencode that is open."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from harness.hosts.opencode import OpencodeServe
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.scripts import REQUEST, finished, unfinished
from harness.models.server import ModelServer
from tests.support.machine.command_line import reflectd

SESSIONS = 105  # more than a page lists


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox) -> Iterator[Daemon]:
    with Daemon(box, REFLECTD_JUDGE_MODE="observe", REFLECTD_JUDGE_PROVIDER="offline") as running:
        yield running


def test_the_same_verdicts_as_live(
    box: Sandbox, host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """Page by page as when it came; no model is asked, no session changes, and a second run says the same."""
    talk = host.create_session(title="talk")
    llm.script(*unfinished(), *finished(), session=talk.id)
    talk.prompt(REQUEST)
    wait_until(lambda: len(daemon.verdicts(talk.id)) == 1, "the first verdict", daemon.new_log)
    talk.prompt(REQUEST)
    wait_until(lambda: len(daemon.verdicts(talk.id)) == 2, "the second verdict", daemon.new_log)
    live = Counter(v["state"] for v in daemon.verdicts(talk.id))
    for number in range(SESSIONS):
        host.create_session(title=f"empty {number}")
    asked, before = len(llm.requests), talk.messages()
    found = backtest(box)
    assert (found["files"], found["sessions"], found["stops"]) == (SESSIONS + 1, 1, 2)
    assert (found["complete"], found["sent"]) == (live["complete"], live["incomplete"]) == (0, 1)
    assert (found["hosts"], found["problems"]) == ({"opencode": 2}, [])
    assert backtest(box) == found
    assert (len(llm.requests), talk.messages()) == (asked, before)


def backtest(box: Sandbox) -> dict[str, Any]:
    done = reflectd(box, "backtest", "--json")
    assert done.returncode == 0, done
    found: dict[str, Any] = json.loads(done.stdout)
    return found
