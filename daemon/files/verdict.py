"""Writes the `.reflection/` files that speech, Telegram and scripts read. It blocks: call it in a thread.

Decides their names and contents, the freshness of the short alias, and how long files are kept. It makes a
folder only when there is something to write, and never writes into ``$HOME`` or ``/`` or through a link that
came with a clone. Files that the workspace refuses go to the state folder. Every write is atomic and 0600.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ..core.errors import Unavailable, words
from ..redact import redact_value
from .safe import remove_leftovers, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.verdict import Verdict

FOLDER = ".reflection"
SHORT = 8
CASES_KEPT = 200
SESSION_KEPT = 20
CASE_BYTES = 50_000_000
FOLDERS_KEPT = 100
DAY_S = 86_400
VERDICT_S = 90 * DAY_S  # as long as sessions are kept
GITIGNORE = (
    "# reflectd's run-time files; config.toml, prompts and playbook may be committed\n"
    "/.gitignore\n/.reflectd-*.tmp\n/verdict_*.json\n/*_[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]*.json\n"
)
_SAFE = re.compile(r"[^A-Za-z0-9_-]")
_CASE = re.compile(r"_\d{10,16}\.json$")


class Judging(Struct, frozen=True):
    """The content of the session's verdict file while a turn is being judged; with ``told``, while an agent
    works and seems stuck: the person reads that.
    """

    session: str
    task: str
    turn: str
    at: int
    told: str = ""

    @property
    def state(self) -> Literal["judging", "stuck"]:
        """As in the file."""
        return "stuck" if self.told else "judging"


def verdict_object(v: Verdict | Judging) -> dict[str, Any]:
    """The JSON object of a verdict file (schema: ``.reflection/schemas/verdict.schema.json``)."""
    found: dict[str, Any] = {
        "sessionId": v.session[:SHORT],
        "complete": False,
        "severity": "NONE",
        "timestamp": v.at,
        "session": v.session,
        "turn": v.turn,
        "task": v.task,
        "state": v.state,
        "feedback": "",
        "missing": [],
        "next_actions": [],
        "requires_human_action": False,
        "reward": None,
        "reason": "",
        "attempt": 0,
        "judge": None,
        "proof": None,
    }
    if isinstance(v, Judging):
        found["feedback"] = v.told
    else:
        found |= {
            "complete": v.complete,
            "severity": str(v.severity),
            "feedback": v.feedback,
            "missing": [{"item": m.text, "cites": m.cites} for m in v.missing],
            "next_actions": list(v.next_actions),
            "requires_human_action": v.requires_human_action,
            "reward": v.reward,
            "reason": v.reason,
            "attempt": v.attempt,
            "judge": to_builtins(v.judge),
            "proof": v.proof.published if v.proof is not None else None,
        }
    return cast("dict[str, Any]", redact_value(found))


def alias_object(v: Verdict | Judging, *, collides: bool) -> dict[str, Any]:
    """The object of the alias file, which the published plugins read.

    It is fresh only for ``complete``, and for ``incomplete`` when feedback follows. With ``timestamp: 0`` the
    plugins act as if reflectd were not there (I22, I23).
    """
    return _alias_of(verdict_object(v), v, collides=collides)


def _alias_of(found: dict[str, Any], v: Verdict | Judging, *, collides: bool) -> dict[str, Any]:
    fresh = not isinstance(v, Judging) and not collides and (v.complete or v.will_prompt)
    return found if fresh else {**found, "complete": False, "timestamp": 0}


class VerdictFiles:
    """Writes into ``<workspace>/.reflection`` or, where that cannot be, into ``fallback(workspace)``."""

    def __init__(self, fallback: Callable[[str], Path], home: Path) -> None:
        self._fallback = fallback
        self._home = home
        self._started_ns = time.time_ns()
        self._lock = threading.Lock()
        self._cases: dict[Path, deque[tuple[Path, int]]] = {}  # per folder, oldest first, with sizes

    def begun(self, j: Judging, directory: str) -> Path:
        """Write that the turn is being judged, or that the agent seems stuck. The alias of an older turn
        stops being fresh, so its readers act as without reflectd (I22).
        """
        return self._write(directory, j, collides=False, durable=False)

    def final(self, v: Verdict, directory: str, *, collides: bool) -> Path:
        """Write the final verdict of a turn. Returns the path of the session's verdict file."""
        return self._write(directory, v, collides=collides, durable=True)

    def outdated(self, v: Verdict, directory: str) -> Path:
        """Write the same verdict again, no longer fresh, because a new task began."""
        return self._write(directory, replace(v, at=0, will_prompt=False), collides=True, durable=False)

    def alias_outdated(self, v: Verdict, directory: str) -> Path:
        """Write only the alias again, no longer fresh: its readers could take it for another turn (I22,
        I23).
        """
        name = f"verdict_{file_name(v.session[:SHORT])}.json"
        return self._put(directory, name, _dump(alias_object(v, collides=True)), durable=False)[1]

    def case(self, session: str, at: int, content: dict[str, Any], directory: str) -> Path:
        """Save a case, for people and for replay. When there are too many, the oldest are removed."""
        systems = [prompt["system"] for prompt in content.get("prompts", ())]  # the same in every case
        text = _dump(redact_value(content, systems))
        folder, path = self._put(directory, f"{file_name(session)}_{at}.json", text, durable=False)
        self._prune(folder, path, len(text))
        return path

    def tidy(self, directory: str) -> None:
        """Remove the temporary files that an earlier daemon left in the folders of this workspace."""
        if self._usable(directory):
            remove_leftovers(Path(directory) / FOLDER, self._started_ns)
        remove_leftovers(self._fallback(directory), self._started_ns)

    def _prune(self, folder: Path, path: Path, size: int) -> None:
        """Keep the newest ``CASES_KEPT`` cases, ``SESSION_KEPT`` of this session, and at most ``CASE_BYTES``.
        Each folder is listed only once.
        """
        cases = self._cases.get(folder)
        if cases is None:
            listed = _list_cases(folder, path.stat().st_mtime)
            cases = deque(case for case in listed if case[0] != path)  # the newest, also with a wrong clock
            with self._lock:  # of two folders at once
                if len(self._cases) >= FOLDERS_KEPT:
                    del self._cases[next(iter(self._cases))]
                self._cases[folder] = cases
        cases.append((path, size))
        session = path.name.rpartition("_")[0]
        gone = [case for case in cases if case[0].name.rpartition("_")[0] == session][:-SESSION_KEPT]
        for case in gone:
            cases.remove(case)
        total = sum(size for _, size in cases)
        while len(cases) > CASES_KEPT or (total > CASE_BYTES and cases):
            gone.append(cases.popleft())
            total -= gone[-1][1]
        for oldest, _ in gone:
            with contextlib.suppress(OSError):
                oldest.unlink(missing_ok=True)

    def _write(self, directory: str, v: Verdict | Judging, *, collides: bool, durable: bool) -> Path:
        name = f"verdict_{file_name(v.session)}.json"
        alias = f"verdict_{file_name(v.session[:SHORT])}.json"
        found = verdict_object(v)
        _, path = self._put(directory, name, _dump(found), durable=durable)
        if alias != name:  # fresh for seconds: nobody reads it after a power cut
            self._put(directory, alias, _dump(_alias_of(found, v, collides=collides)), durable=False)
        return path

    def _put(self, directory: str, name: str, text: bytes, *, durable: bool) -> tuple[Path, Path]:
        """Write into the workspace, else into the fallback. Raises ``Unavailable``, also while the workspace
        keeps an older file of this name, which would say `judging`, or what was before, for ever.
        """
        own = Path(directory) / FOLDER if self._usable(directory) else None
        if own is not None:
            try:
                make_reflection(own)
                write_atomic(own / name, text, mode=0o600, durable=durable)
            except (OSError, Unavailable):
                pass
            else:
                return own, own / name
        folder = self._fallback(directory)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as e:
            raise Unavailable(f"cannot write verdict files to {folder}: {words(e)}") from e
        write_atomic(folder / name, text, mode=0o600, durable=durable)
        if own is not None:
            _take_away(own / name)
        return folder, folder / name

    def _usable(self, directory: str) -> bool:
        """Says whether the workspace may be written to: an existing absolute folder, not ``/`` or ``$HOME``,
        whose ``.reflection`` is no link.
        """
        path = Path(directory)
        try:
            if not directory or not path.is_absolute() or not path.is_dir():
                return False
            if path.resolve() in {Path("/"), self._home.resolve()}:
                return False
            return not (path / FOLDER).is_symlink()
        except (OSError, ValueError):  # no permission, a name too long, a NUL
            return False


def make_reflection(folder: Path) -> None:
    """Make a project's ``.reflection``, and its ``.gitignore`` also when the folder came with a clone. Raises
    ``OSError`` and ``Unavailable``.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    ignore = folder / ".gitignore"
    if not os.path.lexists(ignore):
        write_atomic(ignore, GITIGNORE, mode=0o600, durable=False)


def _dump(found: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"


def file_name(session: str) -> str:
    """A session id in a form that is safe as part of a file name: the host chose the id."""
    return _SAFE.sub("_", session)[:120]


def _take_away(old: Path) -> None:
    try:
        old.unlink(missing_ok=True)
    except NotADirectoryError:
        return
    except OSError as e:
        if os.path.lexists(old):
            raise Unavailable(f"{old} is out of date and can't be replaced: {words(e)}") from e


def _list_cases(folder: Path, newest_s: float) -> deque[tuple[Path, int]]:
    """The case files of a folder with their sizes, oldest first. Verdict files older than 90 days are
    removed, at most a day's worth at once: a clock may be wrong.
    """
    found: list[tuple[int, Path, int]] = []
    lapsed: list[tuple[float, Path]] = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.name.startswith("verdict_"):
                if path.suffix == ".json" and newest_s - (at := path.stat().st_mtime) > VERDICT_S:
                    lapsed.append((at, path))
            elif _CASE.search(path.name):
                stat = path.stat()
                found.append((stat.st_mtime_ns, path, stat.st_size))
    first = min((at for at, _ in lapsed), default=0.0)
    for at, path in lapsed:
        if at < first + DAY_S:
            path.unlink(missing_ok=True)
    return deque((path, size) for _, path, size in sorted(found))
