"""All settings: their meaning, defaults and allowed values. ``daemon.config`` reads files and environment.

Each setting is declared once, as a field of ``Settings`` or of one of its sections. ``SETTINGS`` is the table
of them; validation, environment names, command-line flags and the docs come from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import astuple

Value = bool | int | str
Tighten = Literal["", "off", "lower", "observe", "trusted"]
"""A project's rights over a setting; none costs the person."""
_T = TypeVar("_T")
MOST_NAMES = 50  # in one list
COMMAND_CHARS = 500
GATE_S = 20
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


class Setting(Struct, frozen=True):
    """One row of the table. ``key`` is dotted; the type is that of ``default``."""

    key: str
    default: Value
    doc: str
    choices: tuple[str, ...] = ()
    range: tuple[int, int] = (0, 0)
    form: str = ""
    tighten: Tighten = ""
    env: str = ""
    in_file: bool = True

    @property
    def flag(self) -> str:
        return "--" + self.key.replace(".", "-").replace("_", "-")

    @property
    def allowed(self) -> str:
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, int):
            return f"a whole number from {self.range[0]} to {self.range[1]}"
        if self.choices:
            return " or ".join(f'"{c}"' for c in self.choices)
        return _FORMS[self.form][0]

    @property
    def tightest(self) -> Value:
        """The value in force when a project's value can't be read."""
        wishes: dict[str, Value] = {"off": False, "lower": self.range[0], "observe": "observe"}
        return wishes.get(self.tighten, self.default)

    def valid(self, value: object) -> bool:
        if type(value) is not type(self.default):
            return False
        if isinstance(value, str):
            if self.choices:
                return value in self.choices
            return _FORMS[self.form][1](value)
        return isinstance(value, bool) or (isinstance(value, int) and self.range[0] <= value <= self.range[1])

    def parse(self, text: str) -> object:
        """A value from the environment or the command line. A text that can't be parsed stays a text."""
        if isinstance(self.default, bool):
            low = text.strip().lower()
            return True if low in TRUE else False if low in FALSE else text
        if isinstance(self.default, int):
            digits = text.strip()
            return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else text
        return text


def names(text: str) -> tuple[str, ...]:
    """The names in a text that has commas between them, without blanks around each; none in an empty text."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


def folders(text: str) -> tuple[str, ...]:
    """The folders in such a text: ``./a/`` is ``a``."""
    return tuple(name.removeprefix("./").rstrip("/") for name in names(text))


def _is_word(value: str) -> bool:
    return value.isprintable() and " " not in value


def _is_inside(value: str) -> bool:
    """Says whether it is a relative path that leads out of no folder, to a `playbook.json`."""
    return _is_below(value) and value.rpartition("/")[2] == "playbook.json"


def _is_below(value: str) -> bool:
    return value.isprintable() and not {"", ".", "..", ".git"} & set(value.split("/"))


def _is_model(value: str) -> bool:
    provider, _, model = value.partition("/")
    return not value or (bool(provider and model) and _is_word(value))


def _are_names(value: str) -> bool:
    found = names(value)
    return not value or (len(found) <= MOST_NAMES and all(name and _is_word(name) for name in found))


_FORMS: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "path": ("an absolute path", lambda v: not v or v.startswith(("/", "~/"))),
    "model": ('"provider/model" or ""', _is_model),
    "url": (
        'an address with http:// or https://, or ""',
        lambda v: not v or (v.startswith(("http://", "https://")) and _is_word(v)),
    ),
    "name": ("a model's name", lambda v: bool(v) and _is_word(v)),
    "names": ('models\' names with commas between them, or ""', _are_names),
    "folders": (
        'folders of the project with commas between them, or ""',
        lambda v: len(folders(v)) <= MOST_NAMES and all(map(_is_below, folders(v))),
    ),
    "variable": ('the name of a variable, or ""', lambda v: not v or (v.isascii() and v.isidentifier())),
    "playbook": ('a `playbook.json` inside the project, or ""', lambda v: not v or _is_inside(v)),
    "command": (
        'a command on one line, or ""',
        lambda v: v.isprintable() and len(v) <= COMMAND_CHARS,
    ),
}
"""The forms of texts: in words for a person, and whether a text has it."""


class _Declared(Generic[_T]):
    """The default of a setting, and what else its row of the table says: a factory, for ``msgspec.field``."""

    def __init__(self, default: _T, rules: dict[str, Any]) -> None:
        self.default = default
        self.rules = rules

    def __call__(self) -> _T:
        return self.default


def _setting(default: _T, doc: str, **rules: object) -> _T:
    kept: _T = field(default_factory=_Declared(default, {"doc": doc, **rules}))
    return kept


class Judge(Struct, frozen=True):
    """The judge, and the consequences of a verdict."""

    mode: Literal["act", "observe"] = _setting(
        "act",
        '"act" sends feedback to the agent; "observe" judges and records, and sends nothing',
        choices=("act", "observe"),
        tighten="observe",
    )
    provider: Literal["auto", "host", "anthropic", "openai", "claude-cli", "offline"] = _setting(
        "auto",
        '"host" asks your own model through opencode, "anthropic" and "openai" ask these APIs (or any like '
        'them), "claude-cli" asks your Claude Code on your own login and limits, "offline" judges by fixed '
        'rules; "auto" takes the first of these that is there and works, never "claude-cli"',
        choices=("auto", "host", "anthropic", "openai", "claude-cli", "offline"),
    )
    claude_code: Literal["", "claude-cli", "anthropic", "openai", "offline"] = _setting(
        "",
        "the same for sessions of Claude Code, which lends no model of its own; empty means as "
        "`judge.provider` says",
        choices=("", "claude-cli", "anthropic", "openai", "offline"),
    )
    codex: Literal["", "claude-cli", "anthropic", "openai", "offline"] = _setting(
        "",
        "the same for sessions of Codex, which lends no model of its own either",
        choices=("", "claude-cli", "anthropic", "openai", "offline"),
    )
    model: str = _setting("", "which model the host asks; empty means the session's own", form="model")
    timeout_s: int = _setting(180, "seconds for one judgement, all tries together", range=(5, 600))
    max_attempts: int = _setting(
        16, "times an agent is sent back on one task", range=(1, 50), tighten="lower"
    )
    max_per_hour: int = _setting(
        8,
        "times an agent is sent back or nudged in one session within an hour, whatever begins a task; a "
        "message of yours that the agent answers begins the count again, up to twice as many in all; within "
        "a day 30",
        range=(1, 100),
        tighten="lower",
    )

    @property
    def own(self) -> Mapping[str, tuple[str, str]]:
        """Host -> (setting, provider), for the hosts whose sessions have a provider of their own."""
        found = {
            "claude-code": ("judge.claude_code", str(self.claude_code)),
            "codex": ("judge.codex", str(self.codex)),
        }
        return {host: (key, provider) for host, (key, provider) in found.items() if provider}

    def of(self, host: str) -> tuple[str, str]:
        """(setting, provider) that choose the judge of a host's sessions."""
        return self.own.get(host, ("judge.provider", self.provider))


class Api(Struct, frozen=True):
    """An API and its key. For a daemon started by hand the key may be in the provider's own variable."""

    model: str = _setting("", "which model judges", form="name")
    base_url: str = _setting(
        "",
        "the address of a server with this API; it gets only the key that `key_file` or `key_env` names",
        form="url",
    )
    key_file: str = _setting("", "a file with the key, for a daemon that a service starts", form="path")
    key_env: str = _setting(
        "",
        "the variable with the key for `base_url`; without it a daemon that a host started uses no key of "
        "its environment (`reflectd setup claude-code --judge` writes both)",
        form="variable",
    )


class Anthropic(Api, frozen=True):
    """The Anthropic API."""

    model: str = _setting("claude-sonnet-5-5", "which model judges", form="name")


class OpenAI(Api, frozen=True):
    """The OpenAI API or one like it (Ollama, llama.cpp …)."""

    model: str = _setting("gpt-5.4", "which model judges", form="name")


class ClaudeCli(Struct, frozen=True):
    """The person's own Claude Code as the judge, only where a setting names `claude-cli`."""

    path: str = _setting("", "the program; empty means `claude` from `PATH`", form="path")
    model: str = _setting("sonnet", "which model judges", form="name")
    token_file: str = _setting(
        "",
        "a file with a token of `claude setup-token`, where that is the login: a daemon that Claude Code or "
        "a service starts does not see `CLAUDE_CODE_OAUTH_TOKEN`",
        form="path",
    )


class Embed(Struct, frozen=True):
    provider: Literal["auto", "minilm", "openai", "none"] = _setting(
        "auto",
        'which model compares texts by their meaning: "minilm" runs on this machine (`reflectd[embed]`), '
        '"openai" is OpenAI\'s API for embeddings or one like it, "none" compares nothing; "auto" is '
        '"openai" where `embed.base_url` or `embed.key_file` is set, else "minilm" where it is installed',
        choices=("auto", "minilm", "openai", "none"),
    )
    model: str = _setting("text-embedding-3-small", "which model that API is asked for", form="name")
    base_url: str = _setting(
        "", "the address of a server with that API; it gets only the key that `key_file` names", form="url"
    )
    key_file: str = _setting("", "a file with the key for embeddings", form="path")


class Fast(Struct, frozen=True):
    models: str = _setting(
        "",
        "small models for quick questions, best first, before those that reflectd knows; for new models and "
        "for your own server",
        form="names",
    )


class Run(Struct, frozen=True):
    gate: bool = _setting(True, "judge before `opencode run` ends, so that it can go on", tighten="off")
    headless: bool = _setting(
        False,
        "judge `claude -p`, SDK sessions and `codex exec` too; they wait for it (also `REFLECTD_HEADLESS=1`)",
    )


class ClaudeCode(Struct, frozen=True):
    strict: bool = _setting(
        False, "a turn of Claude Code ends only when it was judged, instead of being woken afterwards"
    )
    mod: bool = _setting(
        True,
        "the plugin of Claude Code has a mod, which runs with your rights (docs/claude-code.md); a change "
        "counts from the next start of Claude Code on",
    )


class Codex(Struct, frozen=True):
    wait_s: int = _setting(
        100,
        "seconds that the end of a turn of Codex waits for its verdict; then the turn ends",
        range=(5, 540),
    )


class Stuck(Struct, frozen=True):
    enabled: bool = _setting(True, "notice agents that stall or repeat themselves", tighten="off")
    after_s: int = _setting(30, "seconds of silence before a session is looked at", range=(30, 3600))


class Compaction(Struct, frozen=True):
    enabled: bool = _setting(True, "help an agent to go on after its context was compacted", tighten="off")
    github: bool = _setting(
        False,
        "then also ask the agent to comment on the pull request or issue that it works on",
        tighten="off",
    )


class Proof(Struct, frozen=True):
    """The project's own check, which reflectd runs before a turn counts as done (docs/proof.md)."""

    enabled: bool = _setting(
        False,
        "run the project's own check before a turn counts as done, after the agent's last edit",
        tighten="off",
    )
    command: str = _setting(
        "",
        "the check of all your projects, such as `make test`; `reflectd proof use` chooses that of one "
        "project; empty runs only what agents ran there as a check",
        form="command",
        tighten="trusted",
    )
    timeout_s: int = _setting(300, "seconds for one run", range=(5, 3_600), tighten="lower")
    minutes_a_day: int = _setting(30, "minutes of all runs within a day", range=(0, 1_440), tighten="lower")
    where: Literal["folder", "worktree"] = _setting(
        "folder",
        '"folder" runs it where the agent would; "worktree" in a git worktree of exactly what is there, '
        "which is removed afterwards",
        choices=("folder", "worktree"),
    )
    share: str = _setting(
        "", "folders of the project that a worktree links to, such as `node_modules,.venv`", form="folders"
    )
    before: bool = _setting(
        False,
        "run a check that fails once more on the commit before the task, in a worktree, where nobody knows "
        "whether it failed then too",
        tighten="off",
    )


class Store(Struct, frozen=True):
    """The shared store of lessons (docs/team-memory.md)."""

    url_file: str = _setting(
        "",
        "a file with the address of a PostgreSQL through which several people share lessons "
        "(`reflectd[postgres]`; only you may read the file); empty shares none",
        form="path",
    )


class Spend(Struct, frozen=True):
    """Limits on the cost of models. At a limit the fixed rules judge; with 0 no model is ever asked."""

    cents_per_day: int = _setting(
        200, "US cents a day for judging by a model", range=(0, 1_000_000), tighten="lower"
    )
    cents_per_session: int = _setting(
        50, "US cents for judging one session by a model", range=(0, 1_000_000), tighten="lower"
    )
    tokens_per_day: int = _setting(
        500_000, "tokens a day of models whose price is unknown", range=(0, 999_999_999), tighten="lower"
    )
    learning_percent: int = _setting(
        50,
        "percent of what judging cost in seven days that learning may cost; tokens where a price is unknown",
        range=(0, 100),
        tighten="lower",
    )


class Playbook(Struct, frozen=True):
    """Points that agents learn about a project (design/learning.md)."""

    enabled: bool = _setting(
        False,
        "learn from judged sessions what works in a project, and offer it to the next ones",
        tighten="off",
    )
    path: str = _setting(
        "",
        "where the playbook is in each of your projects, such as `.claude/playbook.json`; empty means "
        "`.reflection/playbook.json`",
        form="playbook",
    )


class Memory(Struct, frozen=True):
    """Lessons from tasks that ended badly (design/memory.md)."""

    enabled: bool = _setting(
        False,
        "draw a lesson from each task that ended badly, and give it to agents that can use it",
        tighten="off",
    )
    prompt_ms: int = _setting(
        60,
        "milliseconds that a prompt waits for these lessons at most; later ones stand behind the first tool "
        "result",
        range=(10, 5_000),
        tighten="lower",
    )
    threshold_percent: int = _setting(
        30, "the reward below which a lesson is drawn, in hundredths", range=(-100, 100)
    )

    @property
    def threshold(self) -> float:
        return self.threshold_percent / 100


class Offering(Struct, frozen=True):
    """Learned texts in front of an agent."""

    enabled: bool = _setting(True, "offer what was learned to agents", tighten="off")


class Daemon(Struct, frozen=True):
    socket: str = _setting(
        "", "socket path; empty means in `$XDG_RUNTIME_DIR/reflectd`", form="path", env="REFLECTD_SOCKET"
    )
    # not in the file: hooks and shims find the daemon through this folder, and they read only the environment
    state_dir: str = _setting(
        "",
        "state folder; empty means `~/.local/state/reflectd`",
        form="path",
        env="REFLECTD_STATE_DIR",
        in_file=False,
    )


class Log(Struct, frozen=True):
    """The daemon's own log."""

    level: Literal["debug", "info", "warning", "error"] = _setting(
        "info",
        'the least urgent lines that are kept; "debug" has the reasons of every decision (also '
        "`REFLECTION_DEBUG=1`)",
        choices=("debug", "info", "warning", "error"),
    )


class Settings(Struct, frozen=True):  # noqa: PLW1641 - nobody hashes them
    """All settings. ``sources`` says where a key was set; a key that is missing there has its default."""

    enabled: bool = _setting(True, "false: watch and judge nothing", tighten="off")
    toasts: bool = _setting(True, "show verdicts in the host", tighten="off")
    judge: Judge = Judge()
    anthropic: Anthropic = Anthropic()
    openai: OpenAI = OpenAI()
    claude_cli: ClaudeCli = ClaudeCli()
    embed: Embed = Embed()
    fast: Fast = Fast()
    run: Run = Run()
    claude_code: ClaudeCode = ClaudeCode()
    codex: Codex = Codex()
    stuck: Stuck = Stuck()
    compaction: Compaction = Compaction()
    playbook: Playbook = Playbook()
    memory: Memory = Memory()
    proof: Proof = Proof()
    store: Store = Store()
    offer: Offering = Offering()
    spend: Spend = Spend()
    daemon: Daemon = Daemon()
    log: Log = Log()
    sources: Mapping[str, str] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Says whether the values are the same, from any source."""
        return isinstance(other, Settings) and astuple(self)[:-1] == astuple(other)[:-1]

    @property
    def gate_s(self) -> int:
        """Seconds that `opencode run` waits until the agent is sent back; with a run of the check longer."""
        return GATE_S + (self.proof.timeout_s if self.proof.enabled else 0)

    def wait_s(self, host: str, most: int) -> int:
        """How long a host waits for a verdict, in seconds: ``most``, or what the person set."""
        return min(most, self.codex.wait_s) if host == "codex" else most

    @property
    def apis(self) -> dict[str, Api]:
        return {"anthropic": self.anthropic, "openai": self.openai}


def _declared(section: type[Struct], prefix: str) -> Iterator[Setting]:
    for name, kept in zip(section.__struct_fields__, section.__struct_defaults__, strict=True):
        declared = getattr(kept, "factory", kept)
        if isinstance(declared, Struct):
            yield from _declared(type(declared), f"{name}.")
        elif isinstance(declared, _Declared):
            key = prefix + name
            env = "REFLECTD_" + key.replace(".", "_").upper()
            yield Setting(**{"key": key, "env": env, "default": declared.default, **declared.rules})


SETTINGS = {setting.key: setting for setting in _declared(Settings, "")}


def settings_table() -> str:
    lines = [
        "| setting | default | allowed | environment | a project may | what it does |",
        "| - | - | - | - | - | - |",
    ]
    may = {
        "": "",
        "off": "set it to false",
        "lower": "lower it",
        "observe": 'set it to "observe"',
        "trusted": "set it; it counts once you trust it",
    }
    for s in SETTINGS.values():
        where = "" if s.in_file else " (not in the file)"
        cells = (f"`{s.key}`{where}", f"`{toml(s.default)}`", s.allowed, f"`{s.env}`", may[s.tighten], s.doc)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def toml(value: object) -> str:
    """A value, written as in the settings file."""
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f'"{value}"'
        if isinstance(value, str)
        else str(value)
    )
