"""Sessions that are judged in a folder of a test's own."""

from __future__ import annotations

from pathlib import Path

from harness.machine.reflectd import Daemon
from harness.machine.waiting import wait_until
from tests.support.hosts.wire import WireHost, unfinished


def judged_in(folder: Path, daemon: Daemon, session: str, **texts: str) -> Path:
    """Judged incomplete, its case saved; gives the case's file. The folder is made."""
    folder.mkdir(parents=True, exist_ok=True)
    cases: list[Path] = []
    with WireHost(daemon.box.socket, folder, unfinished(folder, **texts), f"host-{session}") as host:
        host.send(host.turn(session, title=texts.get("title", "t")))

        def saved() -> bool:
            cases[:] = (folder / ".reflection").glob(f"{session}_*.json")
            return bool(cases and daemon.verdicts(session))

        wait_until(saved, "the verdict and its case", daemon.log)
    return cases[0]
