"""Fixtures of the end-to-end tests: a scripted model, the real daemon, the real opencode.

opencode needs 2 s and 0.7 GB, so one ``serve`` and one daemon last for a module; sessions are cheap and every
test opens its own. Tests that kill something take the ``own_…`` fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.hosts.opencode import OpencodeServe
from harness.machine.processes import none_left_over
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox, sandbox
from harness.models.facts_judge import FactsJudge
from harness.models.server import ModelServer
from tests.support.hosts.witness import toasts_shown

HERE = Path(__file__).parent
EARLIER: set[str] = set()
JUDGE = FactsJudge()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is ``e2e`` and needs the binary."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.needs("opencode"))


@pytest.fixture(scope="module", autouse=True)
def nothing_left_running() -> Iterator[None]:
    """I45: when a module is through, no process that it started lives."""
    with none_left_over():
        yield


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def llm(model_server: ModelServer) -> Iterator[ModelServer]:
    """The model, with an empty script. Whoever asks it more than was scripted fails the test.

    Sessions of earlier tests are not this test's: opencode itself asks again, seconds later, when a script
    was taken away in the middle of an answer.
    """
    model_server.reset()
    yield model_server
    mine = [r for r in model_server.unscripted if r.session not in EARLIER]
    every = [f"{r.t:.1f} {r.kind} {r.session}: {r.prompt[-300:]!r}" for r in model_server.requests]
    EARLIER.update(r.session for r in model_server.requests if r.session)
    model_server.reset()
    assert not mine, "the model was asked for more than was scripted; all it was asked:\n" + "\n".join(every)


@pytest.fixture(scope="module")
def box(nothing_left_running: None) -> Iterator[Sandbox]:
    """The module's machine."""
    with sandbox(**JUDGE.env) as made:
        yield made


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox, request: pytest.FixtureRequest) -> Iterator[Daemon]:
    """The module's ``SETTINGS`` are its settings."""
    with Daemon(box, **getattr(request.module, "SETTINGS", {})) as running:
        yield running


@pytest.fixture(scope="module")
def module_host(box: Sandbox, module_daemon: Daemon, model_server: ModelServer) -> Iterator[OpencodeServe]:
    with OpencodeServe(box, model_server.url) as running:
        yield running


@pytest.fixture
def daemon(module_daemon: Daemon) -> Iterator[Daemon]:
    """The module's daemon. A traceback in its log fails the test."""
    module_daemon.mark()
    yield module_daemon
    module_daemon.new_log()


@pytest.fixture
def host(module_host: OpencodeServe, module_daemon: Daemon, llm: ModelServer) -> Iterator[OpencodeServe]:
    """The module's ``opencode serve``; its events start empty. I34: it prints nothing."""
    (module_host.box.project / "answer.txt").unlink(missing_ok=True)
    if module_daemon.running:
        toasts_shown(module_host)
    module_host.events.clear()
    yield module_host
    assert module_host.printed_since_ready() == ""


@pytest.fixture
def own_box(nothing_left_running: None) -> Iterator[Sandbox]:
    """A machine of the test's own."""
    with sandbox(**JUDGE.env) as made:
        yield made
