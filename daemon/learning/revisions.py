"""Changes of files that belong to a person: each is kept with the file before it, and undone by its number.

A revision is kept in the state folder before the file is replaced, so no change is without one. A later edit
is never overwritten, nor is a save while the file is written. ``kill -9`` at any point leaves the file before
or after; a revision that did not come about stands in no way. An undo is a revision too. The newest ``KEPT``
stay, in at most ``BYTES`` bytes. A writer holds the lock on ``folder`` (``files.safe.alone``).
"""

from __future__ import annotations

import errno
import zlib
from base64 import b64decode
from contextlib import nullcontext, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.errors import ReflectdError, Unavailable, UserError, words
from ..files.safe import CHANGED, alone, holds, read_bytes, write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KEPT: Final = 100
BYTES: Final = 50_000_000
FILE_LIMIT: Final = 64 * 1024 * 1024
SUFFIX: Final = ".revision.json"
_CONTENT: Final = "content_before"


class Revision(Struct, frozen=True):
    """One change. ``number``: its name among those of its folder. ``at``: epoch ms. ``by``: who, such as
    "you". ``what`` and ``why``: in words. ``before`` and ``after``: digests of the file, "" of an empty or
    missing one. ``undoes``: the revision that this one undid, 0 for none. ``file``: which one was changed,
    where the folder has revisions of several.
    """

    noun: ClassVar[str] = "revision"
    number: int
    at: int
    what: str
    why: str = ""
    by: str = "you"
    before: str = ""
    after: str = ""
    undoes: int = 0
    file: str = ""


R = TypeVar("R", bound=Revision)


class RevisionsOf(Generic[R]):
    """Those in one folder. ``form``: a kind of ``Revision``, with what else is kept of it."""

    def __init__(self, folder: Path, file: Path, form: type[R]) -> None:
        """``file``: which one is changed, unless ``keep`` names another."""
        self._folder, self._file, self._form = folder, file, form

    def keep(
        self, made: R, data: bytes | None, *, file: Path | None = None, made_from: str | None = None
    ) -> R:
        """Keep a revision under the next number, then replace the file by ``data``; None removes it. Raises
        ``Unavailable``, also when somebody saved the file meanwhile: what they saved stays.

        ``made_from``: the digest of the content that ``data`` was made from; without it that is what the file
        holds now.
        """
        file = file or self._file
        busy = alone(file.parent, busy=f"can't write {file}: {CHANGED}") if file.parent.is_dir() else None
        with busy or nullcontext():  # a daemon with another state folder has a lock of its own
            return self._kept(made, data, file, made_from)

    def _kept(self, made: R, data: bytes | None, file: Path, made_from: str | None) -> R:
        before = _content(file)
        if made_from not in {None, digest(before)}:
            raise Unavailable(f"can't write {file}: {CHANGED}")
        made = self.note(replace(made, before=digest(before), after=digest(data)), before)
        try:
            if data is not None:
                write_atomic(file, data, mode=None, expected=before or b"")
            elif holds(file, before or b""):
                file.unlink(missing_ok=True)
            else:
                raise OSError(errno.EAGAIN, CHANGED)
        except (ReflectdError, OSError) as error:
            replaced = False
            with suppress(ReflectdError):  # it is, when only syncing the folder failed
                replaced = digest(_content(file)) == made.after != made.before
            if not replaced:
                self.drop(made)
            if isinstance(error, OSError):
                raise Unavailable(f"can't remove {file}: {words(error)}") from error
            raise
        return made

    def note(self, made: R, content: bytes | None = None) -> R:
        """Keep a revision under the next number, with what the file was before it. Raises ``Unavailable``."""
        made = replace(made, number=max((_number(path) for path in self._paths()), default=0) + 1)
        packed = None if content is None else zlib.compress(content)
        kept = {f: getattr(made, f) for f in made.__struct_fields__} | {_CONTENT: packed}
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomic(self._folder / f"{made.number:08d}{SUFFIX}", msgspec.json.encode(kept), mode=0o600)
        total = 0
        for i, path in enumerate(self._paths()):
            with suppress(OSError):
                total += path.stat().st_size
                if i and (i >= KEPT or total > BYTES):
                    path.unlink()
        return made

    def drop(self, made: Revision) -> None:
        """It did not come about."""
        for path in self._paths():
            if _number(path) == made.number:
                path.unlink(missing_ok=True)

    def all(self) -> list[R]:
        """Every revision, newest first. One that can't be read is left out."""
        found = [self._read(path) for path in self._paths()]
        return [each[0] for each in found if each is not None]

    def before(self, revision: Revision) -> bytes | None:
        """The file before it; None when there was no file. Raises ``UserError`` when that is not kept any
        more, or damaged.
        """
        found = next((self._read(p) for p in self._paths() if _number(p) == revision.number), None)
        if found is None:
            raise UserError(f"{revision.noun} {revision.number} is not kept any more")
        try:
            return None if found[1] is None else zlib.decompress(found[1])
        except zlib.error:
            raise UserError(
                f"what the file was before {revision.noun} {revision.number} can't be read"
            ) from None

    def wanted(self, number: int = 0, now: str | None = None) -> R:
        """The one that would be undone: this one; for 0 the newest that nobody undid. ``now``: the digest of
        the file; then one that did not come about, or that a person took back, is passed over. Raises
        ``UserError``.
        """
        listed = self.all()
        gone = undone(listed)
        if number:
            found = next((r for r in listed if r.number == number), None)
            if found is None:
                raise UserError(f"there is no {self._form.noun} {number}")
            if number in gone:
                raise UserError(f"{self._form.noun} {number} is undone already")
            return found
        left = [r for r in listed if r.number not in gone and not r.undoes]
        steps = [r for r in left if now is None or r.after == now or r.before != now] or left
        if not steps:
            raise UserError("there is nothing to undo")
        return steps[0]

    def refuse_edited(self, wanted: R, now: str, file: Path) -> None:
        """Raise ``UserError`` when the file is not as that revision left it, with what changed it first.
        ``now``: its digest.
        """
        if now == wanted.after:
            return
        every = [r for r in self.all() if r.file == wanted.file]
        gone = undone(every)
        later = [r for r in every if r.number > wanted.number and not r.undoes and r.number not in gone]
        first = later[-1] if later else None
        edit = f"{first.noun} {first.number} ({first.what})" if first else "an edit that is not reflectd's"
        raise UserError(
            f"{file} was changed since {wanted.noun} {wanted.number}, first by {edit}: nothing was undone"
        )

    def undo(self, number: int, *, at: int, by: str = "you") -> R:
        """Make the file what it was before that revision; 0 as in ``wanted``. Raises ``UserError`` when there
        is none, or when the file was edited since.
        """
        now = digest(_content(self._file))
        wanted = self.wanted(number, now)
        self.refuse_edited(wanted, now, self._file)
        content = self.before(wanted)
        made = self._form(0, at, undo_of(wanted), by=by, undoes=wanted.number)
        return self.keep(made, content, made_from=now)

    def _paths(self) -> list[Path]:
        found = (path for path in self._folder.glob("*.json") if _number(path))
        return sorted(found, reverse=True)

    def _read(self, path: Path) -> tuple[R, bytes | None] | None:
        """A revision with what the file was, packed; None for one that can't be read."""
        try:
            found: dict[str, Any] = msgspec.json.decode(read_bytes(path, 2 * FILE_LIMIT) or b"")
            packed = found[_CONTENT]
            content = None if packed is None else b64decode(packed, validate=True)
            return msgspec.convert(found, self._form), content
        except (OSError, ValueError, TypeError, RecursionError, KeyError):
            return None


def undone(revisions: Iterable[Revision]) -> set[int]:
    """The numbers of those that are undone now. ``revisions``: newest first; an undo may be undone itself."""
    found: set[int] = set()
    for r in revisions:
        if r.undoes and r.number not in found:
            found.add(r.undoes)
    return found


def undo_of(revision: Revision) -> str:
    """The name of its undo."""
    return f"undo of {revision.noun} {revision.number} ({revision.what})"


def digest(content: bytes | None) -> str:
    """The mark of a file's content, "" of a missing or empty one."""
    return sha256(content).hexdigest() if content else ""


def _content(file: Path) -> bytes | None:
    try:
        return read_bytes(file, FILE_LIMIT, follow=False)
    except (OSError, ValueError) as error:
        raise Unavailable(f"{file} can't be read: {words(error)}") from error


def _number(path: Path) -> int:
    name = path.name.partition(".")[0]
    return int(name) if name.isdecimal() else 0
