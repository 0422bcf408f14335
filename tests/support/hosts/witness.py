"""A later event, to show that nothing happened before it.

Waiting for a while shows nothing on a busy machine. A turn that comes later and has its verdict does: the
host's events reach the daemon in their order.
"""

from __future__ import annotations

import uuid

from harness.hosts.opencode import OpencodeServe, Session
from harness.machine.reflectd import Daemon
from harness.machine.waiting import wait_until
from harness.models.server import ModelServer, fail
from tests.support.hosts.wire import WireHost, unfinished
from tests.support.machine.state import open_orders


def a_later_turn(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Until another turn of the same opencode has its verdict.

    Its model refuses, so it ends as ``error``: no judge is asked, no toast is shown, nothing is sent.
    """
    session = host.create_session()
    llm.script(fail(400, "a later turn"), session=session.id)
    session.prompt("A later turn")
    daemon.wait_verdict(session.id, "error")


def a_later_host(daemon: Daemon) -> None:
    """Until a turn of another host has its verdict; for daemons that judge by rules alone."""
    box, name = daemon.box, f"later-{uuid.uuid4().hex[:8]}"
    with WireHost(box.socket, box.project, unfinished(box.project), name) as host:
        host.send(host.turn(f"ses_{name}"))
        daemon.wait_verdict(f"ses_{name}", "incomplete")


def toasts_shown(host: OpencodeServe) -> None:
    """Until every toast that was decided has been shown and has been seen here.

    A toast is shown after its verdict is written, so it can come when the test that caused it is over.
    """
    wait_until(
        lambda: not open_orders(host.box, "toast"), "toasts shown", lambda: open_orders(host.box, "toast")
    )
    host.catch_up()


def quiet(session: Session, daemon: Daemon, llm: ModelServer, *, users: int) -> None:
    """Nobody prompts the session: after a later turn it still has its ``users`` user messages."""
    a_later_turn(session.host, daemon, llm)
    toasts_shown(session.host)
    assert len(session.users()) == users, session.outline()
