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

from ...core.errors import Unavailable
from ..jsonl import HEAD_OF_FILE, Cursor, opened
from ..past import Word, all_lines, hear, is_below, stops
from .lines import Entry, entry_of, is_bulky
from .rollout import Fold, head_of, name_of, with_sub_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ...core.transcript import Said, Stop

PROGRAM: Final = "exec"  # what begins a turn, and a session, of `codex exec`


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
    found = ((path, head(path)) for path in files(env))
    return [
        p for p, about in found if about is not None and not about.parent and is_below(about.cwd, project)
    ]


def stops_in(path: Path) -> Iterator[Stop]:
    """The stops of a session that is over, oldest first. One task at a time is held."""
    with opened(path) as fd:
        if fd < 0:
            return
        fold = Fold(lambda _: True, whole=True)
        yield from stops(
            (entry for line in all_lines(fd, is_bulky) if (entry := entry_of(line)) is not None),
            fold.feed,
            lambda: with_sub_agents(fold.transcript().named(name_of(path)), path),
            answers={"answer", "end"},
            follows={"human", "note", "compacted"},
        )


def said_in(path: Path, cursor: Cursor | None, take: Callable[[Said], object]) -> Cursor | None:
    """Hand over a person's messages since ``cursor`` (None: all). Returns the new cursor; None when there is
    no such file. Nobody typed in a sub-agent's session and in a turn that ``codex exec`` began, whose session
    a person may have begun or resumed. See ``past.hear``.
    """
    with opened(path) as fd:
        if fd < 0:
            return None
        about = head_of(os.pread(fd, HEAD_OF_FILE, 0))
        if about is None or about.parent:
            then = os.fstat(fd)
            return Cursor.here(fd, then, then.st_size)
        return hear(fd, cursor, is_bulky, _words(about.id or name_of(path), about.status), take)


def _words(session: str, by: str) -> Callable[[bytes], Word | None]:
    """Each line's part in the conversation. ``by``: the trigger of the turn, which later lines change."""

    def word_in(line: bytes) -> Word | None:
        nonlocal by
        e = entry_of(line)
        match e:
            case Entry(kind="begin"):
                by = e.status or by
            case Entry(kind="human"):
                text = "" if by == PROGRAM else e.text
                return Word("person", text, at=e.at, session=session, message=e.id)
            case Entry(kind="answer", text=text) if text:
                return Word("agent", text)
            case Entry(kind="end", status=status) if status not in {"stop", "error"}:
                return Word("stopped")
        return None

    return word_in
