"""``reflectd service install|uninstall|status``: the daemon as a service of the person's own.

Owns what the person is told, and the order of the steps; ``daemon.service`` owns files and managers.
Nothing needs root. Exit codes: 0 done (status: installed) · 1 the files are as asked, but the service manager
can't be reached or said no: what to run by hand is printed · 2 wrong arguments or settings · 3 status: not
installed.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from daemon import paths
from daemon.cli.settings import add_flags, load
from daemon.core.errors import Unavailable, UserError
from daemon.core.settings import SETTINGS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from daemon.core.settings import Settings
    from daemon.paths import Paths
    from daemon.service.manager import Manager
    from daemon.service.systemd import Plan

ANSWER_S = 20.0
EPILOG = """examples:
  reflectd service install --dry-run   what would be written and run, and nothing is
  reflectd service install             systemd: start at the first connection; launchd: start at login
  reflectd service status --json       is it installed, enabled, active, as this version writes it
  reflectd service uninstall           all of it taken back
  reflectd service install --socket /run/me/r.sock --state-dir /data/reflectd

exit codes: 0 done (status: installed), 1 the service manager cannot be reached or refused: what to run by
hand is printed, 2 wrong arguments or settings, 3 not installed (status)"""
HELP = {
    "install": "write the service's files and start it",
    "uninstall": "stop the service and remove its files",
    "status": "is it installed, enabled, active, and as this version writes it",
}


@dataclass(slots=True)
class Report:
    """What was done (or would be); the JSON of ``--json``."""

    action: str
    manager: str
    dry_run: bool = False
    files: list[dict[str, str]] = field(default_factory=list)
    unreachable: str = ""
    units: dict[str, dict[str, str]] = field(default_factory=dict)
    by_hand: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str = ""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    import argparse

    parser = verbs.add_parser(
        "service",
        help="run the daemon as a service (systemd, launchd)",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in HELP.items():
        action = actions.add_parser(name, help=text, description=text)
        if name != "status":
            action.add_argument("--dry-run", action="store_true", help="say what would be done, do nothing")
        action.add_argument("--json", action="store_true", help="print the outcome as JSON")
        add_flags(action)
        action.set_defaults(run=run)


def run(args: argparse.Namespace, *, env: Mapping[str, str] = os.environ, here: Manager | None = None) -> int:
    """Do it, say it. ``here`` is this system's manager unless another is given."""
    from daemon.service import manager

    here = here or manager.here(env)
    report = Report(args.action, here.name, getattr(args, "dry_run", False))
    settings, where = _load(args, env)
    plan = plan_for(env, where)
    do = {"install": _install, "uninstall": _uninstall, "status": _status}[args.action]
    code = do(here, plan, where, report)
    if args.action == "install":
        report.notes += _unseen(env, settings)
    if args.json:
        from daemon.cli.render import print_json

        print_json(asdict(report))
    else:
        print("\n".join(_lines(report)))
        if report.error:
            print(f"reflectd: {report.error}", file=sys.stderr)
    return code


def plan_for(env: Mapping[str, str], where: Paths) -> Plan:
    """This interpreter and this package, with what a service does not see of this shell."""
    from daemon.service.systemd import Plan

    if not sys.executable:
        raise UserError("this Python does not know its own path; install reflectd with uv tool or pipx")
    kept = {}
    config_home = env.get("XDG_CONFIG_HOME", "")
    if config_home.startswith("/") and Path(config_home) != Path(env.get("HOME", "/"), ".config"):
        kept["XDG_CONFIG_HOME"] = config_home
    package = str(Path(paths.__file__).resolve().parents[1])
    if package in env.get("PYTHONPATH", "").split(os.pathsep):
        kept["PYTHONPATH"] = package
    return Plan((sys.executable, "-m", "daemon"), where.state_dir, where.socket, kept)


def _load(args: argparse.Namespace, env: Mapping[str, str]) -> tuple[Settings | None, Paths]:
    """Wrong settings must not keep anyone from taking the service away."""
    try:
        return load(args)
    except UserError:
        if args.action == "install":
            raise
        return None, paths.resolve(env)


def _install(here: Manager, plan: Plan, where: Paths, report: Report) -> int:
    from daemon.service import units

    wanted = {here.folder / name: text for name, text in here.render(plan).items()}
    before = {path: units.state(path, text) for path, text in wanted.items()}
    report.unreachable = here.unreachable()
    if report.dry_run:
        report.files = [{"path": str(p), "state": before[p], "text": units.seal(wanted[p])} for p in wanted]
        report.by_hand = list(here.up_by_hand)
        return 0
    for path, text in wanted.items():
        entry = {"path": str(path), "state": "current"}
        if before[path] != "current":
            aside = units.write(path, text, _stamp())
            entry |= {"state": "written", **({"kept": str(aside)} if aside else {})}
        report.files.append(entry)
    _announce(where)
    if report.unreachable:
        report.by_hand = list(here.up_by_hand)
        report.error = (
            f"the files are written, but {here.name} cannot be asked from here: {report.unreachable}"
        )
        return 1
    try:
        if set(before.values()) != {"current"} or not here.active():
            _replace_running(here, where, report)
        report.notes.append(_answer(where))
        report.units = here.show()
    except Unavailable as e:
        report.by_hand = list(here.up_by_hand)
        report.error = str(e)
        return 1
    return 0


def _replace_running(here: Manager, where: Paths, report: Report) -> None:
    """A daemon that a host started makes room; the mark keeps hosts from starting another meanwhile."""
    from daemon.cli.stop import end
    from daemon.server.listener import Lock

    where.stopped.touch(mode=0o600)
    try:
        own = here.pid()
        pid = end(where) if not own and not Lock(where.lock).is_free() else None
        if pid is not None:
            report.notes.append(f"stopped the daemon that ran without the service (pid {pid})")
    finally:
        where.stopped.unlink(missing_ok=True)
    here.install()
    _announce(where)  # a daemon that ended took its address away


def _announce(where: Paths) -> None:
    """Clients whose shell has another ``XDG_RUNTIME_DIR`` find the socket before the daemon ever ran."""
    from daemon.files.atomic import write_atomic

    try:
        where.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise Unavailable(f"cannot make the folder {where.state_dir}: {e.strerror}") from e
    write_atomic(where.socket_file, f"{where.socket}\n", 0o600, durable=False)


def _answer(where: Paths) -> str:
    """Connecting starts it."""
    import time

    from daemon.client import request

    end = time.monotonic() + ANSWER_S
    while True:
        try:
            s = request(where.socket, "GET", "/v1/status", timeout_s=ANSWER_S)
        except Unavailable as e:
            if time.monotonic() > end:
                raise Unavailable(f"{e}. `reflectd logs` says why") from e
            time.sleep(0.1)
        else:
            return f"reflectd {s['version']} answers on {where.socket} (pid {s['pid']})"


def _uninstall(here: Manager, plan: Plan, where: Paths, report: Report) -> int:
    from daemon.service import units

    wanted = {here.folder / name: text for name, text in here.render(plan).items()}
    there = {path: state for path in wanted if (state := units.state(path, wanted[path])) != "missing"}
    report.files = [{"path": str(path), "state": state} for path, state in there.items()]
    if not there:
        report.notes.append("the service is not installed; nothing to do")
        return 0
    report.unreachable = here.unreachable()
    if report.dry_run:
        report.by_hand = list(here.down_by_hand)
        return 0
    if not report.unreachable:
        try:
            here.down()
        except Unavailable as e:  # the files go all the same: nothing starts it again
            report.error = str(e)
    for entry, path in zip(report.files, there, strict=True):
        aside = units.remove(path, wanted[path], _stamp())
        entry |= {"state": "removed", **({"kept": str(aside)} if aside else {})}
    _remove_links(here, report)
    if where.socket_file.is_file() and units.read(where.socket_file).strip() == str(where.socket):
        from daemon.server.listener import Lock

        if Lock(where.lock).is_free():
            where.socket_file.unlink(missing_ok=True)
            units.remove_empty(where.run_dir, 1)
    if report.unreachable:
        report.by_hand = list(here.down_by_hand)
        report.error = f"the files are gone, but {here.name} cannot be asked from here: {report.unreachable}"
    elif not report.error:
        here.forget()
    return 1 if report.error else 0


def _remove_links(here: Manager, report: Report) -> None:
    """What `systemctl enable` made, and folders in which nothing is left. Drop-ins are the person's."""
    from daemon.service import systemd, units

    if here.name != "systemd":
        return
    wants = here.folder / "sockets.target.wants"
    (wants / systemd.SOCKET).unlink(missing_ok=True)
    units.remove_empty(wants, 3)
    for unit in (systemd.SOCKET, systemd.SERVICE):
        drop_in = here.folder / f"{unit}.d"
        if drop_in.is_dir():
            report.notes.append(f"your own {drop_in} is left; remove it if you don't need it")


def _status(here: Manager, plan: Plan, _where: Paths, report: Report) -> int:
    from daemon.service import units

    for name, text in here.render(plan).items():
        path = here.folder / name
        report.files.append({"path": str(path), "state": units.state(path, text)})
    if all(entry["state"] == "missing" for entry in report.files):
        report.notes.append("not installed; `reflectd service install` does it")
        return 3
    report.unreachable = here.unreachable()
    if report.unreachable:
        report.notes.append(f"{here.name} cannot be asked from here: {report.unreachable}")
    else:
        report.units = here.show()
    if any(entry["state"] != "current" for entry in report.files):
        report.notes.append("not as this version writes it; `reflectd service install` does that")
    return 0


def _unseen(env: Mapping[str, str], settings: Settings | None) -> Iterator[str]:
    """What this shell knows and the service will not."""
    own = {"daemon.socket", "daemon.state_dir"}  # written into the units
    names = [s.env for s in SETTINGS.values() if s.key not in own and env.get(s.env)]
    if names:
        file = paths.config_file(env)
        yield f"{', '.join(names)}: the service does not see this shell's variables; write them into {file}"
    for name, api in (
        ("anthropic", settings and settings.anthropic),
        ("openai", settings and settings.openai),
    ):
        variable = f"{name.upper()}_API_KEY"
        if env.get(variable) and api and not api.key_file:
            yield f"{variable}: the service does not see it; put the key into a file and set {name}.key_file"


def _stamp() -> str:
    import time

    return time.strftime("%Y%m%dT%H%M%S", time.gmtime())


_WORDS = {"written": "wrote", "removed": "removed", "current": "as it should be"}
_STATES = {
    "missing": "is missing",
    "current": "is as this version writes it",
    "older": "differs from what this version writes",
    "edited": "was edited",
}


def _lines(report: Report) -> Iterator[str]:
    from daemon.cli.render import plain

    done = not report.dry_run and report.action != "status"
    for entry in report.files:
        path, state = entry["path"], entry["state"]
        if done and state != "current":
            yield f"{_WORDS[state]} {path}"
        elif report.dry_run and report.action == "install":
            yield (
                f"{path} {_STATES[state]}"
                if state == "current"
                else f"would write {path} ({_STATES[state]}):"
            )
            if state != "current":
                yield "".join(f"  {line}\n" for line in entry["text"].splitlines()).rstrip("\n")
        elif report.dry_run:
            yield f"would remove {path}" + (" (edited: it would be kept beside)" if state == "edited" else "")
        else:
            yield f"{path} {_STATES[state]}"
        if "kept" in entry:
            yield f"  you had edited it; your version is kept as {entry['kept']}"
    for unit, said in report.units.items():
        if report.action == "status":
            words = [said.get(k, "") for k in ("UnitFileState", "ActiveState", "SubState")]
            result = said.get("Result", "success")
            extra = f", pid {said['MainPID']}" if said.get("MainPID", "0") != "0" else ""
            extra += f", {result}" if result != "success" else ""
            yield plain(f"{unit}: {' '.join(w for w in words if w) or 'not loaded'}{extra}")
    yield from map(plain, report.notes)
    if report.by_hand:
        yield (
            "would run:"
            if report.dry_run
            else "run by hand, as yourself (not with sudo), in a login session:"
        )
        yield from (f"  {line}" for line in report.by_hand)
