"""Git in somebody's repository, with the real git: what it may read, and that it runs nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from daemon.core.errors import Unavailable
from daemon.files import git
from harness.machine.waiting import PATIENCE_S, wait_until
from tests.support.machine.repository import Repository, Trap, booby_trap, lacks_its_tree


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "project")


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path / "trap")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where git reads a person's settings."""
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def soon() -> float:
    return time.monotonic() + PATIENCE_S


def set_up(repository: Repository) -> git.SetUp:
    return git.set_up(git.find(repository.top), soon())


def status(repository: Repository) -> bytes:
    return git.status(git.find(repository.top), repository.top, soon())


def test_a_hostile_repository_runs_nothing(repository: Repository, trap: Trap) -> None:
    """Programs that the configuration, hooks and a submodule name: git runs some, and none for us."""
    booby_trap(repository, trap)
    set_up(repository)
    assert status(repository) == b""
    assert trap.ran() == set()
    repository.git("status", "--porcelain")
    assert trap.ran() >= {"core.fsmonitor", "submodule", "post-index-change"}


def test_what_a_partial_clone_lacks_is_not_fetched(repository: Repository, trap: Trap) -> None:
    """Git would run a program that the remote names. It is refused, and fetching is switched off as well."""
    lacks_its_tree(repository, trap)
    assert "partial clone" in set_up(repository).refusal
    with pytest.raises(Unavailable, match="git status failed"):
        status(repository)
    assert trap.ran() == set()
    repository.git("status", "--porcelain")
    assert trap.ran() == {"uploadpack"}


@pytest.mark.parametrize("kind", ["clean", "smudge", "process"])
@pytest.mark.parametrize("level", ["local", "global", "worktree", "include"])
def test_filters_are_refused_wherever_they_are_configured(
    repository: Repository, home: Path, level: str, kind: str
) -> None:
    """In the repository, in a file that it includes, in a work tree's own file, in the person's settings."""
    assert set_up(repository).refusal == ""
    where = [f"--{level}"]
    if level == "include":
        where = ["--file", str(home / "more")]
        repository.git("config", "include.path", str(home / "more"))
    repository.git("config", "extensions.worktreeConfig", "true")
    repository.git("config", *where, f"FILTER.a b.{kind}", "cat")
    assert set_up(repository).refusal == f"git has filters here (filter.a b.{kind})"


def test_a_filter_would_run(repository: Repository, trap: Trap) -> None:
    """Why filters are refused: ``git status`` runs them, and no setting overrides all names."""
    repository.git("config", "filter.evil.clean", trap.program("filter"))
    repository.write(".gitattributes", "* filter=evil\n")
    repository.touch()
    assert set_up(repository).refusal
    assert trap.ran() == set()
    status(repository)
    assert trap.ran() == {"filter"}


def alias(repository: Repository, *where: str) -> None:
    repository.git("config", *where, "alias.x", "status")


def move(repository: Repository) -> Path:
    """The git folder is elsewhere; where it was."""
    place = repository.top / ".git"
    place.rename(repository.top.parent / "elsewhere")
    return place


def own_attributes(repository: Repository) -> None:
    (repository.top / ".git" / "info").mkdir(exist_ok=True)
    (repository.top / ".git" / "info" / "attributes").write_text("*.txt text\n")


CHANGES: dict[str, Callable[[Repository], object]] = {
    "setting": alias,
    "attributes": lambda r: r.write(".gitattributes", "*.txt text\n"),
    "own attributes": own_attributes,
    "work tree's setting": lambda r: alias(r, "--worktree"),
    "included file": lambda r: r.write("more", "[alias]\n\tx = log\n"),
    "git folder": lambda r: move(r).symlink_to(r.top.parent / "elsewhere"),
    "git file": lambda r: move(r).write_text(f"gitdir: {r.top.parent}/elsewhere\n"),
    "common folder": lambda r: (r.top / ".git" / "commondir").write_text(".\n"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_of_the_set_up_shows(
    repository: Repository, change: Callable[[Repository], object]
) -> None:
    """The fingerprint changes with each file that counts and with the place; commits don't matter."""
    repository.git("config", "extensions.worktreeConfig", "true")
    repository.git("config", "include.path", "../more")
    repository.write("more", "[alias]\n\tx = status\n")
    was = set_up(repository).fingerprint
    repository.write("kept.txt", "changed\n")
    repository.commit()
    assert set_up(repository).fingerprint == was
    change(repository)
    assert set_up(repository).fingerprint != was


@pytest.mark.usefixtures("home")
def test_the_persons_settings_are_not_the_repositorys(repository: Repository) -> None:
    """The fingerprint is of the repository alone, and its files are shown with their text."""
    was = set_up(repository)
    alias(repository, "--global")
    assert set_up(repository) == was
    assert "[core]" in was.files[str(repository.top / ".git" / "config")]


def test_a_linked_work_tree(repository: Repository, tmp_path: Path) -> None:
    """Its configuration is that of the main one; git is run in the linked one."""
    repository.git("worktree", "add", "-q", str(tmp_path / "linked"))
    found = git.find(tmp_path / "linked")
    assert (found.top, found.common) == (tmp_path / "linked", repository.top / ".git")
    (tmp_path / "linked" / "new.txt").write_text("new")
    assert git.status(found, found.top, soon()) == b"?? new.txt\0"
    was = git.set_up(found, soon()).fingerprint
    repository.git("config", "alias.x", "status")
    assert git.set_up(found, soon()).fingerprint != was


def test_a_folder_that_looks_like_a_git_folder_is_none(repository: Repository, trap: Trap) -> None:
    """A bare repository among the files, whose configuration names a program: the one around it is used."""
    bare = repository.top / "bare"
    bare.mkdir()
    repository.git("init", "-q", "--bare", str(bare))
    (bare / "config").write_text(
        f"[core]\nbare = false\nworktree = {bare}\nfsmonitor = {trap.program('bare')}\n"
    )
    found = git.find(bare)
    assert found.top == repository.top
    assert git.status(found, bare, soon()) == b"?? bare/\0"
    assert trap.ran() == set()


def test_the_configuration_cannot_lead_elsewhere(repository: Repository, tmp_path: Path) -> None:
    """`core.worktree` would have git list another folder of the person."""
    other = Repository(tmp_path / "other")
    other.write("private.txt", "x")
    repository.write("new.txt", "new")
    repository.git("config", "core.worktree", str(other.top))
    assert status(repository) == b"?? new.txt\0"


def test_where_git_is_not_run(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No repository, a bare one, one whose files are no files, and one that belongs to somebody else."""
    repository.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / ".git").write_text("nothing")
    for folder, why in (("", "in no git"), ("bare", "in no git"), ("file", "names no git folder")):
        with pytest.raises(Unavailable, match=why):
            git.find(tmp_path / folder)
    attributes = repository.top / ".gitattributes"
    os.mkfifo(attributes)
    with pytest.raises(Unavailable, match="not a regular file"):
        set_up(repository)
    attributes.unlink()
    attributes.symlink_to("/etc/passwd")
    with pytest.raises(Unavailable, match="it is a link"):
        set_up(repository)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(Unavailable, match="belongs to another user"):
        git.find(repository.top)


def test_variables_for_git_do_not_count(
    repository: Repository, tmp_path: Path, trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon's environment may come from a hook of git: another repository, settings, a tracer."""
    other = Repository(tmp_path / "other")
    repository.write("new.txt", "new")
    variables = {
        "GIT_DIR": str(other.top / ".git"),
        "GIT_WORK_TREE": str(other.top),
        "GIT_INDEX_FILE": str(tmp_path / "none"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": trap.program("environment"),
        "GIT_TRACE": str(tmp_path / "trace"),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert status(repository) == b"?? new.txt\0"
    assert trap.ran() == set()
    assert not (tmp_path / "trace").exists()


def test_a_program_called_git_in_the_repository_is_not_taken(
    repository: Repository, trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one in a relative folder of PATH, nor a link to one there, nor a text: then git is missing."""
    (repository.top / "bin").mkdir()
    Path(trap.program("git")).rename(repository.top / "bin" / "git")
    (trap.folder / "git").symlink_to(repository.top / "bin" / "git")
    monkeypatch.chdir(repository.top)
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", os.pathsep.join(["bin", "", str(repository.top / "bin"), path]))
    assert status(repository) == b"?? bin/\0"
    text = tmp_path / "text" / "git"
    text.parent.mkdir()
    text.write_text("no program")
    for folder in ("bin", ".", str(repository.top / "bin"), str(trap.folder), str(text.parent), ""):
        monkeypatch.setenv("PATH", folder)
        with pytest.raises(Unavailable, match="not in PATH"):
            status(repository)
    assert trap.ran() == set()


def test_the_index_is_left_alone(repository: Repository) -> None:
    """Nothing is written, so no lock is in the way of the agent's own git."""
    repository.touch()
    folder = repository.top / ".git"
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    assert status(repository) == b""
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before


def replace_git(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Another program is called git."""
    (folder / "bin").mkdir()
    double = folder / "bin" / "git"
    double.write_text(f"#!/bin/sh\n{script}\n")
    double.chmod(0o755)
    monkeypatch.setenv("PATH", f"{double.parent}{os.pathsep}{os.environ['PATH']}")


def test_a_slow_git_is_killed_with_what_it_started(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that never answers: ``Slow`` when the time is over, and no process is left."""
    noted = tmp_path / "noted"
    script = f"sleep 600 &\necho $$ $! >'{noted}'.new\nmv '{noted}.new' '{noted}'\nwait"
    replace_git(tmp_path, monkeypatch, script)
    while not noted.exists():  # until the double came as far as starting its child
        with pytest.raises(git.Slow, match="git status took too long"):
            git.status(git.find(repository.top), repository.top, time.monotonic() + 0.5)
    started = [int(pid) for pid in noted.read_text().split()]
    wait_until(lambda: not any(map(alive, started)), "end of both processes")


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.shows("I44")
def test_a_git_that_writes_without_end(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most four megabytes are kept of what it writes; then it is ended."""
    replace_git(tmp_path, monkeypatch, "exec yes")
    with pytest.raises(Unavailable, match="more than 4000000 bytes"):
        status(repository)
