"""How Claude Code is connected: by ``extraKnownMarketplaces.reflectd`` (the plugin's copy in the data folder)
and ``enabledPlugins["reflectd@reflectd"]`` in its settings; with ``--reflect`` also by a bare `/reflect`
among the person's own commands, because a plugin's command answers only to its full name.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ...core.errors import Unavailable, UserError
from ...files import commands, jsonc
from ...files.safe import remove_empty, write_atomic
from ...paths import shipped
from .connect import Host
from .edit import Change, check_editable, edited_files, kept, read, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NAME, PLUGIN = "reflectd", "reflectd@reflectd"
MARKET = ("extraKnownMarketplaces", NAME)
ENABLED = ("enabledPlugins", PLUGIN)
NOTED = (("known_marketplaces.json", (NAME,)), ("installed_plugins.json", ("plugins", PLUGIN)))
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
    oldest = (2, 1, 197)

    def files(self, env: Mapping[str, str]) -> list[Path]:
        """One file."""
        return [config_folder(env) / "settings.json"]

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

    def silenced(
        self, env: Mapping[str, str], folder: Path, managed: Sequence[Path] = MANAGED
    ) -> Iterator[str]:
        """Settings that count in ``folder``, or those of an organisation, which switch hooks off."""
        ruled = [f for place in managed for f in (place, *sorted(place.with_suffix(".d").glob("*.json")))]
        for file in (*ruled, *self.read_in(env, folder)):
            with suppress(UserError, Unavailable):
                settings = load(file)
                if settings.get("disableAllHooks") is True:
                    yield f"{file}: disableAllHooks is true, so no hook runs"
                elif file in ruled and settings.get("allowManagedHooksOnly") is True:
                    yield f"{file}: allowManagedHooksOnly is true, so only hooks of the organisation run"
                elif file in ruled and settings.get(ENABLED[0], {}).get(PLUGIN) is False:
                    yield f"{file}: the organisation switches the plugin off"

    def forget(self, env: Mapping[str, str], file: Path, old: str) -> None:
        """Remove what Claude Code wrote down about our plugin, unless another file loads us. It works without
        these notes, so one that can't be edited is left.
        """
        del old
        remove_empty([file.parent, config_folder(env)])
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

    def connect(self, env: Mapping[str, str], folder: Path, *, command: bool = False) -> list[Change]:
        """Also the bare `/reflect`: made where it was asked for; one of ours is brought up to date."""
        changes = super().connect(env, folder)
        file, text = command_of(changes[0].file), shipped(SHIPPED).read_bytes()
        ours = commands.is_ours(file)
        if command and ours is False:
            raise UserError(
                f"{file} is a command of your own, which setup leaves alone: ours is {FULL}. "
                "Nothing was changed"
            )
        if not ours and not command:
            return changes
        old = read(file)
        if ours and not is_our_command(env, file):
            stays = f"{file} was edited since and stays as it is"
            return [replace(changes[0], warnings=(*changes[0].warnings, stays))] if command else changes
        check_editable(file)
        change = Change(file, "replaced" if ours else "created", old, text, FULL)
        return [*changes, change if old != text else Change(file, line=FULL)]

    def disconnect(self, env: Mapping[str, str], folder: Path) -> list[Change]:
        """A `/reflect` that was edited stays, and is named."""
        first, *more = super().disconnect(env, folder)
        file = command_of(self.files(env)[0])
        if commands.is_ours(file) and not is_our_command(env, file):
            stays = f"{file} was edited since and stays: delete it if you don't need it"
            first = replace(first, warnings=(*first.warnings, stays))
        return [first, *more]

    def ours_in(self, env: Mapping[str, str]) -> list[Path]:
        """The commands too, last."""
        files = super().ours_in(env)
        named = dict.fromkeys(map(command_of, [*self.files(env), *edited_files(env)]))
        return [*files, *(file for file in named if is_our_command(env, file))]

    def removal(self, env: Mapping[str, str], file: Path) -> Change:
        """A command goes as it came."""
        if file.name != Path(commands.NAME).name:
            return super().removal(env, file)
        check_editable(file)
        return Change(file, "deleted", read(file), None, FULL)


CLAUDE_CODE: Final = ClaudeCode()


# --- the bare `/reflect` ------------------------------------------------------------------------------------


def command_of(settings: Path) -> Path:
    """The bare `/reflect` beside this settings file."""
    return settings.parent / commands.NAME


def is_our_command(env: Mapping[str, str], file: Path) -> bool:
    """Says whether it is our command, as some ``setup`` wrote it."""
    if file.is_symlink() or not commands.is_ours(file):
        return False
    way = kept(env, file)
    return (way.untouched and way.before is None) or read(file) == shipped(SHIPPED).read_bytes()


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
