"""What a person said in a whole transcript file, with the agent's words before it, read onwards.

A session's file may be huge and nearly all of it is work of the agent, so only lines that a person may have
written are decoded, and of the agent's lines only those before something that was said. Which lines a person
typed is said by ``lines`` (``design/claude-transcripts.md``). Left out besides: commands, answers to a
question of the agent, and prompts that a program gave to ``claude -p``, which nobody need have typed.

A file that only grew is read from where reading stopped; one that was replaced, cut or rewritten is read
anew, so who counts must know messages by their ids. A last line without its end may come a second time.
Holds one block of the file and a few lines. Raises ``Unavailable``. It blocks.
"""

from __future__ import annotations

import os
import re
from collections import deque
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ...core.errors import Unavailable
from ...core.stop import Stop
from ...core.transcript import Said
from ..jsonl import HEAD_OF_FILE, MAX_LINE, each_line, line_start, opened
from .branch import Bounds, Branch
from .lines import DENIED, HEAD, TYPE_MARK, entry_of, is_bulky
from .transcript import folder_in, with_sub_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ...core.stop import After
    from .lines import Entry, Use

# Where Claude Code keeps the transcripts of its sessions: ``projects/<folder>/<session>.jsonl``.
#
# ``<folder>`` is the path in which a session works, with ``-`` for all but letters and digits, so two paths
# may share one. Files of sub-agents are no sessions. Only names are looked at, and of a folder that may
# belong to another project the first lines of one file. What can't be read is left out.

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


# The stops in a transcript of Claude Code that is over, each as the file was at that moment.
#
# The file is read once, from its beginning; a stop is the branch before the line that follows it, so what
# came later (a rewind, a compaction) is not in it. Holds one task at a time. A line that can't be read is
# left out, a file that is not there has no stops. Raises ``Unavailable``. It blocks.

STEP: Final = 4 << 20  # bytes that are read before the stops in them are handed over
_RAN: Final = "<bash-input"
_ENDS: Final = frozenset({"human", "note", "boundary", "summary"})  # kinds of lines that follow a turn


def stops_in(path: Path) -> Iterator[Stop]:
    """The stops of the session, oldest first."""
    with opened(path) as fd:
        if fd < 0:
            return
        size, at = os.fstat(fd).st_size, 0
        reading = _Reading(path, folder_in(os.pread(fd, HEAD_OF_FILE, 0)))
        while at < size:
            end = at
            step = STEP
            while end == at and at + step < size:  # a line may be longer than a step
                end = each_line(fd, at, at + step, reading.take)[0]
                step *= 4
            if end == at:
                end = each_line(fd, at, size, reading.take)[0]
                if end < size <= end + MAX_LINE:
                    reading.take(os.pread(fd, size - end, end), 0)  # nobody writes to it any more
                at = size
            else:
                at = end
            yield from reading.found()
        reading.close()
        yield from reading.found()


class _Reading:
    """The branch, and the stops that were found and not handed over yet."""

    def __init__(self, path: Path, directory: str) -> None:
        self._path = path
        self._directory = directory
        self._branch = Branch(lambda _: True, Bounds(), whole=True)
        self._answered = False  # since the last stop
        self._turn = ""
        self._found: list[Stop] = []

    def found(self) -> list[Stop]:
        """What was found since this was asked last."""
        found, self._found = self._found, []
        return found

    def take(self, line: bytes, _: int) -> None:
        """One line."""
        if not line.startswith(b"{") or is_bulky(line[:HEAD]) or (entry := entry_of(line)) is None:
            return
        if self._answered and entry.kind in _ENDS:
            self._stop(_after(entry), entry.text if entry.kind == "human" else "")
        self._answered = self._answered or entry.kind in {"answer", "interrupt"}
        self._branch.feed(entry)

    def close(self) -> None:
        """The file is over."""
        if self._answered:
            self._stop("end", "")

    def _stop(self, after: After, said: str) -> None:
        """A stop, if the last answer ended its turn: what a person types while the agent works ends none."""
        self._answered = False
        found = self._branch.transcript(self._directory)
        turn = found.turn
        if turn is None or turn.id == self._turn or not (turn.is_end or turn.error):
            return
        self._turn = turn.id
        found = with_sub_agents(replace(found, session=found.session or self._path.stem), self._path)
        self._found.append(Stop(found, after, said))


def _after(entry: Entry) -> After:
    """Who speaks in the line that follows a turn. A compaction and a `!command` are nobody's word."""
    if entry.kind == "human":
        return "person"
    if entry.kind == "note" and not entry.text.lstrip().startswith(_RAN):
        return "feedback" if entry.order else "host"
    return "end"


BEFORE: Final = 1 << 18  # bytes before the cursor in which the agent's words are looked for
ANSWERS: Final = 12  # lines of the agent that are kept until a person says something
LONGEST: Final = 1 << 20  # bytes of such a line
PRIOR: Final = 6_000  # characters of the agent's words
_MARKED: Final = 64  # bytes before the cursor by which a rewritten file is told
_FAR: Final = 2_048  # bytes of a line in which its type stands in every version
_FAILED: Final = b'"is_error":true'
_SAID: Final = (b'"userFeedback"', b"the user said:")
_BY_PROGRAM: Final = b'"promptSource":"sdk"'
_ACTS: Final = ("command", "file_path", "path", "url", "pattern")


class Cursor(NamedTuple):
    """Where reading stopped. ``file``: the inode. ``size`` and ``mtime_ns``: of the file then. ``at``: where
    the next line begins. ``lines``: how many come before it. ``mark``: a digest of what stands before it.
    """

    file: int
    size: int
    mtime_ns: int
    at: int
    lines: int
    mark: str

    @classmethod
    def of(cls, kept: object) -> Cursor | None:
        """A cursor that was stored as a list; None for anything else."""
        kinds = (int, int, int, int, int, str)
        if not isinstance(kept, list) or [type(value) for value in kept] != list(kinds):
            return None
        return cls(*kept)


def said_in(path: Path, cursor: Cursor | None, take: Callable[[Said], object]) -> Cursor | None:
    """Hand over what a person said since ``cursor`` (None: ever). Returns the new cursor; None when there is
    no such file.
    """
    with opened(path) as fd:
        if fd < 0:
            return None
        found = os.fstat(fd)
        history = _History(take)
        at, lines = 0, 0
        if cursor is not None and _only_grew(fd, cursor, found):
            at, lines = cursor.at, cursor.lines
            each_line(fd, line_start(fd, max(0, at - BEFORE), at), at, history.look_back)
        history.lines = lines
        end, more = each_line(fd, at, found.st_size, history.take)
        if (
            end < found.st_size <= end + MAX_LINE
            and (tail := os.pread(fd, found.st_size - end, end))[:1] == b"{"
        ):
            history.take(tail, more)  # perhaps it is still being written; the cursor stays before it
        return Cursor(found.st_ino, found.st_size, found.st_mtime_ns, end, lines + more, _mark(fd, end))


def is_unchanged(cursor: Cursor, found: os.stat_result) -> bool:
    """Whether the file is as it was when reading stopped."""
    return (cursor.file, cursor.size, cursor.mtime_ns) == (found.st_ino, found.st_size, found.st_mtime_ns)


def _only_grew(fd: int, cursor: Cursor, found: os.stat_result) -> bool:
    same = cursor.file == found.st_ino and found.st_size >= cursor.at
    return same and _mark(fd, cursor.at) == cursor.mark


def _mark(fd: int, at: int) -> str:
    before = os.pread(fd, min(_MARKED, at), max(0, at - _MARKED))
    return blake2b(before, digest_size=8).hexdigest()


class _History:
    """The lines of a file as they come. ``lines``: how many lines were read before this time."""

    def __init__(self, take: Callable[[Said], object]) -> None:
        self.lines = 0
        self._take = take
        self._answers: deque[bytes] = deque(maxlen=ANSWERS)  # those with words
        self._call = b""  # the last line with a call
        self._interrupted = False

    def look_back(self, line: bytes, _: int) -> None:
        """A line that was read before: only what the agent said, and whether it was stopped, is kept."""
        if (kind := _kind(line)) == "answer":
            self._heard(line)
        elif kind and (entry := entry_of(line)) is not None:
            self._settle(entry, line)

    def take(self, line: bytes, number: int) -> None:
        """A new line; what a person said in it is handed over."""
        if (kind := _kind(line)) == "answer":
            self._heard(line)
        elif kind and (entry := entry_of(line)) is not None:
            typed = entry.kind == "human" and not entry.command
            refused = entry.kind == "result" and any(r.error.startswith(DENIED) for r in entry.results)
            if (typed or refused) and entry.text.strip():
                self._take(
                    Said(
                        entry.text,
                        self._prior(refused=refused),
                        refusal=refused,
                        interrupted=self._interrupted,
                        at=entry.at,
                        session=entry.session,
                        message=entry.uuid,
                        line=self.lines + number + 1,
                    )
                )
            self._settle(entry, line)

    def _heard(self, line: bytes) -> None:
        self._interrupted = False
        if len(line) > LONGEST:
            return
        if b'"type":"text"' in line:
            self._answers.append(line)
        if b'"type":"tool_use"' in line:
            self._call = line

    def _settle(self, entry: Entry, line: bytes) -> None:
        if entry.kind == "answer":
            self._interrupted = False
            self._answers.extend([line] if entry.text else [])
        elif entry.kind == "interrupt":
            self._interrupted = True
        elif entry.kind == "human":
            self._answers.clear()
            self._interrupted = False

    def _prior(self, *, refused: bool) -> str:
        """What the agent said last, and with a refused call what it wanted to do."""
        found: list[str] = []
        size = 0
        for line in reversed(self._answers):
            entry = entry_of(line)
            if entry is None or entry.kind != "answer":
                continue
            found.append(entry.text.strip())
            size += len(entry.text)
            if size >= PRIOR:
                break
        call = entry_of(self._call) if refused and self._call else None
        wanted = _acts(call.uses) if call is not None else ""
        return "\n\n".join([*reversed(found), *([wanted] if wanted else [])])[-PRIOR:]


def _acts(uses: tuple[Use, ...]) -> str:
    given = (
        f"{u.tool}: {value}" for u in uses for name in _ACTS if isinstance(value := u.input.get(name), str)
    )
    return "\n".join(text[:300] for text in given)


def _kind(line: bytes) -> str:
    """Whose line it is, by a look at its bytes: ``answer``, ``person``, ``refusal``, "" for none of them, or
    ``any`` where that can't be told.

    A type that stands in a text of the line has its quotes escaped, so it is not found.
    """
    at = line.find(TYPE_MARK, 0, HEAD)
    if at < 0:
        at = line.find(TYPE_MARK, HEAD, _FAR)
    if at < 0:
        return "any"
    kind = line[at + len(TYPE_MARK) : at + len(TYPE_MARK) + 20].partition(b'"')[0]
    if kind in {b"message", b"assistant", b"tool_use", b"thinking"}:
        return "answer"
    if kind in {b"user", b"text", b"image", b"document", b"tool_result"}:
        return _of_person(line, at)
    return "person" if kind in {b"queued_command", b"attachment"} and b'"queued_command"' in line else ""


def _of_person(line: bytes, at: int) -> str:
    if line.find(b'"tool_result"', max(0, at - 9), max(0, at) + HEAD) >= 0:
        return "refusal" if _FAILED in line and any(words in line for words in _SAID) else ""
    if b'"type":"user"' not in line:
        return "answer" if b'"type":"assistant"' in line else ""
    return "" if _BY_PROGRAM in line else "person"
