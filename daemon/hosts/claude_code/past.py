"""Past sessions of Claude Code: their files, their stops, and a person's messages in them.

Files are ``projects/<folder>/<session>.jsonl``. ``<folder>`` is the path in which a session works, with ``-``
for all but letters and digits, so two paths may share one. Files of sub-agents are no sessions. Raises
``Unavailable`` for a file that can't be read. It blocks: call it in a thread.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable
from ..jsonl import opened
from ..past import Word, all_lines, hear, is_below, stops
from .branch import Bounds, Branch
from .lines import DENIED, Entry, entry_of, is_bulky
from .transcript import folder_of, with_sub_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ...core.transcript import Said, Stop
    from ..jsonl import Cursor

SUFFIX: Final = ".jsonl"


def projects(env: Mapping[str, str]) -> Path:
    """The folder of all projects' transcripts."""
    config = env.get("CLAUDE_CONFIG_DIR") or ""
    return (Path(config) if config else Path(env.get("HOME") or "/") / ".claude") / "projects"


def named(project: str | os.PathLike[str]) -> str:
    """The name of the folder for sessions that work in ``project``."""
    return re.sub(r"[^A-Za-z0-9]", "-", os.fspath(project))


def folders_of(project: Path, env: Mapping[str, str]) -> list[Path]:
    """The folders with sessions of this project, and of folders inside it. Of one that may belong to another
    project the first lines of a file are looked at.
    """
    names = {named(project), named(os.path.realpath(project))}

    def works_in(folder: Path) -> bool:
        for entry in files_in([folder])[:3]:
            works = ""
            with suppress(Unavailable), opened(Path(entry.path)) as fd:
                works = folder_of(fd) if fd >= 0 else ""
            if works:
                return is_below(works, project)
        return False

    return [
        folder
        for folder in all_folders(env)
        if folder.name in names
        or (any(folder.name.startswith(f"{name}-") for name in names) and works_in(folder))
    ]


def all_folders(env: Mapping[str, str]) -> list[Path]:
    """The folders of all projects."""
    return sorted(Path(entry.path) for entry in _entries(projects(env)))


def files_in(folders: Iterable[Path]) -> list[os.DirEntry[str]]:
    """The session files in these folders, by name."""
    entries = (entry for folder in folders for entry in _entries(folder))
    files = (e for e in entries if e.name.endswith(SUFFIX) and not e.name.startswith("agent-"))
    return sorted(files, key=lambda entry: entry.path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def stops_in(path: Path) -> Iterator[Stop]:
    """The stops of a session that is over, oldest first. One task at a time is held."""
    with opened(path) as fd:
        if fd < 0:
            return
        folder, branch = folder_of(fd), Branch(lambda _: True, Bounds(), whole=True)
        yield from stops(
            (entry for line in all_lines(fd, is_bulky) if (entry := entry_of(line)) is not None),
            branch.feed,
            lambda: with_sub_agents(branch.transcript(folder).named(path.stem), path),
            answers={"answer", "interrupt"},
            follows={"human", "note", "boundary", "summary"},
        )


_ACTS: Final = ("command", "file_path", "path", "url", "pattern")


def said_in(path: Path, cursor: Cursor | None, take: Callable[[Said], object]) -> Cursor | None:
    """Hand over a person's messages since ``cursor`` (None: all), without commands, answers to a question of
    the agent, and prompts that a program gave to ``claude -p``. Returns the new cursor; None when there is no
    such file. See ``past.hear``.
    """
    with opened(path) as fd:
        return hear(fd, cursor, is_bulky, _word_in, take) if fd >= 0 else None


def _word_in(line: bytes) -> Word | None:
    """A line's part in the conversation; most of a file are results of calls that worked, which have none."""
    if (
        b'"type":"tool_result"' in line and b'"is_error":true' not in line
    ) or b'"promptSource":"sdk"' in line:
        return None
    entry = entry_of(line)
    match entry:
        case Entry(kind="answer"):
            given = ((use.tool, use.input.get(name)) for use in entry.uses for name in _ACTS)
            acts = "\n".join(f"{tool}: {value}"[:300] for tool, value in given if isinstance(value, str))
            return Word("agent", entry.text, acts=acts)
        case Entry(kind="interrupt"):
            return Word("stopped")
        case Entry(kind="human" | "result"):
            refused = any(result.error.startswith(DENIED) for result in entry.results)
            if entry.kind == "result" and not refused:
                return None
            text = "" if entry.command else entry.text
            return Word("person", text, refused, "", entry.at, entry.session, entry.uuid)
    return None
