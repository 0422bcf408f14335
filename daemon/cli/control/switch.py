"""``reflectd on|off``: switches one project or one session on or off, and no other (I40).

Without a folder it means the project of the current one. The daemon stores the switch. When none runs, this
verb writes it into the database itself, and the next daemon reads it there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from ...client import request
from ...core.errors import BadReply, Unavailable, UserError
from ...paths import find_socket
from ..render import count, print_json, short
from ..settings import add_flags, here, look, unknown
from ..terminal import say

if TYPE_CHECKING:
    import argparse

    from ...paths import Paths
    from ...store.sessions import Sessions, Switched

EPILOG = """examples:
  reflectd {verb}                     this project, with everything below it
  reflectd {verb} --dir .             this folder, with everything below it
  reflectd {verb} --session ses_58c3  one session, by the beginning of its id"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    for verb in ("on", "off"):
        parser = verbs.add_parser(verb, epilog=EPILOG.format(verb=verb))
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--session", metavar="ID", help="one session, by (the beginning of) its id")
        what.add_argument("--dir", metavar="DIR", help="exactly this folder, with everything below it")
        add_flags(parser, run, json="print what was done as JSON")


def run(args: argparse.Namespace) -> int:
    _, where = look(args)
    on = args.verb == "on"
    body: dict[str, Any] = {"on": on}
    if args.session is not None:
        body["session"] = args.session
    else:
        folder = here(where) if args.dir is None else Path(args.dir).expanduser()
        body["directory"] = str(_absolute(folder, on=on))
    done = _switched(where, body)
    if (real := os.path.realpath(body.get("directory", "/"))) != body.get("directory", "/"):
        # a host names the folder that a link leads to, or the link: both are meant
        other = _switched(where, body | {"directory": real})
        done = max(done, other, key=lambda each: int(each["sessions"]))
    if args.json:
        print_json({"on": on} | {k: v for k, v in done.items() if k != "api"})
    else:
        say("\n".join(told(done, on=on, session="session" in body)))
    return int(on and bool(done["off_above"]))


def _switched(where: Paths, body: dict[str, Any]) -> dict[str, Any]:
    try:
        return request(find_socket(where), "POST", "/v1/switch", body)
    except Unavailable:
        return _without_daemon(where, body)


def _absolute(folder: Path, *, on: bool) -> Path:
    """As hosts name it. A folder that is gone can still be switched on again."""
    from ...files.project import upward

    if not on and not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    return upward(folder)[0]


def told(done: dict[str, Any], *, on: bool, session: bool) -> list[str]:
    """The change, and a folder that holds it up. ``done``: the daemon's answer."""
    name = short(done["target"], 200)
    what = f"session {name}" if session else f"{name} and everything below it"
    state = "on" if on else "off"
    if on and done["off_above"]:
        above = short(done["off_above"], 200)
        return [
            f"reflectd is still off for {what}, because {above} is off: `reflectd on --dir {quote(above)}`"
        ]
    was = f"is {state}" if done["changed"] else f"was {state} already"
    counted = "" if session else f" ({count(done['sessions'], 'session')} so far)"
    lines = [f"reflectd {was} for {what}{counted}"]
    if on and done["off_below"]:
        lines.append(f"still off below it: {', '.join(short(f, 200) for f in done['off_below'])}")
    return lines


def _without_daemon(where: Paths, body: dict[str, Any]) -> dict[str, Any]:
    """The switch in the database, under the daemon's lock. Raises ``Unavailable`` while one is starting."""
    from ...server.listener import AlreadyRunning, Lock

    lock = Lock(where.lock)
    try:
        lock.acquire()
    except AlreadyRunning as e:
        raise Unavailable("a daemon is just starting; try again in a moment") from e
    try:
        done: dict[str, Any] = to_builtins(_store(where, body))
    finally:
        lock.release()
    say("reflectd: no daemon runs; the next one will find this in its database", sys.stderr)
    return done


def _store(where: Paths, body: dict[str, Any]) -> Switched:
    import asyncio

    from ...clock import SystemClock
    from ...store.db import Database
    from ...store.sessions import Sessions

    clock = SystemClock()
    db = Database(where.database, clock.now_ms)
    try:
        if db.opened.aside is not None:
            say(f"reflectd: the database was corrupt; it is kept as {db.opened.aside}", sys.stderr)
        sessions = Sessions(db)
        if "session" in body:
            identity = _known(sessions, body["session"])
            done, state = sessions.switch_session(identity, on=body["on"])
            statement = sessions.statement({identity: state}, clock.now_ms())
        else:
            done, statement = sessions.switch_folder(body["directory"], on=body["on"], now=clock.now_ms())
        asyncio.run(db.commit(statement, durable=True))
        return done
    finally:
        db.close()


def _known(sessions: Sessions, prefix: str) -> str:
    """The one session whose id begins like that. Raises ``UserError``."""
    try:
        found = sessions.only(prefix) if prefix else ""
    except BadReply as e:
        raise UserError(str(e)) from None
    if not found:
        raise unknown(prefix)
    return found
