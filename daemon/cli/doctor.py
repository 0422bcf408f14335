"""``reflectd doctor``: looks at everything reflectd needs, says what is wrong and how to mend it.

Changes nothing and calls no network, unless ``--online`` asks each model once. Exit codes: 0 nothing failed
(warnings may be there) · 1 something failed · 2 wrong arguments. Wrong settings are a finding, not an error.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from daemon.cli.finding import About, Check
from daemon.cli.render import Paint, plain, print_json
from daemon.cli.settings import add_flags, load
from daemon.core.errors import ReflectdError, Unavailable, UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from daemon.cli.finding import Outcome
    from daemon.cli.render import Style
    from daemon.paths import Paths

EPILOG = """examples:
  reflectd doctor                  all that can be seen without asking a model
  reflectd doctor --online         also one tiny call per model API that is set up (a fraction of a cent)

exit codes: 0 nothing failed, 1 something failed, 2 wrong arguments"""
STATUS_S = 2.0
STYLES: dict[Outcome, Style] = {"ok": "green", "warn": "yellow", "fail": "red"}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    import argparse

    parser = verbs.add_parser(
        "doctor",
        help="what is wrong with this installation, and how to mend it",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--online", action="store_true", help="make one tiny call per model API that is set up"
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Every check, one after the other; one that breaks is a finding, and the next ones go on."""
    found = examine(args, os.environ)
    failed = any(c.outcome == "fail" for c in found)
    if args.json:
        print_json({"ok": not failed, "checks": [c._asdict() for c in found]})
        return int(failed)
    paint = Paint()
    for check in found:
        print("\n".join(_lines(check, paint)))
    counts = ", ".join(
        f"{n} {word}" for o, word in (("fail", "failed"), ("warn", "to look at")) if (n := _count(found, o))
    )
    print(f"\n{counts or 'all is well'}")
    return int(failed)


def examine(args: argparse.Namespace, env: Mapping[str, str]) -> list[Check]:
    """All findings, in the order in which one would mend them."""
    from daemon.cli import claude_code as c
    from daemon.cli import installation as i
    from daemon.cli import operation as o

    found = [
        *_guarded("python", i.python),
        *_guarded("package", i.package),
        *_guarded("command", i.command, env),
    ]
    try:
        settings, where = load(args)
    except UserError as e:
        mend = "mend it; `reflectd config` says when it is right"
        return [*found, Check("settings", "fail", str(e), mend)]
    found.append(Check("settings", "ok", i.settings_text(env)))
    about = About(env, settings, where, _status(where))
    for name, check in (
        ("state", i.state),
        ("space", i.space),
        ("socket", i.sockets),
        ("service", i.service),
        ("daemon", o.daemon),
        ("opencode", o.opencode),
        ("plugin", o.plugin),
        ("claude code", c.program),
        ("hooks", c.plugin),
        ("providers", o.providers),
        ("database", o.database),
        ("replies", o.replies),
        ("log", o.errors_logged),
    ):
        found += _guarded(name, check, about)
    if args.online:
        from daemon.cli.online import online

        found += _guarded("online", online, about)
    return found


def _guarded(name: str, check: Callable[..., Iterator[Check]], *about: object) -> list[Check]:
    try:
        return list(check(*about))
    except (OSError, ReflectdError) as e:
        return [Check(name, "warn", f"could not be looked at: {e}")]
    except Exception as e:  # noqa: BLE001 - whoever asks what is wrong wants the other findings too
        return [Check(name, "fail", f"a bug of reflectd: {type(e).__name__}: {e}", "please report it")]


def _status(where: Paths) -> dict[str, Any] | None:
    from daemon.client import request
    from daemon.paths import find_socket

    try:
        return request(find_socket(where), "GET", "/v1/status", timeout_s=STATUS_S)
    except (Unavailable, UserError):
        return None


def _count(found: list[Check], outcome: str) -> int:
    return sum(c.outcome == outcome for c in found)


def _lines(c: Check, paint: Paint) -> list[str]:
    lines = [f"{paint(f'{c.outcome:4}', STYLES[c.outcome])}  {c.name:11} {plain(c.text)}"]
    return lines + ([f"                  -> {plain(c.mend)}"] if c.mend else [])
