"""``reflectd service install|uninstall|status``: the daemon as a service of the person's own.

Decides the order of the steps and what the person is told. The package ``service`` writes the files and talks
to the service manager. Nothing needs root.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field, to_builtins

from ... import paths
from ...core.errors import Unavailable, UserError
from ...core.settings import SETTINGS
from ...files.safe import remove_empty, write_atomic
from ...keys import VARIABLES
from ...service import manager, units
from ...service.units import Plan
from ..judging import lost_login
from ..render import plain, print_json
from ..settings import add_flags, load, look
from ..terminal import say
from .start import awaited, end, status

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping

    from ...core.settings import Settings
    from ...paths import Paths
    from ...service.manager import Launchd, Systemd

STATES = {
    "missing": "is missing",
    "current": "is as this version writes it",
    "older": "differs from what this version writes",
    "edited": "was edited",
}


class Report(Struct):
    """The steps that were or would be done. ``--json`` prints these fields."""

    action: str
    manager: str
    dry_run: bool = False
    files: list[dict[str, str]] = field(default_factory=list)
    unreachable: str = ""
    units: dict[str, dict[str, str]] = field(default_factory=dict)
    by_hand: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str = ""

    def lines(self) -> Iterator[str]:
        """For people. Indented: the text of files, and commands, which are there to be copied."""
        for entry in self.files:
            yield from self._file(entry["path"], entry["state"], entry.get("text", ""))
            if "kept" in entry:
                yield f"you had edited it; your version is kept as {entry['kept']}"
        for unit, said in self.units.items() if self.action == "status" else ():
            words = [said.get(k, "") for k in ("UnitFileState", "ActiveState", "SubState")]
            result = said.get("Result", "success")
            extra = f", pid {said['MainPID']}" if said.get("MainPID", "0") != "0" else ""
            extra += f", {result}" if result != "success" else ""
            yield plain(f"{unit}: {' '.join(w for w in words if w) or 'not loaded'}{extra}")
        yield from map(plain, self.notes)
        if self.by_hand:
            by_hand = "run by hand, as yourself (not with sudo), in a login session:"
            yield "would run:" if self.dry_run else by_hand
            yield from (f"  {line}" for line in self.by_hand)

    def _file(self, path: str, state: str, text: str) -> Iterator[str]:
        if state not in STATES:
            yield f"{'wrote' if state == 'written' else state} {path}"
        elif self.dry_run and self.action == "uninstall":
            yield f"would remove {path}" + (" (edited: it would be renamed)" if state == "edited" else "")
        elif self.dry_run and state != "current":
            yield f"would write {path} ({STATES[state]}):"
            yield from (f"  {line}" for line in text.splitlines())
        else:
            yield f"{path} {STATES[state]}"


ANSWER_S = 20.0
EPILOG = """examples:
  reflectd service install --dry-run   show what would be written and run, and do nothing
  reflectd service install             systemd: start at the first connection; launchd: start at login
  reflectd service status --json       is it installed, enabled, active, as this version writes it
  reflectd service uninstall           stop it and remove its files
  reflectd service install --socket /run/me/r.sock --state-dir /data/reflectd"""
HELP = {
    "install": "write the service's files and start it",
    "uninstall": "stop the service and remove its files",
    "status": "is it installed, enabled, active, and as this version writes it",
}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("service", epilog=EPILOG)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in HELP.items():
        action = actions.add_parser(name, help=text, description=text)
        if name != "status":
            action.add_argument("--dry-run", action="store_true", help="say what would be done, do nothing")
        add_flags(action, run, json="print the outcome as JSON")


def run(
    args: argparse.Namespace, *, env: Mapping[str, str] = os.environ, here: Systemd | Launchd | None = None
) -> int:
    """Do what is asked and print the report. ``here`` is this system's manager unless another is given."""
    here = here or manager.here(env)
    report = Report(args.action, here.name, getattr(args, "dry_run", False))
    # wrong settings must not keep anyone from removing the service
    settings, where = load(args) if args.action == "install" else look(args)
    plan = plan_for(env, where)
    do = {"install": _install, "uninstall": uninstall, "status": _status}[args.action]
    code = do(here, plan, where, report)
    if args.action == "install":
        report.notes += _unseen(env, settings)
    if args.json:
        print_json(to_builtins(report))
    else:
        for line in report.lines():
            if line.startswith(" "):
                print(line)
            else:
                say(line)
        if report.error:
            say(f"reflectd: {report.error}", sys.stderr)
    return code


def plan_for(env: Mapping[str, str], where: Paths) -> Plan:
    """This Python and package, with the variables that a service needs and does not see."""
    if not sys.executable:
        raise UserError("this Python does not know its own path; install reflectd with uv tool or pipx")
    kept = {}
    config_home = env.get("XDG_CONFIG_HOME", "")
    if config_home.startswith("/") and Path(config_home) != Path(env.get("HOME", "/"), ".config"):
        kept["XDG_CONFIG_HOME"] = config_home
    beside = str(Path(paths.__file__).parents[1])  # links are kept: they give the package its name
    if beside in env.get("PYTHONPATH", "").split(os.pathsep):
        kept["PYTHONPATH"] = beside
    return Plan((sys.executable, "-m", paths.MODULE), where.state_dir, where.socket, kept)


def _install(here: Systemd | Launchd, plan: Plan, where: Paths, report: Report) -> int:
    files = manager.files(here, plan)
    report.unreachable = here.unreachable()
    if report.dry_run:
        report.files = [
            {"path": str(path), "state": state, "text": units.seal(text)}
            for path, (text, state) in files.items()
        ]
        return _leave(report, here.up_by_hand)
    for path, (text, state) in files.items():
        entry = {"path": str(path), "state": "current"}
        if state != "current":
            aside = units.write(path, text, _stamp())
            entry |= {"state": "written", **({"kept": str(aside)} if aside else {})}
        report.files.append(entry)
    _announce(where)
    if report.unreachable:
        why = f"the files are written, but {here.name} can't be asked from here: {report.unreachable}"
        return _leave(report, here.up_by_hand, why)
    try:
        if any(state != "current" for _, state in files.values()) or not here.active():
            _replace_running(here, where, report)
        report.notes.append(_answer(where))
        report.units = here.show()
    except Unavailable as e:
        return _leave(report, here.up_by_hand, str(e))
    return 0


def _leave(report: Report, commands: Iterable[str], error: str = "") -> int:
    """The rest is for the person to do, with these commands. The exit code."""
    report.by_hand, report.error = list(commands), error
    return int(bool(error))


def _replace_running(here: Systemd | Launchd, where: Paths, report: Report) -> None:
    """Start the service in the place of a running daemon; ``stopped`` keeps hosts from starting one."""
    from ...server.listener import Lock

    where.stopped.touch(mode=0o600)
    try:
        own = here.pid()
        pid = end(where) if not own and not Lock(where.lock).is_free() else None
        if pid is not None:
            report.notes.append(f"stopped the daemon that ran without the service (pid {pid})")
    finally:
        where.stopped.unlink(missing_ok=True)
    here.install()
    _announce(where)  # the daemon that ended removed this file


def _announce(where: Paths) -> None:
    """Write down where the socket is, for clients with another ``XDG_RUNTIME_DIR``."""
    try:
        where.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise Unavailable(f"cannot make the folder {where.state_dir}: {e.strerror}") from e
    write_atomic(where.socket_file, f"{where.socket}\n", 0o600, durable=False)


def _answer(where: Paths) -> str:
    """Connect, which starts the daemon, and say what answers. Raises ``Unavailable``."""
    late = f"no daemon answers on {where.socket}; `reflectd logs` says why"
    s = awaited(lambda: status(where.socket, ANSWER_S), ANSWER_S, late)
    return f"reflectd {s['version']} answers on {where.socket} (pid {s['pid']})"


def uninstall(here: Systemd | Launchd, plan: Plan, where: Paths, report: Report) -> int:
    """Stop the service and remove its files; ``report`` says what was done. Returns the exit code."""
    there = {path: found for path, found in manager.files(here, plan).items() if found[1] != "missing"}
    report.files = [{"path": str(path), "state": state} for path, (_, state) in there.items()]
    if not there:
        report.notes.append("the service is not installed; nothing to do")
        return 0
    report.unreachable = here.unreachable()
    if report.dry_run:
        return _leave(report, here.down_by_hand)
    if not report.unreachable:
        try:
            here.down()
        except Unavailable as e:  # the files are removed all the same, so that nothing starts it again
            report.error = str(e)
    for entry, (path, (text, _)) in zip(report.files, there.items(), strict=True):
        aside = units.remove(path, text, _stamp())
        entry |= {"state": "removed", **({"kept": str(aside)} if aside else {})}
    _remove_links(here, report)
    if where.socket_file.is_file() and units.read(where.socket_file).strip() == str(where.socket):
        from ...server.listener import Lock

        if Lock(where.lock).is_free():
            where.socket_file.unlink(missing_ok=True)
            remove_empty([where.run_dir])
    if report.unreachable:
        why = f"the files are removed, but {here.name} can't be asked from here: {report.unreachable}"
        return _leave(report, here.down_by_hand, why)
    if not report.error:
        here.forget()
    return int(bool(report.error))


def _remove_links(here: Systemd | Launchd, report: Report) -> None:
    """Remove the link of `systemctl enable` and empty folders. A person's drop-ins stay."""
    if here.name != "systemd":
        return
    wants = here.folder / "sockets.target.wants"
    (wants / units.SOCKET).unlink(missing_ok=True)
    remove_empty([wants, here.folder, here.folder.parent])
    for unit in (units.SOCKET, units.SERVICE):
        drop_in = here.folder / f"{unit}.d"
        if drop_in.is_dir():
            report.notes.append(f"your own {drop_in} stays; remove it if you don't need it")


def _status(here: Systemd | Launchd, plan: Plan, _where: Paths, report: Report) -> int:
    found = {str(path): state for path, (_, state) in manager.files(here, plan).items()}
    report.files = [{"path": path, "state": state} for path, state in found.items()]
    if set(found.values()) == {"missing"}:
        report.notes.append("not installed; `reflectd service install` installs it")
        return 3
    report.unreachable = here.unreachable()
    if report.unreachable:
        report.notes.append(f"{here.name} can't be asked from here: {report.unreachable}")
    else:
        report.units = here.show()
    if set(found.values()) != {"current"}:
        report.notes.append("`reflectd service install` writes the files as this version has them")
    return 0


def _unseen(env: Mapping[str, str], settings: Settings) -> Iterator[str]:
    """Settings and keys that only this shell has: one line for each thing that the service will miss."""
    own = {"daemon.socket", "daemon.state_dir"}  # these are written into the units
    names = [s.env for s in SETTINGS.values() if s.key not in own and env.get(s.env)]
    if names:
        file = paths.config_file(env)
        yield f"{', '.join(names)}: the service does not see this shell's variables; write them into {file}"
    for name, api in settings.apis.items():
        variable = VARIABLES[name].key
        if env.get(variable) and not api.key_file:
            yield f"{variable}: the service does not see it; put the key into a file and set {name}.key_file"
    asked = {settings.judge.provider, settings.judge.claude_code, settings.judge.codex}
    if "claude-cli" in asked and (way := lost_login(env, settings.claude_cli.token_file)):
        yield way


def _stamp() -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime())
