"""``reflectd setup opencode``: puts our line into opencode's ``plugin`` list, and takes it out again.

Owns: which settings file, what counts as our line, and where else opencode would load us. Edits one file per
run, changes nothing but that list, and keeps the five newest backups beside it.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from daemon.cli.setup_edit import Action, Report, check_editable, diff, fleeting, read_text, write
from daemon.core.errors import Unavailable, UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

NAMES = ("opencode.json", "opencode.jsonc")
NEW_FILE = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n'
SHIM_MARK = b"reflectd.loaded"  # in our plugin's source and bundle, whatever a copy is called
# The npm name, or a path into an installed package, a checkout, node_modules or the built bundle.
_OURS = re.compile(
    r"^(npm:)?opencode-reflectd(@|$)|/opencode-reflectd(/|$)"
    r"|/(daemon/shims|plugin-shim)/opencode(/|$)|/reflectd\.[cm]?[jt]s$"
)


def add_parser(hosts: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``setup opencode``."""
    parser = hosts.add_parser("opencode", help="load the plugin in opencode")
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--global", action="store_true", help="everywhere (the default)")
    scope.add_argument("--project", action="store_true", help="in this folder only")
    scope.add_argument("--dir", metavar="DIR", help="in that folder only")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--remove", action="store_true", help="take our line out, and nothing else")
    what.add_argument("--undo", action="store_true", help="bring the file back as it was before")
    parser.add_argument("--spec", help="what opencode loads, for example opencode-reflectd from npm")
    parser.add_argument("--force", action="store_true", help="even if edited since, or someone else's")
    parser.add_argument("--dry-run", action="store_true", help="show the change, write nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.set_defaults(setup=setup, host_name="opencode")


def setup(args: argparse.Namespace, env: Mapping[str, str], now: Callable[[], datetime]) -> Report:
    """Do what the arguments say. Raises ``UserError``, ``Unavailable``, ``OSError``."""
    from daemon import paths

    folder = Path(args.dir or ".").absolute()
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    bases = [folder, folder / ".opencode"] if args.project or args.dir else [_global_folder(env)]
    files = [base / name for base in bases for name in NAMES]
    if args.undo:
        return _undo(files, args, now)
    line = args.spec or ("" if args.remove else paths.shipped("shims/opencode/index.ts").as_uri())

    def ours(spec: str) -> bool:
        return spec == line or bool(_OURS.search(spec))

    file = _choose(files, ours)
    old, listed = _load(file) if file.exists() else ("", [])
    action, text, line = _edit(file, old, line, [spec for spec in listed if ours(spec)], remove=args.remove)
    warnings = tuple(_warnings(env, folder, file, line, ours, removed=args.remove))
    backup = None
    if action != "unchanged":
        check_editable(file, force=args.force)
        backup = None if args.dry_run else write(file, text.encode(), now)
    return Report(file, action, line, backup, diff(file, old, text), warnings)


def _choose(files: list[Path], ours: Callable[[str], bool]) -> Path:
    """All of them are loaded, so: the one with our line, else with a plugin list, else the first."""
    there = {file: _load(file)[1] for file in files if file.exists()}
    with_ours = [file for file, listed in there.items() if any(map(ours, listed))]
    with_list = [file for file, listed in there.items() if listed]
    return [*with_ours, *with_list, *there, *files][0]


def _edit(file: Path, old: str, line: str, mine: list[str], *, remove: bool) -> tuple[Action, str, str]:
    """What is done, the new text, and the line it is about."""
    from daemon.files.jsonc import add_plugin, remove_plugin, replace_plugin

    if mine == ([] if remove else [line]):
        return "unchanged", old, line
    if remove:
        return "removed", remove_plugin(old, mine.__contains__), mine[0]
    if not file.exists():
        return "created", add_plugin(NEW_FILE, line), line
    if mine:
        return "replaced", replace_plugin(old, mine.__contains__, line), line
    return "added", add_plugin(old, line), line


def _undo(files: list[Path], args: argparse.Namespace, now: Callable[[], datetime]) -> Report:
    """Bring the newest backup back, and use it up. Edits made since need --force, and are backed up."""
    from daemon.files.atomic import backups, write_atomic

    found = [(stamp, backup, file) for file in files for stamp, backup in backups(file)]
    if not found:
        raise UserError(f"there is no backup in {files[0].parent}: use --remove to take our line out")
    _, backup, file = max(found)
    old, new = file.read_bytes() if file.exists() else b"", backup.read_bytes()
    edited = not file.exists() or file.stat().st_mtime_ns != backup.stat().st_mtime_ns
    if edited and not args.force:
        raise UserError(
            f"{file} was changed after our backup {backup.name}: use --remove to take out only our line, "
            "or --undo --force to bring the backup back (your version is then backed up)"
        )
    check_editable(file, force=args.force)
    kept = None
    if not args.dry_run:
        if edited:
            kept = write(file, new, now)
        else:
            write_atomic(file, new, mode=None, follow=True)
        backup.unlink(missing_ok=True)
    return Report(file, "restored", "", kept, diff(file, old.decode(errors="replace"), new.decode()))


def _warnings(
    env: Mapping[str, str], folder: Path, file: Path, line: str, ours: Callable[[str], bool], *, removed: bool
) -> Iterator[str]:
    """Where else opencode finds us. The same line in two files is loaded once, anything else twice."""
    if not removed and (warning := fleeting(line)):
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
    """Where opencode finds us when it is started in ``folder``: a settings file and its line, or a plugin
    file of ours and "". What cannot be read is left out: opencode itself will complain.
    """
    bases = _bases(env, folder)
    files = [base / name for base in bases for name in (*NAMES, "config.json")]
    for file in [*files, Path(env.get("OPENCODE_CONFIG") or os.devnull)]:
        if file.is_file():
            with suppress(UserError, Unavailable):
                yield from ((file, spec) for spec in _load(file)[1] if ours(spec))
    for plugin in (path for base in bases for path in base.glob("plugin*/*.[jt]s")):
        with suppress(OSError):
            if plugin.parent.name in ("plugin", "plugins") and SHIM_MARK in plugin.read_bytes():
                yield plugin, ""


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
    """The text, and what its plugin list loads."""
    from daemon.files.jsonc import plugins, spec_of

    text = read_text(file)
    try:
        return text, [spec_of(entry) for entry in plugins(text)]
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed: mend it and run this again") from error
