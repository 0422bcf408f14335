"""``reflectd start``, ``stop`` and ``restart``: the daemon in the background, once per user.

The service manager starts, stops and restarts the daemon that it runs. A turn that is being judged meanwhile
is judged again by the next daemon.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ... import __version__, config
from ...client import request
from ...core.errors import ReflectdError, Unavailable
from ...paths import MODULE, find_socket
from ...service import manager
from ...service.notify import without
from ..render import plain
from ..settings import SHORT, add_flags, load, look
from ..setup import copies
from ..terminal import say
from . import start_failure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from ...paths import Paths

T = TypeVar("T")
NAMED = 5
WAIT_S = 30.0
RESTART_S = 60.0
RESTART = """A daemon that runs as a service is restarted by systemd; any other is ended,
and started in the background with the flags and the environment of this
shell. A turn that is being judged meanwhile is judged again."""


def outdated(status: Mapping[str, Any]) -> list[str]:
    """One sentence for each thing that a restart of the daemon with this ``status`` would change: its
    program, and the settings that it read at its start. A daemon of an older version may not tell all of it.
    """
    return [*_program(status), *_settings(status)]


def _program(status: Mapping[str, Any]) -> list[str]:
    upgrade = status.get("upgrade") or {}
    if upgrade.get("problem"):
        return [f"its program was replaced and it goes on as it was: {upgrade['problem']}"]
    if upgrade.get("waiting"):
        return ["its program was replaced; it leaves for the new one at the next quiet moment"]
    if status["version"] == __version__:
        return []
    return [f"it is {status['version']}, and this program {__version__}"]


def _settings(status: Mapping[str, Any]) -> list[str]:
    told = status.get("settings")
    if not told:
        return []
    before, now = told["digests"], config.digests(Path(told["file"]))
    changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    if not changed:
        return []
    names = ", ".join(changed[:NAMED]) + (" …" if len(changed) > NAMED else "")
    return [f"it runs on older settings: {told['file']} changed since ({names})"]


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("start")
    parser.add_argument(
        "--from-shim", action="store_true", help="for hosts: exit after 30 minutes without a host"
    )
    add_flags(parser, run)
    parser = verbs.add_parser("stop")
    add_flags(parser, _stop)
    parser = verbs.add_parser("restart", epilog=RESTART)
    add_flags(parser, _restart)
    parser.set_defaults(from_shim=False)


def run(args: argparse.Namespace) -> int:
    """Start the daemon unless it runs, and return when it answers. Why it does not is written down."""
    _, where = load(args, left_out=[])
    where.start_failed.unlink(missing_ok=True)
    try:
        return _start(args)
    except ReflectdError as e:
        if not start_failure.read(where) and status(find_socket(where), 1.0) is None:
            start_failure.keep(where, e)
        raise


def _start(args: argparse.Namespace) -> int:
    """Start the daemon unless it runs.

    A host's start (``--from-shim``) starts nothing after `reflectd stop`. Where the service is installed and
    its manager can be asked, the manager starts the daemon.
    """
    _, where = load(args)
    if args.from_shim and where.stopped.exists():
        say("reflectd was stopped by `reflectd stop`; `reflectd start` starts it")
        return 0
    copies.refresh_all(os.environ)
    service = manager.holding(os.environ, where)
    if service is not None:
        # while the mark is there the units start nothing; the request below may start them
        where.stopped.unlink(missing_ok=True)
    running = status(find_socket(where), WAIT_S)  # whoever listens may still be starting
    if running is not None:
        _tell(running)
        return 0
    if service is not None:
        service.up(find_socket(where), forgive=not args.from_shim)
        late = f"the service does not answer after {WAIT_S:.0f} s; see `reflectd logs`"
        running = awaited(lambda: status(find_socket(where)), WAIT_S, late)
        say(f"reflectd {running['version']} started as a service (pid {running['pid']})")
        return 0
    return detached(args, where)


def _tell(running: dict[str, Any]) -> None:
    say(f"reflectd runs already (pid {running['pid']})")
    found = outdated(running)
    for sentence in found:
        say(f"  {plain(sentence)}")
    if found:
        say("`reflectd restart` replaces it now")


def detached(args: argparse.Namespace, where: Paths) -> int:
    """Start the daemon in the background, apart from this terminal. Raises ``Unavailable``."""
    command = [sys.executable, "-m", MODULE, "serve", "--log-file"]
    if args.from_shim:
        command.append("--from-shim")
    for key, flag in SHORT.items():
        value = getattr(args, f"set:{key}", None)
        if value is not None:
            command += [flag, value]
    said = tempfile.TemporaryFile()  # noqa: SIM115 - not a pipe: the daemon goes on when this process has ended
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,
        cwd="/",
        env=without(os.environ),
    )

    def look() -> dict[str, Any] | None:
        running = status(where.socket)
        if running is None and process.poll() is not None:
            said.seek(0)
            words = said.read().decode("utf-8", "replace").strip() or f"exit code {process.returncode}"
            if "runs already" not in words:  # else another `start` was faster, and its daemon will answer
                raise Unavailable(f"the daemon did not start: {start_failure.read(where) or words}")
        return running

    late = f"the daemon does not answer after {WAIT_S:.0f} s; see {where.log_file}"
    running = awaited(look, WAIT_S, late)
    if running["pid"] == process.pid:
        say(f"reflectd {running['version']} started (pid {running['pid']}), log: {where.log_file}")
    else:  # another `start` was faster; this one must not become the daemon when that one ends
        process.kill()
        process.wait()
        _tell(running)
    return 0


def awaited(look: Callable[[], T | None], seconds: float, late: str) -> T:
    """The result of ``look`` within so many seconds. Raises ``Unavailable`` with the words ``late``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found is not None:
            return found
        time.sleep(0.02)
    raise Unavailable(late)


def status(socket: Path, timeout_s: float = 2.0) -> dict[str, Any] | None:
    try:
        return request(socket, "GET", "/v1/status", timeout_s=timeout_s)
    except Unavailable:
        return None


def _stop(args: argparse.Namespace) -> int:
    """Send SIGTERM, on which the daemon finishes its work and stores its state. It is fine when none runs.

    Leaves the file ``stopped``, so that an open host does not start the daemon again; `start` and `serve`
    remove it.
    """
    _, where = look(args)
    where.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    where.stopped.touch(mode=0o600)
    pid = _end_service(where) or end(where)
    what = "is not running" if pid is None else f"stopped (pid {pid})"
    say(f"reflectd {what}; hosts will not start it until `reflectd start`")
    return 0


def end(where: Paths) -> int | None:
    """Send SIGTERM and wait until the daemon has ended. Returns its pid, None when none ran.

    Raises ``Unavailable``.
    """
    known = status(find_socket(where), 10.0)
    if known is None:
        return None
    pid = int(known["pid"])
    from ...server.listener import Lock

    lock = Lock(where.lock)
    os.kill(pid, signal.SIGTERM)
    late = f"reflectd (pid {pid}) still runs after {WAIT_S:.0f} s; `kill -9 {pid}` loses nothing stored"
    return awaited(lambda: pid if lock.is_free() else None, WAIT_S, late)


def _end_service(where: Paths) -> int | None:
    """Stop the service with its socket, else the next host that connects would start the daemon again.

    Returns the daemon's pid, None when no service runs it.
    """
    service = manager.holding(os.environ, where)
    if service is None:
        return None
    pid = service.pid()
    service.down()
    return pid or None


def _restart(args: argparse.Namespace) -> int:
    """Restart it, and return when the new daemon answers. One that does not run is started."""
    _, where = load(args)
    before = status(find_socket(where))
    if before is None:
        return run(args)
    copies.refresh_all(os.environ)  # what agents load follows the settings too
    service = manager.holding(os.environ, where)
    if service is None or service.pid() != before["pid"]:
        return _exchange(args, where, before)
    service.restart()

    def look() -> dict[str, Any] | None:
        now = status(find_socket(where))
        same = now is None or all(now.get(key) == before.get(key) for key in ("pid", "started_at"))
        return None if same else now

    late = f"the new daemon does not answer after {RESTART_S:.0f} s; see `reflectd logs`"
    now = awaited(look, RESTART_S, late)
    was = "" if before["version"] == now["version"] else f"; it was {before['version']}"
    say(f"reflectd {now['version']} restarted as a service (pid {now['pid']}){was}")
    return 0


def _exchange(args: argparse.Namespace, where: Paths, before: dict[str, Any]) -> int:
    """End the daemon and start this one; ``stopped`` keeps hosts from doing it. Raises ``Unavailable``."""
    try:
        import_module("...app", __package__)
    except Exception as e:
        raise Unavailable(f"this program does not start, so the daemon goes on as it was: {e}") from e
    where.stopped.touch(mode=0o600)
    try:
        end(where)
    finally:
        where.stopped.unlink(missing_ok=True)
    args.from_shim = bool(before.get("by_host"))
    return detached(args, where)
