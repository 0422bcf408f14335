"""Which project prompts the person trusts: ``<state>/trust.json``, 0600, replaced whole.

Trust is for one folder (its real path) and one content (SHA-256 over all its prompts), so any change asks for
it again. Never grants anything by itself: what can't be read or understood trusts nothing. A corrupt file is
kept aside (I43) and a message says where.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from time import gmtime, strftime
from typing import TYPE_CHECKING

from daemon.core.errors import Unavailable
from daemon.files.atomic import set_aside, write_atomic
from daemon.files.bounded import read_text, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from daemon.core.ports import Clock

FILE = "trust.json"  # in the state folder
LIMIT = 1_000_000  # bytes
PROJECTS_KEPT = 1_000
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Grant:
    """What the person trusted: the digest of the prompts, and when (epoch ms)."""

    sha256: str
    at: int


def digest(prompts: Mapping[str, str]) -> str:
    """One digest for a set of prompts, by name and content."""
    pairs = sorted(prompts.items())
    return sha256(json.dumps(pairs, ensure_ascii=True).encode()).hexdigest()


def project_of(directory: str | Path) -> str:
    """The name under which a folder is trusted: its real path."""
    return os.path.realpath(directory)


class Trust:
    """The trusted projects. Read anew each time, so the daemon sees what the command line wrote."""

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    def trusts(self, directory: str | Path, prompts: Mapping[str, str]) -> tuple[bool, str]:
        """Whether exactly these prompts of this folder are trusted, and what is wrong with our file."""
        grants, problem = self.load()
        grant = grants.get(project_of(directory))
        return grant is not None and grant.sha256 == digest(prompts), problem

    def load(self) -> tuple[dict[str, Grant], str]:
        """Every grant by project, and a message when the file was unreadable or corrupt. Never raises."""
        try:
            text = read_text(self._file, LIMIT)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError):
                return {}, f"{self._file} can't be read ({reason(error)}): no project's prompts are trusted"
            return {}, self._put_aside(str(error))
        if text is None:
            return {}, ""
        try:
            return _parse(text), ""
        except (ValueError, RecursionError) as error:
            return {}, self._put_aside(str(error))

    def grant(self, directory: str | Path, prompts: Mapping[str, str]) -> str:
        """Trust these prompts of this folder; says what was wrong with the file. Raises ``Unavailable``."""
        name, new = project_of(directory), Grant(digest(prompts), self._clock.now_ms())

        def change(grants: dict[str, Grant]) -> None:
            grants.pop(name, None)
            while len(grants) >= PROJECTS_KEPT:
                del grants[min(grants, key=lambda project: grants[project].at)]
            grants[name] = new

        return self._change(change)

    def revoke(self, directory: str | Path) -> str:
        """Trust this folder no longer; says what was wrong with the file. Raises ``Unavailable``."""
        return self._change(lambda grants: grants.pop(project_of(directory), None))

    def _change(self, change: Callable[[dict[str, Grant]], object]) -> str:
        with _alone(self._file.parent):
            grants, problem = self.load()
            if problem and os.path.lexists(self._file):  # unreadable, and not set aside: not ours to replace
                raise Unavailable(problem)
            change(grants)
            projects = {name: asdict(grant) for name, grant in grants.items()}
            write_atomic(self._file, json.dumps({"projects": projects}, indent=1) + "\n", mode=0o600)
        return problem

    def _put_aside(self, why: str) -> str:
        stamp = strftime("%Y%m%dT%H%M%S", gmtime(self._clock.now_ms() / 1000))
        try:
            aside = set_aside(self._file, stamp)
        except Unavailable as error:
            return f"{self._file} is corrupt ({why}), and {error}: no project's prompts are trusted"
        return (
            f"{self._file} was corrupt ({why}); it is kept as {aside.name}, and no project's prompts are "
            "trusted: run `reflectd trust` in each again"
        )


def _parse(text: str) -> dict[str, Grant]:
    """The grants of the file. Raises ``ValueError``."""
    found = json.loads(text)
    projects = found.get("projects") if isinstance(found, dict) else None
    if not isinstance(projects, dict):
        raise ValueError('it has no object "projects"')  # noqa: TRY004 - one kind of failure for the caller
    grants = {}
    for name, entry in projects.items():
        known = entry if isinstance(entry, dict) else {}
        mark, at = known.get("sha256"), known.get("at")
        if not (isinstance(mark, str) and _SHA256.fullmatch(mark) and type(at) is int):
            raise ValueError(f"the entry of {name[:200]!r} is not complete")
        grants[name] = Grant(mark, at)
    return grants


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two commands at once: each reads what the other wrote. The lock leaves no file."""
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(f"can't use the state folder {folder}: {reason(error)}") from error
    try:
        with suppress(OSError):  # a file system without locks: two commands at once are rare
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
