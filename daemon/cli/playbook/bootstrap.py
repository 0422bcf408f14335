"""``reflectd playbook bootstrap``: builds a project's playbook from its past sessions, in order of time.

It reads the sessions here, says what looking back on them would cost, asks, and sends one after the other to
the daemon, which asks a model, keeps new texts apart and counts the cost. Ctrl-C, a kill and a limit lose
nothing: whoever runs it again goes on with the sessions that are left. Exit codes: 0 done, nothing to do, or
`--max-cost` was reached · 1 a limit on spending, no answer of a model or no daemon ended it, or the person
said no · 2 wrong arguments, no session, or nothing may be learned here · 130 Ctrl-C.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Final

from ...client import request
from ...core.errors import ReflectdError, UserError, told
from ...paths import find_socket
from ..progress import Progress
from ..render import Paint, count, print_json
from ..settings import look
from ..setup.confirm import agreed
from ..terminal import attended, say
from .bootstrap_text import end, estimate, session_lines, so_far
from .past import Reader, files_of, read_all
from .plan import Plan, Run
from .shown import Json, opened

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ...paths import Paths
    from .past import Found

ROUTE: Final = "/v1/features/playbook/"
PLAN_S: Final = 60.0
SESSION_S: Final = 900.0  # two answers of a model, each tried three times, after those of another look back
REFUSAL: Final = (
    "there is no terminal to ask on: look at the estimate with --dry-run, then add --yes. Nothing was asked"
)


def bootstrap(args: argparse.Namespace) -> int:
    """Read, estimate, ask, and go on to the end or until something ends it."""
    if args.limit is not None and args.limit < 1:
        raise UserError("--limit must be at least 1")
    if args.max_cost is not None and not (math.isfinite(args.max_cost) and args.max_cost > 0):
        raise UserError("--max-cost must be above 0, in USD")
    if not (args.yes or args.dry_run) and (args.json or not attended()):
        raise UserError(REFUSAL)  # before anything is read
    project, _ = opened(args)
    where = look(args)[1]
    plan = _plan(args, project, where)
    if not args.json:
        print("\n".join(estimate(plan, args.max_cost, Paint())), flush=True)
    if args.max_cost is not None and plan.told["usd"] is None:
        raise UserError("where a price is unknown, --max-cost can't hold; --limit can")
    ran = Run()
    if plan.chosen and not args.dry_run:
        if not agreed(args, f"Look back on {count(len(plan.chosen), 'session')}?", REFUSAL):
            say("Nothing was asked.")
            return 1
        _run(args, plan, where, ran)
    if args.json:
        print_json(_object(plan, ran))
    elif ran.sessions or ran.stopped:
        print("\n".join(end(plan, ran, Paint())), flush=True)
    return ran.code


def _plan(args: argparse.Namespace, project: Path, where: Paths) -> Plan:
    """Read all sessions, and ask the daemon what it would do: first whether it may do anything at all."""
    from ...store.readonly import ReadOnly

    files = files_of(project, os.environ, args.files)
    _ask_plan(where, project, [], hosts=[] if args.files else ["claude-code"])
    progress = Progress(len(files))
    with ReadOnly(where.database) as db:
        try:
            reader = Reader(project, db, named=bool(args.files))
            found = read_all(files, reader, _template(where, project), progress.show)
        finally:
            progress.clear()
    said = _ask_plan(where, project, [f for f in found if f.tokens])
    out = [(f, f.past.why or said["skipped"].get(f.past.session, "")) for f in found]
    left = [f for f, why in out if not why]
    chosen = left[: args.limit]
    if len(chosen) < len(left):
        said = _ask_plan(where, project, chosen)
    return Plan(project, chosen, len(left), [(f, why) for f, why in out if why], said)


def _ask_plan(where: Paths, project: Path, found: list[Found], hosts: list[str] | None = None) -> Json:
    sizes = [{"session": f.past.session, "host": f.host, "tokens": f.tokens} for f in found]
    body = {"directory": str(project), "hosts": hosts or [], "sessions": sizes}
    return request(find_socket(where), "POST", f"{ROUTE}bootstrap-plan", body, PLAN_S)


def _template(where: Paths, project: Path) -> str:
    """The reflector's prompt that the daemon would use."""
    from ...clock import SystemClock
    from ...files.prompts import Prompts
    from ...files.trust import FILE, Trust
    from ...paths import config_file, shipped

    trust = Trust(where.state_dir / FILE, SystemClock())
    prompts = Prompts(shipped("prompts"), config_file(os.environ).parent / "prompts", trust)
    return prompts.templates(str(project)).texts["reflector"]


def _run(args: argparse.Namespace, plan: Plan, where: Paths, ran: Run) -> None:
    """One session after the other, until all are done or something ends it. Never raises."""
    from ...store.readonly import ReadOnly

    progress, paint = Progress(len(plan.chosen)), Paint()
    try:
        with ReadOnly(where.database) as db:
            reader = Reader(plan.project, db, named=bool(args.files))
            for n, found in enumerate(plan.chosen):
                progress.show(n, so_far(ran))
                ran.add(_one(args, plan, where, found, reader))
                progress.clear()
                if not args.json:
                    print("\n".join(session_lines(ran.sessions[-1], paint)), flush=True)
                if ran.stopped:
                    break
    except KeyboardInterrupt:
        ran.stopped, ran.code = "you stopped it", 130
    except ReflectdError as e:
        ran.stopped, ran.code = told(e), 2 if isinstance(e, UserError) else 1
    finally:
        progress.clear()


def _one(args: argparse.Namespace, plan: Plan, where: Paths, found: Found, reader: Reader) -> Json:
    """Have the daemon look back on one session. It is read again, so that only one of them takes room."""
    import msgspec

    past = found.past
    known = {"session": past.session, "host": found.host, "at": past.at, "title": past.title}
    try:
        _, now = reader.read(found.path, only=past.tasks)
    except (ReflectdError, OSError) as e:
        return {**known, "state": "skipped", "why": told(e)}
    if now.stretch is None:
        return {**known, "state": "skipped", "why": now.why}
    body = {
        "directory": str(plan.project),
        "host": found.host,
        "since": plan.told["now"],
        "max_usd": args.max_cost,
        "stretch": msgspec.to_builtins(now.stretch),
    }
    answer = request(find_socket(where), "POST", f"{ROUTE}bootstrap", body, SESSION_S)
    return {**known, **{k: v for k, v in answer.items() if k not in {"api", "session"}}}


def _object(plan: Plan, ran: Run) -> Json:
    """For scripts. Without a run ``sessions`` are those that would be looked back on."""
    planned = [
        {"session": f.past.session, "host": f.host, "at": f.past.at, "title": f.past.title, "state": "left"}
        for f in plan.chosen[len(ran.sessions) :]
    ]
    names = ("models", "calls", "tokens_in", "tokens_out", "usd", "spent_24h", "limits")
    return {
        "project": str(plan.project),
        "estimate": {name: plan.told[name] for name in names},
        "sessions": [*ran.sessions, *planned],
        "left_out": [{"file": str(f.path), "session": f.past.session, "why": why} for f, why in plan.out],
        "spent": ran.spent,
        "stopped": ran.stopped,
    }
