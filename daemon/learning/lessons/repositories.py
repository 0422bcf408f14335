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

from ...files.safe import read_text

FILE: Final = 1_000_000  # bytes of one file of the configuration
_SECTION: Final = re.compile(r'\[remote "([^"\n]+)"\]')
_URL: Final = re.compile(r"\s*url\s*=\s*(\S+)\s*")
_SCP: Final = re.compile(r"(?:[^@/]*@)?([^:/]+):(?!/)(.+)")


def project_of(directory: str) -> str:
    """The real path that names the project: the repository's git folder, the work tree where that folder
    does not name it, the folder itself where not all of it is this user's; "" for a folder that is none.
    """
    real = os.path.realpath(directory) if directory else ""
    nothing = {"", "/", os.path.realpath(os.environ.get("HOME", "/"))}
    if real in nothing:
        return ""
    top = next((at for at in (Path(real), *Path(real).parents) if os.path.lexists(at / ".git")), None)
    if top is None or str(top) in nothing:
        return real
    dot = folder = top / ".git"
    try:
        if not dot.is_dir():
            text = read_text(dot, FILE, follow=False) or ""
            if not text.startswith("gitdir: "):
                return real
            folder = top / text.removeprefix("gitdir: ").rstrip("\r\n")
        folder = Path(os.path.realpath(folder))
        other = read_text(folder / "commondir", FILE, follow=False)
        common = folder if other is None else Path(os.path.realpath(folder / other.rstrip("\r\n")))
        if any(path.lstat().st_uid != os.geteuid() for path in (top, dot, folder, common)):
            return real
        back = "" if dot.is_dir() else read_text(folder / "gitdir", FILE, follow=False) or ""
    except (OSError, ValueError):
        return real
    leads_back = dot.is_dir() or (back and os.path.realpath(back.strip()) == os.path.realpath(dot))
    return str(common if leads_back else top)


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
