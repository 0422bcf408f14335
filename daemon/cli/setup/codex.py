"""How Codex is connected: by hooks in its ``hooks.json``, each a group of its own at the end of its event's
list. Codex runs a hook only when the person trusted it: ``setup`` asks, and has Codex itself record the yes,
through ``codex app-server``. The text of a hook never changes, so an upgrade keeps the trust.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import threading
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Self

from ...core.errors import Unavailable, UserError
from ...files import jsonc
from ...files.safe import write_atomic
from ..terminal import say
from . import copies
from .connect import Host
from .edit import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCRIPT: Final = "hook.sh"
NAME: Final = "hooks.json"
SETTINGS: Final = "config.toml"
EVENTS: Final = {  # seconds that Codex waits; it warns of more than 3 for the last two
    "SessionStart": 20, "UserPromptSubmit": 5, "PostToolUse": 5, "SubagentStop": 5, "Stop": 600,
    "Interrupt": 3, "SessionEnd": 3,
}  # fmt: skip
JUDGING: Final = "reflectd is judging"
ASKS_S: Final = 20.0
ENDS_S: Final = 3.0
LEFT_OUT: Final = "as in a folder that you did not trust and without `features.hooks`"
BY_HAND: Final = "in Codex type /hooks and trust those of reflectd; until then it runs none of them"
UNTRUSTED: Final = f"Codex does not trust the hooks yet: {BY_HAND}"
_OURS: Final = re.compile(r"/hook\.sh'? [A-Za-z]{1,40} codex$")
_TABLES: Final = re.compile(r"(?m)^(?=\n\[)|(?<!\n\n)^(?=\[)")


class Codex(Host):
    """See the module."""

    host, program = "codex", "codex"
    places = (".local/bin/codex",)
    address = "https://developers.openai.com/codex"
    new = '{\n  "hooks": {}\n}\n'

    def files(self, env: Mapping[str, str]) -> list[Path]:
        """One file."""
        return [home(env) / NAME]

    def read_in(self, env: Mapping[str, str], folder: Path) -> list[Path]:
        """Those of ``folder`` and of the folders above it, up to the repository's top."""
        found = [home(env) / NAME]
        for base in (folder, *folder.parents):
            found.append(base / ".codex" / NAME)
            if (base / ".git").exists():
                break
        return list(dict.fromkeys(found))

    def line(self, env: Mapping[str, str]) -> str:
        """The script."""
        return str(copies.place(env, self.host) / SCRIPT)

    def mine(self, text: str) -> list[str]:
        """The commands of our hooks."""
        return [_command(found) for _, _, found in _ours(text)]

    def put(self, text: str, line: str) -> str:
        """Each hook once."""
        for event in EVENTS:
            wanted, path = group(event, Path(line)), ("hooks", event)
            if [found for found in jsonc.items(text, path) if _is_ours(found)] != [wanted]:
                text = jsonc.add_item(jsonc.drop_items(text, path, _is_ours), path, wanted)
        return text

    def take(self, text: str, before: str) -> str:
        """A list that they leave empty goes too."""
        del before
        for path in {("hooks", event): None for event, _, _ in _ours(text)}:
            text = jsonc.drop_items(text, path, _is_ours)
            text = text if jsonc.items(text, path) else jsonc.take(text, path)
        return text

    def warnings(self, env: Mapping[str, str], folder: Path, file: Path, text: str) -> Iterator[str]:
        """Why Codex would refuse the file."""
        del env, folder, file
        yield from problems(text)

    def silenced(self, env: Mapping[str, str], folder: Path) -> Iterator[str]:
        """By the files alone: only Codex can say that a hook was edited since it was trusted."""
        noted = set[tuple[Path, str]]()
        with suppress(UserError, Unavailable):
            tables = map(_noted, _TABLES.split(read_text(home(env) / SETTINGS)))
            noted = {(file, place) for file, place, digest in tables if digest}
        for file in self.loads(env, folder):
            with suppress(UserError, Unavailable):
                text = read_text(file)
                yield from (f"{file}: {problem}" for problem in problems(text))
                ours = _our_places(text)
                unknown = sum((_real(file), place) not in noted for place in ours)
                if unknown:
                    some = "the hooks" if unknown == len(ours) else f"{unknown} of {len(ours)} hooks"
                    yield f"Codex does not trust {some} of {file} yet: {BY_HAND}"

    def trust(self, env: Mapping[str, str], *, yes: bool, asks: bool) -> str:
        """Has Codex note that the person trusts our hooks, if they say so."""
        program = self.find(env)
        if not program:
            return UNTRUSTED
        try:
            seen = trusted(program, env, Path.cwd())
            if seen.runs == seen.hooks:
                return "Codex trusts the hooks."
            if asks and not (yes or seen.why):
                say("\nCodex runs a hook only when you trusted it.")
                answer = input("Have it note that you trust these? [Y/n] ")
                yes = answer.strip().lower() in {"", "y", "yes"}
            if not (yes or seen.why):
                return UNTRUSTED
            seen = trusted(program, env, Path.cwd(), more=yes)
        except (EOFError, KeyboardInterrupt):
            return UNTRUSTED
        except Unavailable as error:
            return f"Codex could not be asked to trust the hooks ({error}): {BY_HAND}"
        if seen.runs == seen.hooks:
            return "Codex trusts the hooks now."
        return f"Codex runs {seen.runs} of {seen.hooks} hooks: {'; '.join(seen.why) or BY_HAND}"

    def forget(self, env: Mapping[str, str], file: Path, old: str) -> None:
        """Take what Codex noted of the hooks that ``file`` had when it was ``old`` out of its settings."""
        settings = home(env) / SETTINGS
        with suppress(UserError, Unavailable, OSError):
            text = read_text(settings)
            new = _without_trust(text, _real(file), _our_places(old))
            if new != text:
                write_atomic(settings, new, mode=None, follow=True, expected=text.encode())
            if text and not new and not settings.is_symlink():
                settings.unlink()  # it held nothing else, so there was none before us


CODEX: Final = Codex()


def home(env: Mapping[str, str]) -> Path:
    """Codex's own folder."""
    return Path.cwd() / (env.get("CODEX_HOME") or Path(env.get("HOME", "/"), ".codex"))


def problems(text: str) -> Iterator[str]:
    """Why Codex would run none of the hooks of this file."""
    try:
        json.loads(text)
    except ValueError as error:
        yield f"Codex reads plain JSON only (no comments), so it refuses the whole file: {error}"
    for name in jsonc.read(text) if text.strip() else ():
        if name not in {"hooks", "description"}:
            yield f'Codex refuses the whole file for {name!r} beside "hooks": take that out'
    for event, groups in _events(text).items():
        handlers = (
            h for g in groups if isinstance(g, dict) for h in g.get("hooks") or () if isinstance(h, dict)
        )
        if any(handler.get("type") == "http" for handler in handlers):
            yield f"Codex refuses the whole file for the hook of type http at {event}: take that one out"


def _events(text: str) -> dict[str, list[Any]]:
    found = jsonc.read(text, ("hooks",)).get("hooks") if text.strip() else {}
    return {k: v for k, v in found.items() if isinstance(v, list)} if isinstance(found, dict) else {}


def _ours(text: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Our hooks: the event, the place in its list, and the group."""
    for event, groups in _events(text).items():
        yield from ((event, n, found) for n, found in enumerate(groups) if _is_ours(found))


def _is_ours(group: object) -> bool:
    return bool(_command(group))


def _command(group: object) -> str:
    """The command of a hook of ours; "" for any other group."""
    handlers = group.get("hooks") if isinstance(group, dict) else None
    found = [h.get("command") for h in handlers if isinstance(h, dict)] if isinstance(handlers, list) else []
    return found[0] if len(found) == 1 and isinstance(found[0], str) and _OURS.search(found[0]) else ""


def group(event: str, script: Path) -> dict[str, Any]:
    """Our hook of this event, as it stands in the list."""
    handler: dict[str, Any] = {"type": "command", "command": f"{shlex.quote(str(script))} {event} codex"}
    handler["timeout"] = EVENTS[event]
    return {"hooks": [handler | ({"statusMessage": JUDGING} if event == "Stop" else {})]}


# --- trust --------------------------------------------------------------------------------------------------


class Trust(NamedTuple):
    """How many hooks of ours there are, how many Codex runs, and which files it does not take and why."""

    hooks: int
    runs: int
    why: tuple[str, ...]


def trusted(program: str, env: Mapping[str, str], folder: Path, *, more: bool = False) -> Trust:
    """Asks Codex which hooks of ours it runs in ``folder``. ``more``: the person trusts them, and first Codex
    records that. Raises ``Unavailable``.
    """
    files = CODEX.loads(env, folder)
    with _AppServer(program, env, folder) as server:
        hooks, warnings = server.hooks()
        new = {
            h["key"]: {"trusted_hash": h["currentHash"]} for h in hooks if h.get("trustStatus") != "trusted"
        }
        if more and new:
            change = {"keyPath": "hooks.state", "value": new, "mergeStrategy": "upsert"}
            server.call("config/batchWrite", {"edits": [change], "reloadUserConfig": True})
            hooks, warnings = server.hooks()
    taken = {_real(Path(str(h.get("sourcePath")))) for h in hooks}
    why = [
        next(
            (w for w in warnings if str(_real(file)) in w or str(file) in w),
            f"Codex does not load {file}, {LEFT_OUT}",
        )
        for file in files
        if _real(file) not in taken
    ]
    runs = sum(h.get("trustStatus") == "trusted" and h.get("enabled") is not False for h in hooks)
    return Trust(sum(len(_our_places(read_text(file))) for file in files), runs, tuple(why))


def _our_places(text: str) -> set[str]:
    """Where our hooks stand in a file, in the words of Codex: event, group, handler (``stop:0:0``)."""
    return {f"{_snake(event)}:{n}:0" for event, n, _ in _ours(text)}


def _snake(event: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")


def _real(file: Path) -> Path:
    """The file in its real folder: Codex follows some links to its home, and none to the file."""
    return Path(os.path.realpath(file.parent), file.name)


def _noted(table: str) -> tuple[Path, str, str]:
    """The file, place and trusted hash of the hook that a table of Codex's settings is about, or empty."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        ((key, noted),) = tomllib.loads(table)["hooks"]["state"].items()
        file, *place = key.rsplit(":", 3)
        return _real(Path(file)), ":".join(place), str(noted.get("trusted_hash", ""))
    return Path(), "", ""


def _without_trust(text: str, file: Path, ours: set[str]) -> str:
    """Codex's settings without the tables of our hooks in ``file``. Hooks of others that stood behind them
    move up, so their tables are named anew: else Codex would run them no more.
    """
    tables = [(table, *_noted(table)) for table in _TABLES.split(text)]
    hashes = {digest for _, at, place, digest in tables if at == file and place in ours} - {""}
    kept: list[str] = []
    for table, at, place, digest in tables:
        if at != file:
            kept.append(table)
        elif (place not in ours and digest not in hashes) or "\n#" in table:
            event, n, rest = place.split(":")
            before = sum(f"{event}:{m}:0" in ours for m in range(int(n)))
            kept.append(table.replace(f":{place}", f":{event}:{int(n) - before}:{rest}", 1))
    if len(kept) < len(tables) and not any(table.lstrip().startswith("[hooks.state.") for table in kept):
        kept = [table for table in kept if table.strip() != "[hooks.state]"]
    return "".join(kept)


class _AppServer:
    """``codex app-server``, spoken to in JSON-RPC, a line a message. It ends with the block, at the latest
    after ``ASKS_S``.
    """

    def __init__(self, program: str, env: Mapping[str, str], folder: Path) -> None:
        self._program, self._env, self._folder = program, env, folder
        self._late = threading.Timer(ASKS_S, self._kill)
        self._count = 0

    def __enter__(self) -> Self:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the person's own program
                # with plugins it would begin to clone theirs, and leave the half of it behind
                [self._program, "-c", "features.plugins=false", "app-server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**self._env, "REFLECTD_DISABLE": "1"},
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"can't run {self._program}: {error.strerror}") from error
        self._late.start()
        try:
            about = {"name": "reflectd", "title": "reflectd", "version": "1"}
            self.call("initialize", {"clientInfo": about, "capabilities": {"experimentalApi": True}})
            self._send({"method": "initialized"})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, subprocess.TimeoutExpired):
            self._stdin.close()
            self._process.wait(ENDS_S)  # then it removes what it made in its folder
        self._late.cancel()
        self._kill()
        self._process.wait()

    def _kill(self) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    @property
    def _stdin(self) -> IO[str]:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        return self._process.stdin

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self._stdin.flush()
        except OSError as error:
            raise Unavailable(f"Codex's app-server ended: {error.strerror}") from error

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of one call. Raises ``Unavailable``."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        for line in self._process.stdout or ():
            with suppress(ValueError):
                told = json.loads(line)
                if isinstance(told, dict) and told.get("id") == self._count:
                    if isinstance(told.get("result"), dict):
                        result: dict[str, Any] = told["result"]
                        return result
                    raise Unavailable(f"Codex refused {method}: {str(told.get('error'))[:200]}")
        raise Unavailable(f"its app-server ended before it answered {method}, or took over {ASKS_S:g} s")

    def hooks(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Our hooks, as Codex has them in the folder, and what it says of the files."""
        found = self.call("hooks/list", {"cwds": [str(self._folder)]}).get("data")
        folders = found if isinstance(found, list) else []
        hooks = [h for f in folders for h in f.get("hooks") or ()]
        warnings = [str(warning) for f in folders for warning in f.get("warnings") or ()]
        return [h for h in hooks if _OURS.search(str(h.get("command", "")))], warnings
