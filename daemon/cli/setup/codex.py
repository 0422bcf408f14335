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
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import IO, TYPE_CHECKING, Any, Final, Self

from ...core.errors import Unavailable, UserError
from ...files import jsonc
from ...paths import PACKAGE
from ..terminal import attended
from . import copies, edit
from .edit import Action, Report, check_editable, diff, fleeting, read_text, stay_inside

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterator, Mapping
    from datetime import datetime

HOST: Final = "codex"
SCRIPT: Final = "hook.sh"
PLACE: Final = ".local/bin/codex"
NAME: Final = "hooks.json"
EVENTS: Final = {  # seconds that Codex waits; it warns of more than 3 for the last two
    "SessionStart": 20, "UserPromptSubmit": 5, "PostToolUse": 5, "SubagentStop": 5, "Stop": 600,
    "Interrupt": 3, "SessionEnd": 3,
}  # fmt: skip
JUDGING: Final = "reflectd is judging"
ASKS_S: Final = 20.0
BY_HAND: Final = "in Codex type /hooks and trust those of reflectd; until then it runs none of them"
_OURS: Final = re.compile(r"/hook\.sh'? [A-Za-z]{1,40} codex$")
_FRESH: Final = '{\n  "hooks": {}\n}\n'


def setup(args: argparse.Namespace, env: Mapping[str, str], now: Callable[[], datetime]) -> Report:
    """Do what the arguments say. Raises ``UserError``, ``Unavailable``, ``OSError``."""
    file = (Path.cwd() / ".codex" if args.project else home(env)) / NAME
    if args.project:
        stay_inside(Path.cwd(), (file,))
    if args.undo:
        return edit.undo(env, [file], now, force=args.force, dry_run=args.dry_run)
    there = os.path.lexists(file)
    old = read_text(file) if there else ""
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
    """Has Codex note that the person trusts our hooks, if they say so. What became of it, in words."""
    program, yes = find(env), args.yes
    if not program:
        return f"Codex does not trust the hooks yet: {BY_HAND}"
    try:
        known, runs = trusted(program, env, Path.cwd())
        if known and known == runs:
            return "Codex trusts the hooks."
        if not yes and attended() and not args.json:
            answer = input(
                "\nCodex runs a hook only when you trusted it. Have it note that you trust these? [Y/n] "
            )
            yes = answer.strip().lower() in {"", "y", "yes"}
        if not yes:
            return f"Codex does not trust the hooks yet: {BY_HAND}"
        known, runs = trust(program, env, Path.cwd())
    except EOFError:
        return f"Codex does not trust the hooks yet: {BY_HAND}"
    except Unavailable as error:
        return f"Codex could not be asked to trust the hooks ({error}): {BY_HAND}"
    return (
        "Codex trusts the hooks now." if known == runs else f"Codex runs {runs} of {known} hooks: {BY_HAND}"
    )


def home(env: Mapping[str, str]) -> Path:
    """Codex's own folder."""
    return Path(env["CODEX_HOME"]) if env.get("CODEX_HOME") else Path(env.get("HOME", "/"), ".codex")


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
    """What is ours in the files of hooks, and how each is taken out."""
    for file in dict.fromkeys([*read_in(env, folder), *edit.edited_files(env)]):
        if file.name == NAME and names_us(file):
            yield file, "our hooks", partial(disconnect, env, file)


def refused(env: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Why Codex takes none of the hooks of a file of ours."""
    for file in loads(env, folder):
        with suppress(UserError, Unavailable):
            yield from (f"{file}: {problem}" for problem in problems(read_text(file)))


def silenced(env: Mapping[str, str], folder: Path) -> Iterator[str]:
    """What keeps Codex from running our hooks, by the files alone: that a hook was edited since it was
    trusted only Codex can say (``trusted``).
    """
    yield from refused(env, folder)
    noted = ""
    with suppress(UserError, Unavailable):
        noted = read_text(home(env) / "config.toml")
    for file in loads(env, folder):
        if f'[hooks.state."{file}:stop:' not in noted:
            yield f"Codex does not trust the hooks of {file} yet: {BY_HAND}"


def names_us(file: Path) -> bool:
    """Whether the file has a hook of ours. One that can't be read counts as one that has none."""
    with suppress(UserError, Unavailable, OSError):
        return file.is_file() and names_us_in(read_text(file))
    return False


def names_us_in(text: str) -> bool:
    """Whether a hook of ours is in the text."""
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
    except ValueError:
        yield "Codex reads plain JSON only, so it refuses the whole file: take its comments out"
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
        _forget_trust(file)
    return Report(file, "deleted" if gone else "removed", "", None, diff(file, old, "" if gone else text))


def _forget_trust(file: Path) -> None:
    """Take what Codex noted of hooks that are gone out of its settings: tables of one line, as it writes
    them. Those of hooks that are still there stay.
    """
    from ...files.safe import write_atomic

    settings = file.parent / "config.toml"
    with suppress(UserError, Unavailable, OSError):
        old = read_text(settings) if settings.is_file() else ""
        there = _events(read_text(file)) if file.is_file() else {}
        left = {f"{_snake(event)}:{n}" for event, groups in there.items() for n in range(len(groups))}
        new = _without_tables(old, f'[hooks.state."{file}:', left)
        if new != old:
            write_atomic(settings, new, mode=None, follow=True, expected=old.encode())


def _without_tables(text: str, start: str, left: Collection[str]) -> str:
    """The TOML without the tables of a hash whose names begin with ``start``, but for those ``left``; and
    without the table above them, when it has no other.
    """
    kept: list[str] = []
    tables = text.split("\n[")
    for n, table in enumerate(tables):
        head, _, body = table.partition("\n")
        name = f"[{head}" if n else head
        event = name.removeprefix(start).rpartition(":")[0]
        ours = (
            name.startswith(start)
            and body.startswith("trusted_hash = ")
            and body.count("\n") <= 1 + (body[-1:] == "\n")
        )
        if not ours or event in left:
            kept.append(table)
    if len(kept) < len(tables) and not any(table.startswith("hooks.state.") for table in kept):
        kept = [table for table in kept if table.strip() != "hooks.state]"]
    return "\n[".join(kept).rstrip("\n") + "\n" if len(kept) < len(tables) else text


def _snake(event: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")


# Trust


def trust(program: str, env: Mapping[str, str], folder: Path) -> tuple[int, int]:
    """Has Codex record that the person trusts our hooks: how many there are, and how many it trusts now.
    Raises ``Unavailable``.
    """
    with _AppServer(program, env, folder) as server:
        hooks = server.ours()
        new = {
            h["key"]: {"trusted_hash": h["currentHash"]} for h in hooks if h.get("trustStatus") != "trusted"
        }
        if new:
            edit = {"keyPath": "hooks.state", "value": new, "mergeStrategy": "upsert"}
            server.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
            hooks = server.ours()
        return len(hooks), sum(h.get("trustStatus") == "trusted" for h in hooks)


def trusted(program: str, env: Mapping[str, str], folder: Path) -> tuple[int, int]:
    """How many hooks of ours Codex knows in ``folder``, and how many it runs. Raises ``Unavailable``."""
    with _AppServer(program, env, folder) as server:
        hooks = server.ours()
        return len(hooks), sum(h.get("trustStatus") == "trusted" for h in hooks)


class _AppServer:
    """``codex app-server``, spoken to in JSON-RPC, a line a message. It ends with the block."""

    def __init__(self, program: str, env: Mapping[str, str], folder: Path) -> None:
        self._command, self._env, self._folder = [program, "app-server"], dict(env), folder
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
                raise Unavailable(f"this Codex knows no {method}: its app-server ended")
            with suppress(ValueError):
                told = json.loads(line)
                if isinstance(told, dict) and told.get("id") == self._count:
                    if isinstance(told.get("result"), dict):
                        result: dict[str, Any] = told["result"]
                        return result
                    raise Unavailable(f"Codex refused {method}: {str(told.get('error'))[:200]}")

    def ours(self) -> list[dict[str, Any]]:
        """Our hooks, as Codex has them in the folder."""
        found = self.call("hooks/list", {"cwds": [str(self._folder)]}).get("data")
        hooks = [h for d in found or () for h in d.get("hooks") or ()] if isinstance(found, list) else []
        return [h for h in hooks if _OURS.search(str(h.get("command", "")))]
