"""The person's own cases: copies of cases that the daemon saved, each with a label.

A label says what the verdict should have been. The files lie in ``<state>/cases`` (0700, files 0600) and stay
until the person removes them. This module gives them names, writes labels and lists the files; ``replay``
reads what is in a case. Everything is redacted once more before it is written (I46). ``Unavailable`` when the
file system refuses; ``UserError`` for a file that is no case.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ..core.errors import Unavailable, UserError
from ..core.redact import redact_value
from .atomic import write_atomic
from .verdict import file_name

FOLDER = "cases"
LIMIT = 64 * 1024 * 1024  # bytes; the case of a very long session has a few million
LAST_MS = 253_402_300_800_000  # the end of the year 9999
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Saved:
    """What a list shows of one case file. ``problem`` says why the file can't be used; it is empty if it
    can.
    """

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
    """The folder ``cases`` in ``state_dir``. It is made when the first case is saved."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FOLDER

    def save(self, source: Path, to: Path | None = None) -> tuple[Path, bool]:
        """Copy a case into the folder under its own name, or to the new file ``to``.

        Returns the path, and whether it is new. A case that the folder has already keeps its label.
        """
        target = to or self.path / source.name
        if target.exists():
            if to is None:
                return target, False
            raise UserError(f"{to} exists; choose another name, or remove it first")
        self._write(target, read(source))
        return target, True

    def keep(self, session: str, at: int, content: Json) -> Path:
        """Keep a case that no daemon saved, by the name that the daemon would give it. One that is there
        already stays. Returns its path.
        """
        path = self.path / f"{file_name(session)}_{at}.json"
        if not path.exists():
            self._write(path, content)
        return path

    def label(self, path: Path, expect: str, why: str) -> Json | None:
        """Write what the verdict should have been. Returns the label before it, None when there was none."""
        found = read(path)
        before = found.get("label")
        found["label"] = {"expect": expect, "why": why, "by": "person"}
        self._write(path, found)
        return before if isinstance(before, dict) else None

    def remove(self, name: str) -> Path:
        """Remove one case of the folder, by its name or path. A file in another folder is refused."""
        path = self.find(name)
        if path.parent.absolute() != self.path.absolute():
            raise UserError(f"{path} is not in {self.path}; remove it yourself")
        try:
            path.unlink()
        except OSError as e:
            raise Unavailable(f"can't remove {path}: {e.strerror}") from e
        return path

    def find(self, name: str) -> Path:
        """The file that a person means: a path, or a name in the folder with or without ``.json``."""
        for path in (Path(name), self.path / name, self.path / f"{name}.json"):
            if path.is_file():
                return path
        raise UserError(
            f"there is no case {name!r}, here or in {self.path}; `reflectd case list` shows all cases"
        )

    def paths(self) -> list[Path]:
        """The files of all cases, that which was written last first. Raises ``Unavailable``."""
        try:
            with os.scandir(self.path) as entries:
                found = [
                    (entry.stat(follow_symlinks=False).st_mtime_ns, Path(entry.path))
                    for entry in entries
                    if entry.name.endswith(".json") and not entry.name.startswith(".")
                ]
        except FileNotFoundError:
            return []
        except OSError as e:
            raise Unavailable(f"can't list {self.path}: {e.strerror}") from e
        return [path for _, path in sorted(found, reverse=True)]

    def list(self) -> list[Saved]:
        """All cases, newest first."""
        return sorted((summary(p) for p in self.paths()), key=lambda s: (-s.at, s.path.name))

    def _write(self, path: Path, content: Json) -> None:
        if path.parent == self.path:
            try:
                self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as e:
                raise Unavailable(f"can't make {self.path}: {e.strerror}") from e
        mode = None if path.exists() else 0o600
        text = json.dumps(redact_value(content), ensure_ascii=False, indent=1) + "\n"
        write_atomic(path, text.encode("utf-8", "replace"), mode)


def read_bytes(path: Path) -> bytes:
    """The file's content, at most ``LIMIT`` bytes. A FIFO or a device is refused at once. Raises
    ``UserError``.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise UserError(f"{path} is not a regular file")
            data = file.read(LIMIT + 1)
    except OSError as e:
        missing = e.errno in {errno.ENOENT, errno.ENOTDIR}
        said = "there is no such file" if missing else e.strerror
        raise UserError(f"can't read {path}: {said}") from None
    if len(data) > LIMIT:
        raise UserError(f"{path} is larger than {LIMIT >> 20} MB; no case is")
    return data


def read(path: Path) -> Json:
    """The JSON object of a case file. Raises ``UserError``."""
    try:
        found = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as e:
        raise UserError(f"{path} is not valid JSON: {e}") from None
    if not isinstance(found, dict) or not ({"case", "transcript"} & found.keys()):
        raise UserError(f"{path} is not a case; `reflectd case save` makes one")
    return found


def summary(path: Path) -> Saved:
    """What a list shows of a case file. Never raises."""
    try:
        found = read(path)
    except UserError as e:
        return Saved(path, problem=str(e).removeprefix(f"{path} "))
    case, verdict, label = _record(found, "case"), _record(found, "verdict"), _record(found, "label")
    at = case.get("at")
    return Saved(
        path=path,
        session=str(case.get("session") or _record(found, "transcript").get("session") or ""),
        at=at if isinstance(at, int) and 0 <= at < LAST_MS else 0,
        judged=str(verdict.get("state") or ""),
        expect=str(label.get("expect") or ""),
        why=str(label.get("why") or ""),
        feedback=" ".join(str(verdict.get("feedback") or "").split())[:200],
        request=" ".join(_request(found).split())[:200],
    )


def _request(found: Json) -> str:
    """The person's last request in the case."""
    requests = _record(found, "case").get("requests")
    if isinstance(requests, list) and requests:
        return str(requests[-1])
    messages = _record(found, "transcript").get("messages")
    typed = (
        [m for m in messages if isinstance(m, dict) and m.get("human")] if isinstance(messages, list) else []
    )
    return str(typed[-1].get("text", "")) if typed else ""


def _record(found: Json, key: str) -> Json:
    value = found.get(key)
    return cast("Json", value) if isinstance(value, dict) else {}
