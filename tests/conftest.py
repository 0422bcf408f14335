"""For every test: a home of its process, no network but loopback, and tools that may be missing."""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from harness.machine.forked import ADDRESS, FORKER
from harness.machine.reflectd import Daemon

pytest_plugins = [
    "tests.support.machine.costs",
    "tests.support.machine.needs",
    "tests.support.machine.postgres",
    "tests.support.machine.tiers",
    "tests.support.machine.workers",
]

_home, _folder = pytest.StashKey[Path](), pytest.StashKey[Path]()
FOLDER = "TESTS_FOLDER"
"""The variable with the run's temporary folder, made by the first process."""
_OURS = ("REFLECTD_", "REFLECTION_", "OPENCODE_", "ANTHROPIC_", "OPENAI_", "XDG_")


def pytest_configure(config: pytest.Config) -> None:
    """HOME and XDG in a temporary folder, before anything of ours is imported; no keys, no settings."""
    if _home in config.stash:
        return
    if FOLDER not in os.environ:
        config.stash[_folder] = _temporary_folder(config)
    home = Path(tempfile.mkdtemp(prefix="rd-home-")).resolve()
    config.stash[_home] = home
    for name in [n for n in os.environ if n.startswith(_OURS)]:
        del os.environ[name]
    os.environ |= {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
    }
    Daemon.FORKING = True
    if config.getoption("numprocesses", None) and not config.option.collectonly:
        os.environ[ADDRESS] = FORKER.serve()  # one for all workers, whose environment this is
    sys.addaudithook(_only_loopback)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a shell without job control starts what runs in its background so, and every program that a test
        # starts would inherit it: it could not be ended with Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what was started for all, and remove the home."""
    FORKER.close()
    for key in (_home, _folder):
        if key in config.stash:
            shutil.rmtree(config.stash[key], ignore_errors=True)


def _temporary_folder(config: pytest.Config) -> Path:
    """One for all that this run, its workers and their programs leave in a temporary folder. Its name is
    short, because a socket's path has 104 bytes.
    """
    folder = Path(tempfile.mkdtemp(prefix="rd")).resolve()
    os.environ |= {FOLDER: str(folder), "TMPDIR": str(folder)}
    tempfile.tempdir = None
    if not config.option.basetemp:
        config.option.basetemp = folder / "t"
    return folder


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """A command that was run in this process has set up the log; the next test finds it as it was."""
    yield
    structlog.reset_defaults()


def _only_loopback(event: str, args: tuple[object, ...]) -> None:
    """No test reaches out: connecting, sending or asking a name server beyond loopback is refused."""
    if event in {"socket.connect", "socket.sendto"} and isinstance(args[1], tuple):
        host = args[1][0]
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in {None, "", "localhost"}:
        return
    try:
        address = ipaddress.ip_address(str(host).partition("%")[0])
        if (getattr(address, "ipv4_mapped", None) or address).is_loopback:
            return
    except ValueError:
        pass
    if event == "socket.getaddrinfo" and str(host) == "0.0.0.0":
        return
    raise RuntimeError(f"a test tried to reach {host!r}: only loopback is allowed")
