"""Where a scan reads: Claude Code's sessions of a project, or files and folders that a person names.

A file of opencode is what ``opencode export`` prints. Nothing is read here but names.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ...core.errors import UserError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

EXPORT: Final = ".json"


class Source(NamedTuple):
    """A file, and what is known of it without opening it."""

    path: str
    found: os.stat_result

    @property
    def is_export(self) -> bool:
        """Whether it is one of opencode."""
        return self.path.endswith(EXPORT)


def of_project(project: Path, env: Mapping[str, str], *, everywhere: bool) -> list[Source]:
    """Claude Code's sessions of the project, or of all projects."""
    from ...hosts.claude_code.sessions import all_folders, files_in, folders_of

    folders = all_folders(env) if everywhere else folders_of(project, env)
    return _sources(files_in(folders))


def named(paths: Sequence[str]) -> list[Source]:
    """These files, and those in these folders. Raises ``UserError`` for a path that is neither."""
    from ...hosts.claude_code.sessions import SUFFIX, files_in

    found: list[Source] = []
    for name in paths:
        path = Path(name).expanduser()
        if path.is_dir():
            exports = sorted(p for p in path.iterdir() if p.suffix == EXPORT)
            found += [
                *_sources(files_in([path])),
                *(Source(str(p), p.stat()) for p in exports if p.is_file()),
            ]
        elif path.is_file() and path.suffix in {SUFFIX, EXPORT}:
            found.append(Source(str(path.absolute()), path.stat()))
        else:
            raise UserError(
                f"{name} is no transcript (.jsonl), no export of opencode (.json) and no folder of them"
            )
    return found


def _sources(entries: Iterable[os.DirEntry[str]]) -> list[Source]:
    found: list[Source] = []
    for entry in entries:
        try:
            if entry.is_file():
                found.append(Source(entry.path, entry.stat()))
        except OSError:
            continue
    return found
