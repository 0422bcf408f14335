"""Reads all settings: from the environment, the person's file, flags, and a project's file.

When several of them set the same key, the later one in this list counts: defaults, the person's file, the
environment, flags. A mistake in any of them is a ``UserError`` that names every wrong key.

A project's ``.reflection/config.toml`` comes with a clone, so somebody else may have written it. It can only
make a setting stricter, and then the stricter value counts, wherever the other one came from. It never stops
the daemon. Only that file decides whether a key in it is a problem; the person's settings do not:

* a key that a project may not set, an unknown key, and a value that is less strict than the default are
  ignored;
* a value that can't be understood, for a key that a project may set, counts as the strictest value;
* a file that can't be read or parsed sets ``judge.mode = "observe"``, so that nothing is sent.

Keys of APIs are in ``keys``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from .core.errors import UserError, words
from .core.settings import (
    SETTINGS,
    TRUE,
    Setting,
    Settings,
    Value,
    settings_table,
    toml,
)
from .files.safe import read_text
from .redact import redact_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = [
    "SETTINGS",
    "Row",
    "Settings",
    "digests",
    "explain",
    "from_text",
    "load",
    "load_project",
    "named",
    "settings_table",
    "tighten",
    "value_of",
]

PROJECT_FILE = ".reflection/config.toml"
FILE_LIMIT = 64 * 1024  # bytes; a settings file has a few hundred
PROJECT_LIMIT = 4 * 1024  # tomllib takes quadratic time for dotted keys, so a line may not have many
MAX_DOTS = 30
MAX_PROBLEMS = 20
GUESSES = 3  # a misspelled name takes milliseconds to guess
FOREIGN = frozenset(  # variables with our prefix that are no settings
    {"REFLECTD_CHILD", "REFLECTD_HEADLESS", "REFLECTD_PROOF"}
)


class Row(NamedTuple):
    """One line of ``reflectd config``."""

    key: str
    value: Value
    source: str
    doc: str


class _Given(NamedTuple):
    setting: Setting
    value: Any
    source: str


def load(
    env: Mapping[str, str],
    config_file: Path,
    flags: Mapping[str, object] | None = None,
    left_out: list[str] | None = None,
) -> Settings:
    """The settings of this process. A missing file counts as an empty one. Raises ``UserError``.

    With a list ``left_out``, mistakes in the file and the environment don't raise: they are added to the
    list, and those settings stay as they would be without them.
    """
    try:
        text = read_text(config_file, FILE_LIMIT) or ""
    except (OSError, ValueError) as error:
        problem = f"{config_file} can't be read: {words(error)}"
        if left_out is None:
            raise UserError(problem) from None
        left_out.append(problem)
        text = ""
    return from_text(text, name=str(config_file), env=env, flags=flags, left_out=left_out)


def digests(config_file: Path) -> dict[str, str]:
    """The person's file: a digest of each value by its key, for comparison. A file that can't be read or
    parsed counts as one value. Never raises.
    """
    from hashlib import sha256

    try:
        leaves = dict(_leaves(_parse(read_text(config_file, FILE_LIMIT) or "")))
    except (OSError, ValueError) as error:
        leaves = {str(config_file): str(error)}
    return {_shown(key): sha256(repr(value).encode()).hexdigest()[:12] for key, value in leaves.items()}


def from_text(
    text: str = "",
    *,
    name: str = "config.toml",
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    left_out: list[str] | None = None,
) -> Settings:
    """Settings from the text of the person's file, an environment and flags. ``name`` is for messages.

    ``flags`` maps dotted keys to values or to the text that was typed; None means not given.
    ``left_out`` as in ``load``. Raises ``UserError`` with one line per mistake.
    """
    problems: list[str] = []
    leaves: list[tuple[str, object]] = []
    try:
        leaves = list(_leaves(_parse(text)))
    except ValueError as error:
        problems.append(f"{name} is not valid TOML: {error}")
    given: list[_Given] = []
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
    if left_out is not None:
        left_out += [*problems, *(_wrong(g) for g in given if not g.setting.valid(g.value))]
        problems, given = [], [g for g in given if g.setting.valid(g.value)]
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
    """``base``, made stricter by the project in ``directory``, and the problems in its file. Never raises."""
    try:
        text = read_project(directory)
    except (OSError, ValueError) as error:
        return unread(base, words(error))
    return tighten(base, text)


def read_project(directory: Path) -> str:
    """The text of the project's file, "" when it has none. Raises ``OSError`` and ``ValueError``."""
    return read_text(directory / PROJECT_FILE, PROJECT_LIMIT) or ""


def project_command(directory: Path) -> str:
    """The check that the project's file names, "" when it names none that can be one. It counts only where
    the person trusts it (``files.prompts.trusts_command``). Never raises.
    """
    try:
        leaves = dict(_project_leaves(read_project(directory)))
    except (OSError, ValueError):
        return ""
    command = leaves.get("proof.command", "")
    return command if isinstance(command, str) and SETTINGS["proof.command"].valid(command) else ""


def unread(base: Settings, why: str) -> tuple[Settings, list[str]]:
    """``base``, for a project whose file can't be read."""
    return _observe(base, f"{PROJECT_FILE} can't be read: {why}")


def _project_leaves(text: str) -> list[tuple[str, object]]:
    """The settings in the text of a project's file, which is parsed within bounds. Raises ``ValueError``."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    if any(line.count(".") > MAX_DOTS for line in lines):
        raise ValueError(f"a line has more than {MAX_DOTS} dots")
    return list(_leaves(_parse(text)))


def tighten(base: Settings, text: str, name: str = PROJECT_FILE) -> tuple[Settings, list[str]]:
    """``base``, made stricter by the text of a project's file, and the problems in it. Never raises."""
    try:
        leaves = _project_leaves(text)
    except ValueError as error:
        return _observe(base, f"{name} can't be used: {error}", name)
    settings, problems = base, list[str]()
    for key, value in leaves:
        setting = SETTINGS.get(key)
        if setting is None:
            guess = _unknown(key) if len(problems) < GUESSES else f"unknown setting {_shown(key)}"
            problems.append(f"{name}: {guess}; ignored")
            continue
        if not setting.tighten:
            problems.append(f"{name}: a project may not set {key}; ignored")
            continue
        if setting.tighten == "trusted":
            problems += [] if setting.valid(value) else [f"{_wrong(_Given(setting, value, name))}; ignored"]
            continue
        wish: Any = value
        if not setting.valid(value):
            wish = setting.tightest
            problems.append(f"{_wrong(_Given(setting, value, name))}; it counts as {toml(wish)}")
        elif _loosens(setting, wish):
            problems.append(f"{name}: {key} = {toml(value)} is not stricter than the default; ignored")
            continue
        now = _get(settings, key)
        if (wish < now) if setting.tighten == "lower" else (wish != now):
            settings = _with(settings, [_Given(setting, wish, name)])
    return settings, problems[:MAX_PROBLEMS]


def _loosens(setting: Setting, wish: Any) -> bool:  # noqa: ANN401 - one of Value
    """Says whether a project's value can't be stricter than any value of the person."""
    if setting.tighten == "off":
        return wish is not setting.tightest
    return bool(wish == setting.default or (setting.tighten == "lower" and wish > setting.default))


def explain(settings: Settings) -> list[Row]:
    """Every setting with its value and where it was set, in the order of the table."""
    return [
        Row(key, _get(settings, key), settings.sources.get(key, "default"), setting.doc)
        for key, setting in SETTINGS.items()
    ]


def named(key: str) -> Setting:
    """The setting of that name. Raises ``UserError`` with the nearest one."""
    setting = SETTINGS.get(key)
    if setting is None:
        raise UserError(_unknown(key))
    return setting


def value_of(key: str, text: str) -> Value:
    """The value that a person typed for a setting of the file. Raises ``UserError`` as the file would."""
    setting = named(key)
    if not setting.in_file:
        raise UserError(f"{key} can't be set in a file, set {setting.env} in the environment instead")
    value: Any = setting.parse(text)
    if not setting.valid(value):
        raise UserError(_wrong(_Given(setting, value, "config set")))
    found: Value = value
    return found


def _from_env(env: Mapping[str, str], problems: list[str]) -> Iterator[_Given]:
    """The settings of the environment. An empty variable counts as not set. A variable with our prefix that
    is no setting is a mistake, when it looks like one.
    """
    if (
        env.get("REFLECTION_DEBUG", "").strip().lower() in TRUE
    ):  # other plugins read it too: any value is fine
        yield _Given(SETTINGS["log.level"], "debug", "REFLECTION_DEBUG")
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


def _parse(text: str) -> dict[str, object]:
    if not text.strip():
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _leaves(table: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Dotted keys and values. It does not recurse, because a file can nest as deep as it likes."""
    todo: list[tuple[str, object]] = [(key, value) for key, value in reversed(table.items())]
    while todo:
        key, value = todo.pop()
        if isinstance(value, dict) and value and len(key) < 200:
            todo += [(f"{key}.{name}", inner) for name, inner in reversed(value.items())]
        elif value != {} or not any(k.startswith(key + ".") for k in SETTINGS):
            yield key, value


def _unknown(key: str) -> str:
    shown = _shown(key)
    inside = [k for k in SETTINGS if k.startswith(key + ".")]
    if inside:
        return f"{shown} is a table: write [{shown}]"
    return f"unknown setting {shown}{_nearest(key, SETTINGS)}"


def _shown(key: str) -> str:
    return ascii(key[:60])[1:-1]


def _nearest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(
        name[:60].removeprefix("REFLECTD_"), [k.removeprefix("REFLECTD_") for k in known], 1
    )
    full = next((k for k in known if near and k.removeprefix("REFLECTD_") == near[0]), "")
    return f", did you mean {full}?" if full else ""


def _wrong(given: _Given) -> str:
    value = given.value
    plain = isinstance(value, str | int | float)
    shown = redact_head(ascii(value), 60) if plain else f"a {type(value).__name__}"
    return f"{given.source}: {given.setting.key} must be {given.setting.allowed}, not {shown}"
