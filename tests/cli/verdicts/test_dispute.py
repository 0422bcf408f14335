"""``reflectd dispute``: saves and labels in one step; below it are list and remove."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from daemon.clock import SystemClock
from daemon.learning import tables
from daemon.store.db import Database
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from tests.cli.judge.test_judge import put
from tests.cli.verdicts.folders import judged_in
from tests.support.machine.command_line import reflectd, said


def listed(box: Sandbox) -> list[dict[str, Any]]:
    found = json.loads(reflectd(box, "case", "list", "--json").stdout)
    assert found["folder"] == str(box.state / "cases")
    cases: list[dict[str, Any]] = found["cases"]
    return cases


def test_dispute_and_undo(box: Sandbox) -> None:
    """One command makes the newest case a labelled one; twice replaces the label; one command undoes it."""
    put(box, "ses_old", 1_750_000_000_000)
    path = put(box)
    said(reflectd(box, "judge", "ses_on"), 10, "not done")  # the newest case of the session that begins so
    said(reflectd(box, "judge", "ses_none"), 2, "there is no case")
    why = "The failure is old."
    text = said(reflectd(box, "dispute", "--should-be", "complete", "--why", why), 0, "judged    not done")
    kept = box.state / "cases" / path.name
    assert str(kept) in text
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [(c["session"], c["judged"], c["expect"], c["why"]) for c in listed(box)] == [
        ("ses_one", "incomplete", "complete", why)
    ]
    said(reflectd(box, "judge", path.stem), 10, "DIFFERS", why)
    said(reflectd(box, "dispute", "ses_on", "--should-be", "your-turn"), 0, "before: done")
    assert [(c["expect"], c["why"]) for c in listed(box)] == [("awaiting_user", "")]
    assert json.loads(kept.read_text("utf-8"))["case"] == json.loads(path.read_text("utf-8"))["case"]
    (kept.parent / "broken.json").write_text("{")
    said(reflectd(box, "dispute", "list"), 0, path.stem, "not done", "your turn", "broken", "not valid JSON")
    said(reflectd(box, "dispute", "remove", "broken"), 0)
    said(reflectd(box, "dispute", "remove", path.stem), 0, "removed", str(kept))
    assert listed(box) == []
    assert path.exists()


def test_a_dispute_takes_back_what_was_learned(box: Sandbox) -> None:
    """By the daemon that knows of it, once, and only when the judge is contradicted."""
    put(box)
    box.state.mkdir(exist_ok=True)
    db = Database(box.state / "reflectd.sqlite3", SystemClock().now_ms)
    row = tables.tag(str(box.project), "pat-001", "ses_one", "harmful", SystemClock().now_ms(), "why")
    asyncio.run(db.commit(row))
    db.close()
    with Daemon(box):
        agreed = said(reflectd(box, "dispute", "--should-be", "incomplete"), 0, "that is what the judge said")
        assert "taken back" not in agreed
        taken = "1 count of a point and 0 new texts are taken back"
        said(reflectd(box, "dispute", "--should-be", "complete"), 0, taken)
        assert "taken back" not in said(reflectd(box, "dispute", "--should-be", "complete"), 0)


def test_which_case_is_meant(box: Sandbox) -> None:
    """The newest of the nearest folder upward that has one. The database also knows the sessions in folders
    below, and from any folder where a session works that is named.
    """
    deep, beside, far = box.project / "src" / "deep", box.root / "beside", box.root / "far"
    deep.mkdir(parents=True)
    beside.mkdir()
    path = put(box)
    dispute = ("dispute", "--should-be", "complete")
    said(reflectd(box, *dispute, cwd=deep), 0, path.name)
    path.unlink()
    with Daemon(box) as daemon:
        judged_in(far, daemon, "ses_far")
        said(reflectd(box, *dispute), 2, "no saved case")
        judged_in(deep, daemon, "ses_deep")
        said(reflectd(box, *dispute), 0, "ses_deep")
        said(reflectd(box, *dispute, cwd=beside), 2, f"{beside} has no saved case")
        said(reflectd(box, "dispute", "ses_f", "--should-be", "complete"), 0, "judged    not done")
    (case,) = (c for c in listed(box) if c["session"] == "ses_far")
    assert (case["session"], case["judged"], case["expect"]) == ("ses_far", "incomplete", "complete")
    said(reflectd(box, "judge", case["path"]), 10, "Add a login page with tests")
    said(reflectd(box, "dispute", "ses_far", "--should-be", "complete"), 0, "before: done")


@pytest.mark.shows("I46")
def test_no_secret_comes_in_with_a_case(box: Sandbox) -> None:
    """A case that somebody else wrote, and what the person types, are redacted when saved."""
    secret = "ghp_" + "a1B2" * 10
    path = put(box)
    path.write_text(path.read_text("utf-8").replace("Done, empty", f"Done with {secret}, empty"))
    said(reflectd(box, "dispute", "--should-be", "complete", "--why", f"uses {secret}"), 0)
    kept = (box.state / "cases" / path.name).read_text("utf-8")
    assert secret in path.read_text("utf-8")
    assert secret not in kept
    assert "Done with" in kept
    said(reflectd(box, "dispute", "--should-be", "complete"), 0)
    assert (box.state / "cases" / path.name).read_text("utf-8") == kept, "its reason stays"
