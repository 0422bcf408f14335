"""Connects an agent to reflectd and disconnects it: one way for all agents. A ``Host`` says what differs.

``connect`` and ``disconnect`` only say what would be changed, ``make`` does it. In a settings file nothing
is edited but our entry, and what the file was is kept (``edit``). Disconnecting leaves no trace: no backup,
and no file or folder that ``setup`` made and nobody else used.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from ...core.errors import Unavailable, UserError
from ...core.words import HOSTS
from ...files.jsonc import is_bare
from ...paths import PACKAGE
from . import copies, edit
from .edit import Action, Change, check_editable, fleeting, kept, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Env = Mapping[str, str]


class Host:
    """A coding agent. ``places``: where its installers put the program below the home (a shell that is older
    than the installation does not have it on its PATH); ``address``: where it is to be had; ``oldest``: the
    oldest tested version; ``new``: the text of a settings file that ``setup`` makes, before our entry.
    """

    host: ClassVar[str]
    program: ClassVar[str]
    places: ClassVar[tuple[str, ...]]
    address: ClassVar[str]
    oldest: ClassVar[tuple[int, ...]] = ()
    new: ClassVar[str] = ""

    # --- the differences ---

    def files(self, env: Env) -> list[Path]:
        """The person's settings files; the first is made where there is none."""
        raise NotImplementedError

    def read_in(self, env: Env, folder: Path) -> list[Path]:
        """The settings files that the agent reads when it is started in ``folder``; they may be missing."""
        raise NotImplementedError

    def mine(self, text: str) -> list[str]:
        """The names in our entries. Raises ``UserError``."""
        raise NotImplementedError

    def put(self, text: str, line: str) -> str:
        """The settings with an entry that names ``line``, and no other of ours. Raises ``UserError``, also
        for settings that the agent would refuse.
        """
        raise NotImplementedError

    def take(self, text: str, before: str) -> str:
        """The settings without our entries and what they leave empty; ``before``: as they once were."""
        raise NotImplementedError

    def line(self, env: Env) -> str:
        """The text by which our entry names the plugin's copy."""
        return str(copies.place(env, self.host))

    def choose(self, files: list[Path]) -> Path:
        """The file to edit."""
        return files[0]

    def loads(self, env: Env, folder: Path) -> list[Path]:
        """The files through which the agent loads us when it is started in ``folder``."""
        return [file for file in self.read_in(env, folder) if self.is_in(file)]

    def warnings(self, env: Env, folder: Path, file: Path, text: str) -> Iterator[str]:
        """Warnings for the person when ``file`` has ``text``, with our entry in it."""
        del env, folder, file, text
        yield from ()

    def silenced(self, env: Env, folder: Path) -> Iterable[str]:
        """The reasons why the agent runs no hook of ours although its settings load us."""
        del env, folder
        return ()

    def trust(self, env: Env, *, yes: bool, asks: bool) -> str:
        """The outcome of what the agent itself has to do once our entry is written, in words. ``yes``: the
        person agreed; ``asks``: they can be asked.
        """
        del env, yes, asks
        return ""

    def forget(self, env: Env, file: Path, old: str) -> None:
        """Remove what the agent noted about us, once no entry is left in ``file``, which was ``old``."""

    # --- the same for all ---

    @property
    def name(self) -> str:
        """As people call it."""
        return HOSTS[self.host]

    @property
    def absent(self) -> str:
        """That the agent is not there."""
        return f"there is no `{self.program}` on PATH"

    def find(self, env: Env) -> str:
        """The program's path, from PATH or from where its installer puts it; "" when there is none."""
        found = shutil.which(self.program, path=env.get("PATH", ""))
        home = env.get("HOME", "")
        usual = (Path(home, place) for place in self.places if home)
        return found or next((str(p) for p in usual if p.is_file() and os.access(p, os.X_OK)), "")

    def is_in(self, file: Path) -> bool:
        """Says whether the file has an entry of ours. One that can't be read counts as one without."""
        with suppress(UserError, Unavailable):
            return bool(self.mine(read_text(file)))
        return False

    def connect(self, env: Env, folder: Path, *, command: bool = False) -> list[Change]:
        """The changes that connect the agent, that of its settings first. ``command``: with a bare
        `/reflect`, where the agent needs a file for that. Raises ``UserError``, ``Unavailable``.
        """
        del command
        file, line = self.choose(self.files(env)), self.line(env)
        old = read_text(file)
        action: Action = "unchanged"
        with named(file):
            mine = self.mine(old)
            new = self.put(old if old.strip() else self.new, line)
        if new != old:
            check_editable(file)
            action = "replaced" if mine else "added" if os.path.lexists(file) else "created"
        told = (fleeting(f"{line} {PACKAGE}"), *self.warnings(env, folder, file, new))
        return [Change(file, action, old.encode(), new.encode(), line, tuple(filter(None, told)))]

    def disconnect(self, env: Env, folder: Path) -> list[Change]:
        """The changes that take our entries out of the person's settings and of each file that ``setup``
        edited. Raises ``UserError``, ``Unavailable``.
        """
        own = self.files(env)
        for file in own:
            with named(file):
                self.mine(read_text(file))
        first, *more = [self.removal(env, file) for file in self.ours_in(env)] or [Change(own[0])]
        gone = {first.file, *(change.file for change in more)}
        still = (f for f in self.loads(env, folder) if f not in gone)
        return [replace(first, warnings=tuple(f"{f}: it is still loaded from there" for f in still)), *more]

    def ours_in(self, env: Env) -> list[Path]:
        """The files with an entry of ours that ``setup`` takes out. One that can't be read is none."""
        return list(filter(self.is_in, dict.fromkeys([*self.files(env), *edit.edited_files(env)])))

    def removal(self, env: Env, file: Path) -> Change:
        """The change that takes our entry out of this file, which is as before us if nobody edited it since.
        Nothing is left of a file that ``setup`` made, if nothing else is in it. Raises ``UserError``.
        """
        old, way = read_text(file), kept(env, file)
        before = None if way.before is None else way.before.decode()
        with named(file):
            mine = self.mine(old)
            if way.untouched and (before is None or not self.mine(before)):
                new = before
            else:
                new = self.take(old, before or "")
                empty = is_bare(new) and (before is None or not is_bare(before))
                if way.made:
                    empty = is_bare(new) or "".join(new.split()) == "".join(self.new.split())
                new = None if empty and not file.is_symlink() else new
        check_editable(file)
        action: Action = "deleted" if new is None and way.made else "removed"
        return Change(file, action, old.encode(), None if new is None else new.encode(), mine[0])

    def make(self, env: Env, folder: Path, changes: Sequence[Change]) -> Path | None:
        """Make the changes; the backup of the settings, if there is one. What the agent noted about us goes
        with our entries, and the copy when no file names it any more.
        """
        backups = [edit.make(env, change) for change in changes]
        if changes[0].action in {"removed", "deleted", "unchanged"}:
            for change in changes:
                if not self.is_in(change.file):
                    self.forget(env, change.file, change.old.decode())
            files = [c.file for c in changes]
            copies.remove_unused(
                env, self.host, [*files, *edit.edited_files(env), *self.read_in(env, folder)]
            )
        return backups[0]


@contextmanager
def named(file: Path) -> Iterator[None]:
    """A mistake in the settings, with the file's name."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed: mend it and run this again") from error
