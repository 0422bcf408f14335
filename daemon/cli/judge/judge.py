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

from msgspec import json

from ...core.errors import UserError
from ...core.fast import needs_second_look
from ...core.words import state_name
from ..render import Paint, plain, print_json, short
from ..settings import add_flags, here, load, look
from ..terminal import say, show

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
EPILOG = """FILE is a case that the daemon saved or you kept (also its name), a labelled
case, the output of `opencode export`, a transcript of Claude Code
(~/.claude/projects/<folder>/<session>.jsonl), or `-` for stdin.

--past shows what reflectd would have done in your past sessions: all of
Claude Code's and Codex's, and those of an opencode that is open while the
daemon runs; or those in a folder, where `opencode export SESSION >
FOLDER/SESSION.json` writes one of opencode's. The fixed rules judge, for
free. With --provider a model does, through the daemon: you are told first how
many calls, tokens and USD that takes, and asked on the terminal. `reflectd
backtest` is an earlier spelling.

examples:
  reflectd judge --last
  reflectd judge .reflection/ses_58c3f0d91ffe_1760000001000.json
  opencode export ses_58c3f0d91ffe | reflectd judge -
  reflectd judge --past --days 30
  reflectd judge --past --label"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("judge", epilog=EPILOG)
    parser.add_argument("file", metavar="FILE", nargs="?", help="a case, a session's file or id, `-`: stdin")
    parser.add_argument("--last", action="store_true", help="the newest session of this project")
    parser.add_argument("--past", action="store_true", help="all past sessions, or those in the folder FILE")
    parser.add_argument("--days", type=int, metavar="N", help="with --past: only the last N days")
    parser.add_argument("--label", action="store_true", help="with --past: look at 20 feedbacks, one by one")
    parser.add_argument("--verbose", "-v", action="store_true", help="show evidence, prompt and reply too")
    parser.add_argument(
        "--provider", choices=PROVIDERS, help="who judges (your setting judge.provider; host means auto here)"
    )
    add_flags(parser, run, json="the verdict as in verdict files, or the report")


def run(args: argparse.Namespace) -> int:
    if args.past:
        from . import past

        if args.last:
            raise UserError("give --last or --past")
        return past.run(args, templates_of(look(args)[1]))
    if args.days is not None or args.label:
        raise UserError("--days and --label go with --past")
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
        show(render(loaded, found, Paint(), full=args.verbose))
    return {"incomplete": INCOMPLETE, "unscored": UNSCORED}.get(verdict.state, 0)


def _one(args: argparse.Namespace, where: Paths) -> Loaded:
    from ...files.cases import read_file
    from ...files.project import upward
    from ...replay.cases import load as load_case
    from .sessions import TRANSCRIPT, load_transcript, newest

    templates = templates_of(where)
    if args.last:
        return newest(os.environ, upward()[0], templates)
    if args.file == "-":
        return load_case(sys.stdin.buffer.read(), "stdin", templates)
    path = Path(args.file)
    path = path if path.exists() else _named(args.file, where)
    if path.suffix == TRANSCRIPT:
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


def render(loaded: Loaded, found: Replayed, paint: Paint, *, full: bool = False) -> list[str]:
    """The verdict for people, as `reflectd why` shows it, and whether it is that of the label."""
    from ...engine.filing import case_object
    from ..verdicts.why import explained

    case = json.decode(json.encode(case_object(found.case, found.opinion, found.decision)))
    lines = explained({"case": case}, paint, full=full, stored=False)
    if loaded.label is not None:
        right = loaded.label.expect == found.decision.verdict.state
        because = f": {short(loaded.label.why, 300)}" if loaded.label.why else ""
        agrees = f" (the verdict {'agrees' if right else 'DIFFERS'})"
        lines += paint.row("  label     ", f"{state_name(loaded.label.expect)}{because}{agrees}")
    return lines
