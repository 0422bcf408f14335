"""``reflectd setup HOST``: connects a coding agent to reflectd, and disconnects it again.

Owns: the arguments and what the person is told. When anything is wrong the settings stay as they were: exit
code 2 (yours to mend, with how) or 1 (the file system said no).
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from daemon.cli import setup_claude, setup_opencode
from daemon.core.errors import Unavailable, UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from daemon.cli.setup_edit import Action, Report

SAID: dict[Action, str] = {
    "created": "Made {file}, which loads reflectd.",
    "added": "Added reflectd to {file}.",
    "replaced": "Updated the reflectd entry in {file}.",
    "removed": "Took reflectd out of {file}.",
    "restored": "Brought {file} back as it was.",
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb and its hosts."""
    setup = subparsers.add_parser("setup", help="connect a coding agent to reflectd")
    hosts = setup.add_subparsers(dest="host", required=True, metavar="HOST")
    for host in (setup_opencode, setup_claude):
        host.add_parser(hosts)
    setup.set_defaults(run=run)


def run(
    args: argparse.Namespace,
    *,
    env: Mapping[str, str] = os.environ,
    now: Callable[[], datetime] | None = None,
) -> int:
    """Do what the arguments say and report it. The exit code: 0, 1 unavailable, 2 yours to mend."""
    try:
        report: Report = args.setup(args, env, now or _utc_now)
    except (UserError, Unavailable, OSError) as error:
        what = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        if args.json:
            _print_json({"error": what})
        else:
            print(f"reflectd: {what}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    _tell(report, args, env)
    return 0


def _tell(report: Report, args: argparse.Namespace, env: Mapping[str, str]) -> None:
    changed = report.action != "unchanged"
    if args.json:
        backup = str(report.backup) if report.backup else None
        values = {"file": str(report.file), "changed": changed, "backup": backup, "line": report.line}
        more = {"dry_run": args.dry_run, "diff": report.diff, "warnings": report.warnings}
        _print_json({**values, "action": report.action, **more})
        return
    for warning in report.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if not changed:
        print(f"{report.file} {'does not load' if args.remove else 'already loads'} reflectd: nothing to do.")
    elif args.dry_run:
        print(report.diff, end="")
    else:
        print(SAID[report.action].format(file=report.file))
        if report.line:
            print(f"  {'loaded:' if args.remove else 'loads: '} {report.line}")
        if report.backup:
            back = " (the same command with --undo brings it back)" if "undo" in args else ""
            print(f"  backup: {report.backup}{back}")
        if report.action in {"created", "added"}:
            print(f"  judge:  {_judge(env)}")
        print(f"Next: restart {args.host_name}.")


def _judge(env: Mapping[str, str]) -> str:
    """Who will judge and what it may cost: said before the first cent is spent."""
    from daemon import config, paths

    try:
        settings = config.load(env, paths.config_file(env))
    except UserError as error:
        return f"the daemon will not start with these settings: {error}"
    if settings.judge.provider == "offline":
        return "fixed rules, no model, no cost"
    who = "your session's own model" if settings.judge.provider in {"auto", "host"} else "a model's API"
    cap = settings.spend.cents_per_day / 100
    return (
        f"{who}, at most {cap:.2f} USD a day (`reflectd cost`); "
        'without a model: judge.provider = "offline" in ' + str(paths.config_file(env))
    )


def _print_json(value: Mapping[str, object]) -> None:
    import json

    print(json.dumps(value))


def _utc_now() -> datetime:
    from datetime import UTC, datetime

    return datetime.now(UTC)
