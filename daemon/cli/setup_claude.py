"""``reflectd setup claude-code``: puts our plugin into Claude Code's settings, and takes it out again.

Owns: which settings file, and the two entries: ``extraKnownMarketplaces.reflectd`` (our folder, which Claude
Code reads in place) and ``enabledPlugins["reflectd@reflectd"]``. Everything else in the file stays as it is.
``--remove`` also takes out what Claude Code noted about us, our backups, and a file or folder that it leaves
empty. A file that is not what it should be is a ``UserError`` and is not touched.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daemon.cli.setup_edit import Action, Report, check_editable, diff, fleeting, read_text, write
from daemon.core.errors import Unavailable, UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

NAME, PLUGIN = "reflectd", "reflectd@reflectd"
MARKET = ("extraKnownMarketplaces", NAME)
ENABLED = ("enabledPlugins", PLUGIN)
NOTED = (("known_marketplaces.json", (NAME,)), ("installed_plugins.json", ("plugins", PLUGIN)))
OLDEST = (2, 1, 197)


def add_parser(hosts: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``setup claude-code``."""
    parser = hosts.add_parser("claude-code", help="load the plugin in Claude Code")
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--user", action="store_true", help="in all your projects (the default)")
    scope.add_argument("--project", action="store_true", help="in this folder only")
    parser.add_argument("--remove", action="store_true", help="take our entries out, and nothing else")
    parser.add_argument("--force", action="store_true", help="even if the file is someone else's")
    parser.add_argument("--dry-run", action="store_true", help="show the change, write nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.set_defaults(setup=setup, host_name="Claude Code")


def setup(args: argparse.Namespace, env: Mapping[str, str], now: Callable[[], datetime]) -> Report:
    """Do what the arguments say. Raises ``UserError``, ``Unavailable``, ``OSError``."""
    from daemon.paths import shipped

    file = (Path.cwd() / ".claude" if args.project else config_folder(env)) / "settings.json"
    there = os.path.lexists(file)
    old, settings = load(file) if there else ("", {})
    if args.remove:
        return _remove(args, env, file, old, settings)
    folder = str(shipped("shims/claude-code"))
    text = _with_ours(file, old, settings, folder)
    warnings = tuple(filter(None, [fleeting(folder), *_about_project(args)]))
    if text == old:
        return Report(file, "unchanged", folder, None, "", warnings)
    check_editable(file, force=args.force)
    backup = None if args.dry_run else write(file, text.encode(), now)
    ours = entry(settings) is not None or PLUGIN in settings.get(ENABLED[0], {})
    action: Action = "replaced" if ours else "added" if there else "created"
    return Report(file, action, folder, backup, diff(file, old, text), warnings)


def _with_ours(file: Path, text: str, settings: Mapping[str, Any], folder: str) -> str:
    from daemon.files.jsonc_members import put

    found = settings.get(MARKET[0], {}).get(NAME)
    if found is not None and entry(settings) is None:
        raise UserError(
            f"{file} names another marketplace {NAME!r}: take it out of {MARKET[0]}, then run this again"
        )
    value = {"source": {"source": "directory", "path": folder}}
    if entry(settings) != folder:
        text = put(text, MARKET, value)
    return put(text, ENABLED, value=True)


def _remove(
    args: argparse.Namespace, env: Mapping[str, str], file: Path, old: str, settings: Mapping[str, Any]
) -> Report:
    from daemon.files.jsonc_members import is_bare, take

    folder, enabled = entry(settings), PLUGIN in settings.get(ENABLED[0], {})
    others = [f"{other} enables reflectd too: it is still loaded from there" for other in _others(env, file)]
    foreign = folder is None and NAME in settings.get(MARKET[0], {})
    if foreign or not (folder is not None or enabled):
        return Report(file, "unchanged", "", None, "", tuple(others))
    text = take(take(old, ENABLED), MARKET)
    as_it_was = _untouched(file)
    if as_it_was is not None:
        text = as_it_was
    check_editable(file, force=args.force)
    if not args.dry_run:
        _replace(file, text, delete=is_bare(text) and as_it_was is None)
        if not others:
            _forget(env)
    return Report(file, "removed", folder or "", None, diff(file, old, text), tuple(others))


def _replace(file: Path, text: str, *, delete: bool) -> None:
    """Write what is left; nothing left means that there was no file, and perhaps no folder, before us."""
    from daemon.files.atomic import backups, write_atomic

    if delete and not file.is_symlink():
        file.unlink()
    else:
        write_atomic(file, text.encode(), mode=None, follow=True)
    for _, backup in backups(file):
        backup.unlink()
    with suppress(OSError):
        file.parent.rmdir()


def _untouched(file: Path) -> str | None:
    """The text from before us, when nobody has edited the file since: so that every byte is as it was."""
    from daemon.files.atomic import backups
    from daemon.files.jsonc_members import read

    for _, backup in reversed(backups(file)):
        with suppress(UserError, OSError):
            text = read_text(backup)
            settings = read(text, MARKET, ENABLED)
            if backup.stat().st_mtime_ns == file.stat().st_mtime_ns and not _mentions(settings):
                return text
        return None
    return None


def _mentions(settings: Mapping[str, Any]) -> bool:
    return NAME in settings.get(MARKET[0], {}) or PLUGIN in settings.get(ENABLED[0], {})


def _forget(env: Mapping[str, str]) -> None:
    """What Claude Code noted about our plugin. It does without, so what can't be mended here stays."""
    from daemon.files.atomic import write_atomic
    from daemon.files.jsonc_members import read, take

    folder = config_folder(env) / "plugins"
    for name, path in NOTED:
        file = folder / name
        with suppress(UserError, Unavailable, OSError):
            text = read_text(file)
            if path == (NAME,) and entry({MARKET[0]: read(text)}) is None:
                continue
            if (after := take(text, path)) != text:
                write_atomic(file, after.encode(), mode=None, follow=True)
    for empty in (f"data/{NAME}-{NAME}", "data", f"cache/{NAME}/{NAME}", f"cache/{NAME}", "cache"):
        with suppress(OSError):
            (folder / empty).rmdir()


def entry(settings: Mapping[str, Any]) -> str | None:
    """The folder that our marketplace entry names; None when there is none, or another's of that name."""
    found = settings.get(MARKET[0], {}).get(NAME)
    source = found.get("source") if isinstance(found, dict) else None
    path = source.get("path") if isinstance(source, dict) and source.get("source") == "directory" else None
    return path if isinstance(path, str) else None


def enabled_in(env: Mapping[str, str], folder: Path) -> Iterator[tuple[Path, str | None, bool]]:
    """Where Claude Code, started in ``folder``, reads of us: the file, our folder if it says so, enabled?

    What cannot be read is left out: Claude Code itself will complain.
    """
    files = [config_folder(env) / "settings.json"]
    files += [folder / ".claude" / name for name in ("settings.json", "settings.local.json")]
    for file in dict.fromkeys(files):
        with suppress(UserError, Unavailable):
            settings = load(file)[1] if file.is_file() else {}
            if _mentions(settings):
                yield file, entry(settings), settings.get(ENABLED[0], {}).get(PLUGIN) is True


def _others(env: Mapping[str, str], file: Path) -> list[Path]:
    return [other for other, _, on in enabled_in(env, Path.cwd()) if on and other != file]


def _about_project(args: argparse.Namespace) -> Iterator[str]:
    if args.project:
        yield "Claude Code reads this file only in a trusted folder: start it here once and say yes"
    if args.project and Path(".git").exists():
        yield "this file is usually shared with others: the path in it is of this machine"


def config_folder(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps the person's settings."""
    chosen, home = env.get("CLAUDE_CONFIG_DIR", ""), env.get("HOME", "")
    folder = Path(chosen) if chosen else Path(home, ".claude")
    if not folder.is_absolute():
        raise UserError("CLAUDE_CONFIG_DIR or HOME must be an absolute path, to find Claude Code's settings")
    return folder


def load(file: Path) -> tuple[str, dict[str, Any]]:
    """Text and settings. ``UserError`` when they are not what Claude Code would take."""
    from daemon.files.jsonc_members import read

    text = read_text(file)
    try:
        return text, read(text, MARKET, ENABLED)
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed: mend it and run this again") from error
