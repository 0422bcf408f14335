"""``reflectd setup opencode``: puts our line into opencode's ``plugin`` list, and takes it out again.

Owns: which settings file, what counts as our line, and what the person is told. Edits one file per run,
changes nothing but that list, and keeps the five newest backups beside it. When anything is wrong the file
stays as it was: exit code 2 (yours to mend, with how) or 1 (the file system said no).
"""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from daemon.core.errors import Unavailable, UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

NAMES = ("opencode.json", "opencode.jsonc")
NEW_FILE = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n'
BACKUPS_KEPT = 5
SHIM_MARK = b"reflectd.loaded"  # in our plugin's source and bundle, whatever a copy is called

Action = Literal["created", "added", "replaced", "removed", "restored", "unchanged"]
SAID: dict[Action, str] = {
    "created": "Made {file}, which loads reflectd.",
    "added": "Added reflectd to {file}.",
    "replaced": "Updated the reflectd line in {file}.",
    "removed": "Took reflectd out of {file}.",
    "restored": "Brought {file} back as it was.",
}
# The npm name, or a path into an installed package, a checkout, node_modules or the built bundle.
_OURS = re.compile(
    r"^(npm:)?opencode-reflectd(@|$)|/opencode-reflectd(/|$)"
    r"|/(daemon/shims|plugin-shim)/opencode(/|$)|/reflectd\.[cm]?[jt]s$"
)
_FLEETING = ("/uv/archive-v", "/uv/builds-v", "/pipx/.cache/")  # what uvx and `pipx run` delete again


@dataclass(frozen=True, slots=True)
class Report:
    """What was done, or would be."""

    file: Path
    action: Action
    line: str
    backup: Path | None
    diff: str
    warnings: tuple[str, ...] = ()


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``setup opencode``."""
    setup = subparsers.add_parser("setup", help="connect a coding agent to reflectd")
    hosts = setup.add_subparsers(dest="host", required=True, metavar="HOST")
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
    parser.set_defaults(run=run)


def run(
    args: argparse.Namespace,
    *,
    env: Mapping[str, str] = os.environ,
    now: Callable[[], datetime] | None = None,
) -> int:
    """Do what the arguments say and report it. The exit code: 0, 1 unavailable, 2 yours to mend."""
    try:
        report = _setup(args, env, now or _utc_now)
    except (UserError, Unavailable, OSError) as error:
        what = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        if args.json:
            _print_json({"error": what})
        else:
            print(f"reflectd: {what}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    _tell(report, args, env)
    return 0


def _setup(args: argparse.Namespace, env: Mapping[str, str], now: Callable[[], datetime]) -> Report:
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
        _check_editable(file, force=args.force)
        backup = None if args.dry_run else _write(file, text.encode(), now)
    return Report(file, action, line, backup, _diff(file, old, text), warnings)


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


def _write(file: Path, data: bytes, now: Callable[[], datetime]) -> Path | None:
    from daemon.files.atomic import back_up, write_atomic

    file.parent.mkdir(parents=True, exist_ok=True)
    backup = back_up(file, f"{now():%Y%m%dT%H%M%S}", keep=BACKUPS_KEPT) if file.exists() else None
    write_atomic(file, data, mode=None, follow=True)
    if backup:  # so that --undo sees whether the file was edited since
        written = file.stat().st_mtime_ns
        os.utime(backup, ns=(written, written))
    return backup


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
    _check_editable(file, force=args.force)
    kept = None
    if not args.dry_run:
        if edited:
            kept = _write(file, new, now)
        else:
            write_atomic(file, new, mode=None, follow=True)
        backup.unlink(missing_ok=True)
    return Report(file, "restored", "", kept, _diff(file, old.decode(errors="replace"), new.decode()))


def _check_editable(file: Path, *, force: bool) -> None:
    if not file.exists():
        return
    found = file.stat()
    name = f"{file} (a link to {file.resolve()})" if file.is_symlink() else str(file)
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{name} is not a regular file")
    if found.st_uid != os.geteuid() and not force:
        raise UserError(f"{name} belongs to user {found.st_uid}: run this as that user, or add --force")
    if not found.st_mode & stat.S_IWUSR:
        raise UserError(f"{name} is read-only: chmod u+w it, or change it in the tool that generates it")


def _warnings(
    env: Mapping[str, str], folder: Path, file: Path, line: str, ours: Callable[[str], bool], *, removed: bool
) -> Iterator[str]:
    """Where else opencode finds us. The same line in two files is loaded once, anything else twice."""
    if any(part in line for part in _FLEETING) and not removed:
        yield "reflectd runs from a temporary folder: uv tool install it, then run this again"
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

    try:
        text = file.read_bytes().decode()
        return text, [spec_of(entry) for entry in plugins(text)]
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed: mend it and run this again") from error
    except OSError as error:
        raise Unavailable(f"can't read {file}: {error.strerror}") from error


def _diff(file: Path, old: str, new: str) -> str:
    from difflib import unified_diff

    lines = unified_diff(old.splitlines(True), new.splitlines(True), str(file), f"{file} (new)")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _tell(report: Report, args: argparse.Namespace, env: Mapping[str, str]) -> None:
    changed = report.action != "unchanged"
    if args.json:
        backup = str(report.backup) if report.backup else None
        values = {"file": str(report.file), "changed": changed, "backup": backup, "line": report.line}
        more = {"dry_run": args.dry_run, "diff": report.diff, "warnings": report.warnings}
        _print_json({**values, "action": report.action, **more})
        return
    for warning in report.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if not changed:
        print(f"{report.file} {'does not load' if args.remove else 'already loads'} reflectd: nothing to do.")
    elif args.dry_run:
        print(report.diff, end="")
    else:
        print(SAID[report.action].format(file=report.file))
        if report.line:
            print(f"  line:   {report.line}")
        if report.backup:
            print(f"  backup: {report.backup} (the same command with --undo brings it back)")
        if report.action in {"created", "added"}:
            print(f"  judge:  {_judge(env)}")
        print("Next: restart opencode.")


def _judge(env: Mapping[str, str]) -> str:
    """Who will judge and what it may cost: said before the first cent is spent."""
    from daemon import config, paths

    try:
        settings = config.load(env, paths.config_file(env))
    except UserError as error:
        return f"the daemon will not start with these settings: {error}"
    if settings.judge.provider == "offline":
        return "fixed rules, no model, no cost"
    who = "your session's own model" if settings.judge.provider in {"auto", "host"} else "a model's API"
    cap = settings.spend.cents_per_day / 100
    return (
        f"{who}, at most {cap:.2f} USD a day (`reflectd cost`); "
        'without a model: judge.provider = "offline" in ' + str(paths.config_file(env))
    )


def _print_json(value: Mapping[str, object]) -> None:
    import json

    print(json.dumps(value))


def _utc_now() -> datetime:
    from datetime import UTC, datetime

    return datetime.now(UTC)
