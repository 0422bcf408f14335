"""Whose the other end of a connection over loopback is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from daemon.web.peers import NOBODY, asked, can_ask, in_tables, tcp_peer_uid
from harness.machine.waiting import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
ATTACKER = 54321
CLIENT = """
import encodings.idna, os, socket, sys
os.setuid(int(sys.argv[2]))
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
if sys.argv[3] == "close":
    s.close()
print("done", flush=True)
sys.stdin.read()
"""
Ask = Callable[[tuple[str, int], tuple[str, int]], int | None]
each_way = pytest.mark.parametrize("ask", [asked, in_tables], ids=["the kernel", "its tables"])


def test_the_kernel_of_this_machine_can_be_asked() -> None:
    """Else the tests below say nothing about the way that is used."""
    assert can_ask()


@pytest.mark.parametrize(
    ("family", "address"),
    [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")],
    ids=["IPv4", "IPv6"],
)
@each_way
def test_whose_a_connection_is(ask: Ask, family: int, address: str) -> None:
    """Both ends are ours, whichever kind of socket connects; one that is over is nobody's."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if family == socket.AF_INET6 and not socket.has_ipv6:
            pytest.skip("this machine has no IPv6")
        with socket.socket(family) as client:
            client.connect((address, port))
            accepted, _ = server.accept()
            with accepted:
                ends = accepted.getsockname(), accepted.getpeername()
                assert (ask(*ends), tcp_peer_uid(accepted)) == (os.geteuid(), os.geteuid())
            assert tcp_peer_uid(accepted) == NOBODY


@each_way
def test_a_client_that_is_gone_is_nobody(ask: Ask) -> None:
    """Its end is still listed, without a process and as if root had it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(20):
            client = socket.create_connection(server.getsockname())
            accepted, _ = server.accept()
            client.close()
            with accepted:
                assert ask(accepted.getsockname(), accepted.getpeername()) == NOBODY


@each_way
def test_a_port_that_somebody_listens_on_is_no_connection(ask: Ask) -> None:
    """A client that is gone may have had the number of a port that another program serves."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        assert ask(server.getsockname(), other.getsockname()) == NOBODY


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("then", ["stay", "close"])
@each_way
def test_another_user_is_seen(ask: Ask, then: str) -> None:
    """Also one that closed already is not taken for root."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        command = [sys.executable, "-c", CLIENT, str(server.getsockname()[1]), str(ATTACKER), then]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            accepted, _ = server.accept()
            client.stdout.readline()
            with accepted:
                found = ask(accepted.getsockname(), accepted.getpeername())
            client.communicate()
    assert found == (ATTACKER if then == "stay" else NOBODY)


@pytest.mark.parametrize("address", [("1.2.3.4", 1), ("not an address", 1), ("127.0.0.1", 99_999_999)])
@each_way
def test_what_is_no_connection_is_nobody(ask: Ask, address: tuple[str, int]) -> None:
    """Nothing is raised."""
    assert ask(("127.0.0.1", 9), address) == NOBODY
