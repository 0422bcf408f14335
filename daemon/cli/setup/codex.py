"""``reflectd setup codex``: adds our hooks to Codex's ``hooks.json``, and removes them again.

Each hook is a group of its own at the end of its event's list; every other byte of the file stays. Codex runs
a hook only when the person trusted it, and says nothing of one that it does not run: so ``setup`` asks, and
on a yes has Codex itself record it, through ``codex app-server``. The command of a hook names the script's
copy in the data folder and never changes, so an upgrade keeps the trust. A file that Codex would refuse is a
``UserError`` and is not changed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import tomllib
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Self

from ...core.errors import Unavailable, UserError
from ...files import jsonc
from ...paths import PACKAGE
from ..terminal import attended, say
from . import copies, edit
from .edit import Action, Report, check_editable, diff, fleeting, read_text, stay_inside

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

HOST: Final = "codex"
SCRIPT: Final = "hook.sh"
PLACE: Final = ".local/bin/codex"
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
_OURS: Final = re.compile(r"/hook\.sh'? [A-Za-z]{1,40} codex$")
_TABLES: Final = re.compile(r"(?m)^(?=\n\[)|(?<!\n\n)^(?=\[)")
_FRESH: Final = '{\n  "hooks": {}\n}\n'


def setup(args: argparse.Namespace, env: Mapping[str, str], now: Callable[[], datetime]) -> Report:
    """Do what the arguments say. Raises ``UserError``, ``Unavailable``, ``OSError``."""
    file = (Path.cwd() / ".codex" if args.project else home(env)) / NAME
    if args.project:
        stay_inside(Path.cwd(), (file,))
    there = os.path.lexists(file)
    old = read_text(file) if there else ""
    if args.undo:
        report = edit.undo(env, [file], now, force=args.force, dry_run=args.dry_run)
        if not (args.dry_run or names_us(file)):
            _forget_trust(env, file, old)
        return report
    if args.remove:
        report = _remove(env, file, old, force=args.force, dry_run=args.dry_run)
        if not args.dry_run:
            copies.remove_unused(env, HOST, [*edit.edited_files(env), *read_in(env, Path.cwd())])
        return report
    script = copies.place(env, HOST) / SCRIPT
    text = _with_ours(file, old, script)
    warnings = tuple(filter(None, [fleeting(f"{script} {PACKAGE}"), *problems(text)]))
    if text != old:
        check_editable(file, force=args.force)
    copied = not args.dry_run and copies.refresh(env, HOST, make=True)
    action: Action = "unchanged" if text == old else "replaced" if names_us_in(old) else "added"
    backup = None
    if not (args.dry_run or text == old):
        backup = edit.write(env, file, old.encode(), text.encode(), now)
    action = action if there or text == old else "created"
    note = "" if args.dry_run else _ask_trust(args, env)
    return Report(file, action, str(script), backup, diff(file, old, text), warnings, copied, note=note)


def find(env: Mapping[str, str]) -> str:
    """The program's path, "" when it is not on PATH or where its installer puts it."""
    usual = Path(env.get("HOME", "/"), PLACE)
    return shutil.which(HOST, path=env.get("PATH", "")) or (str(usual) if os.access(usual, os.X_OK) else "")


def _ask_trust(args: argparse.Namespace, env: Mapping[str, str]) -> str:
    """Has Codex note that the person trusts our hooks, if they say so. Returns the outcome in words."""
    program, yes = find(env), args.yes
    if not program:
        return f"Codex does not trust the hooks yet: {BY_HAND}"
    try:
        seen = trusted(program, env, Path.cwd())
        if seen.runs == seen.hooks:
            return "Codex trusts the hooks."
        if not (yes or seen.why) and attended() and not args.json:
            say("\nCodex runs a hook only when you trusted it.")
            answer = input("Have it note that you trust these? [Y/n] ")
            yes = answer.strip().lower() in {"", "y", "yes"}
        if not (yes or seen.why):
            return f"Codex does not trust the hooks yet: {BY_HAND}"
        seen = trusted(program, env, Path.cwd(), more=yes)
    except (EOFError, KeyboardInterrupt):
        return f"Codex does not trust the hooks yet: {BY_HAND}"
    except Unavailable as error:
        return f"Codex could not be asked to trust the hooks ({error}): {BY_HAND}"
    if seen.runs == seen.hooks:
        return "Codex trusts the hooks now."
    return f"Codex runs {seen.runs} of {seen.hooks} hooks: {'; '.join(seen.why) or BY_HAND}"


def home(env: Mapping[str, str]) -> Path:
    """Codex's own folder."""
    return Path.cwd() / (env.get("CODEX_HOME") or Path(env.get("HOME", "/"), ".codex"))


def read_in(env: Mapping[str, str], folder: Path) -> list[Path]:
    """The files whose hooks Codex runs when it is started in ``folder``; they may be missing."""
    found = [home(env) / NAME]
    for base in (folder, *folder.parents):
        found.append(base / ".codex" / NAME)
        if (base / ".git").exists():
            break
    return list(dict.fromkeys(found))


def loads(env: Mapping[str, str], folder: Path) -> list[Path]:
    """The files with hooks of ours that Codex runs when it is started in ``folder``."""
    return [file for file in read_in(env, folder) if names_us(file)]


def traces(env: Mapping[str, str], folder: Path) -> Iterator[tuple[Path, str, Callable[[], object]]]:
    """Our hooks in the files of hooks, and how each is taken out."""
    for file in dict.fromkeys([*read_in(env, folder), *edit.edited_files(env)]):
        if file.name == NAME and names_us(file):
            yield file, "our hooks", partial(disconnect, env, file)


def silenced(env: Mapping[str, str], folder: Path) -> Iterator[str]:
    """The reason why Codex runs none of our hooks, by the files alone: only Codex can say that a hook was
    edited since it was trusted (``trusted``).
    """
    noted = set[tuple[Path, str]]()
    with suppress(UserError, Unavailable):
        tables = map(_noted, _TABLES.split(read_text(home(env) / SETTINGS)))
        noted = {(file, place) for file, place, digest in tables if digest}
    for file in loads(env, folder):
        with suppress(UserError, Unavailable):
            text = read_text(file)
            yield from (f"{file}: {problem}" for problem in problems(text))
            ours = _our_places(text)
            unknown = sum((_real(file), place) not in noted for place in ours)
            if unknown:
                some = "the hooks" if unknown == len(ours) else f"{unknown} of {len(ours)} hooks"
                yield f"Codex does not trust {some} of {file} yet: {BY_HAND}"


def names_us(file: Path) -> bool:
    """Says whether the file has a hook of ours. One that can't be read counts as one that has none."""
    with suppress(UserError, Unavailable, OSError):
        return file.is_file() and names_us_in(read_text(file))
    return False


def names_us_in(text: str) -> bool:
    """Says whether a hook of ours is in the text."""
    with suppress(UserError):
        return any(_is_ours(group) for groups in _events(text).values() for group in groups)
    return False


def disconnect(env: Mapping[str, str], file: Path) -> None:
    """Take our hooks out of this file, as ``--remove`` does."""
    _remove(env, file, read_text(file))


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


def _is_ours(group: object) -> bool:
    handlers = group.get("hooks") if isinstance(group, dict) else None
    found = [h.get("command") for h in handlers if isinstance(h, dict)] if isinstance(handlers, list) else []
    return len(found) == 1 and isinstance(found[0], str) and _OURS.search(found[0]) is not None


def group(event: str, script: Path) -> dict[str, Any]:
    """Our hook of this event, as it stands in the list."""
    handler: dict[str, Any] = {"type": "command", "command": f"{shlex.quote(str(script))} {event} codex"}
    handler["timeout"] = EVENTS[event]
    return {"hooks": [handler | ({"statusMessage": JUDGING} if event == "Stop" else {})]}


def _with_ours(file: Path, old: str, script: Path) -> str:
    """The text with our hooks, each once. Raises ``UserError``."""
    try:
        text = old if old.strip() else _FRESH
        for event in EVENTS:
            wanted = group(event, script)
            mine = [group for group in _events(text).get(event, ()) if _is_ours(group)]
            if mine == [wanted]:
                continue
            text = _without(text, event)
            text = _append(text, event, wanted)
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed") from error
    return text


def _append(text: str, event: str, group: dict[str, Any]) -> str:
    """The text with one more group at the end of the event's list."""
    node = _list_at(text, event)
    if node is None:
        return jsonc.put(text, ("hooks", event), [group])
    return jsonc.apply(text, jsonc.append(text, node, json.dumps(group)))


def _without(text: str, event: str) -> str:
    """The text without our groups of this event; a list that they leave empty goes too."""
    while True:
        node = _list_at(text, event)
        places = [n for n, item in enumerate(node.items) if _is_ours(item.node.value)] if node else []
        if node is None or not places:
            return text
        if len(node.items) == 1:
            return jsonc.take(text, ("hooks", event))
        text = jsonc.cut(text, node, places[-1])


def _list_at(text: str, event: str) -> jsonc.Node | None:
    """Where the event's list stands. Raises ``UserError`` for one that is no list."""
    node = jsonc.top(text)
    for name in ("hooks", event):
        node = next((item.node for item in node.items if item.name == name), None) if node else None
    if node is not None and not isinstance(node.value, list):
        raise UserError(f"{jsonc.place(text, node.start)}: {event!r} must be a list in brackets, [ ]")
    return node


def _remove(
    env: Mapping[str, str], file: Path, old: str, *, force: bool = False, dry_run: bool = False
) -> Report:
    """Take our hooks out; as it was before us, if nobody edited the file since."""
    if not names_us_in(old):
        return Report(file, "unchanged", "", None, "")
    untouched, data = edit.before(env, file)
    text = data.decode() if untouched and data is not None and not names_us_in(data.decode()) else old
    for event in EVENTS:
        text = _without(text, event)
    gone = edit.first(env, file) == (True, None) and (untouched or jsonc.is_bare(text) or text == _FRESH)
    check_editable(file, force=force)
    if not dry_run:
        edit.put_back(env, file, old.encode(), None if gone else text.encode())
        _forget_trust(env, file, old)
    return Report(file, "deleted" if gone else "removed", "", None, diff(file, old, "" if gone else text))


# Trust


class Trust(NamedTuple):
    """How many hooks of ours are in the files, how many of them Codex runs, and which files it does not take
    and why.
    """

    hooks: int
    runs: int
    why: tuple[str, ...]


def trusted(program: str, env: Mapping[str, str], folder: Path, *, more: bool = False) -> Trust:
    """Asks Codex which hooks of ours it runs in ``folder``. ``more``: the person trusts them, and first Codex
    records that. Raises ``Unavailable``.
    """
    files = loads(env, folder)
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
    return {
        f"{_snake(event)}:{n}:0"
        for event, groups in _events(text).items()
        for n, group in enumerate(groups)
        if _is_ours(group)
    }


def _snake(event: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")


def _real(file: Path) -> Path:
    """The file in the folder where that really is: Codex follows some links to its home, and none to the
    file.
    """
    return Path(os.path.realpath(file.parent), file.name)


def _noted(table: str) -> tuple[Path, str, str]:
    """The file, the place and the trusted hash of the hook that a table of Codex's settings is about; empty
    for any other table.
    """
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        ((key, noted),) = tomllib.loads(table)["hooks"]["state"].items()
        file, *place = key.rsplit(":", 3)
        return _real(Path(file)), ":".join(place), str(noted.get("trusted_hash", ""))
    return Path(), "", ""


def _forget_trust(env: Mapping[str, str], file: Path, old: str) -> None:
    """Take what Codex noted of the hooks that ``file`` had when it was ``old`` out of its settings."""
    from ...files.safe import write_atomic

    for settings in dict.fromkeys((home(env) / SETTINGS, file.parent / SETTINGS)):
        with suppress(UserError, Unavailable, OSError):
            text = read_text(settings)
            new = _without_trust(text, _real(file), _our_places(old))
            if new != text:
                write_atomic(settings, new, mode=None, follow=True, expected=text.encode())
            if text and not new and not settings.is_symlink():
                settings.unlink()  # it held nothing else, so there was none before us


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
    """``codex app-server``, spoken to in JSON-RPC, a line a message. It ends with the block."""

    def __init__(self, program: str, env: Mapping[str, str], folder: Path) -> None:
        # with plugins it would begin to clone theirs, and leave the half of it behind
        self._command = [program, "-c", "features.plugins=false", "app-server"]
        self._env, self._folder = dict(env), folder
        self._lines: Queue[str | None] = Queue()
        self._count = 0

    def __enter__(self) -> Self:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the person's own program
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=self._env | {"REFLECTD_DISABLE": "1"},
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"can't run {self._command[0]}: {error.strerror}") from error
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
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
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait(ENDS_S)  # then it removes what it made in its folder
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _read(self, stdout: IO[str] | None) -> None:
        for line in stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def _send(self, message: dict[str, Any]) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - it was asked for
        try:
            stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            stdin.flush()
        except OSError as error:
            raise Unavailable(f"Codex's app-server ended: {error.strerror}") from error

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of one call. Raises ``Unavailable``."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        while True:
            try:
                line = self._lines.get(timeout=ASKS_S)
            except Empty:
                raise Unavailable(f"Codex did not answer {method} in {ASKS_S:g} s") from None
            if line is None:
                raise Unavailable(f"its app-server ended before it answered {method}")
            with suppress(ValueError):
                told = json.loads(line)
                if isinstance(told, dict) and told.get("id") == self._count:
                    if isinstance(told.get("result"), dict):
                        result: dict[str, Any] = told["result"]
                        return result
                    raise Unavailable(f"Codex refused {method}: {str(told.get('error'))[:200]}")

    def hooks(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Our hooks, as Codex has them in the folder, and what it says of the files."""
        found = self.call("hooks/list", {"cwds": [str(self._folder)]}).get("data")
        folders = found if isinstance(found, list) else []
        hooks = [h for f in folders for h in f.get("hooks") or ()]
        warnings = [str(warning) for f in folders for warning in f.get("warnings") or ()]
        return [h for h in hooks if _OURS.search(str(h.get("command", "")))], warnings
