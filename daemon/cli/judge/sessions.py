"""Finds past sessions: Claude Code's transcripts, exports of opencode, and the sessions of an open opencode,
which the daemon asks for.

One session is held at a time. A session that can't be read raises ``ReflectdError``; a folder that can't be
read is told of and left out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from ...client import request
from ...core.errors import BadReply, ReflectdError, Unavailable, UserError, words
from ...core.transcript import Stop
from ...files.project import upward
from ...paths import find_socket
from ..render import plain
from ..terminal import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.question import Texts
    from ...paths import Paths
    from ...replay.cases import Loaded

EXPORT: Final = ".json"
TRANSCRIPT: Final = ".jsonl"
OLD: Final = (
    "the plugin in that opencode is older than this reflectd: close opencode, open it, and run this again"
)


# --- one session --------------------------------------------------------------------------------------------


def load_transcript(path: Path, templates: Callable[[str], Texts]) -> Loaded:
    """The case of the session's last turn. Raises ``UserError``."""
    from ...files.project import project_rule_lines
    from ...hosts.claude_code.transcript import TranscriptReader
    from ...hosts.codex.past import is_named_so
    from ...hosts.codex.rollout import RolloutReader
    from ...replay.cases import of_transcript

    if not path.exists():
        raise UserError(f"can't read {path}: there is no such file")
    if is_named_so(path):
        transcript = RolloutReader(path, is_ours=lambda _: True).read(closed=True)
    else:
        transcript = TranscriptReader(path, is_ours=lambda _: True).read(closed=True)
    return of_transcript(transcript, str(path), templates, project_rule_lines(transcript.directory))


def newest(env: Mapping[str, str], folder: Path, templates: Callable[[str], Texts]) -> Loaded:
    """The newest session of this folder's project that can be judged. Newer ones are told of, each with a
    reason. Raises ``UserError`` when none can be judged.
    """
    from ...hosts.claude_code.past import files_in, named, projects
    from ...hosts.codex import past as codex

    folders = upward(folder)
    found = [Path(entry.path) for entry in files_in(projects(env) / named(place) for place in folders)]
    found += codex.files_of(folders[-1], env)
    if not found:
        raise UserError(
            f"there is no session of {folder} in {projects(env)}, nor in {codex.sessions(env)}. For one of "
            "opencode: `opencode export SESSION > FILE`, then `reflectd judge FILE`"
        )
    skipped: list[str] = []
    for path in sorted(found, key=_changed, reverse=True):
        try:
            loaded = load_transcript(path, templates)
        except Exception as e:  # noqa: BLE001 - a file that we fail to read must not cost the others
            skipped.append(f"{path}: {_why(e, path)}")
            continue
        for line in skipped:
            say(f"reflectd: {plain(line)}", sys.stderr)
        return loaded
    raise UserError(f"no session of {folder} can be judged; the newest, {skipped[0]}")


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


# --- all of them --------------------------------------------------------------------------------------------


class Session(Struct, frozen=True):
    """A past session. ``name``: its path, also where that is no UTF-8, or its id in opencode. ``changed``:
    ns. ``read``: its stops, oldest first.
    """

    name: str
    host: str
    changed: int
    size: int
    read: Callable[[], Iterator[Stop]]

    def why(self, error: Exception) -> str:
        """Why it has no stops, for a person."""
        return _why(error, self.name)


def sessions_of(env: Mapping[str, str], where: Paths, folder: str | None, since_ms: int = 0) -> list[Session]:
    """The sessions, oldest first; those that nobody used since then are left out. An opencode that does not
    answer is told of, and left out too. Raises ``UserError`` when there are none.
    """
    past: list[Session] = []
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


def files_of(env: Mapping[str, str], folder: str | None, since_ms: int = 0) -> list[Session]:
    """Those in files, oldest first; Claude Code's and Codex's all where no folder is named. Raises
    ``UserError`` when there are none.
    """
    from ...hosts.claude_code.past import all_folders, files_in, projects
    from ...hosts.codex import past as codex

    if folder is None:
        place = projects(env)
        paths = [Path(entry.path) for entry in files_in(all_folders(env))] + codex.files(env)
    else:
        place = Path(folder).expanduser()
        if not place.exists():
            raise UserError(f"there is no {place}")
        paths = [place] if place.is_file() else [path for path in place.rglob("*") if _may_be_one(path)]
    found = [s for path in paths if (s := _file(path)) is not None]
    chosen = [s for s in found if s.changed >= since_ms * 1_000_000]
    if not chosen:
        newer = " so new" if found else ""
        raise UserError(
            f"there is no session{newer} in {place}: it may hold Claude Code's transcripts (*.jsonl), and "
            "sessions of opencode as `opencode export SESSION > SESSION.json` writes them. Without a folder "
            "an opencode that is open beside a running daemon is asked for its sessions, too"
        )
    return sorted(chosen, key=lambda s: (s.changed, s.name))


def past_of(where: Paths, since_ms: int = 0) -> list[Session]:
    """Those of all folders in which an opencode is open; only opencode reads its database. None without a
    daemon. Raises ``Unavailable`` when an opencode does not answer.
    """
    from ..reflect.reading import listed, open_folders

    socket = find_socket(where)
    found: dict[str, Session] = {}
    after = f"{since_ms:015d}:" if since_ms else ""  # a mark begins with the time of the last use
    for folder in open_folders(where):
        for page, _ in listed(socket, "/v1/features/backtest/sessions", folder, after):
            for each in page:
                known = each.get("session") if isinstance(each, dict) else None
                if isinstance(known, dict) and isinstance(id_ := known.get("id"), str) and id_:
                    updated = known.get("updated")
                    changed = int(updated) * 1_000_000 if isinstance(updated, int | float) else 0
                    read = partial(_of_opencode, socket, folder, id_)
                    found[id_] = Session(f"opencode:{id_}", "opencode", changed, 0, read)
    return sorted(found.values(), key=lambda s: (s.changed, s.name))


def _may_be_one(path: Path) -> bool:
    named = path.suffix in {TRANSCRIPT, EXPORT} and not path.name.startswith(("agent-", "."))
    return named and "subagents" not in path.parts


def _file(path: Path) -> Session | None:
    from ...hosts.claude_code.past import stops_in
    from ...hosts.codex import past as codex

    try:
        found = path.stat()
    except OSError:
        return None
    name = os.fsencode(path).decode("utf-8", "backslashreplace")
    if codex.is_named_so(path):
        return Session(name, "codex", found.st_mtime_ns, found.st_size, partial(codex.stops_in, path))
    if path.suffix == TRANSCRIPT:
        return Session(name, "claude-code", found.st_mtime_ns, found.st_size, partial(stops_in, path))
    return Session(name, "opencode", found.st_mtime_ns, found.st_size, partial(_of_export, path))


def _of_export(path: Path) -> Iterator[Stop]:
    import msgspec

    from ...files.cases import read_file
    from ...hosts.opencode.past import stops_of_export

    try:
        for stop in stops_of_export(msgspec.json.decode(read_file(path))):
            named = stop.transcript.session or path.stem
            yield replace(stop, transcript=replace(stop.transcript, session=named))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise UserError(f"it is not what `opencode export` prints: {e}") from None


def _of_opencode(socket: Path, folder: str, id_: str) -> Iterator[Stop]:
    """The messages come when the session's turn to be judged comes."""
    from ...hosts.opencode.past import stops_of_read
    from ..reflect.reading import PAGE_S

    query = urlencode({"directory": folder, "session": id_})
    read = request(socket, "GET", f"/v1/features/backtest/session?{query}", timeout_s=PAGE_S).get("read")
    if not isinstance(read, dict):
        raise BadReply("opencode answered with no session")
    if read.get("missing") is True:
        return
    if read.get("whole") is not True:
        raise Unavailable(OLD)
    yield from stops_of_read(read, id_)


def _why(error: Exception, path: object) -> str:
    """Why a session could not be used. One that we fail to read must not cost the others."""
    if isinstance(error, ReflectdError | OSError):
        return words(error).removeprefix(f"{path}: ")
    return f"a bug of reflectd: {type(error).__name__}: {error}"
