"""``reflectd judge``: judges a saved case, an exported session or Claude Code's transcripts, without a
daemon; with ``--past``, or as ``reflectd backtest``, all past sessions (``past``).

Nothing is sent to an agent and no verdict is stored. The person's settings say which provider judges;
``host`` counts as ``auto``, because it needs a running agent. The limits on spending
don't apply here: they count only the daemon's calls.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import UserError
from ...core.fast import needs_second_look
from ..render import Paint, count, money, plain, print_json, severity, short
from ..settings import add_flags, here, load, look
from ..terminal import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ...core.ports import Provider
    from ...core.question import Texts
    from ...core.settings import Settings
    from ...core.verdict import Verdict
    from ...paths import Paths
    from ...replay.cases import Loaded, Replayed

INCOMPLETE = 10
UNSCORED = 11
PROVIDERS = ("auto", "anthropic", "openai", "claude-cli", "offline")
EPILOG = """FILE is a case that the daemon saved, a labelled case, the output of `opencode export`,
a transcript of Claude Code (~/.claude/projects/<folder>/<session>.jsonl), or `-` for stdin. It can also
be the name of one of your cases (`reflectd dispute list`). --last judges Claude Code's newest session of
this project.

--past shows what reflectd would have done in your past sessions: all of Claude Code's, and those of an
opencode that is open while the daemon runs; or those in a folder, where `opencode export SESSION >
FOLDER/SESSION.json` writes one of opencode's. The fixed rules judge, for free. With --provider a model
does, through the daemon: you are told first how many calls, tokens and USD that takes, and asked on the
terminal. --label shows up to 20 of the feedbacks that would have been sent, one key for each, and says
how often they were right. Nothing is sent to an agent. `reflectd backtest` is an earlier spelling.

examples:
  reflectd judge .reflection/ses_58c3f0d91ffe_1760000001000.json
  opencode export ses_58c3f0d91ffe | reflectd judge -
  reflectd judge session.json --provider offline --json | jq .state
  reflectd judge --last
  reflectd judge --past --days 30
  reflectd judge --past ~/exports --json
  reflectd judge --past --label
  reflectd judge --past --days 7 --provider anthropic --dry-run

exit codes: 0 done, or it is your turn, or a guard ended the turn; 10 not done;
11 not judged (no judge could tell); 1 not available; 2 wrong arguments, settings or file.
With --past: 0 shown; 1 a limit on spending, no answer of a model or the file system ended it, or you
said no; 2 wrong arguments, no session, or nobody to ask; 130 Ctrl-C (run it again to go on)"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("judge", epilog=EPILOG)
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="a case, a session's file or id, `-` for stdin",
    )
    parser.add_argument("--last", action="store_true", help="Claude Code's newest session of this project")
    parser.add_argument("--past", action="store_true", help="all past sessions, or those in the folder FILE")
    parser.add_argument("--days", type=int, metavar="N", help="with --past: only the last N days")
    parser.add_argument("--label", action="store_true", help="with --past: look at 20 feedbacks, one by one")
    parser.add_argument("--dry-run", action="store_true", help="with --past: only show a model's cost")
    parser.add_argument("--verbose", "-v", action="store_true", help="show the evidence too")
    parser.add_argument(
        "--provider", choices=PROVIDERS, help="who judges (your setting judge.provider; host means auto here)"
    )
    add_flags(parser, run, json="the verdict as in verdict files, or the report", pager=True)


def run(args: argparse.Namespace) -> int:
    """Judge and print. The exit code says what the verdict is."""
    if args.past:
        from . import past

        if args.last:
            raise UserError("give --last or --past")
        return past.run(args, templates_of(look(args)[1]))
    if args.days is not None or args.dry_run or args.label:
        raise UserError("--days, --dry-run and --label go with --past")
    return _run(args)


def _run(args: argparse.Namespace) -> int:
    import asyncio

    from ... import log
    from ...keys import load_keys
    from ...llm.select import providers

    if (args.file is not None) == args.last:
        raise UserError("give FILE or --last; --past judges all past sessions")
    settings, where = load(args)
    usual = "auto" if settings.judge.provider == "host" else settings.judge.provider
    chosen = args.provider or usual
    loaded = _one(args, where)
    judges = providers(chosen, settings, load_keys(os.environ, settings), folder=where.judge_folder)
    log.configure(settings, sys.stderr)
    found = asyncio.run(_judge(loaded, judges, settings))
    verdict = found.decision.verdict
    if args.json:
        print_json(verdict_of(loaded, verdict, verbose=args.verbose))
    else:
        print("\n".join(render(loaded, found, Paint())))
        for row in found.case.evidence.rows if args.verbose else ():
            label = f"    {'!' if row.open else ' '} {row.id:<4} "
            print("\n".join(Paint().row(label, short(row.text, 160))))
    return {"incomplete": INCOMPLETE, "unscored": UNSCORED}.get(verdict.state, 0)


def _one(args: argparse.Namespace, where: Paths) -> Loaded:
    """The case of FILE, or of the newest session."""
    from ...files.cases import read_file
    from ...files.project import upward
    from ...replay.cases import load as load_case
    from .sessions import is_transcript_file, load_transcript, newest

    templates = templates_of(where)
    if args.last:
        return newest(os.environ, upward()[0], templates)
    if args.file == "-":
        return load_case(sys.stdin.buffer.read(), "stdin", templates)
    path = Path(args.file)
    path = path if path.exists() else _named(args.file, where)
    if is_transcript_file(path):
        return load_transcript(path, templates)
    return load_case(read_file(path), str(path), templates)


def _named(name: str, where: Paths) -> Path:
    """A case of the person's folder, else the newest case of this project's session whose id begins so.
    Raises ``UserError``.
    """
    from ...files.cases import CaseFolder
    from ..verdicts.why import cases_upward

    try:
        return CaseFolder(where.state_dir).find(name)
    except UserError:
        if saved := cases_upward(where, here(where), name):
            return saved[0]
        raise


def verdict_of(loaded: Loaded, verdict: Verdict, *, verbose: bool) -> dict[str, object]:
    """The verdict object; with ``verbose`` also the request and the evidence."""
    from ...files.verdict import verdict_object

    found: dict[str, object] = verdict_object(verdict)
    if verbose:
        rows = loaded.case.evidence.rows
        found["request"] = loaded.case.requests[-1] if loaded.case.requests else ""
        found["evidence"] = [{"id": r.id, "kind": r.kind, "text": r.text, "open": r.open} for r in rows]
    return found


def templates_of(where: Paths) -> Callable[[str], Texts]:
    """The prompts that the daemon would use for a folder. A problem with one of them is printed on stderr."""
    from ...clock import SystemClock
    from ...files.prompts import TRUST_FILE, Prompts, Trust
    from ...paths import config_file, shipped

    trust = Trust(where.state_dir / TRUST_FILE, SystemClock())
    prompts = Prompts(shipped("prompts"), config_file(os.environ).parent / "prompts", trust)

    def templates(directory: str) -> Texts:
        found = prompts.templates(directory)
        for problem in found.problems:
            say(f"reflectd: {plain(problem)}", sys.stderr)
        return found.texts

    return templates


async def _judge(loaded: Loaded, judges: tuple[Provider, ...], settings: Settings) -> Replayed:
    """The case judged, or what a guard decided about it."""
    from ...core.ports import Client
    from ...judge.flow import Opinion
    from ...replay.cases import Replayed, replay

    if loaded.decided is not None:
        return Replayed(loaded.case, Opinion(None), loaded.decided, ())
    timeout_s, second = float(settings.judge.timeout_s), partial(needs_second_look, settings)
    try:
        return await replay(loaded.case, *judges, timeout_s=timeout_s, second_look=second)
    finally:
        for judge in judges:
            if isinstance(judge, Client):
                await judge.close()


def render(loaded: Loaded, found: Replayed, paint: Paint) -> list[str]:
    """The verdict for people."""
    verdict, case = found.decision.verdict, found.case
    from ...judge.citations import cited_rows

    rows = {row.id: row for row in case.evidence.rows}
    grade = severity(verdict.severity) if verdict.state in {"incomplete", "complete"} else ""
    title = f"session {case.session or '(no id)'}, turn {case.turn}"
    lines = paint.row(f"{paint.state(verdict.state)}{grade}  ", short(title, 200), "  ")
    field = partial(_field, paint)
    lines += field("request", short(case.requests[-1], 300) if case.requests else "")
    lines += field("why", found.opinion.why or verdict.reason.removeprefix("judged"))
    lines += field("feedback", verdict.feedback)
    for item in verdict.missing:
        row = next((rows[name] for name in cited_rows(item, case)), None)
        cited = f"{row.id}: {row.text}" if row else f'"{item.cites}"' if item.cites else ""
        lines += [*field("missing", item.text), *field("", cited)]
    for action in verdict.next_actions:
        lines += field("next", action)
    if verdict.requires_human_action:
        lines += field("needs", "only a person can go on")
    if loaded.label is not None:
        right = loaded.label.expect == verdict.state
        because = f": {loaded.label.why}" if loaded.label.why else ""
        lines += field(
            "label", f"{loaded.label.expect}{because} (the verdict {'agrees' if right else 'DIFFERS'})"
        )
    return [*lines, *field("judge", _judged_by(found))]


def _judged_by(found: Replayed) -> str:
    judge, calls = found.decision.verdict.judge, found.calls
    tokens = f"{sum(c.input for c in calls)} tokens in, {sum(c.output for c in calls)} out"
    many = count(len(calls), "call")
    name = f"{judge.provider} {judge.model}".strip()
    return f"{name}, {many}, {judge.ms / 1000:.1f} s, {tokens}, {money(judge.cost)}"


def _field(paint: Paint, name: str, text: str) -> list[str]:
    """A name and a text that may have several lines; nothing for an empty text."""
    rows = (
        paint.row(f"  {name if i == 0 else '':<9} ", line) for i, line in enumerate(plain(text).splitlines())
    )
    return [line for row in rows for line in row]
