"""The only reader of settings: the environment, the person's file, flags, and a project's file.

From weak to strong: defaults, the person's file, the environment, flags. A mistake in any of them is a
``UserError`` that names every wrong key.

A project's ``.reflection/config.toml`` is someone else's file (it comes with a clone), so it is no layer. It
may only tighten what the layers gave, however strong they are: the tighter of the two holds. It never stops
the daemon. Whether a key in it is a problem depends on that file alone, not on the person's settings:

* a key that a project may not set, an unknown key, a value that would loosen: ignored;
* a value that can't be understood, on a key that may be tightened: counts as the tightest value;
* a file that can't be read or parsed: ``judge.mode = "observe"``, so that nothing is sent.
"""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from daemon.core.errors import UserError
from daemon.core.redact import redact
from daemon.core.settings import (
    SETTINGS,
    TRUE,
    Anthropic,
    OpenAI,
    Setting,
    Settings,
    Value,
    settings_table,
    toml,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "SETTINGS",
    "Keys",
    "Row",
    "Settings",
    "explain",
    "from_text",
    "load",
    "load_keys",
    "load_project",
    "settings_table",
    "tighten",
]

PROJECT_FILE = ".reflection/config.toml"
KEY_LIMIT = 4 * 1024
FILE_LIMIT = 64 * 1024  # bytes; a settings file has a few hundred
PROJECT_LIMIT = 4 * 1024  # tomllib is quadratic on dotted keys: 64 KB of them take 20 s, 4 KB take 0.1 s
MAX_PROBLEMS = 20
FOREIGN = frozenset({"REFLECTD_CHILD"})  # names under our prefix that are no settings


class Row(NamedTuple):
    """One line of ``reflectd config``."""

    key: str
    value: Value
    source: str
    doc: str


class Keys(NamedTuple):
    """API keys; never logged, never shown."""

    anthropic: str = ""
    openai: str = ""

    def __repr__(self) -> str:
        """Without the keys."""
        return f"Keys(anthropic={bool(self.anthropic)}, openai={bool(self.openai)})"


class _Given(NamedTuple):
    setting: Setting
    value: Any
    source: str


def load(
    env: Mapping[str, str],
    config_file: Path,
    flags: Mapping[str, object] | None = None,
    defaults: Mapping[str, Value] | None = None,
) -> Settings:
    """The settings of this process. A missing file is an empty one. Raises ``UserError``."""
    try:
        text = _read(config_file, FILE_LIMIT)
    except (OSError, ValueError) as error:
        raise UserError(f"{config_file} can't be read: {error}") from None
    return from_text(text, name=str(config_file), env=env, flags=flags, defaults=defaults)


def load_keys(env: Mapping[str, str], settings: Settings) -> Keys:
    """The keys, from the files the settings name or else from the environment. Raises ``UserError``.

    A key of the environment belongs to the vendor and goes nowhere else: another address needs a file.
    """
    return Keys(
        _key("anthropic", settings.anthropic, env.get("ANTHROPIC_API_KEY", "")),
        _key("openai", settings.openai, env.get("OPENAI_API_KEY", "")),
    )


def _key(section: str, api: Anthropic | OpenAI, from_env: str) -> str:
    name = api.key_file
    if not name:
        return "" if api.base_url else from_env.strip()
    path = Path(name).expanduser()
    try:
        found = _read(path, KEY_LIMIT).strip()
    except (OSError, ValueError) as error:
        raise UserError(f"{section}.key_file: {path} can't be read: {error}") from None
    if not found:
        raise UserError(f"{section}.key_file: {path} is missing or empty; put the key there or unset it")
    return found


def from_text(
    text: str = "",
    *,
    name: str = "config.toml",
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    defaults: Mapping[str, Value] | None = None,
) -> Settings:
    """Settings from the text of the person's file, an environment and flags. ``name`` is for messages.

    ``flags`` maps dotted keys to values or to the text typed; None means not given. ``defaults`` replaces
    defaults, for a daemon that a host started. Raises ``UserError`` with one line per mistake.
    """
    problems: list[str] = []
    try:
        leaves = list(_leaves(_parse(text)))
    except ValueError as error:
        raise UserError(f"{name} is not valid TOML: {error}") from None
    given = [_Given(SETTINGS[key], value, "default") for key, value in (defaults or {}).items()]
    for key, value in leaves:
        setting = SETTINGS.get(key)
        if setting is None:
            problems.append(f"{name}: {_unknown(key)}")
        elif not setting.in_file:
            problems.append(
                f"{name}: {key} can't be set in a file, set {setting.env} in the environment instead"
            )
        else:
            given.append(_Given(setting, value, name))
    given += _from_env(env or {}, problems)
    for key, value in (flags or {}).items():
        if value is not None:
            setting = SETTINGS[key]
            given.append(
                _Given(setting, setting.parse(value) if isinstance(value, str) else value, setting.flag)
            )
    problems += [_wrong(g) for g in given if not g.setting.valid(g.value)]
    if problems:
        raise UserError("\n".join(problems[:MAX_PROBLEMS]))
    return _with(Settings(), given)


def load_project(base: Settings, directory: Path) -> tuple[Settings, list[str]]:
    """``base`` tightened by the project in ``directory``, and what is wrong with its file. Never raises."""
    try:
        text = _read(directory / PROJECT_FILE, PROJECT_LIMIT)
    except (OSError, ValueError) as error:
        return _observe(base, f"{PROJECT_FILE} can't be read: {error}")
    return tighten(base, text)


def tighten(base: Settings, text: str, name: str = PROJECT_FILE) -> tuple[Settings, list[str]]:
    """``base`` tightened by the text of a project's file, and the problems in it. Never raises."""
    try:
        leaves = list(_leaves(_parse(text)))
    except ValueError as error:
        return _observe(base, f"{name} is not valid TOML: {error}", name)
    settings, problems = base, []
    for key, value in leaves:
        setting = SETTINGS.get(key)
        if setting is None:
            problems.append(f"{name}: {_unknown(key)}; ignored")
            continue
        if not setting.tighten:
            problems.append(f"{name}: a project may not set {key}; ignored")
            continue
        wish: Any = value
        if not setting.valid(value):
            wish = setting.tightest
            problems.append(f"{_wrong(_Given(setting, value, name))}; taken as {toml(wish)}")
        elif _loosens(setting, wish):
            problems.append(f"{name}: {key} = {toml(value)} tightens nothing; ignored")
            continue
        now = _get(settings, key)
        if (wish < now) if setting.tighten == "lower" else (wish != now):
            settings = _with(settings, [_Given(setting, wish, name)])
    return settings, problems[:MAX_PROBLEMS]


def _loosens(setting: Setting, wish: Any) -> bool:  # noqa: ANN401 - one of Value
    """Whether a project's wish can tighten nothing, whatever the person's value is."""
    if setting.tighten in {"on", "off"}:
        return wish is not setting.tightest
    return bool(wish == setting.default or (setting.tighten == "lower" and wish > setting.default))


def explain(settings: Settings) -> list[Row]:
    """Every setting with its value and who set it, in the table's order."""
    return [
        Row(key, _get(settings, key), settings.sources.get(key, "default"), setting.doc)
        for key, setting in SETTINGS.items()
    ]


def _from_env(env: Mapping[str, str], problems: list[str]) -> Iterator[_Given]:
    """Set names that are empty count as not set. A name of ours that is no setting is a mistake."""
    if env.get("REFLECTION_DEBUG", "").strip().lower() in TRUE:  # shared with other plugins: lenient
        yield _Given(SETTINGS["log.debug"], True, "REFLECTION_DEBUG")
    names = {s.env: s for s in SETTINGS.values()}
    for name in sorted(n for n in env if n.startswith("REFLECTD_")):
        if name in names and env[name].strip():
            yield _Given(names[name], names[name].parse(env[name]), name)
        elif name not in names and name not in FOREIGN:
            near = _nearest(name, names)
            if near or name.split("_")[1].lower() in {s.partition(".")[0] for s in SETTINGS}:
                problems.append(f"environment: {name} is no setting{near}")


def _with(base: Settings, given: Iterable[_Given]) -> Settings:
    sections: dict[str, dict[str, Any]] = {"": {}}
    sources = dict(base.sources)
    for setting, value, source in given:
        section, _, name = setting.key.rpartition(".")
        sections.setdefault(section, {})[name] = value
        sources[setting.key] = source
    top: dict[str, Any] = sections.pop("")
    top |= {section: replace(getattr(base, section), **values) for section, values in sections.items()}
    return replace(base, **top, sources=sources)


def _observe(base: Settings, problem: str, name: str = PROJECT_FILE) -> tuple[Settings, list[str]]:
    given = _Given(SETTINGS["judge.mode"], "observe", name)
    return _with(base, [given] if base.judge.mode != "observe" else []), [problem]


def _get(settings: Settings, key: str) -> Any:  # noqa: ANN401 - one of Value, as the field says
    section, _, name = key.rpartition(".")
    return getattr(getattr(settings, section) if section else settings, name)


def _read(path: Path, limit: int) -> str:
    """The text of a settings file, "" when there is none. A clone may hold a FIFO or 2 GB there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("it is not a regular file")
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise ValueError(f"it is larger than {limit} bytes")
    return raw.decode("utf-8")


def _parse(text: str) -> dict[str, object]:
    if not text.strip():
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _leaves(table: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Dotted keys and values, without recursion: the nesting is the file's choice."""
    todo: list[tuple[str, object]] = [(key, value) for key, value in reversed(table.items())]
    while todo:
        key, value = todo.pop()
        if isinstance(value, dict) and value and len(key) < 200:
            todo += [(f"{key}.{name}", inner) for name, inner in reversed(value.items())]
        elif value != {} or not any(k.startswith(key + ".") for k in SETTINGS):
            yield key, value


def _unknown(key: str) -> str:
    shown = ascii(key[:60])[1:-1]
    inside = [k for k in SETTINGS if k.startswith(key + ".")]
    if inside:
        return f"{shown} is a table: write [{shown}]"
    return f"unknown setting {shown}{_nearest(key, SETTINGS)}"


def _nearest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(
        name[:60].removeprefix("REFLECTD_"), [k.removeprefix("REFLECTD_") for k in known], 1
    )
    full = next((k for k in known if near and k.removeprefix("REFLECTD_") == near[0]), "")
    return f", did you mean {full}?" if full else ""


def _wrong(given: _Given) -> str:
    value = given.value
    shown = redact(ascii(value)[:60]) if isinstance(value, str | int | float) else f"a {type(value).__name__}"
    return f"{given.source}: {given.setting.key} must be {given.setting.allowed}, not {shown}"
