"""The state of a project's files, to tell whether it changed, and worktrees of exactly that state.

Writes nothing into the project and its repository but the entry of a worktree, which is taken out again. Git
is run without hooks, without a file monitor and without locks on the index. Everything here blocks: call it
in a thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..core.errors import Unavailable, words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

GIT_S: Final = 60.0
MOST_FILES: Final = 50_000
READ_BYTES: Final = 8_000_000  # of a larger file size and time count
ALL_BYTES: Final = 1_000_000_000  # read for one state; of what comes after that size and time count
MOST_NAMED: Final = 500  # files in one call of git
DEEPEST: Final = 3  # repositories within repositories
_GIT: Final = (
    "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false",
    "-c", "gc.auto=0", "-c", "maintenance.auto=false",
)  # fmt: skip
_MADE: Final = frozenset(
    {"__pycache__", "node_modules", "target", "build", "dist", "out", "venv", "vendor", "coverage"}
)


class State(Struct, frozen=True):
    """The files of a project at one moment. ``head``: the commit, "" without git. ``files``: what git calls
    changed or new (without git: all files), each with a digest of it. ``tracked``: those in git's index.
    ``refs``: the branches and the stash, which a worktree shares.
    """

    git: bool
    head: str
    files: Mapping[str, str]
    tracked: frozenset[str] = frozenset()
    refs: str = ""

    @property
    def digest(self) -> str:
        """The same for the same state."""
        entries = "\n".join(f"{path}\0{content}" for path, content in sorted(self.files.items()))
        return hashlib.sha256(f"{self.head}\n{entries}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


class _Reader:
    """Digests of what is at paths, within the bytes that are read for one state."""

    def __init__(self) -> None:
        self._left = ALL_BYTES

    def digest(self, path: Path, depth: int = 0) -> str:
        """Its content, where a link leads, the state of a repository, or what kind of thing it is."""
        try:
            found = path.lstat()
            if stat.S_ISLNK(found.st_mode):
                return f"link {path.readlink()}"
            if stat.S_ISDIR(found.st_mode):
                return self._folder(path, depth)
            if not stat.S_ISREG(found.st_mode):
                return "special"
            if found.st_size > min(READ_BYTES, self._left):
                return f"{found.st_size} {found.st_mtime_ns}"
            self._left -= found.st_size
            return f"{found.st_mode & 0o111:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        except OSError:
            return "gone"

    def _folder(self, path: Path, depth: int) -> str:
        """Git names a submodule, and a repository inside, without what changed in it."""
        if depth >= DEEPEST or not os.path.lexists(path / ".git"):
            return "folder"
        try:
            return f"repository {_look(path, (), self, depth + 1).digest}"
        except Unavailable:
            return "folder"


def look(folder: Path, written: Collection[str] = ()) -> State:
    """The state now. ``written``: files that the agent wrote; they count also where git ignores them. Raises
    ``Unavailable`` when there are too many files or git does not answer.
    """
    return _look(folder, written, _Reader(), 0)


def _look(folder: Path, written: Collection[str], reader: _Reader, depth: int) -> State:
    top = _top(folder)
    if top is None:
        return State(False, "", {name: reader.digest(path) for name, path in _walk(folder)})
    head = _git(top, "rev-parse", "--verify", "-q", "HEAD", check=False).strip()
    found = _git(top, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
    entries = [entry for entry in found.split("\0") if len(entry) > 3]
    if len(entries) > MOST_FILES:
        raise Unavailable(f"more than {MOST_FILES} files of {top} are changed")
    files = {entry[3:]: f"{entry[:2]} {reader.digest(top / entry[3:], depth)}" for entry in entries}
    files |= {name: f"!! {reader.digest(top / name, DEEPEST)}" for name in _ignored(folder, top, written)}
    branches = ("--format=%(objectname) %(refname)", "refs/heads", "refs/stash")
    refs = _git(top, "for-each-ref", *branches, check=False)
    return State(True, head, files, frozenset(e[3:] for e in entries if not e.startswith("??")), refs)


def _ignored(folder: Path, top: Path, written: Collection[str]) -> list[str]:
    """Those of the written files that git ignores, below its top."""
    here = os.path.realpath(folder)
    paths = {os.path.relpath(os.path.normpath(Path(here) / w), top) for w in written}
    real = {os.path.relpath(os.path.realpath(Path(here) / w), top) for w in written}
    inside = sorted(p for p in paths | real if p != "." and p.split("/")[0] != ".." and p.isprintable())
    if not inside:
        return []
    names = [f":(literal){p}" for p in inside[:MOST_NAMED]]
    found = _git(
        top, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *names, check=False
    )
    return [name for name in found.split("\0") if name and not name.endswith("/")]


def differs(before: State, after: State, written: Collection[str]) -> bool:
    """Says whether the project's files are others than before: the commit, a file in git's index, or one that
    the agent wrote (``written``: the ends of their paths). Other files that a check leaves behind are no
    change.
    """
    if (before.git, before.head, before.refs) != (after.git, after.head, after.refs):
        return True
    names = {n for n in {*before.files, *after.files} if before.files.get(n) != after.files.get(n)}
    tracked = before.tracked | after.tracked
    return any(n in tracked or any(n == w or w.endswith(f"/{n}") for w in written) for n in names)


def commit_before(folder: Path, at_ms: int) -> str:
    """The last commit of this branch that is older than ``at_ms``; "" when there is none."""
    top = _top(folder)
    if top is None:
        return ""
    return _git(top, "rev-list", "-1", f"--before={at_ms // 1000}", "HEAD", check=False).strip()


def repository(folder: Path) -> tuple[Path, str]:
    """The repository's working tree and the folder's path in it. Raises ``Unavailable``."""
    top = _top(folder)
    if top is None:
        raise Unavailable(f"{folder} is in no working tree of git, so no worktree can be made of it")
    return top, os.path.relpath(os.path.realpath(folder), top)


def make(place: Path, top: Path, inside: str, share: Collection[str], commit: str = "") -> None:
    """Make a detached worktree at ``place``: of what is in ``top`` now, or of ``commit``. The folders of
    ``share`` are links to those of the project, which is at ``inside``. Raises ``Unavailable``; ``remove``
    takes away what was made.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    if commit:
        _git(top, "worktree", "add", "--detach", "--quiet", str(place), commit)
    else:
        _git(top, "worktree", "add", "--detach", "--no-checkout", "--quiet", str(place), "HEAD")
        _git(place, "read-tree", "HEAD")
        try:
            _copy(top, place)
        except OSError as e:
            raise Unavailable(f"{top} can't be copied: {words(e)}") from e
    for name in (os.path.normpath(f"{inside}/{each}") for each in share if _is_plain(each)):
        source, link = top / name, place / name
        if _through_link(place, name):
            continue
        if source.is_dir() and not os.path.lexists(link):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(source, target_is_directory=True)


def remove(place: Path, top: str) -> None:
    """Take the worktree away, and its entry in the repository, also what its check made read-only. Never
    follows a link. Raises ``Unavailable``.
    """
    with contextlib.suppress(Unavailable):
        _git(Path(top), "worktree", "remove", "--force", "--force", str(place))
    if os.path.lexists(place):
        _open(place)
        for folder, names, _ in os.walk(place):  # top down: those below are opened before they are read
            for name in names:
                _open(Path(folder, name))
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(Unavailable, OSError):
            kept = Path(_git(Path(top), "rev-parse", "--path-format=absolute", "--git-common-dir").strip())
            for entry in (kept / "worktrees").iterdir():
                points = (entry / "gitdir").read_text("utf-8", "replace").strip()
                if points == str(place / ".git"):
                    shutil.rmtree(entry, ignore_errors=True)
            (kept / "worktrees").rmdir()  # as git does it, where it is empty
    if os.path.lexists(place):
        raise Unavailable(f"{place} can't be removed")


def _open(folder: Path) -> None:
    """Let the owner read and change a folder; a link is left alone."""
    with contextlib.suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(0o700)


def _copy(top: Path, place: Path) -> None:
    """Copy what git knows and what is new, of repositories inside too, within the limits of one worktree."""
    left, state = ALL_BYTES, Path(os.path.realpath(place.parent.parent))
    for n, name in enumerate(_names(top, state if state.is_relative_to(top) else None, 0)):
        source, target = top / name, place / name
        if not os.path.lexists(source) or _through_link(top, name):  # git calls that deleted
            continue
        found = source.lstat()
        left -= found.st_size
        if n >= MOST_FILES or left < 0:
            raise Unavailable(f"{top} has more than {MOST_FILES} files or {ALL_BYTES // 10**6} MB to copy")
        if stat.S_ISLNK(found.st_mode) or stat.S_ISREG(found.st_mode):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def _names(top: Path, state: Path | None, depth: int) -> Iterator[str]:
    """The files of a repository, tracked and new, and those of repositories inside it, but for those in our
    own ``state`` folder.
    """
    listed = _git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in dict.fromkeys(name.rstrip("/") for name in listed if name):
        path = top / name
        if state is not None and path.is_relative_to(state):
            continue
        if path.is_symlink() or not path.is_dir():
            yield name
        elif depth < DEEPEST and os.path.lexists(path / ".git"):  # a submodule, or a repository inside
            yield from (f"{name}/{below}" for below in _names(path, state, depth + 1))


def _through_link(folder: Path, name: str) -> bool:
    """Says whether a folder on the way to ``name`` is a link, which may lead anywhere."""
    parts = name.split("/")
    return any((folder / "/".join(parts[:i])).is_symlink() for i in range(1, len(parts)))


def _is_plain(name: str) -> bool:
    parts = name.split("/")
    return bool(name) and not {"", ".", "..", ".git"} & set(parts)


def _top(folder: Path) -> Path | None:
    try:
        found = _git(folder, "rev-parse", "--show-toplevel", check=False).strip()
    except Unavailable:
        return None
    return Path(found) if found else None


def _git(folder: Path, *args: str, check: bool = True) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env = {**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(  # noqa: S603 - git, constant words and paths
            [*_GIT, "-C", str(folder), *args],
            capture_output=True, stdin=subprocess.DEVNULL, timeout=GIT_S, check=False, env=env,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Unavailable(
            f"git does not answer in {folder}: {words(e) if isinstance(e, OSError) else e}"
        ) from e
    if check and done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[:300]
        raise Unavailable(f"git {args[0]} failed in {folder}: {said}")
    return done.stdout.decode("utf-8", "surrogateescape") if not done.returncode else ""


def _walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder without git, but for hidden folders and those that tools fill."""
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _MADE)
        for name in names:
            count += 1
            if count > MOST_FILES:
                raise Unavailable(f"{folder} has more than {MOST_FILES} files")
            path = Path(place) / name
            yield os.path.relpath(path, folder), path
