"""``reflectd setup opencode``: adds our line to opencode's ``plugin`` list, and removes it again.

Decides which settings file is edited, which lines count as ours, and where else opencode would load us. The
line names the plugin's copy in the data folder. One run edits one file and changes nothing but that list.
``--remove`` leaves no trace: no backup, and no file or folder that ``setup`` made and nobody else used.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.errors import Unavailable, UserError
from ...paths import PACKAGE
from . import copies, edit
from .edit import Action, Report, check_editable, diff, fleeting, read, read_text, stay_inside

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

HOST = "opencode"
NAMES = ("opencode.json", "opencode.jsonc")
NEW_FILE = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n'
SHIM_MARK = b"reflectd.loaded"  # stands in our plugin's source and bundle, whatever the file's name is
# The npm name, or a path into the data folder, an installed package (whose older name was `daemon`), a
# checkout, node_modules or the built bundle.
_OURS = re.compile(
    r"^(npm:)?opencode-reflectd(@|$)|/opencode-reflectd(/|$)"
    r"|/(reflectd/plugins|(daemon|reflectd)/shims|plugin-shim)/opencode(/|$)|/reflectd\.[cm]?[jt]s$"
)


def setup(args: argparse.Namespace, env: Mapping[str, str], now: Callable[[], datetime]) -> Report:
    """Do what the arguments say. Raises ``UserError``, ``Unavailable``, ``OSError``."""
    folder = Path(args.dir or ".").absolute()
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    bases = [folder, folder / ".opencode"] if args.project or args.dir else [_global_folder(env)]
    files = [base / name for base in bases for name in NAMES]
    if args.project or args.dir:
        stay_inside(folder, files)
    if args.undo:
        report = edit.undo(env, files, now, force=args.force, dry_run=args.dry_run)
        _drop_copy(args, env, folder)
        return report
    # the folder and not its file: version 2 of opencode loads no plugin that is named by its file
    line = args.spec or ("" if args.remove else copies.place(env, HOST).as_uri())

    def ours(spec: str) -> bool:
        return spec == line or bool(_OURS.search(spec))

    file = _choose(files, ours)
    old, listed = _load(file) if file.exists() else ("", [])
    mine = [spec for spec in listed if ours(spec)]
    warnings = tuple(_warnings(env, folder, file, line, ours, removed=args.remove))
    if args.remove:
        report = _remove(env, file, old, mine, force=args.force, dry_run=args.dry_run)
        _drop_copy(args, env, folder)
        return replace(report, line=report.line or line, warnings=warnings)
    action, text = _edit(file, old, line, mine)
    if action != "unchanged":
        check_editable(file, force=args.force)
    copied = not args.dry_run and not args.spec and copies.refresh(env, HOST, make=True)
    keep = action != "unchanged" and not args.dry_run
    backup = edit.write(env, file, old.encode(), text.encode(), now) if keep else None
    return Report(file, action, line, backup, diff(file, old, text), warnings, copied)


def _drop_copy(args: argparse.Namespace, env: Mapping[str, str], folder: Path) -> None:
    if not args.dry_run:
        copies.remove_unused(env, HOST, [*edit.edited_files(env), *read_in(env, folder)])


def _choose(files: list[Path], ours: Callable[[str], bool]) -> Path:
    """The file to edit. opencode loads all of them, so: the one with our line, else the one with a plugin
    list, else the first that exists, else the first.
    """
    there = {file: _load(file)[1] for file in files if file.exists()}
    with_ours = [file for file, listed in there.items() if any(map(ours, listed))]
    with_list = [file for file, listed in there.items() if listed]
    return [*with_ours, *with_list, *there, *files][0]


def _edit(file: Path, old: str, line: str, mine: list[str]) -> tuple[Action, str]:
    """The step, and the new text."""
    from ...files.jsonc import add_plugin, replace_plugin

    action: Action = "replaced" if mine else "added"
    if mine == [line]:
        text = old
    elif not file.exists():
        action, text = "created", add_plugin(NEW_FILE, line)
    else:
        text = replace_plugin(old, mine.__contains__, line) if mine else add_plugin(old, line)
    return ("unchanged", old) if text == old else (action, text)


def _remove(
    env: Mapping[str, str],
    file: Path,
    old: str,
    mine: list[str],
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Report:
    """Take our line out; as it was before us, if nobody edited the file since."""
    if not mine:
        return Report(file, "unchanged")
    text = _without(env, file, old, mine)
    check_editable(file, force=force)
    if not dry_run:
        edit.put_back(env, file, old.encode(), None if text is None else text.encode())
    action: Action = "deleted" if text is None else "removed"
    return Report(file, action, mine[0], None, diff(file, old, text or ""))


def traces(env: Mapping[str, str], folder: Path) -> Iterator[tuple[Path, str, Callable[[], object]]]:
    """The settings files that load us, read in ``folder`` or edited by ``setup``: the file, our part of it,
    and how it is taken out. A file that can't be read has nothing of ours.
    """
    for file in dict.fromkeys([*read_in(env, folder), *edit.edited_files(env)]):
        with suppress(UserError, Unavailable):
            old, listed = _load(file) if file.is_file() else ("", [])
            if mine := [spec for spec in listed if _OURS.search(spec)]:
                yield file, "our line", partial(_remove, env, file, old, mine)


def loads(env: Mapping[str, str], folder: Path) -> list[Path]:
    """The settings files through which opencode loads us when it is started in ``folder``."""
    return [file for file, _ in loaded(env, folder)]


def _without(env: Mapping[str, str], file: Path, old: str, mine: list[str]) -> str | None:
    """The text without our line; None when nothing is left of a file that ``setup`` made."""
    from ...files.jsonc import KEY, plugins, read, remove_plugin, spec_of, take

    untouched, data = edit.before(env, file)
    if untouched and data is None:
        return None
    if untouched and data is not None:
        text = data.decode()
        if not any(spec_of(entry) in mine for entry in plugins(text)):
            return text
    text = remove_plugin(old, mine.__contains__)
    made, oldest = edit.first(env, file)
    if not plugins(text) and (made or (oldest is not None and KEY not in read(oldest.decode()))):
        text = take(text, (KEY,))  # a list that setup made
    return None if made and "".join(text.split()) in {"".join(NEW_FILE.split()), "{}"} else text


def _warnings(
    env: Mapping[str, str], folder: Path, file: Path, line: str, ours: Callable[[str], bool], *, removed: bool
) -> Iterator[str]:
    """Where else opencode loads us. It loads the same line in two files once, and different lines twice."""
    if not removed and (warning := fleeting(f"{line} {PACKAGE}")):
        yield warning
    outcome = "it is still loaded from there" if removed else "it would be loaded twice"
    for other, spec in loaded(env, folder, ours):
        if not spec:
            yield f"{other} is reflectd too: {outcome}"
        elif other != file and (removed or spec != line):
            yield f"{other} lists reflectd too ({spec}): {outcome}"


def loaded(
    env: Mapping[str, str], folder: Path, ours: Callable[[str], object] = _OURS.search
) -> Iterator[tuple[Path, str]]:
    """Where opencode finds us when it is started in ``folder``: a settings file with its line, or a plugin
    file of ours with "". A file that can't be read is skipped: opencode itself will report it.
    """
    for file in read_in(env, folder):
        if file.is_file():
            with suppress(UserError, Unavailable):
                yield from ((file, spec) for spec in _load(file)[1] if ours(spec))
    for plugin in (path for base in _bases(env, folder) for path in base.glob("plugin*/*.[jt]s")):
        with suppress(UserError, Unavailable):
            if plugin.parent.name in ("plugin", "plugins") and SHIM_MARK in read(plugin):
                yield plugin, ""


def read_in(env: Mapping[str, str], folder: Path) -> list[Path]:
    """The settings files that opencode reads when it is started in ``folder``; they may be missing."""
    files = [base / name for base in _bases(env, folder) for name in (*NAMES, "config.json")]
    chosen = env.get("OPENCODE_CONFIG")
    return [*files, Path(chosen)] if chosen else files


def _bases(env: Mapping[str, str], folder: Path) -> list[Path]:
    """The folders whose settings and plugins opencode loads when it is started in ``folder``."""
    bases = [_global_folder(env)]
    for base in (folder, *folder.parents):
        bases += [base, base / ".opencode"]
        if (base / ".git").exists():
            break
    for name, tail in (("HOME", ".opencode"), ("OPENCODE_CONFIG_DIR", "")):
        bases += [Path(env[name], tail)] if env.get(name) else []
    return list(dict.fromkeys(bases))


def _global_folder(env: Mapping[str, str]) -> Path:
    config, home = env.get("XDG_CONFIG_HOME", ""), env.get("HOME", "")
    base = Path(config) if config else Path(home, ".config")  # as opencode looks for it
    if not base.is_absolute():
        raise UserError("XDG_CONFIG_HOME or HOME must be an absolute path, to find opencode's settings")
    return base / "opencode"


def _load(file: Path) -> tuple[str, list[str]]:
    """The text of a settings file, and what its plugin list loads. Raises ``UserError``, ``Unavailable``."""
    from ...files.jsonc import plugins, spec_of

    text = read_text(file)
    try:
        return text, [spec_of(entry) for entry in plugins(text)]
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed: mend it and run this again") from error
