"""Changes one settings file of the person's, a host's or our own, and leads back.

The way back is kept in the data folder, never beside the settings, which may lie in a repository. Each
edited file has a folder there: ``file`` names it, ``before`` is its text before our edit, or ``none`` lists
the folders that were made for it, where there was no file; ``written`` is our last text.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from ... import config, paths
from ...core.errors import Unavailable, UserError, words
from ...core.settings import Settings, toml
from ...files.safe import CHANGED, holds, make_folder, read_bytes, remove_empty, write_atomic
from ...files.toml_text import put
from ...paths import data_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.settings import Value

LIMIT: Final = 4_000_000  # bytes of a settings file
_NAME, _BEFORE, _NONE, _WRITTEN = "file", "before", "none", "written"
_SCHEMA: Final = re.compile(rb'"\$schema"\s*:\s*"[^"]*"\s*,?')
_FLEETING: Final = ("/uv/archive-v", "/uv/builds-v", "/pipx/.cache/")  # uvx and `pipx run` delete these again

Action = Literal["created", "added", "replaced", "removed", "deleted", "restored", "unchanged"]


class Change(Struct, frozen=True):
    """A change of one file, to be made by ``make``. ``new``: None removes the file. ``line``: what names us
    in it. ``warnings``: for the person.
    """

    file: Path
    action: Action = "unchanged"
    old: bytes = b""
    new: bytes | None = b""
    line: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def diff(self) -> str:
        """As a unified diff."""
        return "" if self.action == "unchanged" else diff(self.file, self.old, self.new or b"")


class Written(Struct, frozen=True):
    """Our own settings after some were set, or as they would be after a dry run. ``changed``: the keys whose
    value in the file is another one now. ``notes``: which variable counts more than the file. ``problem``:
    why no daemon starts with them; "" if one does.
    """

    file: Path
    settings: Settings
    changed: frozenset[str] = frozenset()
    diff: str = ""
    backup: Path | None = None
    notes: tuple[str, ...] = ()
    problem: str = ""

    def as_json(self, *keys: str) -> dict[str, object]:
        """The outcome for some of them."""
        backup = str(self.backup) if self.backup else None
        more = {"file": str(self.file), "diff": self.diff, "backup": backup, "warnings": self.notes}
        return {"changed": not self.changed.isdisjoint(keys), **more}


class Kept(Struct, frozen=True):
    """The way back. ``made``: we made the file. ``before``: its text before our edit, None for no file.
    ``untouched``: nobody edited it since our last edit.
    """

    made: bool = False
    before: bytes | None = None
    untouched: bool = False


# --- what a file is before it is edited ---------------------------------------------------------------------


def read_text(file: Path) -> str:
    """The settings as text. Raises ``UserError`` for no small text, ``Unavailable``."""
    try:
        return read(file).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def read(file: Path) -> bytes:
    """A settings file's content, which may have come with a clone. Raises ``UserError``, ``Unavailable``."""
    try:
        return read_bytes(file, LIMIT) or b""
    except ValueError as error:
        raise UserError(f"{file} can't be used: {words(error)}") from error
    except OSError as error:
        raise Unavailable(f"can't read {file}: {error.strerror}") from error


def fleeting(line: str) -> str:
    """A warning when ``line`` loads from a folder that will be deleted again; else empty."""
    if any(part in line for part in _FLEETING):
        return "reflectd runs from a temporary folder: uv tool install it, then run this again"
    return ""


def check_editable(file: Path) -> None:
    """Refuse a file that the person did not mean to be replaced. Raises ``UserError``."""
    if not file.exists():
        return
    found = file.stat()
    name = f"{file} (a link to {file.resolve()})" if file.is_symlink() else str(file)
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{name} is not a regular file")
    if found.st_uid != os.geteuid():
        raise UserError(f"{name} belongs to user {found.st_uid}: run this as that user")
    if not found.st_mode & stat.S_IWUSR:
        raise UserError(f"{name} is read-only: chmod u+w it, or change it in the tool that generates it")


def diff(file: Path, old: bytes, new: bytes) -> str:
    """The change, as a unified diff."""
    before, after = (data.decode(errors="replace").splitlines(True) for data in (old, new))
    lines = unified_diff(before, after, str(file), f"{file} (new)")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


# --- a change, and the way back -----------------------------------------------------------------------------


def make(env: Mapping[str, str], change: Change) -> Path | None:
    """Make the change; the backup, if there is one. A save by somebody meanwhile stays, and is
    ``Unavailable``.
    """
    match change.action:
        case "unchanged":
            return None
        case "removed" | "deleted" | "restored":
            put_back(env, change.file, change.old, change.new)
            return None
        case _:
            return write(env, change.file, change.old, change.new or b"")


def write(env: Mapping[str, str], file: Path, old: bytes, new: bytes, *, anew: bool = False) -> Path | None:
    """Keep the file, which was read as ``old``, then replace it. Returns what was kept, None when there was
    no file. Kept is the text before our first edit; after an edit of somebody else, or with ``anew``, the one
    before this. A save by somebody meanwhile stays, and is ``Unavailable``.
    """
    folder, known = _folder(env, file), kept(env, file)
    there, first = file.exists(), known == Kept()
    made = [] if there else make_folder(file.parent)
    try:
        make_folder(folder)
        folder.chmod(0o700)  # settings can hold keys
        write_atomic(folder / _NAME, os.fsencode(file))
        if not there:
            write_atomic(folder / _NONE, "".join(f"{path}\n" for path in made).encode())
            (folder / _BEFORE).unlink(missing_ok=True)
        elif anew or not known.untouched:
            write_atomic(folder / _BEFORE, old, 0o600)
    except OSError as error:
        raise Unavailable(f"can't back up {file} in {folder}: {error.strerror}") from error
    try:
        write_atomic(file, new, mode=None, follow=True, expected=old)
    except Unavailable:
        if first:
            _forget(env, file)
        raise
    write_atomic(folder / _WRITTEN, new)
    return folder / _BEFORE if there else None


def kept(env: Mapping[str, str], file: Path) -> Kept:
    """The way back; an empty one where nothing is kept."""
    folder = _folder(env, file)
    made, before = (folder / _NONE).exists(), folder / _BEFORE
    if not made and not before.exists():
        return Kept()
    try:
        now, then = read(file), (folder / _WRITTEN).read_bytes()
    except (OSError, UserError, Unavailable):
        now, then = b"", b"\0"
    added = _SCHEMA.search(now) and not _SCHEMA.search(then)  # by opencode, which is no edit
    untouched = now == then or bool(added and _bare(now) == _bare(then))
    return Kept(made, before.read_bytes() if before.exists() else None, untouched)


def edited_files(env: Mapping[str, str]) -> list[Path]:
    """Every settings file to which a way back is kept; it may be gone."""
    files = []
    for name in (data_folder(env) / "backups").glob(f"*/{_NAME}"):
        with suppress(OSError):
            files.append(Path(name.read_text("utf-8", "surrogateescape")))
    return sorted(files)


def put_back(env: Mapping[str, str], file: Path, old: bytes, data: bytes | None) -> None:
    """Make the file, which was read as ``old``, ``data`` again, or remove it with the empty folders that were
    made for it. What was kept goes too. A save by somebody meanwhile stays, and is ``Unavailable``.
    """
    if data is None:
        if not holds(file, old):
            raise Unavailable(f"can't remove {file}: {CHANGED}")
        file.unlink(missing_ok=True)
        with suppress(OSError):
            made = (_folder(env, file) / _NONE).read_text("utf-8", "surrogateescape").splitlines()
            remove_empty(Path(folder) for folder in reversed(made))
    else:
        make_folder(file.parent)
        write_atomic(file, data, mode=None, follow=True, expected=old)
    _forget(env, file)


def remove_made(env: Mapping[str, str], folder: Path) -> None:
    """Remove ``folder`` and those above it if they are empty and ``setup`` may have made them."""
    ours, share = data_folder(env), Path(env.get("HOME", ""), ".local", "share")
    usual = {share, share.parent} if ours.parent == share else set()
    remove_empty(f for f in (folder, *folder.parents) if f.is_relative_to(ours) or f in usual)


def _folder(env: Mapping[str, str], file: Path) -> Path:
    return data_folder(env) / "backups" / sha256(os.fsencode(file)).hexdigest()[:12]


def _bare(data: bytes) -> bytes:
    """Without ``$schema``, spaces and line breaks."""
    return b"".join(_SCHEMA.sub(b"", data).split())


def _forget(env: Mapping[str, str], file: Path) -> None:
    folder = _folder(env, file)
    shutil.rmtree(folder, ignore_errors=True)
    remove_made(env, folder.parent)


# --- our own settings ---------------------------------------------------------------------------------------


def put_settings(env: Mapping[str, str], values: Mapping[str, Value], *, dry_run: bool = False) -> Written:
    """Set some of our own settings in the person's file, all or none; other mistakes in it stay. Raises
    ``UserError`` and ``Unavailable``.
    """
    file, wrong = paths.config_file(env), list[str]()
    old, new = _with_settings(file, values)
    check_editable(file)
    settings = config.from_text(new, name=str(file), env=env, left_out=wrong)
    changed = frozenset(key for key in values if _with_settings(file, {key: values[key]})[1] != old)
    backup = None if dry_run or new == old else write(env, file, old.encode(), new.encode(), anew=True)
    notes = [
        f"{source} in your environment counts more than {key} = {toml(value)} in {file}"
        for key, value in values.items()
        if (source := settings.sources.get(key, "")) != str(file)
    ]
    shown = diff(file, old.encode(), new.encode())
    return Written(file, settings, changed, shown, backup, tuple(notes), "\n".join(wrong))


def undo_settings(env: Mapping[str, str]) -> Change:
    """Bring our own settings back as they were before the last change of them, once. Raises ``UserError``
    when nothing is kept, or when they were edited since.
    """
    file = paths.config_file(env)
    way = kept(env, file)
    if way == Kept():
        raise UserError(f"no change of {file} is kept: nothing to undo")
    if not way.untouched:
        raise UserError(
            f"{file} was changed after our change of it; {_folder(env, file) / _BEFORE} is before"
        )
    check_editable(file)
    change = Change(file, "deleted" if way.before is None else "restored", read(file), way.before)
    make(env, change)
    return change


def _with_settings(file: Path, values: Mapping[str, Value]) -> tuple[str, str]:
    """Our settings, as they are and with these values. Raises ``UserError``, ``Unavailable``."""
    old = new = read_text(file) if file.exists() else ""
    try:
        for key, value in values.items():
            section, _, name = key.rpartition(".")
            new = put(new, section, name, value)
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed in it") from error
    return old, new
