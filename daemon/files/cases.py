"""Case files: those that the daemon saved in a project, and the person's own copies with a label.

``files.verdict`` writes and prunes the saved ones, ``<session>_<epoch ms>.json`` beside the verdict files.
The person's own lie in ``<state>/cases`` (0700, files 0600) until the person removes them; a label is the
right verdict. A case may have come with a clone, so any field may be missing or have a wrong type. Everything
is redacted once more before it is written (I46).
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ..core.errors import Unavailable, UserError, words
from ..redact import redact_value
from .safe import read_bytes, write_atomic
from .verdict import FOLDER, file_name

if TYPE_CHECKING:
    from collections.abc import Iterable

OWN: Final = "cases"  # in the state folder
LIMIT: Final = 64 * 1024 * 1024  # bytes; the case of a very long session has a few million
LAST_MS: Final = 253_402_300_800_000  # the end of the year 9999
TAUGHT: Final = (("playbook", "forget"), ("memory", "withdraw"))
"""Feature and ``POST`` route, with ``{"session"}``: takes back points and lessons of a session."""
_NAME = re.compile(r"(?!verdict_)(.{1,120})_(\d{10,16})\.json", re.DOTALL)
Json = dict[str, Any]


# --- those that the daemon saved ----------------------------------------------------------------------------


def folders(directory: Path, fallback: Path) -> tuple[Path, Path]:
    """The two folders that may hold a workspace's cases: its own, and its stand-in in the state folder."""
    return directory / FOLDER, fallback


def case_at(folders: Iterable[Path], session: str, at: int) -> Path | None:
    """The case of the verdict that the session got at that time (epoch ms); None when there is none."""
    for folder in folders:
        path = folder / f"{file_name(session)}_{at}.json"
        with suppress(OSError):
            if path.is_file():
                return path
    return None


def newest_cases(
    folders: Iterable[Path], session: str = "", *, exact: bool = False, limit: int = 1
) -> list[Path]:
    """The newest cases of the sessions whose id begins with ``session`` (``exact``: is ``session``), newest
    first. A folder that can't be read holds none.
    """
    name = file_name(session)
    cases: list[tuple[int, Path]] = []
    for folder in folders:
        with suppress(OSError):
            for path in folder.iterdir():
                match = _NAME.fullmatch(path.name)
                if match and (match[1] == name if exact else match[1].startswith(name)):
                    cases.append((int(match[2]), path))
    return [path for _, path in sorted(cases, reverse=True)[:limit]]


def read_case(path: Path) -> Json:
    """The object in a saved case file, which must be a regular file and no link. Raises ``Unavailable``."""
    try:
        raw = read_bytes(path, LIMIT, follow=False)
        case = json.loads(raw) if raw is not None else None
    except (OSError, ValueError, RecursionError) as e:
        raise Unavailable(f"cannot read {path}: {words(e)}") from e
    if raw is None:
        raise Unavailable(f"cannot read {path}: there is no such file")
    if not isinstance(case, dict) or case.get("version") != 1:
        raise Unavailable(f"{path} is not a case of reflectd")
    return case


# --- the person's own ---------------------------------------------------------------------------------------


class Saved(Struct, frozen=True):
    """A case file in a list. ``problem``: the reason why the file can't be used, "" if it can."""

    path: Path
    session: str = ""
    at: int = 0
    judged: str = ""
    expect: str = ""
    why: str = ""
    request: str = ""
    feedback: str = ""
    problem: str = ""


class CaseFolder:
    """The person's cases in ``state_dir``. The folder is made when the first case is saved."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / OWN

    def save(self, source: Path) -> Path:
        """Copy a case into the folder under its own name; one that it has already stays. Returns its path."""
        target = self.path / source.name
        if not target.exists():
            self._write(target, read(source))
        return target

    def keep(self, session: str, at: int, content: Json) -> Path:
        """Keep a case that no daemon saved, by the name that the daemon would give it. One that is there
        already stays. Returns its path.
        """
        path = self.path / f"{file_name(session)}_{at}.json"
        if not path.exists():
            self._write(path, content)
        return path

    def label(self, path: Path, expect: str, why: str) -> Json | None:
        """Write the right verdict. Returns the label before it, None when there was none."""
        case = read(path)
        before = case.get("label")
        if not why and isinstance(before, dict) and before.get("expect") == expect:
            why = before.get("why", "")
        case["label"] = {"expect": expect, "why": why, "by": "person"}
        self._write(path, case)
        return before if isinstance(before, dict) else None

    def remove(self, name: str) -> Path:
        """Remove one case of the folder, by its name or path. A file in another folder is refused."""
        path = self.find(name)
        if path.parent.absolute() != self.path.absolute():
            raise UserError(f"{path} is not in {self.path}; remove it yourself")
        try:
            path.unlink()
        except OSError as e:
            raise Unavailable(f"can't remove {path}: {words(e)}") from e
        return path

    def find(self, name: str) -> Path:
        """The file that a person means: a path, or a name in the folder with or without ``.json``."""
        for path in (Path(name), self.path / name, self.path / f"{name}.json"):
            if path.is_file():
                return path
        raise UserError(
            f"there is no case {name!r}, here or in {self.path}; `reflectd dispute list` shows all cases"
        )

    def paths(self) -> list[Path]:
        """The files of all cases, that which was written last first. Raises ``Unavailable``."""
        try:
            files = [p for p in self.path.glob("*.json") if not p.name.startswith(".")]
            return sorted(files, key=lambda p: p.lstat().st_mtime_ns, reverse=True)
        except OSError as e:
            raise Unavailable(f"can't list {self.path}: {words(e)}") from e

    def list(self) -> list[Saved]:
        """All cases, newest first."""
        return sorted((summary(p) for p in self.paths()), key=lambda s: (-s.at, s.path.name))

    def _write(self, path: Path, content: Json) -> None:
        if path.parent == self.path:
            try:
                self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as e:
                raise Unavailable(f"can't make {self.path}: {words(e)}") from e
        mode = None if path.exists() else 0o600
        text = json.dumps(redact_value(content), ensure_ascii=False, indent=1) + "\n"
        write_atomic(path, text.encode("utf-8", "replace"), mode)


class Disputed(Struct, frozen=True):
    """A verdict that a person called wrong. ``case``: the judged case. ``path``: its place. ``before``: its
    earlier label, "" for none. ``agrees``: the judge had said just that.
    """

    case: Saved
    path: Path
    before: str
    agrees: bool


def dispute(state_dir: Path, source: Path, should_be: str, why: str) -> Disputed:
    """Keep the case ``source`` among the person's own and label it; a second dispute replaces the label. It
    changes no verdict and sends nothing. Raises ``UserError`` for a file that is no case, else
    ``Unavailable``.
    """
    case, folder = summary(source), CaseFolder(state_dir)
    path = folder.save(source)
    before = str((folder.label(path, should_be, why) or {}).get("expect") or "")
    return Disputed(case, path, before, case.judged == should_be)


def read_file(path: Path) -> bytes:
    """The content of a file that a person names, at most ``LIMIT`` bytes. Raises ``UserError``."""
    try:
        raw = read_bytes(path, LIMIT)
    except (OSError, ValueError) as e:
        raise UserError(f"can't read {path}: {words(e)}") from None
    if raw is None:
        raise UserError(f"can't read {path}: there is no such file")
    return raw


def read(path: Path) -> Json:
    """The JSON object of a case file. Raises ``UserError``."""
    try:
        case = json.loads(read_file(path))
    except (ValueError, RecursionError) as e:
        raise UserError(f"{path} is not valid JSON: {e}") from None
    if not isinstance(case, dict) or not ({"case", "transcript"} & case.keys()):
        raise UserError(f"{path} is not a case; `reflectd dispute` makes one")
    return case


def summary(path: Path) -> Saved:
    """A case file in a list. Never raises."""
    try:
        content = read(path)
    except UserError as e:
        return Saved(path, problem=str(e).removeprefix(f"{path} "))
    case, verdict, label, transcript = (
        value if isinstance(value := content.get(name), dict) else {}
        for name in ("case", "verdict", "label", "transcript")
    )
    requests, messages = case.get("requests"), transcript.get("messages")
    if not (isinstance(requests, list) and requests):
        typed = (m for m in messages if isinstance(m, dict)) if isinstance(messages, list) else ()
        requests = ["", *(m.get("text", "") for m in typed if m.get("human"))]
    at = case.get("at")
    return Saved(
        path=path,
        session=str(case.get("session") or transcript.get("session") or ""),
        at=at if isinstance(at, int) and 0 <= at < LAST_MS else 0,
        judged=str(verdict.get("state") or ""),
        expect=str(label.get("expect") or ""),
        why=str(label.get("why") or ""),
        request=" ".join(str(requests[-1]).split())[:200],
        feedback=" ".join(str(verdict.get("feedback") or "").split())[:200],
    )
