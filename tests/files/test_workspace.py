"""The files that git lists in a folder, with the real git, where the person trusts it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.core.workspace import changed_files, for_a_case
from daemon.files import git, workspace
from daemon.files.trust import Trust
from daemon.files.workspace import Workspace
from daemon.testing import FakeClock
from harness.machine.waiting import PATIENCE_S
from tests.support.machine.repository import Repository, Trap


class Desk:
    """A repository, what the person trusts, and what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self.repository = Repository(folder / "project")
        self.top = self.repository.top
        self.trust = Trust(folder / "state" / "trust.json", FakeClock())
        self.workspace = Workspace(self.trust, PATIENCE_S)

    def trusts(self) -> None:
        """The person trusts git as it is now."""
        found = git.set_up(git.find(self.top), time.monotonic() + PATIENCE_S)
        self.trust.grant_git(self.top, found.fingerprint)

    def listed(self, folder: str = "") -> list[tuple[str, bytes]]:
        found = self.workspace.entries(str(self.top / folder))
        return [(entry.status, entry.path) for entry in found]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_only_where_it_is_trusted(desk: Desk) -> None:
    """Not before, not after trust in the prompts alone, and no longer after it was taken back."""
    desk.trust.grant(desk.top, {"judge": "be kind"})
    with pytest.raises(Unavailable, match=r"you have not trusted git in .*project"):
        desk.listed()
    desk.trusts()
    assert desk.listed() == []
    desk.trust.revoke(desk.top, "git")
    with pytest.raises(Unavailable, match="not trusted"):
        desk.listed()


@pytest.mark.parametrize("file", [".git/config", ".git/info/attributes", ".gitattributes"])
def test_trust_ends_with_a_change(desk: Desk, file: str) -> None:
    """By whoever, in the configuration or the attributes; it comes back with the old content."""
    desk.trusts()
    path = desk.top / file
    was = path.read_bytes() if path.exists() else None
    with path.open("a") as out:
        out.write("# nothing\n")
    with pytest.raises(Unavailable, match="changed since you trusted it"):
        desk.listed()
    if was is None:
        path.unlink()
    else:
        path.write_bytes(was)
    assert desk.listed() == []


def test_a_filter_that_comes_later_does_not_run(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the person's own settings, which are not part of the trust."""
    monkeypatch.setenv("HOME", str(tmp_path))
    trap = Trap(tmp_path / "trap")
    desk.repository.write(".gitattributes", "* filter=evil\n")
    desk.repository.commit()
    desk.trusts()
    desk.repository.git("config", "--global", "filter.evil.clean", trap.program("filter"))
    desk.repository.touch()
    with pytest.raises(Unavailable, match=r"git has filters here \(filter.evil.clean\)"):
        desk.listed()
    assert trap.ran() == set()


def test_what_a_script_changed_since_the_start(desk: Desk) -> None:
    """A file changed before and again, one deleted, new ones with names of any kind; one stays as it was."""
    desk.repository.write("deleted.txt", "x")
    desk.repository.write("again.txt", "x")
    desk.repository.commit()
    desk.repository.write("kept.txt", "changed before")
    desk.repository.write("again.txt", "changed before")
    desk.trusts()
    before = desk.workspace.entries(str(desk.top))
    script = b"""
        rm deleted.txt; echo once more >again.txt
        mkdir d; touch d/e 'with blank' 'a\nb' '\xff.txt'
    """
    subprocess.run(["sh", "-c", script], cwd=desk.top, check=True)
    found = for_a_case(changed_files(desk.workspace.entries(str(desk.top)), before))
    assert found.since_task
    names = {"deleted.txt", "again.txt", "with blank", "a\\nb", "d/", "\\xff.txt"}
    assert (set(found.names), len(found.names)) == (names, len(names))


def test_a_folder_inside_the_repository(desk: Desk) -> None:
    """Only what is in it, with names from there; the trust is that of the repository."""
    desk.repository.write("sub/deep/a.txt", "x")
    desk.repository.write("subject.txt", "x")
    desk.repository.commit()
    desk.trusts()
    desk.repository.write("sub/deep/a.txt", "y")
    desk.repository.write("subject.txt", "y")
    assert desk.listed("sub") == [(" M", b"deep/a.txt")]
    (desk.top / "fresh").mkdir()
    desk.repository.write("fresh/x", "x")
    assert desk.listed("fresh") == [("??", b"./")]
    (entry,) = desk.workspace.entries(str(desk.top / "sub"))
    assert entry.stamp[1] == 1


@pytest.mark.shows("I44")
def test_a_list_without_end_is_refused(desk: Desk) -> None:
    """More than 2,000 names are not compared."""
    desk.trusts()
    for n in range(workspace.MOST + 1):
        (desk.top / str(n)).touch()
    with pytest.raises(Unavailable, match="more than 2000"):
        desk.listed()
