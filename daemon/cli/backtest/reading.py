"""Finds the past sessions for ``reflectd backtest``, and reads the stops of one after the other.

They are all transcripts of Claude Code and all sessions of an opencode that is open, or what is in the folder
that the person names: transcripts, and what `opencode export` prints. Holds one session at a time. What can't
be read raises ``ReflectdError``.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from ...core.errors import ReflectdError, UserError, words
from ..render import plain
from ..terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ...core.transcript import Stop
    from ...paths import Paths
    from .past import Past

    Source: TypeAlias = "File | Past"

EXPORT: Final = ".json"
TRANSCRIPT: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class File:
    """A file with a session, as it is now. ``changed``: ns. ``name``: its path as text, also where that is no
    UTF-8.
    """

    path: Path
    size: int
    changed: int

    @property
    def name(self) -> str:
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")

    @property
    def stem(self) -> str:
        """What it is called while it is read."""
        return self.path.stem


def sessions_of(env: Mapping[str, str], where: Paths, folder: str | None, since_ms: int = 0) -> list[Source]:
    """The sessions, oldest first; those that nobody used since then are left out. An opencode that does not
    answer is told of, and left out too. Raises ``UserError`` when there are none.
    """
    from .past import past_of

    past: list[Past] = []
    try:
        past = past_of(where, since_ms) if folder is None else []
    except ReflectdError as e:
        say(f"opencode's sessions are left out: {plain(e)}", sys.stderr)
    try:
        files = files_of(env, folder, since_ms)
    except UserError:
        if not past:
            raise
        files = []
    return sorted([*files, *past], key=lambda s: (s.changed, s.name))


def files_of(env: Mapping[str, str], folder: str | None, since_ms: int = 0) -> list[File]:
    """The files, oldest first; those that nobody wrote to since then are left out. Raises ``UserError`` when
    there are none.
    """
    from ...hosts.claude_code.past import projects

    place = Path(folder).expanduser() if folder is not None else projects(env)
    if folder is not None and not place.exists():
        raise UserError(f"there is no {place}")
    suffixes = (TRANSCRIPT,) if folder is None else (TRANSCRIPT, EXPORT)
    closed: list[OSError] = []
    paths = [place] if place.is_file() else _below(place, suffixes, closed.append)
    found = [f for path in paths if (f := _file(path)) is not None]
    chosen = [f for f in found if f.changed >= since_ms * 1_000_000]
    for error in closed:
        if isinstance(error, FileNotFoundError):
            continue  # a host that was never used, or a folder that went away meanwhile
        if str(error.filename) == str(place):
            raise UserError(f"{place} can't be read: {error.strerror}")
        say(f"left out: {plain(error.filename)}: {error.strerror}", sys.stderr)
    if not chosen:
        newer = " so new" if found else ""
        raise UserError(
            f"there is no session{newer} in {place}: it may hold Claude Code's transcripts (*.jsonl), and "
            "sessions of opencode as `opencode export SESSION > SESSION.json` writes them. Without a folder "
            "an opencode that is open beside a running daemon is asked for its sessions, too"
        )
    return sorted(chosen, key=lambda f: (f.changed, f.name))


def _below(place: Path, suffixes: tuple[str, ...], on_closed: Callable[[OSError], None]) -> Iterator[Path]:
    """``on_closed``: told of each folder that can't be read."""
    for folder, inner, names in os.walk(place, onerror=on_closed):
        inner[:] = sorted(name for name in inner if name != "subagents")
        for name in names:
            if name.endswith(suffixes) and not name.startswith(("agent-", ".")):
                yield Path(folder, name)


def _file(path: Path) -> File | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return File(path, found.st_size, found.st_mtime_ns)


def stops_of(file: Source) -> tuple[str, Iterator[Stop]]:
    """The host, and the stops of the session, oldest first. Raises ``ReflectdError``."""
    if not isinstance(file, File):
        from .past import stops_of_past

        return "opencode", stops_of_past(file)
    if file.path.suffix == TRANSCRIPT:
        from ...hosts.claude_code.past import stops_in

        return "claude-code", stops_in(file.path)
    return "opencode", _of_export(file)


def _of_export(file: File) -> Iterator[Stop]:
    import msgspec

    from ...files.cases import read_file
    from ...hosts.opencode.past import stops_of_export

    try:
        found = msgspec.json.decode(read_file(file.path))
        for stop in stops_of_export(found):
            named = stop.transcript.session or file.path.stem
            yield replace(stop, transcript=replace(stop.transcript, session=named))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise UserError(f"it is not what `opencode export` prints: {e}") from None


def problem_of(file: Source, error: Exception) -> str:
    """Why a session has no stops, for a person. One that we fail to read must not cost the others."""
    if isinstance(error, ReflectdError | OSError):
        return words(error).removeprefix(f"{file.path}: " if isinstance(file, File) else "")
    return f"a bug of reflectd: {type(error).__name__}: {error}"
