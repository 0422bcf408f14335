"""Connects an agent to reflectd and disconnects it: one way for all agents. A ``Host`` says what differs.

One run edits one settings file, and nothing else in it than our entry; what it was is kept, and leads back
(``edit``). ``--remove`` leaves no trace: no backup, and no file or folder that ``setup`` made and nobody else
used.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from ...core.errors import Unavailable, UserError
from ...core.words import HOSTS
from ...files.jsonc import is_bare
from ...paths import PACKAGE
from . import copies, edit
from .edit import Action, Report, check_editable, diff, fleeting, read, read_text, stay_inside

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    Env = Mapping[str, str]


class Host:
    """A coding agent. ``places``: where its installers put the program below the home (a shell that is older
    than the installation does not have it on its PATH); ``address``: where it is to be had; ``part``: what of
    a settings file is ours; ``new``: the text of a settings file that ``setup`` makes, before our entry.
    """

    host: ClassVar[str]
    program: ClassVar[str]
    places: ClassVar[tuple[str, ...]]
    address: ClassVar[str]
    part: ClassVar[str]
    new: ClassVar[str] = ""

    # --- the differences ---

    def files(self, env: Env, project: Path | None) -> list[Path]:
        """The person's settings files, or those of a project; the first is made where there is none."""
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

    def elsewhere(self, env: Env, folder: Path, file: Path) -> Iterator[str]:
        """The other places that load us, in words."""
        yield from (f"{other} loads reflectd too" for other in self.loads(env, folder) if other != file)

    def warnings(self, env: Env, folder: Path, file: Path, text: str) -> Iterator[str]:
        """Warnings for the person when ``file`` has ``text``, with our entry in it."""
        del env, folder, file, text
        yield from ()

    def silenced(self, env: Env, folder: Path) -> Iterable[str]:
        """The reasons why the agent runs no hook of ours although its settings load us."""
        del env, folder
        return ()

    def note(self, args: argparse.Namespace, env: Env) -> str:
        """The outcome of what the agent itself has to do once our entry is written, in words."""
        del args, env
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

    def setup(self, args: argparse.Namespace, env: Env, now: Callable[[], datetime]) -> Report:
        """Do what the arguments say. Raises ``UserError``, ``Unavailable``, ``OSError``."""
        folder, dry_run = Path.cwd(), args.dry_run
        files = self.files(env, folder if args.project else None)
        if args.project:
            stay_inside(folder, files)
        if args.undo:
            old = read(files[0]).decode(errors="replace")
            report = edit.undo(env, files, now, force=args.force, dry_run=dry_run)
            if not dry_run:
                self._clear(env, folder, report.file, old)
            return report
        file = self.choose(files)
        if args.remove:
            report = self.remove(env, file, folder=folder, force=args.force, dry_run=dry_run)
            still = (f"{where}: it is still loaded from there" for where in self.elsewhere(env, folder, file))
            return replace(report, warnings=tuple(still))
        there, old, line = os.path.lexists(file), read_text(file), self.line(env)
        with named(file):
            mine = self.mine(old)
            text = self.put(old if old.strip() else self.new, line)
        told = (fleeting(f"{line} {PACKAGE}"), *self.warnings(env, folder, file, text))
        if text != old:
            check_editable(file, force=args.force)
        copied = not dry_run and copies.refresh(env, self.host, make=True)
        change = text != old and not dry_run
        backup = edit.write(env, file, old.encode(), text.encode(), now) if change else None
        note = "" if dry_run else self.note(args, env)
        action: Action = "replaced" if mine else "added" if there else "created"
        if text == old:
            action = "unchanged"
        warnings = tuple(filter(None, told))
        return Report(file, action, line, backup, diff(file, old, text), warnings, copied, note=note)

    def remove(
        self,
        env: Env,
        file: Path,
        *,
        folder: Path | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> Report:
        """Take our entry out; the file is as it was before us, if nobody edited it since."""
        old, text = read_text(file), None
        with named(file):
            mine = self.mine(old)
            made, oldest = edit.first(env, file)
            if mine:
                before = None if oldest is None else oldest.decode()
                text = self._without(env, file, old, made=made, oldest=before)
        if mine:
            check_editable(file, force=force)
        if mine and not dry_run:
            edit.put_back(env, file, old.encode(), None if text is None else text.encode())
        if not dry_run:
            self._clear(env, folder or Path.cwd(), file, old)
        if not mine:
            return Report(file, "unchanged")
        action: Action = "deleted" if text is None and made else "removed"
        return Report(file, action, mine[0], None, diff(file, old, text or ""))

    def traces(self, env: Env, folder: Path) -> Iterator[tuple[Path, str, Callable[[], object]]]:
        """Our parts of the files that the agent reads in ``folder`` or that ``setup`` edited: the file, the
        part, and how it is taken out. A file that can't be read has nothing of ours.
        """
        for file in dict.fromkeys([*self.read_in(env, folder), *edit.edited_files(env)]):
            if self.is_in(file):
                yield file, self.part, partial(self.remove, env, file)

    def _without(self, env: Env, file: Path, old: str, *, made: bool, oldest: str | None) -> str | None:
        """The settings without us; None when nothing is left in them, and the person had no empty file."""
        untouched, data = edit.before(env, file)
        if untouched and (data is None or not self.mine(data.decode())):
            return None if data is None else data.decode()
        text = self.take(old, oldest or "")
        if made:
            empty = is_bare(text) or "".join(text.split()) == "".join(self.new.split())
        else:
            empty = is_bare(text) and (oldest is None or not is_bare(oldest))
        return None if empty and not file.is_symlink() else text

    def _clear(self, env: Env, folder: Path, file: Path, old: str) -> None:
        """Remove what the agent noted about us, and the copy if no file names it."""
        if not self.is_in(file):
            self.forget(env, file, old)
        copies.remove_unused(env, self.host, [file, *edit.edited_files(env), *self.read_in(env, folder)])


@contextmanager
def named(file: Path) -> Iterator[None]:
    """A mistake in the settings, with the file's name."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed: mend it and run this again") from error
