"""Where Claude Code keeps the transcripts of its sessions: ``projects/<folder>/<session>.jsonl``.

``<folder>`` is the path in which a session works, with ``-`` for all but letters and digits, so two paths may
share one. Files of sub-agents are no sessions. Only names are looked at, and of a folder that may belong to
another project the first lines of one file. What can't be read is left out.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable
from .reading import HEAD_OF_FILE, opened
from .transcript import folder_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SUFFIX: Final = ".jsonl"


def projects(env: Mapping[str, str]) -> Path:
    """The folder of all projects' transcripts."""
    config = env.get("CLAUDE_CONFIG_DIR") or ""
    return (Path(config) if config else Path(env.get("HOME") or "/") / ".claude") / "projects"


def named(project: str | os.PathLike[str]) -> str:
    """The name of the folder for sessions that work in ``project``."""
    return re.sub(r"[^A-Za-z0-9]", "-", os.fspath(project))


def folders_of(project: Path, env: Mapping[str, str]) -> list[Path]:
    """The folders with sessions of this project, and of folders inside it."""
    roots = {str(project), os.path.realpath(project)}
    names = {named(root) for root in roots}
    found: list[Path] = []
    for entry in _entries(projects(env)):
        inside = any(entry.name.startswith(f"{name}-") for name in names)
        if entry.name in names or (inside and _works_in(Path(entry.path), roots)):
            found.append(Path(entry.path))
    return sorted(found)


def all_folders(env: Mapping[str, str]) -> list[Path]:
    """The folders of all projects."""
    return sorted(Path(entry.path) for entry in _entries(projects(env)))


def files_in(folders: Iterable[Path]) -> list[os.DirEntry[str]]:
    """The session files in these folders, by name."""
    found = [
        entry
        for folder in folders
        for entry in _entries(folder)
        if entry.name.endswith(SUFFIX) and not entry.name.startswith("agent-")
    ]
    return sorted(found, key=lambda entry: entry.path)


def _works_in(folder: Path, roots: Iterable[str]) -> bool:
    for entry in files_in([folder])[:3]:
        works = ""
        with suppress(Unavailable), opened(Path(entry.path)) as fd:
            works = folder_in(os.pread(fd, HEAD_OF_FILE, 0)) if fd >= 0 else ""
        if works:
            return any(works == root or works.startswith(root.rstrip("/") + "/") for root in roots)
    return False


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []
