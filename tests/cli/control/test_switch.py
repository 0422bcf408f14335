"""``reflectd on`` and ``reflectd off``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.support.hosts.wire import WireHost
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from pathlib import Path


def sub_folder(box: Sandbox) -> Path:
    folder = box.project / "src" / "deep"
    folder.mkdir(parents=True)
    return folder


def off_folders(box: Sandbox) -> list[str]:
    """What ``status`` says is off; the daemon runs."""
    found: list[str] = json.loads(reflectd(box, "status", "--json").stdout)["off"]
    return found


@pytest.mark.shows("I40")
def test_on_and_off(box: Sandbox) -> None:
    """A project, or a session by the beginning of its id, is switched off and on, over a restart; siblings
    are not touched. Several sessions, or none, are an error and leave no ghost.
    """
    with Daemon(box) as daemon, WireHost(box.socket, box.project) as host:
        host.send(host.turn("ses_one"))
        host.send(host.turn("ses_two"))
        said(reflectd(box, "off", "--session", "ses_"), 2, "ses_one, ses_two")
        said(reflectd(box, "off", "--session", "ses_x"), 2, "no session begins with 'ses_x'")
        said(reflectd(box, "off", "--session", "ses_o"), 0, "is off for session ses_one")
        daemon.restart()
        assert [daemon.session(s).get("off") for s in ("ses_one", "ses_two", "ses_x")] == [True, False, None]
        said(reflectd(box, "on", "--session", "ses_one"), 0, "is on for session ses_one")
        said(reflectd(box, "off"), 0, f"is off for {box.project} and everything below it (2 sessions")
        assert [daemon.session(s)["off"] for s in ("ses_one", "ses_two")] == [True, True]
        daemon.restart()
        assert daemon.session("ses_two")["off"] is True
        said(reflectd(box, "on", "--dir", str(box.project)), 0)
        assert daemon.session("ses_two")["off"] is False


@pytest.mark.shows("I40")
def test_in_a_sub_folder_the_project_is_switched(box: Sandbox) -> None:
    """The project and all below it, not the sub-folder; a folder beside it is not touched; ``status`` shows
    what is off, and a second time says that it was so already.
    """
    deep, beside = sub_folder(box), box.root / "project-2"
    beside.mkdir()
    with (
        Daemon(box) as daemon,
        WireHost(box.socket, box.project) as host,
        WireHost(box.socket, beside, instance="host-2") as other,
    ):
        host.send(host.turn("ses_here"))
        other.send(other.turn("ses_beside"))
        said(
            reflectd(box, "off", cwd=deep), 0, f"is off for {box.project} and everything below it (1 session "
        )
        assert [daemon.session(s)["off"] for s in ("ses_here", "ses_beside")] == [True, False]
        assert off_folders(box) == [str(box.project)]
        said(reflectd(box, "status"), 0, f"  off      {box.project} and everything below it\n")
        said(reflectd(box, "off", cwd=deep), 0, f"was off already for {box.project} ")
        found = json.loads(reflectd(box, "off", "--json", cwd=deep).stdout)
        assert (found["on"], found["target"], found["changed"]) == (False, str(box.project), False)
        said(reflectd(box, "on", cwd=deep), 0, f"is on for {box.project} ")
        said(reflectd(box, "on", cwd=deep), 0, f"was on already for {box.project} ")
        assert (off_folders(box), daemon.session("ses_here")["off"]) == ([], False)


@pytest.mark.shows("I40")
def test_a_folder_is_off_with_what_is_below_it(box: Sandbox) -> None:
    """A host in a sub-folder of one that is off is off too, and ``on`` there says what holds it off."""
    deep = sub_folder(box)
    with Daemon(box) as daemon, WireHost(box.socket, deep) as host:
        host.send(host.turn("ses_deep"))
        said(reflectd(box, "off"), 0, f"is off for {box.project} ")
        said(reflectd(box, "off", "--dir", "."), 0, f"was off already for {box.project} ")
        assert daemon.session("ses_deep")["off"]
        text = said(reflectd(box, "on", "--dir", str(deep)), 1, f"still off for {deep}")
        assert f"`reflectd on --dir {box.project}`" in text
        said(reflectd(box, "on", "--session", "ses_d"), 1, "still off for session ses_deep", str(box.project))
        said(reflectd(box, "off", "--dir", str(deep)), 0, f"is off for {deep} ")
        said(reflectd(box, "on", "--dir", str(box.project)), 0, f"still off below it: {deep}")
        assert daemon.session("ses_deep")["off"]
        said(reflectd(box, "on", cwd=deep), 0, f"is on for {deep} ")
        assert not daemon.session("ses_deep")["off"]


@pytest.mark.shows("I40")
def test_without_a_daemon(box: Sandbox) -> None:
    """The switch is stored all the same, of a project and of a known session; the next daemon has it."""
    deep = sub_folder(box)
    said(reflectd(box, "off", cwd=deep), 0, f"is off for {box.project} ", "no daemon runs")
    said(reflectd(box, "status"), 3, f"off      {box.project} and everything below it")
    assert json.loads(reflectd(box, "status", "--json").stdout)["off"] == [str(box.project)]
    with Daemon(box) as daemon, WireHost(box.socket, box.project) as host:
        assert off_folders(box) == [str(box.project)]
        host.send(host.turn("ses_late"))
        wait_until(lambda: daemon.session("ses_late"), "the session", daemon.log)
        assert daemon.session("ses_late")["off"]
    said(reflectd(box, "on", cwd=deep), 0, f"is on for {box.project} ", "(1 session so far)")
    said(reflectd(box, "off", "--session", "ses_l"), 0, "is off for session ses_late")
    said(reflectd(box, "off", "--session", "ses_x"), 2, "no session begins with 'ses_x'")
    with Daemon(box) as daemon:
        assert off_folders(box) == []
        assert daemon.session("ses_late")["off"]


@pytest.mark.parametrize("verb", ["on", "off"])
def test_a_folder_that_is_not_there(box: Sandbox, verb: str) -> None:
    """``off`` names it; ``on`` still takes back what was switched off before the folder went."""
    gone = box.root / "gone"
    gone.mkdir()
    said(reflectd(box, "off", "--dir", str(gone)), 0)
    gone.rmdir()
    code, word = (0, "is on for") if verb == "on" else (2, "there is no folder")
    said(reflectd(box, verb, "--dir", str(gone)), code, word, str(gone))


@pytest.mark.shows("I40")
def test_a_link_to_a_folder_means_that_folder(box: Sandbox) -> None:
    """Claude Code names the real folder, whichever way a person goes there."""
    link = box.root / "link"
    link.symlink_to(box.project)
    with Daemon(box) as daemon, WireHost(box.socket, box.project) as host:
        host.send(host.turn("ses_here"))
        told = said(reflectd(box, "off", "--dir", str(link)), 0)
        assert f"is off for {box.project} and everything below it (1 s" in told
        assert daemon.session("ses_here")["off"] is True
        said(reflectd(box, "on", "--dir", str(link)), 0, f"is on for {box.project} ")
        assert daemon.session("ses_here")["off"] is False
        assert off_folders(box) == []
