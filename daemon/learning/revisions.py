"""Changes of files that belong to a person, each as a revision: what, why, by whom, before and after.

A revision is kept in the state folder before the file is replaced, so that no change is without one. It is
undone by its number, and only while the file is as that revision left it: what was edited since is never
overwritten, nor is what somebody saves while it is written. An undo is a revision too. Of each file the
newest ``KEPT`` revisions stay, in at most ``BYTES`` bytes.
"""

from __future__ import annotations

import errno
import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import Unavailable, UserError
from ..files.atomic import CHANGED, holds, write_atomic
from ..files.bounded import read_bytes, read_text, reason

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KEPT: Final = 100
BYTES: Final = 50_000_000
FILE_LIMIT: Final = 64 * 1024 * 1024
SUFFIX: Final = ".revision.json"


@dataclass(frozen=True, slots=True)
class Revision:
    """One change. ``number``: its name among those of the file. ``at``: epoch ms. ``by``: who, such as "you".
    ``what`` and ``why``: in words. ``before`` and ``after``: digests of the content, "" for no file.
    ``undoes``: the revision that this one undid, 0 for none.
    """

    number: int
    at: int
    by: str
    what: str
    why: str
    before: str
    after: str
    undoes: int = 0


class Revisions:
    """The revisions of one file. Who uses it holds the lock on ``folder`` (``files.alone``)."""

    def __init__(self, folder: Path, file: Path) -> None:
        self._folder = folder
        self._file = file

    def write(
        self,
        data: bytes | None,
        *,
        at: int,
        what: str,
        why: str = "",
        by: str = "you",
        undoes: int = 0,
        number: int = 0,
        made_from: str | None = None,
    ) -> Revision:
        """Keep the revision, then replace the file by ``data``; None removes it. Raises ``Unavailable``, also
        when somebody saved the file meanwhile: what they saved stays.

        ``made_from``: the SHA-256 of the content that ``data`` was made from, "" for none; without it that
        is what the file holds now.
        ``number``: where revisions of several files are counted together, a number above all of this one's.
        """
        before = self._content()
        if made_from not in {None, _digest(before or None)}:
            raise Unavailable(f"can't write {self._file}: {CHANGED}")
        number = number or max((r.number for r in self.all()), default=0) + 1
        revision = Revision(number, at, by, what, why, _digest(before), _digest(data), undoes)
        kept = {**_fields(revision), "content_before": _packed(before)}
        path = self._path(number)
        write_atomic(path, json.dumps(kept, indent=1) + "\n", mode=0o600)
        try:
            if data is not None:
                write_atomic(self._file, data, mode=None, expected=before or b"")
            elif holds(self._file, before or b""):
                self._file.unlink(missing_ok=True)
            else:
                raise OSError(errno.EAGAIN, CHANGED)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise Unavailable(f"can't remove {self._file}: {reason(error)}") from error
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self._prune()
        return revision

    def all(self) -> list[Revision]:
        """Every revision, newest first. One that can't be read is left out."""
        found = [self._read(path) for path in self._paths()]
        return [revision for revision, _ in found if revision is not None]

    def before(self, revision: Revision) -> bytes | None:
        """What the file was before it; None when there was no file. Raises ``UserError`` when that is not
        kept any more.
        """
        found, content = self._read(self._path(revision.number))
        if found is None:
            raise UserError(f"revision {revision.number} is not kept any more")
        return content

    def undo(
        self, number: int, *, at: int, by: str = "you", dry_run: bool = False, as_number: int = 0
    ) -> Revision:
        """Make the file what it was before that revision; 0 is the newest that no other one undid.

        ``as_number``: as ``number`` of ``write``. Raises ``UserError`` when there is none, or when the file
        was edited since.
        """
        listed = self.all()
        gone = undone(listed)
        open_ones = [r for r in listed if r.number not in gone and not r.undoes]
        wanted = next((r for r in (listed if number else open_ones) if number in {0, r.number}), None)
        if wanted is None:
            raise UserError(f"there is no revision {number}" if number else "there is nothing to undo")
        found = self._content()
        now = _digest(found)
        if not number:  # a change that never came about, or that a person took back
            steps = [r for r in open_ones if r.after == now or r.before != now]
            wanted = steps[0] if steps else wanted
        if now != wanted.after:
            later = next((r for r in reversed(open_ones) if r.number > wanted.number), None)
            edit = f"revision {later.number} ({later.what})" if later else "an edit that is not reflectd's"
            raise UserError(
                f"{self._file} was changed since revision {wanted.number}, first by {edit}: "
                "nothing was undone"
            )
        content = self.before(wanted)
        if dry_run:
            return wanted
        what = f"undo of revision {wanted.number} ({wanted.what})"
        made_from = _digest(found or None)
        return self.write(
            content, at=at, what=what, by=by, undoes=wanted.number, number=as_number, made_from=made_from
        )

    def _content(self) -> bytes | None:
        try:
            return read_bytes(self._file, FILE_LIMIT, follow=False)
        except (OSError, ValueError) as error:
            raise Unavailable(f"{self._file} can't be read: {reason(error)}") from error

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}{SUFFIX}"

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{SUFFIX}"), reverse=True)

    def _read(self, path: Path) -> tuple[Revision | None, bytes | None]:
        try:
            found: dict[str, Any] = json.loads(read_text(path, 2 * FILE_LIMIT) or "null")
            content = _unpacked(found.pop("content_before"))
            return Revision(**found), content
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, zlib.error):
            return None, None

    def _prune(self) -> None:
        total = 0
        for i, path in enumerate(self._paths()):
            try:
                total += path.stat().st_size
                if i and (i >= KEPT or total > BYTES):
                    path.unlink()
            except OSError:
                continue


def undone(revisions: Iterable[Revision]) -> set[int]:
    """The numbers of those that are undone now. ``revisions``: newest first; an undo may be undone itself."""
    found: set[int] = set()
    for r in revisions:
        if r.undoes and r.number not in found:
            found.add(r.undoes)
    return found


def _fields(revision: Revision) -> dict[str, Any]:
    return {name: getattr(revision, name) for name in Revision.__slots__}


def _digest(content: bytes | None) -> str:
    return "" if content is None else sha256(content).hexdigest()


def _packed(content: bytes | None) -> str | None:
    return None if content is None else b64encode(zlib.compress(content)).decode()


def _unpacked(packed: str | None) -> bytes | None:
    return None if packed is None else zlib.decompress(b64decode(packed))
