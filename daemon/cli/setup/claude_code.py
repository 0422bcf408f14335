"""``reflectd setup claude-code``: adds our plugin to Claude Code's settings, and removes it again.

Decides which settings file is edited, and writes two entries: ``extraKnownMarketplaces.reflectd`` (the
plugin's copy in the data folder, which Claude Code reads in place) and
``enabledPlugins["reflectd@reflectd"]``. Everything else in the file stays as it is. With
``--reflect`` it also makes a bare `/reflect` among the person's own commands, because a plugin's command
answers only to its full name. ``--remove`` also removes what Claude Code wrote down about us, our backups,
that command, and the settings file and folder when they are empty then.
A file that is no settings file is a ``UserError`` and is not changed.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...core.errors import Unavailable, UserError
from ...files import commands
from ...files.safe import remove_empty
from ...paths import PACKAGE, shipped
from . import copies, edit
from .edit import NOTHING, Action, Extra, Report, check_editable, diff, fleeting, read, read_text, stay_inside

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

HOST = "claude-code"
NAME, PLUGIN = "reflectd", "reflectd@reflectd"
MARKET = ("extraKnownMarketplaces", NAME)
ENABLED = ("enabledPlugins", PLUGIN)
NOTED = (("known_marketplaces.json", (NAME,)), ("installed_plugins.json", ("plugins", PLUGIN)))
OLDEST = (2, 1, 197)
FULL, SHIPPED = "/reflectd:reflect", "shims/claude-code/commands/reflect.md"
MANAGED = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)


def setup(args: argparse.Namespace, env: Mapping[str, str], now: Callable[[], datetime]) -> Report:
    """Do what the arguments say. Raises ``UserError``, ``Unavailable``, ``OSError``."""
    file = (Path.cwd() / ".claude" if args.project else config_folder(env)) / "settings.json"
    if args.project:
        stay_inside(Path.cwd(), (file, command_of(file)))
    if args.reflect and commands.is_ours(command_of(file)) is False:
        raise UserError(
            f"{command_of(file)} is a command of your own, which setup leaves alone: ours is {FULL}. "
            "Nothing was changed"
        )
    if args.undo:
        return _undo(args, env, file, now)
    there = os.path.lexists(file)
    old, settings = load(file) if there else ("", {})
    if args.remove:
        gone = remove_command(env, file, dry_run=args.dry_run)
        report = _remove(env, file, old, settings, force=args.force, dry_run=args.dry_run)
        return replace(report, command=gone)
    folder = str(copies.place(env, HOST))
    text = _with_ours(file, old, settings, folder)
    if problem := skipped(text):
        raise UserError(f"{file}: {problem}. Nothing was changed: mend it and run this again")
    warnings = tuple(filter(None, [fleeting(str(PACKAGE)), *_about_project(args)]))
    if text != old:
        check_editable(file, force=args.force)
    bare = _command(args, env, file, now)
    copied = not args.dry_run and copies.refresh(env, HOST, make=True)
    if text == old:
        return Report(file, "unchanged", folder, None, "", warnings, copied, bare)
    backup = None if args.dry_run else edit.write(env, file, old.encode(), text.encode(), now)
    ours = entry(settings) is not None or PLUGIN in settings.get(ENABLED[0], {})
    action: Action = "replaced" if ours else "added" if there else "created"
    return Report(file, action, folder, backup, diff(file, old, text), warnings, copied, bare)


def _undo(
    args: argparse.Namespace, env: Mapping[str, str], file: Path, now: Callable[[], datetime]
) -> Report:
    """Take the last change back. Where that leaves nothing of us in the settings, `/reflect` goes with it;
    where nothing but that was changed, it is what is taken back.
    """
    kept = edit.kept(env, file)
    if not kept and is_our_command(env, command_of(file)):
        report = Report(file, "unchanged")
    else:
        report = edit.undo(env, [file], now, force=args.force, dry_run=args.dry_run)
    gone = remove_command(env, file, dry_run=args.dry_run) if len(kept) <= 1 else NOTHING
    if not args.dry_run:
        remove_empty([file.parent])
        _clear(env, file)
    return replace(report, command=gone)


def command_of(settings: Path) -> Path:
    """The bare `/reflect` beside this settings file."""
    return settings.parent / commands.NAME


def _command(
    args: argparse.Namespace, env: Mapping[str, str], settings: Path, now: Callable[[], datetime]
) -> Extra:
    """Make the bare `/reflect` if the arguments say so; one of ours is brought up to date."""
    file = command_of(settings)
    if args.reflect is False:
        return remove_command(env, settings, dry_run=args.dry_run)
    ours, asked = commands.is_ours(file), bool(args.reflect)
    if ours is False or not (ours or asked):
        return NOTHING
    old, text = read(file), shipped(SHIPPED).read_bytes()
    if ours and not is_our_command(env, file):
        return Extra(f"{file} was edited since and stays as it is") if asked else NOTHING
    if ours and old == text:
        return Extra(f"{file} is there already") if asked else NOTHING
    if args.dry_run:
        return Extra(f"{file} would be {'brought up to date' if ours else 'made'}")
    if ours:  # an older text of ours: nothing that anybody would want back
        edit.put_back(env, file, old, None)
    edit.write(env, file, b"", text, now)
    return Extra(f"{file} {'is of this version now' if ours else 'made'}", changed=True)


def remove_command(env: Mapping[str, str], settings: Path, *, dry_run: bool = False) -> Extra:
    """Take the bare `/reflect` away, if nobody edited it."""
    file = command_of(settings)
    if not commands.is_ours(file):
        return NOTHING
    if not is_our_command(env, file):
        return Extra(f"{file} was edited since and stays: delete it if you don't need it")
    if dry_run:
        return Extra(f"{file} would be removed")
    edit.put_back(env, file, read(file), None)
    return Extra(f"{file} removed", changed=True)


def is_our_command(env: Mapping[str, str], file: Path) -> bool:
    """Says whether it is our command, as some ``setup`` wrote it."""
    if file.is_symlink() or not commands.is_ours(file):
        return False
    return edit.before(env, file) == (True, None) or read(file) == shipped(SHIPPED).read_bytes()


def _with_ours(file: Path, text: str, settings: Mapping[str, Any], folder: str) -> str:
    from ...files.jsonc import put

    found = settings.get(MARKET[0], {}).get(NAME)
    if found is not None and entry(settings) is None:
        raise UserError(
            f"{file} names another marketplace {NAME!r}: remove it from {MARKET[0]}, then run this again"
        )
    value = {"source": {"source": "directory", "path": folder}}
    if entry(settings) != folder:
        text = put(text, MARKET, value)
    return put(text, ENABLED, value=True)


def _remove(
    env: Mapping[str, str],
    file: Path,
    old: str,
    settings: Mapping[str, Any],
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Report:
    from ...files.jsonc import is_bare, take
    from ...files.jsonc import read as members

    folder, enabled = entry(settings), PLUGIN in settings.get(ENABLED[0], {})
    others = [f"{other} enables reflectd too: it is still loaded from there" for other in _others(env, file)]
    foreign = folder is None and NAME in settings.get(MARKET[0], {})
    if foreign or not (folder is not None or enabled):
        return Report(file, "unchanged", warnings=tuple(others))
    text: str | None = take(take(old, ENABLED), MARKET)
    untouched, data = edit.before(env, file)
    if untouched and data is None:
        text = None
    elif untouched and data is not None and not _mentions(members(data.decode(), MARKET, ENABLED)):
        text = data.decode()
    elif text is not None and is_bare(text) and not file.is_symlink():
        text = None
    check_editable(file, force=force)
    if not dry_run:
        edit.put_back(env, file, old.encode(), None if text is None else text.encode())
        remove_empty([file.parent])
        _clear(env, file)
    return Report(file, "removed", folder or "", None, diff(file, old, text or ""), tuple(others))


def traces(env: Mapping[str, str], folder: Path) -> Iterator[tuple[Path, str, Callable[[], object]]]:
    """Our parts of the files that Claude Code reads in ``folder`` or that ``setup`` edited: file, part, and
    how it is taken out. A file that can't be read has nothing of ours.
    """
    files = dict.fromkeys([*read_in(env, folder), *edit.edited_files(env)])
    for file in dict.fromkeys([*map(command_of, files), *files]):
        if is_our_command(env, file):
            yield file, "our command", partial(edit.put_back, env, file, read(file), None)
    for file in files:
        with suppress(UserError, Unavailable):
            text, settings = load(file) if file.is_file() else ("", {})
            if _mentions(settings):
                yield file, "our entries", partial(_remove, env, file, text, settings)


def loads(env: Mapping[str, str], folder: Path) -> list[Path]:
    """The settings files through which Claude Code loads us when it is started in ``folder``."""
    return [file for file, _, on in enabled_in(env, folder) if on]


def _clear(env: Mapping[str, str], file: Path) -> None:
    """After our entries are gone: remove what Claude Code noted, and the plugin's copy, unless another file
    loads us.
    """
    if not any(on for _, _, on in enabled_in(env, Path.cwd())):
        _forget(env)
    copies.remove_unused(env, HOST, [file, *edit.edited_files(env), *read_in(env, Path.cwd())])


def _mentions(settings: Mapping[str, Any]) -> bool:
    return NAME in settings.get(MARKET[0], {}) or PLUGIN in settings.get(ENABLED[0], {})


def _forget(env: Mapping[str, str]) -> None:
    """Remove what Claude Code wrote down about our plugin. It works without these notes, so one that can't be
    edited is left.
    """
    from ...files.jsonc import read as members
    from ...files.jsonc import take
    from ...files.safe import write_atomic

    folder = config_folder(env) / "plugins"
    for name, path in NOTED:
        file = folder / name
        with suppress(UserError, Unavailable, OSError):
            text = read_text(file)
            if path == (NAME,) and entry({MARKET[0]: members(text)}) is None:
                continue
            if (after := take(text, path)) != text:
                write_atomic(file, after.encode(), mode=None, follow=True, expected=text.encode())
    for empty in (f"data/{NAME}-{NAME}", "data", f"cache/{NAME}/{NAME}", f"cache/{NAME}", "cache"):
        with suppress(OSError):
            (folder / empty).rmdir()


def entry(settings: Mapping[str, Any]) -> str | None:
    """The folder that our marketplace entry names; None when there is no entry, or one that is not ours."""
    found = settings.get(MARKET[0], {}).get(NAME)
    source = found.get("source") if isinstance(found, dict) else None
    path = source.get("path") if isinstance(source, dict) and source.get("source") == "directory" else None
    return path if isinstance(path, str) else None


def read_in(env: Mapping[str, str], folder: Path) -> list[Path]:
    """The settings files that Claude Code reads when it is started in ``folder``; they may be missing."""
    files = [config_folder(env) / "settings.json"]
    files += [folder / ".claude" / name for name in ("settings.json", "settings.local.json")]
    return list(dict.fromkeys(files))


def enabled_in(env: Mapping[str, str], folder: Path) -> Iterator[tuple[Path, str | None, bool]]:
    """The settings files that name us and that Claude Code reads when it is started in ``folder``: the file,
    the folder of ours that it names (or None), and whether our plugin is enabled in it.

    A file that can't be read is left out: ``doctor`` reports it.
    """
    for file in read_in(env, folder):
        with suppress(UserError, Unavailable):
            settings = load(file)[1] if file.is_file() else {}
            if _mentions(settings):
                yield file, entry(settings), settings.get(ENABLED[0], {}).get(PLUGIN) is True


def silenced(env: Mapping[str, str], folder: Path, managed: Sequence[Path] = MANAGED) -> Iterator[str]:
    """Why no hook of ours runs although the plugin is enabled: what settings that count in ``folder``, or
    those of an organisation (``managed``), switch off.
    """
    ruled = [file for place in managed for file in (place, *sorted(place.with_suffix(".d").glob("*.json")))]
    loaded = [path for _, path, on in enabled_in(env, folder) if on and path is not None]
    for file in (*ruled, *read_in(env, folder)):
        with suppress(UserError, Unavailable, OSError):
            settings = load(file)[1] if file.is_file() else {}
            if settings.get("disableAllHooks") is True:
                yield f"{file}: disableAllHooks is true, so no hook runs"
            elif file in ruled and settings.get("allowManagedHooksOnly") is True:
                yield f"{file}: allowManagedHooksOnly is true, so only hooks of the organisation run"
            elif file in ruled and _is_refused(settings):
                yield f"{file}: the organisation switches the plugin off"
            elif file in ruled and (key := _keeps_out(settings, loaded)):
                yield f"{file}: {key} keeps out the plugin's marketplace, the folder {', '.join(loaded)}"


def _is_refused(settings: Mapping[str, Any]) -> bool:
    plugins = settings.get(ENABLED[0])
    return isinstance(plugins, dict) and plugins.get(PLUGIN) is False


def _keeps_out(settings: Mapping[str, Any], folders: Sequence[str]) -> str:
    """The key of an organisation's settings by which Claude Code loads no plugin from one of ``folders``. An
    allowlist that is no list allows nothing.
    """
    for key in (
        "strictKnownMarketplaces",
        "allowedMarketplaces",
    ):  # the second is read where the first is not
        if key in settings:
            if any(not _is_listed(settings[key], folder) for folder in folders):
                return key
            break
    blocked = settings.get("blockedMarketplaces")
    return "blockedMarketplaces" if any(_is_listed(blocked, folder) for folder in folders) else ""


def _is_listed(sources: object, folder: str) -> bool:
    """Says whether a list of marketplaces names the folder, by its path or by a pattern."""
    for source in sources if isinstance(sources, list) else ():
        match source:
            case {"source": "directory", "path": str(path)} if path == folder:
                return True
            case {"source": "pathPattern", "pathPattern": str(pattern)}:
                with suppress(re.error):
                    if re.search(pattern, folder):
                        return True
    return False


def _others(env: Mapping[str, str], file: Path) -> list[Path]:
    return [other for other, _, on in enabled_in(env, Path.cwd()) if on and other != file]


def _about_project(args: argparse.Namespace) -> Iterator[str]:
    if args.project:
        yield "Claude Code reads this file only in a trusted folder: start it here once and say yes"
    if args.project and Path(".git").exists():
        yield "this file is usually shared with others: the path in it is of this machine"


def skipped(text: str) -> str:
    """Why Claude Code would skip a settings file with this text, although we can read it; empty if it reads
    it. Then the plugin is not loaded, and no other setting of the file counts.
    """
    import json

    try:
        json.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        where = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        return (
            f"{where}Claude Code skips a file with comments or trailing commas, or that is otherwise no JSON"
        )
    return ""


def config_folder(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps the person's settings."""
    chosen, home = env.get("CLAUDE_CONFIG_DIR", ""), env.get("HOME", "")
    folder = Path(chosen) if chosen else Path(home, ".claude")
    if not folder.is_absolute():
        raise UserError("CLAUDE_CONFIG_DIR or HOME must be an absolute path, to find Claude Code's settings")
    return folder


def load(file: Path) -> tuple[str, dict[str, Any]]:
    """The text and the settings in it. Raises ``UserError`` when Claude Code would refuse them."""
    from ...files.jsonc import read as members

    text = read_text(file)
    try:
        return text, members(text, MARKET, ENABLED)
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed: mend it and run this again") from error
