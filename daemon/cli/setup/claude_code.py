"""How Claude Code is connected: by ``extraKnownMarketplaces.reflectd`` (the plugin's copy in the data folder)
and ``enabledPlugins["reflectd@reflectd"]`` in its settings; with ``--reflect`` also by a bare `/reflect`
among the person's own commands, because a plugin's command answers only to its full name.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ...core.errors import Unavailable, UserError
from ...files import commands, jsonc
from ...files.safe import remove_empty, write_atomic
from ...paths import shipped
from . import edit
from .connect import Host
from .edit import NOTHING, Extra, Report, read, read_text, stay_inside

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

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


class ClaudeCode(Host):
    """See the module."""

    host, program = "claude-code", "claude"
    places = (".local/bin/claude", ".claude/local/claude")
    address = "https://claude.com/claude-code"
    part = "our entries"

    def files(self, env: Mapping[str, str], project: Path | None) -> list[Path]:
        """The person's, or those that are shared in a project."""
        return [(config_folder(env) if project is None else project / ".claude") / "settings.json"]

    def read_in(self, env: Mapping[str, str], folder: Path) -> list[Path]:
        """The person's, and both of the folder."""
        files = [config_folder(env) / "settings.json"]
        files += [folder / ".claude" / name for name in ("settings.json", "settings.local.json")]
        return list(dict.fromkeys(files))

    def mine(self, text: str) -> list[str]:
        """The plugin's folder, or the plugin's name where only that stands there."""
        settings = _parsed(text)
        folder = entry(settings)
        if folder is None and NAME in settings.get(MARKET[0], {}):
            return []
        return [folder or PLUGIN] if _mentions(settings) else []

    def put(self, text: str, line: str) -> str:
        """An entry of ours is updated where it stands."""
        settings = _parsed(text)
        if NAME in settings.get(MARKET[0], {}) and entry(settings) is None:
            raise UserError(f"it names another marketplace {NAME!r} in {MARKET[0]}: remove that")
        if entry(settings) != line:
            text = jsonc.put(text, MARKET, {"source": {"source": "directory", "path": line}})
        text = jsonc.put(text, ENABLED, value=True)
        if problem := skipped(text):
            raise UserError(problem)
        return text

    def take(self, text: str, before: str) -> str:
        """Both entries go, and the objects that they leave empty."""
        del before
        return jsonc.take(jsonc.take(text, ENABLED), MARKET)

    def loads(self, env: Mapping[str, str], folder: Path) -> list[Path]:
        """Those in which the plugin is switched on."""
        return [file for file, _, on in enabled_in(env, folder) if on]

    def warnings(self, env: Mapping[str, str], folder: Path, file: Path, text: str) -> Iterator[str]:
        """About the settings of a project."""
        del text
        if file not in self.files(env, None):
            yield "Claude Code reads this file only in a trusted folder: start it here once and say yes"
            if (folder / ".git").exists():
                yield "this file is usually shared with others: the path in it is of this machine"

    def silenced(
        self, env: Mapping[str, str], folder: Path, managed: Sequence[Path] = MANAGED
    ) -> Iterator[str]:
        """Settings that count in ``folder``, or those of an organisation, which switch hooks off."""
        ruled = [f for place in managed for f in (place, *sorted(place.with_suffix(".d").glob("*.json")))]
        loaded = [path for _, path, on in enabled_in(env, folder) if on and path is not None]
        for file in (*ruled, *self.read_in(env, folder)):
            with suppress(UserError, Unavailable):
                settings = load(file)
                if settings.get("disableAllHooks") is True:
                    yield f"{file}: disableAllHooks is true, so no hook runs"
                elif file in ruled and settings.get("allowManagedHooksOnly") is True:
                    yield f"{file}: allowManagedHooksOnly is true, so only hooks of the organisation run"
                elif file in ruled and _is_refused(settings):
                    yield f"{file}: the organisation switches the plugin off"
                elif file in ruled and (key := _keeps_out(settings, loaded)):
                    yield f"{file}: {key} keeps out the plugin's marketplace, the folder {', '.join(loaded)}"

    def forget(self, env: Mapping[str, str], file: Path, old: str) -> None:
        """Remove what Claude Code wrote down about our plugin, unless another file loads us. It works without
        these notes, so one that can't be edited is left.
        """
        del old
        remove_empty([file.parent])
        if self.loads(env, Path.cwd()):
            return
        folder = config_folder(env) / "plugins"
        for name, path in NOTED:
            noted = folder / name
            with suppress(UserError, Unavailable, OSError):
                text = read_text(noted)
                if path == (NAME,) and entry({MARKET[0]: jsonc.read(text)}) is None:
                    continue
                if (after := jsonc.take(text, path)) != text:
                    write_atomic(noted, after.encode(), mode=None, follow=True, expected=text.encode())
        empty = (f"data/{NAME}-{NAME}", "data", f"cache/{NAME}/{NAME}", f"cache/{NAME}", "cache")
        remove_empty(folder / name for name in empty)

    def setup(self, args: argparse.Namespace, env: Mapping[str, str], now: Callable[[], datetime]) -> Report:
        """As for every agent, and the bare `/reflect`. It is undone with the settings, unless they have
        another change of ours; where nothing but it was changed, it is what ``--undo`` takes back.
        """
        (file,) = self.files(env, Path.cwd() if args.project else None)
        command = command_of(file)
        if args.project:
            stay_inside(Path.cwd(), [command])
        if args.reflect and commands.is_ours(command) is False:
            raise UserError(
                f"{command} is a command of your own, which setup leaves alone: ours is {FULL}. "
                "Nothing was changed"
            )
        kept = edit.kept(env, file)
        if args.undo and not kept and is_our_command(env, command):
            report = Report(file, "unchanged")
        else:
            report = super().setup(args, env, now)
        if args.undo and len(kept) > 1:
            return report
        if args.undo or args.remove or args.reflect is False:
            return replace(report, command=_remove_command(env, file, dry_run=args.dry_run))
        made = _make_command(env, command, now, asked=bool(args.reflect), dry_run=args.dry_run)
        return replace(report, command=made)

    def traces(
        self, env: Mapping[str, str], folder: Path
    ) -> Iterator[tuple[Path, str, Callable[[], object]]]:
        """First the commands."""
        files = dict.fromkeys([*self.read_in(env, folder), *edit.edited_files(env)])
        for file in dict.fromkeys([*map(command_of, files), *files]):
            if is_our_command(env, file):
                yield file, "our command", partial(edit.put_back, env, file, read(file), None)
        yield from super().traces(env, folder)


CLAUDE_CODE: Final = ClaudeCode()


# --- the bare `/reflect` ------------------------------------------------------------------------------------


def command_of(settings: Path) -> Path:
    """The bare `/reflect` beside this settings file."""
    return settings.parent / commands.NAME


def is_our_command(env: Mapping[str, str], file: Path) -> bool:
    """Says whether it is our command, as some ``setup`` wrote it."""
    if file.is_symlink() or not commands.is_ours(file):
        return False
    return edit.before(env, file) == (True, None) or read(file) == shipped(SHIPPED).read_bytes()


def _make_command(
    env: Mapping[str, str], file: Path, now: Callable[[], datetime], *, asked: bool, dry_run: bool
) -> Extra:
    """Make it where it was asked for; one of ours is brought up to date."""
    ours = commands.is_ours(file)
    if ours is False or not (ours or asked):
        return NOTHING
    old, text = read(file), shipped(SHIPPED).read_bytes()
    if ours and not is_our_command(env, file):
        return Extra(f"{file} was edited since and stays as it is") if asked else NOTHING
    if ours and old == text:
        return Extra(f"{file} is there already") if asked else NOTHING
    if dry_run:
        return Extra(f"{file} would be {'brought up to date' if ours else 'made'}")
    if ours:  # an older text of ours: nothing that anybody would want back
        edit.put_back(env, file, old, None)
    edit.write(env, file, b"", text, now)
    return Extra(f"{file} {'is of this version now' if ours else 'made'}", changed=True)


def _remove_command(env: Mapping[str, str], settings: Path, *, dry_run: bool) -> Extra:
    """Take it away, if nobody edited it."""
    file = command_of(settings)
    if not commands.is_ours(file):
        return NOTHING
    if not is_our_command(env, file):
        return Extra(f"{file} was edited since and stays: delete it if you don't need it")
    if dry_run:
        return Extra(f"{file} would be removed")
    edit.put_back(env, file, read(file), None)
    remove_empty([settings.parent])
    return Extra(f"{file} removed", changed=True)


# --- the settings -------------------------------------------------------------------------------------------


def config_folder(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps the person's settings."""
    chosen, home = env.get("CLAUDE_CONFIG_DIR", ""), env.get("HOME", "")
    folder = Path(chosen) if chosen else Path(home, ".claude")
    if not folder.is_absolute():
        raise UserError("CLAUDE_CONFIG_DIR or HOME must be an absolute path, to find Claude Code's settings")
    return folder


def load(file: Path) -> dict[str, Any]:
    """The settings in a file. Raises ``UserError`` when Claude Code would refuse them."""
    return _parsed(read_text(file))


def _parsed(text: str) -> dict[str, Any]:
    return jsonc.read(text, MARKET, ENABLED)


def _mentions(settings: Mapping[str, Any]) -> bool:
    return NAME in settings.get(MARKET[0], {}) or PLUGIN in settings.get(ENABLED[0], {})


def entry(settings: Mapping[str, Any]) -> str | None:
    """The folder that our marketplace entry names; None when there is no entry, or one that is not ours."""
    match settings.get(MARKET[0], {}).get(NAME):
        case {"source": {"source": "directory", "path": str(path)}}:
            return path
    return None


def enabled_in(env: Mapping[str, str], folder: Path) -> Iterator[tuple[Path, str | None, bool]]:
    """The settings files that name us and that Claude Code reads when it is started in ``folder``: the file,
    the folder of ours that it names (or None), and whether our plugin is enabled in it.

    A file that can't be read is left out: ``doctor`` reports it.
    """
    for file in CLAUDE_CODE.read_in(env, folder):
        with suppress(UserError, Unavailable):
            settings = load(file)
            if _mentions(settings):
                yield file, entry(settings), settings.get(ENABLED[0], {}).get(PLUGIN) is True


def skipped(text: str) -> str:
    """Why Claude Code would skip a settings file with this text, although we can read it; empty if it reads
    it. Then the plugin is not loaded, and no other setting of the file counts.
    """
    try:
        json.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        where = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        return (
            f"{where}Claude Code skips a file with comments or trailing commas, or that is otherwise no JSON"
        )
    return ""


def _is_refused(settings: Mapping[str, Any]) -> bool:
    plugins = settings.get(ENABLED[0])
    return isinstance(plugins, dict) and plugins.get(PLUGIN) is False


def _keeps_out(settings: Mapping[str, Any], folders: Sequence[str]) -> str:
    """The key by which an organisation keeps out one of these folders; a wrong allowlist allows none."""
    names = ("strictKnownMarketplaces", "allowedMarketplaces")  # the second is read where the first is not
    allowed = next((name for name in names if name in settings), "")
    if allowed and not all(_is_listed(settings[allowed], folder) for folder in folders):
        return allowed
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
