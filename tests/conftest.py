"""For every test: a home of its own, no network but loopback, and tools that may be missing."""

from __future__ import annotations

import ipaddress
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

pytest_plugins = ["tests.support.needs"]

_home = pytest.StashKey[Path]()
_OURS = ("REFLECTD_", "REFLECTION_", "OPENCODE_", "ANTHROPIC_", "OPENAI_", "XDG_")


def pytest_configure(config: pytest.Config) -> None:
    """HOME and XDG in a temporary folder, before anything of ours is imported; no keys, no settings."""
    if _home in config.stash:
        return
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
    sys.addaudithook(_only_loopback)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the home."""
    if _home in config.stash:
        shutil.rmtree(config.stash[_home], ignore_errors=True)


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
        if ipaddress.ip_address(str(host).partition("%")[0]).is_loopback:
            return
    except ValueError:
        pass
    if event == "socket.getaddrinfo" and str(host) == "0.0.0.0":
        return
    raise RuntimeError(f"a test tried to reach {host!r}: only loopback is allowed")
