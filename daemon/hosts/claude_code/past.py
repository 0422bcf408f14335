"""Past sessions of Claude Code: their files, their stops, and a person's messages in them.

Files are ``projects/<folder>/<session>.jsonl``. ``<folder>`` is the path in which a session works, with ``-``
for all but letters and digits, so two paths may share one. Files of sub-agents are no sessions. Raises
``Unavailable`` for a file that can't be read. It blocks: call it in a thread.
"""

from __future__ import annotations

import os
import re
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable
from ...core.transcript import Said
from ..jsonl import opened
from ..past import PRIOR, all_lines, hear, is_below, stops
from .branch import Bounds, Branch
from .lines import DENIED, entry_of, is_bulky
from .transcript import folder_of, with_sub_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ...core.transcript import Stop
    from ..jsonl import Cursor
    from .lines import Entry

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


# What a person said, with the agent's words before it. Nearly all of a file is work of the agent, so only
# lines that a person may have written are decoded, and of the agent's lines only those before something that
# was said. Left out: commands, answers to a question of the agent, and prompts that a program gave to
# ``claude -p``.

ANSWERS: Final = 12  # lines of the agent that are kept until a person says something
LONGEST: Final = 1 << 20  # bytes of such a line
_SAID: Final = (b'"userFeedback"', b"the user said:")
_ACTS: Final = ("command", "file_path", "path", "url", "pattern")


def said_in(path: Path, cursor: Cursor | None, take: Callable[[Said], object]) -> Cursor | None:
    """Hand over a person's messages since ``cursor`` (None: all). Returns the new cursor; None when there is
    no such file. See ``past.hear``.
    """
    with opened(path) as fd:
        return hear(fd, cursor, is_bulky, _History(take)) if fd >= 0 else None


class _History:
    """The lines of a file as they come. ``lines``: how many there were."""

    def __init__(self, take: Callable[[Said], object]) -> None:
        self.lines = 0
        self._take = take
        self._answers: deque[bytes] = deque(maxlen=ANSWERS)  # those with words
        self._call = b""  # the last line with a call
        self._interrupted = False

    def look_back(self, line: bytes) -> None:
        """A line that was read before: only the agent's words and an interrupt are kept."""
        if (entry := self._read(line)) is not None:
            self._settle(entry)

    def take(self, line: bytes) -> None:
        """A new line; a person's words in it are handed over."""
        self.lines += 1
        entry = self._read(line)
        if entry is None:
            return
        refused = entry.kind == "result" and any(r.error.startswith(DENIED) for r in entry.results)
        if ((entry.kind == "human" and not entry.command) or refused) and entry.text.strip():
            said = Said(
                entry.text,
                self._prior(refused=refused),
                refusal=refused,
                interrupted=self._interrupted,
                at=entry.at,
                session=entry.session,
                message=entry.uuid,
                line=self.lines,
            )
            self._take(said)
        self._settle(entry)

    def _read(self, line: bytes) -> Entry | None:
        """A line that a person may have written, as an entry; the agent's lines are kept as they are."""
        whose = _whose(line) if line else ""
        if whose == "agent":
            self._interrupted = False
            if len(line) <= LONGEST:
                self._answers.extend([line] if b'"type":"text"' in line else [])
                self._call = line if b'"type":"tool_use"' in line else self._call
        entry = entry_of(line) if whose == "person" else None
        if entry is not None and entry.kind == "answer":
            self._interrupted = False
            self._answers.extend([line] if entry.text else [])
        return entry

    def _settle(self, entry: Entry) -> None:
        if entry.kind == "interrupt":
            self._interrupted = True
        elif entry.kind == "human":
            self._answers.clear()
            self._interrupted = False

    def _prior(self, *, refused: bool) -> str:
        """The agent's last words, and with a refused call its purpose."""
        texts: list[str] = []
        for line in reversed(self._answers):
            entry = entry_of(line)
            if entry is not None and entry.kind == "answer":
                texts.insert(0, entry.text.strip())
                if sum(map(len, texts)) >= PRIOR:
                    break
        call = entry_of(self._call) if refused and self._call else None
        given = ((use.tool, use.input.get(name)) for use in (call.uses if call else ()) for name in _ACTS)
        acts = [f"{tool}: {value}"[:300] for tool, value in given if isinstance(value, str)]
        return "\n\n".join([*texts, *(["\n".join(acts)] if acts else [])])[-PRIOR:]


def _whose(line: bytes) -> str:
    """The speaker of a line, by a look at its bytes: ``agent``, ``person`` (also a refusal), "" for none of
    them. Quotes inside a text of the line are escaped, so they are not found.
    """
    if b'"type":"user"' in line:
        if b'"type":"tool_result"' in line:
            return "person" if b'"is_error":true' in line and any(words in line for words in _SAID) else ""
        return "" if b'"promptSource":"sdk"' in line else "person"
    if b'"type":"assistant"' in line:
        return "agent"
    return "person" if b'"queued_command"' in line or b'"type":"' not in line else ""
