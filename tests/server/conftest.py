"""One daemon for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.machine.reflectd import Daemon
from harness.machine.sandbox import sandbox
from tests.server.asking import KEY, check_alive, hello


@pytest.fixture(scope="module")
def module_daemon() -> Iterator[Daemon]:
    with sandbox() as box, Daemon(box, ANTHROPIC_API_KEY=KEY, OPENAI_API_KEY=KEY) as daemon:
        yield daemon


@pytest.fixture
def daemon(module_daemon: Daemon) -> Iterator[Daemon]:
    """It knows the instance ``known``. After each test it lives, listens, and its log holds no trace."""
    module_daemon.mark()
    hello(module_daemon, "known")
    yield module_daemon
    check_alive(module_daemon)
