"""``reflectd playbook use`` and the offer of the ACE plugin's playbook: real commands, and a terminal."""

from __future__ import annotations

import json

import pytest

from daemon.clock import SystemClock
from daemon.files.playbook import FILE, dumped
from daemon.files.playbook_place import ACE
from daemon.files.project_playbook import ProjectPlaybook
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.cli.reflect.person import at_a_terminal
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


def answered(box: Sandbox, answer: str, *args: str) -> tuple[int, str]:
    """Exit code and screen of a `playbook use` whose question a person answers."""
    return at_a_terminal(box, ["playbook", "use", *args], answer, columns=300)


@pytest.mark.shows("LEARN-15")
def test_it_is_offered_in_words_until_it_says_nothing_new(box: Sandbox) -> None:
    """By `show`, `status` (with a daemon and without one) and `use`; taken over it is offered no more.
    Nothing is read through a link.
    """
    said(reflectd(box, "playbook", "use"), 0, "the playbook of", ".reflection/playbook.json")
    theirs(box)
    for code, verb in ((0, ["playbook", "show"]), (0, ["playbook", "use"]), (3, ["status"])):
        said(reflectd(box, *verb), code, OFFER, f"playbook import {ACE}", f"playbook use {ACE}")
    assert OFFER in json.loads(reflectd(box, "playbook", "use", "--json").stdout)["offered"]
    with Daemon(box):
        said(reflectd(box, "status"), 0, OFFER)
    assert OFFER not in said(reflectd(box, "playbook", "show", cwd=box.root), 0)
    said(reflectd(box, "playbook", "import", ACE), 0, "imported")
    for code, verb in ((0, ["playbook", "show"]), (0, ["playbook", "use"]), (3, ["status"])):
        assert "of this project has" not in said(reflectd(box, *verb), code)
    (box.project / ACE).write_text(json.dumps({"key_points": ["another"]}))
    said(reflectd(box, "status"), 3, "has 1 point that")
    (box.project / ".claude").rename(box.root / "away")
    (box.project / ".claude").symlink_to(box.root / "away")
    assert "of this project has" not in said(reflectd(box, "status"), 3)


@pytest.mark.shows("LEARN-15")
@pytest.mark.full("a pseudo-terminal is driven")
def test_it_is_used_only_after_a_persons_yes(box: Sandbox) -> None:
    """No pipe and no flag gives it, and a no changes nothing. Then every command works in that file, and none
    of its points is approved by that.
    """
    theirs(box)
    said(reflectd(box, "playbook", "add", "Mine."), 0)
    before = (box.project / ACE).read_bytes()
    would = reflectd(box, "playbook", "use", ACE, "--dry-run")
    said(would, 0, "would use", "2 points of it you did not approve")
    for args, words in (
        ([ACE], "on a terminal"),
        ([ACE, "--json"], "leave out --json"),
        (["CLAUDE.md"], "must be a playbook.json inside it"),
        (["../playbook.json"], "must be a playbook.json inside it"),
        (["docs/playbook.json"], "there is no file"),
    ):
        said(reflectd(box, "playbook", "use", *args, stdin=b"y\n"), 2, words)
    code, screen = answered(box, "", ACE)
    assert (code, "Nothing was changed." in screen) == (1, True)
    assert "Mine." in said(reflectd(box, "playbook", "show"), 0)
    code, screen = answered(box, "y", ACE)
    assert code == 0
    for words in ("has 2 points", "The 1 point of .reflection/playbook.json stay", "Another program"):
        assert words in screen
    assert (box.project / ACE).read_bytes() == before
    said(reflectd(box, "playbook", "use", ACE), 0, "already")
    shown = said(reflectd(box, "playbook", "show"), 0, "Use pathlib. (not approved by you)")
    assert "Mine." not in shown
    said(reflectd(box, "trust"), 0, "Its playbook has 2 points that you did not approve")
    said(reflectd(box, "playbook", "add", "--section", "pat", "New."), 0, ".claude/playbook.json")
    assert "PATTERNS & APPROACHES" in (box.project / ACE).read_text()
    said(reflectd(box, "playbook", "undo"), 0, "undid 1")
    assert (box.project / ACE).read_bytes() == before
    said(reflectd(box, "playbook", "import", ".reflection/playbook.json"), 0, "Mine.")
    assert answered(box, "y", ".reflection/playbook.json")[0] == 0
    assert "Mine." in said(reflectd(box, "playbook", "show"), 0)


def test_the_daemon_offers_from_that_file(box: Sandbox) -> None:
    """At once, without a restart; the setting does the same for every project."""
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
    with Daemon(box, **learns) as daemon, WireHost(box.socket, box.project) as host:
        assert given(host, "ses_1") == ""
        mine.use(ACE)
        wait_until(lambda: line in given(host, "ses_2"), "the point in what is given", daemon.log)
        mine.use(FILE)
        wait_until(lambda: given(host, "ses_3") == "", "nothing of that file", daemon.log)
    next((box.state / "playbooks").glob("*/path.json")).unlink()
    everywhere = {"REFLECTD_PLAYBOOK_PATH": ACE, **learns}
    with Daemon(box, **everywhere) as daemon, WireHost(box.socket, box.project, instance="host-2") as host:
        wait_until(lambda: line in given(host, "ses_4"), "the point in what is given", daemon.log)
