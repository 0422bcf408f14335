"""Past sessions of Codex: their files, their stops, and a person's messages in them.

Files are ``sessions/YYYY/MM/DD/rollout-<time>-<session>.jsonl``; their first lines name the folder. Files of
sub-agents are no sessions. Raises ``Unavailable`` for a file that can't be read. It blocks: call it in a
thread.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import Unavailable
from ...core.transcript import Said, Stop
from ..jsonl import HEAD_OF_FILE, Cursor, last_line, line_start, lines_of, opened
from .lines import entry_of, is_bulky
from .rollout import Fold, head_of, name_of, with_sub_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ...core.transcript import After
    from .lines import Entry

BEFORE: Final = 1 << 18  # bytes before the cursor in which the agent's words are looked for
PRIOR: Final = 6_000  # characters of the agent's words
PROGRAM: Final = "exec"  # what begins a turn, and a session, of `codex exec`
_FOLLOWS: Final = frozenset({"human", "note", "compacted"})  # kinds of lines that follow a turn


def is_named_so(path: Path) -> bool:
    """Says whether the file is a rollout, by its name."""
    return path.name.startswith("rollout-")


def sessions(env: Mapping[str, str]) -> Path:
    """The folder of all rollouts."""
    config = env.get("CODEX_HOME") or ""
    return (Path(config) if config else Path(env.get("HOME") or "/") / ".codex") / "sessions"


def files(env: Mapping[str, str]) -> list[Path]:
    """All rollouts, oldest first, those of sub-agents among them."""
    return sorted(sessions(env).glob("*/*/*/rollout-*.jsonl"), key=lambda path: path.name)


def head(path: Path) -> Entry | None:
    """The file's first words on its session; None when it says nothing or can't be read."""
    with suppress(Unavailable, OSError), opened(path) as fd:
        return head_of(os.pread(fd, HEAD_OF_FILE, 0)) if fd >= 0 else None
    return None


def files_of(project: Path, env: Mapping[str, str]) -> list[Path]:
    """The rollouts of sessions that worked in this project or in a folder inside it, oldest first."""
    roots = {str(project), os.path.realpath(project)}

    def is_in(folder: str) -> bool:
        return any(folder == root or folder.startswith(root.rstrip("/") + "/") for root in roots)

    found = ((path, head(path)) for path in files(env))
    return [path for path, about in found if about is not None and not about.parent and is_in(about.cwd)]


def stops_in(path: Path) -> Iterator[Stop]:
    """The stops of a session that is over, oldest first. One task at a time is held."""
    fold, answered, last = Fold(lambda _: True, whole=True), False, ""
    for entry in [*_entries(path), None]:
        if answered and (entry is None or entry.kind in _FOLLOWS):
            answered = False
            transcript = fold.transcript()
            turn = transcript.turn
            if turn is not None and turn.id != last and (turn.is_end or turn.error):
                last = turn.id
                transcript = replace(transcript, session=transcript.session or name_of(path))
                said = entry.text if entry is not None and entry.kind == "human" else ""
                yield Stop(with_sub_agents(transcript, path), _after(entry), said)
        if entry is not None:
            answered = answered or entry.kind in {"answer", "end"}
            fold.feed(entry)


def _entries(path: Path) -> Iterator[Entry]:
    with opened(path) as fd:
        if fd < 0:
            return
        size, at = os.fstat(fd).st_size, 0
        for line, end in lines_of(fd, 0, size, is_bulky):
            at = end
            if line and (entry := entry_of(line)) is not None:
                yield entry
        line = last_line(fd, at, size)  # nobody writes to it any more
        if line and (entry := entry_of(line)) is not None:
            yield entry


def _after(entry: Entry | None) -> After:
    """The speaker of the line that follows a turn."""
    if entry is not None and entry.kind == "human":
        return "person"
    if entry is not None and entry.kind == "note":
        return "feedback" if entry.order else "host"
    return "end"


def said_in(path: Path, cursor: Cursor | None, take: Callable[[Said], object]) -> Cursor | None:
    """Hand over a person's messages since ``cursor`` (None: all). Returns the new cursor; None when there is
    no such file. Nobody typed in a sub-agent's session and in a turn that ``codex exec`` began, whose session
    a person may have begun or resumed.

    A file that only grew is read from the cursor on; one that was replaced or rewritten is read anew, so a
    caller that counts must know messages by their ids. A last line without its end may come a second time.
    """
    with opened(path) as fd:
        if fd < 0:
            return None
        then, at, count = os.fstat(fd), 0, 0
        about = head_of(os.pread(fd, HEAD_OF_FILE, 0))
        if about is None or about.parent:
            return Cursor.here(fd, then, then.st_size)
        size, heard = then.st_size, _Heard(about.status)
        if cursor is not None and cursor.only_grew(fd):
            at, count = cursor.at, cursor.lines
            for line, _ in lines_of(fd, line_start(fd, max(0, at - BEFORE), at), at, is_bulky):
                heard.hear(entry_of(line) if line else None)
        for line, end in lines_of(fd, at, size, is_bulky):
            at, count = end, count + 1
            entry = entry_of(line) if line else None
            if entry is not None and entry.kind == "human" and entry.text.strip() and heard.by != PROGRAM:
                words = "\n\n".join(heard.prior)[-PRIOR:]
                said = Said(
                    entry.text, words, interrupted=heard.stopped, at=entry.at, message=entry.id, line=count
                )
                take(replace(said, session=about.id or name_of(path)))
            heard.hear(entry)
        return Cursor.here(fd, then, at, count)


class _Heard(Struct):
    """The lines before one. ``by``: the trigger of the turn. ``prior``: the agent's last words. ``stopped``:
    the person stopped it.
    """

    by: str
    prior: list[str] = []
    stopped: bool = False

    def hear(self, entry: Entry | None) -> None:
        """The next line."""
        match entry.kind if entry is not None else "":
            case "begin" if entry is not None:
                self.by = entry.status or self.by
            case "human":
                self.prior, self.stopped = [], False
            case "answer" if entry is not None and entry.text:
                self.prior, self.stopped = [*self.prior, entry.text][-4:], False
            case "end" if entry is not None:
                self.stopped = entry.status not in {"stop", "error"}
