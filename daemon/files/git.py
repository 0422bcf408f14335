"""Runs git in somebody's repository so that the repository can't make it run anything else.

A repository's configuration names programs that ``git status`` starts. This module answers that in three
steps. ``find`` reads only where the repository is, and refuses one that belongs to another user. ``set_up``
reads its configuration and attributes and makes a fingerprint of them, for the person to trust; it refuses
filters and partial clones. ``status`` lists names, with every other such setting overridden. The reasons are
in design/security.md.

It never writes. It never uses a repository that it did not find itself: git's own search and the variables
``GIT_…`` don't count. When the daemon dies, git ends by itself. Failures are ``Unavailable`` with a reason
for a person, or ``Slow``.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from ..core.errors import Unavailable
from .bounded import read_bytes, read_text, reason
from .programs import find_program

LIMIT_S: Final = 1.0  # for everything that is asked of git at once
OUTPUT: Final = 4_000_000  # bytes
FILE: Final = 1_000_000  # bytes of one file of the configuration
ERROR_CHARS: Final = 200
# An empty core.fsmonitor and not `false`: git before 2.36 takes that for the name of a program.
OVERRIDES: Final = (
    *("-c", "core.fsmonitor=", "-c", "core.untrackedCache=false", "-c", f"core.hooksPath={os.devnull}"),
)
ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",  # objects that a partial clone lacks are not fetched
    "GIT_NO_LAZY_FETCH": "1",
}
STATUS: Final = (
    *("status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=all"),
    *("--no-renames", "--", "."),
)
_PROGRAM: Final = re.compile(r"filter\..*\.(clean|smudge|process)", re.DOTALL)
_PARTIAL: Final = re.compile(r"extensions\.partialclone|remote\..*\.promisor", re.DOTALL)


class Slow(Unavailable):
    """Git did not answer in time."""


@dataclass(frozen=True, slots=True)
class Repository:
    """Real paths. ``top``: the work tree. ``folder``: its git folder. ``common``: the git folder that has the
    configuration, another one only in a linked work tree.
    """

    top: Path
    folder: Path
    common: Path


@dataclass(frozen=True, slots=True)
class SetUp:
    """How a repository is set up. ``files``: each file of its own that counts, with its text. ``fingerprint``
    changes with these and with the repository's place. ``refusal``: why git is not run; empty when it may.
    """

    fingerprint: str
    files: Mapping[str, str]
    refusal: str


def find(directory: str | Path) -> Repository:
    """The repository that a folder is in. Starts no program."""
    start = Path(os.path.realpath(directory))
    for top in (start, *start.parents):
        if os.path.lexists(top / ".git"):
            try:
                return _owned(_at(top))
            except (OSError, ValueError) as error:
                raise Unavailable(f"{top / '.git'} can't be used: {reason(error)}") from None
    raise Unavailable(f"{start} is in no git repository")


def set_up(repository: Repository, deadline: float) -> SetUp:
    """Read how the repository is set up. Git only reads its configuration for this, and runs nothing."""
    own = _texts(_files(repository))  # before git reads them: it would wait for a FIFO
    command = ("config", "--list", "-z", "--show-scope", "--show-origin")
    parts = os.fsdecode(run(repository, command, repository.top, deadline)).split("\0")
    keys, origins = [], set()
    for scope, origin, pair in zip(parts[0::3], parts[1::3], parts[2::3], strict=False):
        keys.append(pair.partition("\n")[0])
        if scope in {"local", "worktree"} and origin.startswith("file:"):  # its own, and what it includes
            origins.add(repository.top / origin.removeprefix("file:"))
    files = own | _texts(origins - own.keys())
    refused = [key for key in keys if _PROGRAM.fullmatch(key)]
    refusal = f"git has filters here ({', '.join(sorted(set(refused)))})" if refused else ""
    if any(_PARTIAL.fullmatch(key) for key in keys):
        refusal = refusal or "it is a partial clone, for which git may fetch what is missing"
    places = [str(place) for place in (repository.top, repository.folder, repository.common)]
    contents = sorted((str(path), sha256(data).hexdigest()) for path, data in files.items())
    fingerprint = sha256(json.dumps([places, contents]).encode()).hexdigest()
    texts = {str(path): data.decode("utf-8", "backslashreplace") for path, data in sorted(files.items())}
    return SetUp(fingerprint, texts, refusal)


def status(repository: Repository, directory: str | Path, deadline: float) -> bytes:
    """What ``git status --porcelain=v1 -z`` says of a folder of the work tree. Call it only where the person
    trusts ``set_up``.
    """
    return run(repository, STATUS, Path(os.path.realpath(directory)), deadline)


def run(repository: Repository, command: tuple[str, ...], folder: Path, deadline: float) -> bytes:
    """The output of one git command. ``deadline``: when the process is killed, in ``time.monotonic``."""
    line = [
        *(program(repository), "--no-pager", "--no-optional-locks", *OVERRIDES),
        *(f"--git-dir={repository.folder}", f"--work-tree={repository.top}", *command),
    ]
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | ENVIRONMENT
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(  # noqa: S603 - an absolute program and our own arguments, no shell
            line,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
    except OSError as error:
        raise Unavailable(f"git can't be started: {error.strerror}") from None
    with process:
        try:
            out, err = _read(process, deadline)
            code = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Slow(f"git {command[0]} took too long") from None
        finally:
            if process.returncode is None:  # its whole group, before anybody waits for it
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
    if code != 0:
        said = err.decode("utf-8", "backslashreplace").strip()[:ERROR_CHARS]
        raise Unavailable(f"git {command[0]} failed ({code}): {said}")
    return out


def program(repository: Repository) -> str:
    """Git's path. A folder of ``PATH`` that is relative or in the repository does not count."""
    found = find_program("git", os.environ, repository.top)
    if found is None:
        raise Unavailable("git is not in PATH")
    return found


def _read(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bytes]:
    """Both outputs, up to ``OUTPUT`` bytes together. Raises ``TimeoutExpired`` and ``Unavailable``."""
    assert process.stdout is not None  # noqa: S101 - both are pipes
    assert process.stderr is not None  # noqa: S101
    found = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as waiting:
        for stream in found:
            waiting.register(stream, selectors.EVENT_READ)
        while waiting.get_map():
            left = deadline - time.monotonic()
            ready = waiting.select(left) if left > 0 else []
            if not ready:
                raise subprocess.TimeoutExpired(process.args, left)
            for key, _ in ready:
                data = os.read(key.fd, 65_536)
                if not data:
                    waiting.unregister(key.fileobj)
                found[key.fileobj] += data  # type: ignore[index]  # what was registered
            if sum(map(len, found.values())) > OUTPUT:
                raise Unavailable(f"git wrote more than {OUTPUT} bytes")
    return bytes(found[process.stdout]), bytes(found[process.stderr])


def _at(top: Path) -> Repository:
    """Raises ``OSError`` and ``ValueError``."""
    dot = top / ".git"
    folder = dot
    if not dot.is_dir():
        text = read_text(dot, FILE, follow=False) or ""
        if not text.startswith("gitdir: "):
            raise ValueError("it names no git folder")
        folder = top / text.removeprefix("gitdir: ").rstrip("\r\n")
    folder = Path(os.path.realpath(folder))
    other = read_text(folder / "commondir", FILE, follow=False)
    common = folder if other is None else Path(os.path.realpath(folder / other.rstrip("\r\n")))
    return Repository(top, folder, common)


def _owned(repository: Repository) -> Repository:
    """The repository, if all of it is this user's. Git is told where it is, so it does not ask itself."""
    for path in (repository.top, repository.top / ".git", repository.folder, repository.common):
        if path.lstat().st_uid != os.geteuid():
            raise Unavailable(f"{path} belongs to another user")
    return repository


def _files(repository: Repository) -> set[Path]:
    """The files of the repository that say which programs git runs, and where its configuration is."""
    common, folder = repository.common, repository.folder
    own = {
        common / "config",
        folder / "config.worktree",
        folder / "commondir",
        common / "info" / "attributes",
    }
    own.add(repository.top / ".gitattributes")
    return own if (repository.top / ".git").is_dir() else own | {repository.top / ".git"}


def _texts(paths: set[Path]) -> dict[Path, bytes]:
    """The content of those that are there. A link, a FIFO or a large file is refused."""
    found = {}
    for path in paths:
        try:
            data = read_bytes(path, FILE, follow=False)
        except (OSError, ValueError) as error:
            raise Unavailable(f"{path} can't be used: {reason(error)}") from None
        if data is not None:
            found[path] = data
    return found
