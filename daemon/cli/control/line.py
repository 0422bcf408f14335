"""``reflectd line``: one line for a prompt or a status bar, by one raw request to the daemon.

It runs at each prompt, so the usual flags are read by hand and hardly anything is imported. It fails only for
wrong arguments, and never waits longer than ``--wait`` for the daemon, nor than ``STDIN_MS`` for its input.
"""

from __future__ import annotations

import os
import socket
import sys
from time import monotonic

from ...owners import objection, peer_uid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

WAIT_MS = 20
MOST_BYTES = 64 * 1024
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/")
STDIN_MS = 50
STDIN_BYTES = 256 * 1024
MOST_WAIT_MS = 10_000
WORDS = {
    "none": "no session",
    "several": "several sessions",
    "waiting": "your turn",
    "no daemon": "no daemon",
    "no answer": "no answer",
    "off": "off",
    "judging": "judging",
    "stuck": "stuck",
    "working": "working",
    "idle": "idle",
    "complete": "done",
    "incomplete": "not done",
    "stopped": "gave up",
    "unscored": "not judged",
    "error": "failed",
    "skipped": "not judged",
}
ABOUT = f"""prints one line: where the newest session of this folder stands, how often its
task was sent back, what judging cost in the last 24 hours, and how many sessions
wait for you.

states: {", ".join(sorted({*WORDS.values()}))}.
exit codes: 0 always, also without a daemon; 2 wrong arguments.
Snippets for tmux, starship and Claude Code: docs/status-line.md."""


def at_once(argv: list[str]) -> bool:
    """Print the line if these flags and this environment need no parser and no settings."""
    flags: dict[str, Any] = {"session": "", "wait": str(WAIT_MS), "json": False, "claude-code": False}
    rest = iter(argv)
    for word in rest:
        name, given, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in flags:
            return False
        if isinstance(flags[name], bool):
            if given:
                return False
            flags[name] = True
        else:
            flags[name] = value if given else next(rest, "-")
            if flags[name].startswith("-"):
                return False
    wait = flags["wait"]
    path = find(os.environ)
    if path is None or not (wait.isascii() and wait.isdecimal() and 0 < int(wait[:9]) <= MOST_WAIT_MS):
        return False
    _print(path, flags["session"], int(wait), as_json=flags["json"], claude_code=flags["claude-code"])
    return True


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    import argparse

    from ..settings import add_flags

    parser = verbs.add_parser("line", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--session", default="", metavar="ID", help="that session (the beginning of its id)")
    parser.add_argument("--json", action="store_true", help="print an object instead")
    parser.add_argument(
        "--claude-code", action="store_true", help="read on stdin what Claude Code tells its status line"
    )
    parser.add_argument(
        "--wait",
        type=_milliseconds,
        default=WAIT_MS,
        metavar="MS",
        help=f"how long to wait for the daemon (default {WAIT_MS})",
    )
    add_flags(parser, run)


def _milliseconds(text: str) -> int:
    import argparse

    if not text.isdecimal() or not 0 < int(text[:9]) <= MOST_WAIT_MS:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to {MOST_WAIT_MS}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """As ``at_once``, with the flags and settings of every verb."""
    from ...paths import find_socket
    from ..settings import look

    path = str(find_socket(look(args)[1]))
    _print(path, args.session, args.wait, as_json=args.json, claude_code=args.claude_code)
    return 0


def _print(path: str, session: str, wait_ms: int, *, as_json: bool, claude_code: bool) -> None:
    directory, usd = _folder(), None
    if claude_code:
        told = _told()
        session = session or _text(told, "session_id")
        directory = _text(told, "workspace", "current_dir") or _text(told, "cwd") or directory
        usd = _number(told, "cost", "total_cost_usd")
    query = {"session": session} if session else {"directory": directory}
    found = ask(path, query, wait_ms)
    if usd is not None:
        found["agent_usd"] = usd
    text = line(found)
    if as_json:
        import json

        text = json.dumps({**found, "text": text}, indent=1)
    if sys.stdout.encoding.lower().replace("-", "") != "utf8":
        text = text.replace("·", "-").encode("ascii", "replace").decode()
    print(text)


def line(found: dict[str, Any]) -> str:
    """The line. ``found``: what the daemon answered, with ``agent_usd`` where the host told it."""
    state = found.get("state")
    parts = [WORDS.get(state, "no answer") if isinstance(state, str) else "no answer"]
    sent_back, waits = _count(found, "round"), _count(found, "waiting") - (state == "waiting")
    usd, tokens, agent = (_amount(found, name) for name in ("usd_today", "tokens_today", "agent_usd"))
    if sent_back:
        parts.append(f"sent back {sent_back}")
    if usd:
        parts.append(f"{_usd(usd)} today")
    if tokens:
        parts.append(f"{int(tokens):,} unpriced tokens today")
    if agent:
        parts.append(f"agent {_usd(agent)}")
    if waits > 0:
        parts.append(f"{waits} {'more ' if state == 'waiting' else ''}{'waits' if waits == 1 else 'wait'}")
    return " · ".join(parts)


def _usd(amount: float) -> str:
    return f"{amount:.2f} USD" if amount >= 0.005 else "<0.01 USD"


def _count(found: dict[str, Any], name: str) -> int:
    value = found.get(name)
    return value if type(value) is int else 0


def _amount(found: dict[str, Any], name: str) -> float:
    value = found.get(name)
    return float(value) if isinstance(value, int | float) and 0 < value < 1e9 else 0.0


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib takes longer than the whole request
    except OSError:  # the folder is gone
        return "/"


def _told() -> dict[str, Any]:
    """The object on stdin; empty when it is none, is too long, or does not come in time."""
    import json
    from select import select

    found, end = b"", monotonic() + STDIN_MS / 1000
    try:
        while len(found) < STDIN_BYTES and select([0], [], [], max(0.0, end - monotonic()))[0]:
            more = os.read(0, STDIN_BYTES)
            if not more:
                break
            found += more
        told = json.loads(found)
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _text(told: dict[str, Any], *names: str) -> str:
    found = _inside(told, names)
    return found if isinstance(found, str) and len(found) <= 4096 and "\0" not in found else ""


def _number(told: dict[str, Any], *names: str) -> float | None:
    found = _inside(told, names)
    fine = isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 1e9
    return float(found) if fine else None


def _inside(told: object, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - of any JSON
    for name in names:
        told = told.get(name) if isinstance(told, dict) else None
    return told


def find(env: Mapping[str, str]) -> str | None:
    """The socket's path as ``paths.find_socket`` finds it; None where only the settings can tell."""
    home = env.get("HOME", "")
    config = _folder_of(env, "XDG_CONFIG_HOME", f"{home}/.config")
    state = env.get("REFLECTD_STATE_DIR", "")
    if not home.startswith("/") or state[:1] not in {"", "/"}:
        return None
    if b"socket" in _read(f"{config}/reflectd/config.toml"):
        return None
    chosen = env.get("REFLECTD_SOCKET", "")
    if chosen:
        return chosen if chosen.startswith("/") else None
    state = state or _folder_of(env, "XDG_STATE_HOME", f"{home}/.local/state") + "/reflectd"
    written = os.fsdecode(_read(f"{state}/socket").strip())
    if written.startswith("/") and "\0" not in written:
        return written
    return _folder_of(env, "XDG_RUNTIME_DIR", f"{state}/run", "/reflectd") + "/reflectd.sock"


def _folder_of(env: Mapping[str, str], name: str, default: str, below: str = "") -> str:
    value = env.get(name, "")
    return value + below if value.startswith("/") else default


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as f:  # noqa: PTH123 - pathlib takes longer than the whole request
            return f.read(MOST_BYTES)
    except OSError:
        return b""


def ask(path: str, query: Mapping[str, str], wait_ms: int = WAIT_MS) -> dict[str, Any]:
    """The answer of ``GET /v1/line``; else ``{"state": "no daemon" or "no answer", "error": why}``."""
    for place in (os.path.dirname(path), path):  # noqa: PTH120 - as above
        try:
            said = objection(place, os.stat(place))  # noqa: PTH116 - as above
        except OSError as e:
            return _without("no daemon", f"no daemon answers on {path}: {e.strerror}")
        if said:
            return _without("no daemon", said)
    end = monotonic() + wait_ms / 1000
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(wait_ms / 1000)
        try:
            s.connect(path)
        except (TimeoutError, BlockingIOError):  # so many wait already that no more fit
            return _without("no answer", f"the daemon did not answer within {wait_ms} ms")
        except OSError as e:
            return _without("no daemon", f"no daemon answers on {path}: {e.strerror}")
        uid = peer_uid(s)  # the folder may have changed since it was looked at
        if uid not in {os.geteuid(), None}:
            return _without("no daemon", f"a program of another user (uid {uid}) answers on {path}; not used")
        try:
            s.sendall(_request(query))
            answer = _receive(s, end)
        except OSError:
            return _without("no answer", f"the daemon did not answer within {wait_ms} ms")
    return _answer(answer)


def _without(state: str, error: str) -> dict[str, Any]:
    return {"state": state, "error": error}


def _request(query: Mapping[str, str]) -> bytes:
    words = "&".join(f"{name}={_quoted(value)}" for name, value in query.items())
    return f"GET /v1/line?{words} HTTP/1.1\r\nHost: reflectd\r\nConnection: close\r\n\r\n".encode()


def _quoted(text: str) -> str:
    try:
        data = os.fsencode(text)
    except UnicodeEncodeError:  # half a character, as JSON may have
        data = text.encode("utf-8", "replace")
    return "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in data)


def _receive(s: socket.socket, end: float) -> bytes:
    """All that comes until the other end closes, or is more than an answer can be. Raises ``OSError``."""
    found = b""
    while len(found) < MOST_BYTES:
        left = end - monotonic()
        if left <= 0:
            raise TimeoutError
        s.settimeout(left)
        more = s.recv(MOST_BYTES)
        if not more:
            break
        found += more
    return found


def _answer(answer: bytes) -> dict[str, Any]:
    import json

    head, _, body = answer.partition(b"\r\n\r\n")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return _without("no answer", "another program than reflectd answers")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        return _without("no answer", str(found.get("error", "the daemon refused")))
    return found
