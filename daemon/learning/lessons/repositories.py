"""Which project a folder belongs to: its repository, the same one for all its worktrees; and what that is
called on other machines.

Blocks: call it in a thread. A folder outside git is its own project. The home folder and the root are none.
A `.git` file counts only when the repository that it names names this folder too: else any folder could say
that it is another project, and be given its lessons.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from ...core.errors import Unavailable, words
from ...files.safe import read_text

LINK_BYTES = 8_192
FILE: Final = 1_000_000  # bytes of one file of the configuration
_SECTION: Final = re.compile(r'\[remote "([^"\n]+)"\]')
_URL: Final = re.compile(r"\s*url\s*=\s*(\S+)\s*")
_SCP: Final = re.compile(r"(?:[^@/]*@)?([^:/]+):(?!/)(.+)")


class Repository(Struct, frozen=True):
    """Real paths. ``top``: the work tree. ``folder``: its git folder. ``common``: the git folder that has the
    configuration, another one only in a linked work tree.
    """

    top: Path
    folder: Path
    common: Path


def project_of(directory: str) -> str:
    """The real path that names the project; "" for a folder that is none."""
    real = os.path.realpath(directory) if directory else ""
    nothing = {"", "/", os.path.realpath(os.environ.get("HOME", "/"))}
    if real in nothing:
        return ""
    try:
        found = find(real)
    except Unavailable:
        return real
    if str(found.top) in nothing:
        return real
    if (found.top / ".git").is_dir() or _names(found.folder, found.top):
        return str(found.common)
    return str(found.top)


def repository_of(project: str) -> str:
    """A project's name on every machine: the host and the path of the remote that it was cloned from
    (``origin``, else its only one); "" when it has none. A remote in a folder names none: that folder is
    elsewhere another one. Blocks.
    """
    if not Path(project, "HEAD").is_file():
        return ""
    try:
        text = read_text(Path(project, "config"), FILE, follow=False) or ""
    except (OSError, ValueError):
        return ""
    remotes: dict[str, str] = {}
    inside = ""
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            section = _SECTION.fullmatch(line.strip())
            inside = section[1] if section else ""
        elif inside and (url := _URL.fullmatch(line)):
            remotes.setdefault(inside, _place(url[1]))
    return remotes.get("origin", "") or (next(iter(remotes.values())) if len(remotes) == 1 else "")


def _place(url: str) -> str:
    """Host and path of a repository's address, the same for each way to reach it; "" without a host."""
    try:
        parts = urlsplit(url)
        host, path = (parts.hostname or "", parts.path) if "://" in url else ("", "")
    except ValueError:
        return ""
    if "://" not in url and (found := _SCP.fullmatch(url)):
        host, path = found[1], found[2]
    path = path.strip("/").removesuffix(".git")
    return f"{host.lower()}/{path}" if host and path else ""


def _names(folder: Path, top: Path) -> bool:
    """Says whether the git folder of a linked worktree leads back to it."""
    try:
        said = read_text(folder / "gitdir", LINK_BYTES, follow=False)
    except (OSError, ValueError):
        return False
    return said is not None and os.path.realpath(said.strip()) == os.path.realpath(top / ".git")


def find(directory: str | Path) -> Repository:
    """The repository that a folder is in. Starts no program."""
    start = Path(os.path.realpath(directory))
    for top in (start, *start.parents):
        if os.path.lexists(top / ".git"):
            try:
                return _owned(_at(top))
            except (OSError, ValueError) as error:
                raise Unavailable(f"{top / '.git'} can't be used: {words(error)}") from None
    raise Unavailable(f"{start} is in no git repository")


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
