"""The offer of the ACE plugin's playbook, and the setting that makes it the project's: real commands."""

from __future__ import annotations

import json

import pytest

from daemon.clock import SystemClock
from daemon.files.playbook import dumped
from daemon.files.project_playbook import ACE, ProjectPlaybook
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.playbook.books import book, point
from tests.support.hosts.wire import WireHost, send
from tests.support.machine.command_line import reflectd, said

OFFER = f"{ACE} of this project has 2 points that its playbook lacks"
THEIRS = {
    "version": "1.0",
    "key_points": [{"name": "kpt_001", "text": "Use pathlib.", "score": 2}, "Tests need redis"],
}


def theirs(box: Sandbox) -> None:
    """A playbook of the ACE plugin, in its older form."""
    (box.project / ".claude").mkdir(exist_ok=True)
    (box.project / ACE).write_text(json.dumps(THEIRS))


@pytest.mark.shows("LEARN-15")
def test_it_is_offered_in_words_until_it_says_nothing_new(box: Sandbox) -> None:
    """By `show` and `status` (with a daemon and without one); taken over it is offered no more. Nothing is
    read through a link.
    """
    theirs(box)
    for code, verb in ((0, ["playbook", "show"]), (3, ["status"])):
        said(reflectd(box, *verb), code, OFFER, f"playbook import {ACE}")
    with Daemon(box):
        said(reflectd(box, "status"), 0, OFFER)
    assert OFFER not in said(reflectd(box, "playbook", "show", cwd=box.root), 0)
    said(reflectd(box, "playbook", "import", ACE), 0, "imported")
    for code, verb in ((0, ["playbook", "show"]), (3, ["status"])):
        assert "of this project has" not in said(reflectd(box, *verb), code)
    (box.project / ACE).write_text(json.dumps({"key_points": ["another"]}))
    said(reflectd(box, "status"), 3, "has 1 point that")
    (box.project / ".claude").rename(box.root / "away")
    (box.project / ".claude").symlink_to(box.root / "away")
    assert "of this project has" not in said(reflectd(box, "status"), 3)


def test_the_daemon_offers_from_that_file(box: Sandbox) -> None:
    """With the setting `playbook.path`, and not without it."""
    (box.project / ".claude").mkdir()
    (box.project / ACE).write_bytes(dumped(book(point("pat-001", "Use pathlib."))))
    mine = ProjectPlaybook(box.project, box.state, SystemClock(), "")
    mine.approve(["Use pathlib."])

    def given(host: WireHost, session: str) -> str:
        host.send(host.turn(session)[:1])
        body = {"instance": host.instance, "what": "context", "data": {"sessionID": session}}
        return str(send(host.path, "POST", "/v1/ask", body).json["text"])

    learns = {"REFLECTD_PLAYBOOK_ENABLED": "true", "REFLECTD_JUDGE_PROVIDER": "host"}
    line = "[pat-001] helpful=0 harmful=0 :: Use pathlib."
    with Daemon(box, **learns), WireHost(box.socket, box.project) as host:
        assert given(host, "ses_1") == ""
    everywhere = {"REFLECTD_PLAYBOOK_PATH": ACE, **learns}
    with Daemon(box, **everywhere) as daemon, WireHost(box.socket, box.project, instance="host-2") as host:
        wait_until(lambda: line in given(host, "ses_4"), "the point in what is given", daemon.log)
