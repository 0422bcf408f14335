"""Which projects' prompts the person trusts: ``<state>/trust.json``, 0600, replaced as a whole.

Trust is given to one folder (its real path) and one content: the SHA-256 of all its prompts. So it ends when
these change. A file that can't be read or understood trusts nothing. A corrupt file is renamed (I43) and a
message says where it is.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from hashlib import sha256
from time import gmtime, strftime
from typing import TYPE_CHECKING

from ..core.errors import Unavailable
from .alone import alone
from .atomic import set_aside, write_atomic
from .bounded import read_text, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..core.ports import Clock

FILE = "trust.json"  # in the state folder
LIMIT = 1_000_000  # bytes
PROJECTS_KEPT = 1_000
Grants = dict[str, "Grant"]
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Grant:
    """What the person trusted: the digest of the content, and when (epoch ms)."""

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
    """The trusted folders. The file is read each time, so the daemon sees what the command line wrote."""

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    def trusts(self, directory: str | Path, prompts: Mapping[str, str]) -> tuple[bool, str]:
        """Whether exactly these prompts of this folder are trusted, and what is wrong with ``trust.json``."""
        grants, problem = self.load()
        grant = grants.get(project_of(directory))
        return grant is not None and grant.sha256 == digest(prompts), problem

    def grant(self, directory: str | Path, prompts: Mapping[str, str]) -> str:
        """Trust these prompts of this folder. Returns what was wrong with the file. Raises
        ``Unavailable``.
        """
        name, new = project_of(directory), Grant(digest(prompts), self._clock.now_ms())

        def change(grants: Grants) -> None:
            grants.pop(name, None)
            while len(grants) >= PROJECTS_KEPT:
                del grants[min(grants, key=lambda project: grants[project].at)]
            grants[name] = new

        return self._change(change)

    def revoke(self, directory: str | Path) -> str:
        """Trust this folder no longer; says what was wrong with the file. Raises ``Unavailable``."""
        return self._change(lambda grants: grants.pop(project_of(directory), None))

    def load(self) -> tuple[Grants, str]:
        """Every grant by folder, and a message when the file can't be read or is corrupt. Never raises."""
        try:
            text = read_text(self._file, LIMIT)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError):
                return {}, f"{self._file} can't be read ({reason(error)}): no project is trusted"
            return {}, self._put_aside(str(error))
        if text is None:
            return {}, ""
        try:
            return _parse(text), ""
        except (ValueError, RecursionError) as error:
            return {}, self._put_aside(str(error))

    def _change(self, change: Callable[[Grants], object]) -> str:
        with alone(self._file.parent):
            grants, problem = self.load()
            if problem and os.path.lexists(self._file):  # unreadable, and not set aside: not ours to replace
                raise Unavailable(problem)
            change(grants)
            kept = {"projects": {name: asdict(g) for name, g in grants.items()}}
            write_atomic(self._file, json.dumps(kept, indent=1) + "\n", mode=0o600)
        return problem

    def _put_aside(self, why: str) -> str:
        stamp = strftime("%Y%m%dT%H%M%S", gmtime(self._clock.now_ms() / 1000))
        try:
            aside = set_aside(self._file, stamp)
        except Unavailable as error:
            return f"{self._file} is corrupt ({why}), and {error}: no project is trusted"
        return (
            f"{self._file} was corrupt ({why}); it is kept as {aside.name}. No project is trusted now: "
            "run `reflectd trust` in each project again"
        )


def _parse(text: str) -> Grants:
    """The grants of the file. Raises ``ValueError``."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - one kind of failure for the caller
    entries = found.get("projects")
    if not isinstance(entries, dict):
        raise ValueError('it has no object "projects"')  # noqa: TRY004 - as above
    grants: Grants = {}
    for name, entry in entries.items():
        known = entry if isinstance(entry, dict) else {}
        mark, at = known.get("sha256"), known.get("at")
        if not (isinstance(mark, str) and _SHA256.fullmatch(mark) and type(at) is int):
            raise ValueError(f"the entry of {name[:200]!r} is not complete")
        grants[name] = Grant(mark, at)
    return grants
