"""The state of the files, and worktrees: nothing of the person's changes, to the byte."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.proof import tree
from tests.engine.test_proving import git


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a dirty index, a stash, an untracked file, a link, an ignored folder."""
    r = tmp_path / "r"
    (r / "src").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "src/c.txt", "gone.txt"):
        (r / name).write_text(f"{name}\n")
    (r / ".gitignore").write_text("made/\n")
    git(r, "init", "-q", "-b", "main")
    git(r, "add", "-A")
    git(r, "commit", "-qm", "first")
    (r / "a.txt").write_text("stashed\n")
    git(r, "stash", "-q")
    (r / "a.txt").write_text("staged\n")
    git(r, "add", "a.txt")
    (r / "a.txt").write_text("staged and changed\n")
    (r / "b.txt").write_text("changed\n")
    (r / "gone.txt").unlink()
    (r / "new ü.txt").write_text("new\n")
    (r / "link").symlink_to("b.txt")
    (r / "made").mkdir()
    (r / "made" / "lib.txt").write_text("lib\n")
    (r / "run.sh").write_text("#!/bin/sh\n")
    (r / "run.sh").chmod(0o755)
    return r


def everything(folder: Path) -> dict[str, str]:
    """Each file of the folder, those of git too, with its content and mode."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = f"link {path.readlink()}"
        elif path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(folder))] = (
                f"{path.stat().st_mode:o} {path.stat().st_mtime_ns} {digest}"
            )
        else:
            found[str(path.relative_to(folder))] = "folder"
    return found


def test_a_worktree_is_exactly_what_is_there_and_leaves_no_trace(repo: Path, tmp_path: Path) -> None:
    """Changed, new, removed, linked, executable; not what is ignored, unless it is shared."""
    before, place = everything(repo), tmp_path / "state" / "x.tree"
    tree.make(place, repo, ".", ["made", "../r", ".git", "none"])
    names = {n for n in everything(place) if not n.startswith(".git")}
    assert names - {".gitignore"} == {
        "a.txt",
        "b.txt",
        "src",
        "src/c.txt",
        "new ü.txt",
        "link",
        "run.sh",
        "made",
    }
    assert (place / "a.txt").read_text() == "staged and changed\n"
    assert os.access(place / "run.sh", os.X_OK)
    assert (place / "made").is_symlink()
    assert git(place, "status", "--porcelain", "gone.txt") == " D gone.txt\n"
    (place / "a.txt").write_text("the check writes\n")
    tree.remove(place, str(repo))
    assert not place.exists()
    assert everything(repo) == before


def test_of_a_commit(repo: Path, tmp_path: Path) -> None:
    """Its files, without the changes."""
    before, place = everything(repo), tmp_path / "x.tree"
    commit = tree.commit_before(repo, 4_000_000_000_000)
    tree.make(place, repo, ".", [], commit)
    assert (place / "b.txt").read_text() == "b.txt\n"
    assert (place / "gone.txt").exists()
    tree.remove(place, str(repo))
    assert everything(repo) == before
    assert tree.commit_before(repo, 1_000) == ""


def test_removed_where_git_does_not_help(repo: Path, tmp_path: Path) -> None:
    """Half made, or damaged: the folder and git's entry go all the same."""
    before, place = everything(repo), tmp_path / "x.tree"
    tree.make(place, repo, ".", ["made"])
    (place / ".git").write_text("broken")
    tree.remove(place, str(repo))
    assert not place.exists()
    assert (repo / "made" / "lib.txt").exists()
    assert everything(repo) == before
    tree.remove(place, str(repo))


def test_a_submodule_is_copied(repo: Path, tmp_path: Path) -> None:
    """Its files as they are."""
    sub = tmp_path / "sub"
    sub.mkdir()
    git(sub, "init", "-q")
    (sub / "s.txt").write_text("s\n")
    git(sub, "add", "-A")
    git(sub, "commit", "-qm", "s")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(sub), "lib")
    (repo / "lib" / "s.txt").write_text("changed\n")
    before, place = everything(repo), tmp_path / "x.tree"
    tree.make(place, repo, ".", [])
    assert (place / "lib" / "s.txt").read_text() == "changed\n"
    tree.remove(place, str(repo))
    assert everything(repo) == before


def test_no_worktree_without_a_working_tree(tmp_path: Path) -> None:
    """No git, a bare repository, no commit yet: told."""
    (tmp_path / "plain").mkdir()
    with pytest.raises(Unavailable, match="working tree"):
        tree.repository(tmp_path / "plain")
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare")], check=True)
    with pytest.raises(Unavailable, match="working tree"):
        tree.repository(tmp_path / "bare")
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    with pytest.raises(Unavailable, match="worktree failed"):
        tree.make(tmp_path / "x.tree", tmp_path / "empty", ".", [])


@pytest.mark.parametrize(
    ("change", "written", "other"),
    [
        ("b.txt", set(), True),
        ("src/c.txt", set(), True),
        ("new ü.txt", set(), False),
        ("new ü.txt", {"/anywhere/r/new ü.txt"}, True),
        ("cache.bin", set(), False),
        ("made/lib.txt", set(), False),
    ],
)
def test_what_counts_as_a_change(repo: Path, change: str, written: set[str], *, other: bool) -> None:
    """A tracked file, or one that the agent wrote; not what a check leaves behind."""
    before = tree.look(repo)
    (repo / change).write_text("other\n")
    after = tree.look(repo)
    assert tree.differs(before, after, written) is other
    assert (before.digest != after.digest) is (change != "made/lib.txt")


def test_a_commit_counts_as_a_change(repo: Path) -> None:
    """Somebody works there."""
    before = tree.look(repo)
    git(repo, "commit", "-qm", "second")
    assert tree.differs(before, tree.look(repo), set())


def test_looking_changes_nothing(repo: Path) -> None:
    """Not even the index, whose times git would refresh."""
    os.utime(repo / "src" / "c.txt", (1, 1))
    before = everything(repo)
    assert tree.look(repo) == tree.look(repo)
    assert everything(repo) == before


def test_without_git_the_files_themselves(tmp_path: Path) -> None:
    """But for hidden folders and those that tools fill."""
    for name in ("a.py", "src/b.py", ".cache/x", "__pycache__/y"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    before = tree.look(tmp_path)
    assert set(before.files) == {"a.py", "src/b.py"}
    (tmp_path / "__pycache__" / "y").write_text("2")
    assert tree.look(tmp_path) == before
    (tmp_path / "src" / "b.py").write_text("2")
    assert tree.differs(before, tree.look(tmp_path), {str(tmp_path / "src" / "b.py")})


def test_a_file_monitor_and_hooks_of_the_repository_do_not_run(repo: Path, tmp_path: Path) -> None:
    """Git's own programs are no part of a look."""
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(trap))
    (repo / ".git" / "hooks" / "post-checkout").write_bytes(trap.read_bytes())
    (repo / ".git" / "hooks" / "post-checkout").chmod(0o755)
    tree.look(repo)
    tree.make(tmp_path / "x.tree", repo, ".", [], tree.commit_before(repo, 4_000_000_000_000))
    tree.remove(tmp_path / "x.tree", str(repo))
    assert not (tmp_path / "sprung").exists()


def test_what_changes_in_a_repository_inside_and_in_an_ignored_file_is_another_state(repo: Path) -> None:
    """Git names a nested repository only as a whole, and an ignored file not at all."""
    inner = repo / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x.txt").write_text("one\n")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "first")
    seen = [tree.look(repo).digest]
    (inner / "x.txt").write_text("two\n")
    seen.append(tree.look(repo).digest)
    (inner / "x.txt").write_text("three\n")
    seen.append(tree.look(repo).digest)
    assert len(set(seen)) == 3
    written = [str(repo / "made" / "lib.txt"), "b.txt", "/elsewhere/x", "../y"]
    one = tree.look(repo, written)
    (repo / "made" / "lib.txt").write_text("other\n")
    two = tree.look(repo, written)
    assert one.digest != two.digest
    assert tree.look(repo).digest == seen[2]
    assert tree.differs(one, two, written)


def test_nothing_is_copied_or_linked_through_a_link(repo: Path, tmp_path: Path) -> None:
    """A tracked folder that became a link: git calls its files deleted, and they may lie anywhere."""
    (repo / "src" / "c.txt").unlink()
    (repo / "src").rmdir()
    (repo / "src").symlink_to("../away", target_is_directory=True)
    state = tmp_path / "state"
    for folder, text in ((tmp_path / "away", "theirs\n"), (state / "away", "mine\n")):
        (folder / "lib").mkdir(parents=True)
        (folder / "c.txt").write_text(text)
    (state / "away" / "lib").rmdir()
    place = state / "x.tree"
    tree.make(place, repo, ".", ["src/lib"])
    assert (place / "src").is_symlink()
    assert (state / "away" / "c.txt").read_text() == "mine\n"
    assert not (state / "away" / "lib").exists()
    tree.remove(place, str(repo))


def test_a_worktree_goes_although_its_check_made_folders_read_only(repo: Path, tmp_path: Path) -> None:
    """As the cache of Go's modules is."""
    before, place = everything(repo), tmp_path / "x.tree"
    tree.make(place, repo, ".", [])
    (place / "cache" / "mod").mkdir(parents=True)
    (place / "cache" / "mod" / "f").write_text("f")
    for folder in ("cache/mod", "cache"):
        (place / folder).chmod(0o555)
    tree.remove(place, str(repo))
    assert not place.exists()
    assert everything(repo) == before


def test_of_a_repository_inside_the_same_files_are_copied(repo: Path, tmp_path: Path) -> None:
    """What it ignores is not, nor a socket; nor our own state folder, where that lies in the repository."""
    inner, state = repo / "inner", repo / "state"
    for folder in (inner / "made", state / "proof"):
        folder.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / ".gitignore").write_text("made\n")
    (inner / "new.txt").write_text("new\n")
    (inner / "made" / "large").write_text("large\n")
    (state / "reflectd.sqlite3").write_text("rows\n")
    with socket.socket(socket.AF_UNIX) as s:
        here = Path.cwd()
        os.chdir(inner)  # the path of a socket is short
        s.bind("door")
        os.chdir(here)
        place = state / "proof" / "x.tree"
        tree.make(place, repo, ".", [])
        assert (place / "inner" / "new.txt").read_text() == "new\n"
        assert not (place / "inner" / "made").exists()
        assert not (place / "inner" / "door").exists()
        assert not (place / "state").exists()
        tree.remove(place, str(repo))


def test_a_worktree_has_a_limit(repo: Path, tmp_path: Path) -> None:
    """One that is larger is not made, and leaves nothing."""
    with (repo / "huge").open("wb") as file:
        file.truncate(tree.ALL_BYTES + 1)
    place = tmp_path / "x.tree"
    with pytest.raises(Unavailable, match="1000 MB"):
        tree.make(place, repo, ".", [])
    tree.remove(place, str(repo))
    assert not place.exists()


def test_shared_folders_are_those_of_the_project(repo: Path, tmp_path: Path) -> None:
    """The project may lie below the top of its repository."""
    (repo / "src" / "made").mkdir()
    place = tmp_path / "x.tree"
    tree.make(place, repo, "src", ["made", "../made", ""])
    assert (place / "src" / "made").readlink() == repo / "src" / "made"
    assert not (place / "made").exists()
    tree.remove(place, str(repo))


def test_a_branch_and_the_stash_count_as_changes(repo: Path) -> None:
    """A worktree shares them with the person."""
    before = tree.look(repo)
    assert not tree.differs(before, tree.look(repo), ())
    git(repo, "branch", "x")
    branched = tree.look(repo)
    assert tree.differs(before, branched, ())
    git(repo, "stash", "drop", "-q")
    assert tree.differs(branched, tree.look(repo), ())
    assert before.digest == tree.look(repo).digest
