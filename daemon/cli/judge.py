"""``reflectd judge``: judge a saved case, an exported session or Claude Code's transcripts, without a daemon.

Nothing is sent to an agent and nothing is stored. The judge is that of your settings, but never ``host``,
which needs a running agent. A call to a model costs what it costs: your caps count what the daemon
spends.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from daemon.cli.render import Paint, money, plain, print_json, short
from daemon.cli.settings import add_flags, load
from daemon.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon.core.ports import Provider
    from daemon.core.settings import Settings
    from daemon.core.verdict import Verdict
    from daemon.engine.cases import Loaded
    from daemon.engine.replay import Replayed
    from daemon.judge.case import Templates
    from daemon.paths import Paths

INCOMPLETE = 10
UNSCORED = 11
PROVIDERS = ("auto", "anthropic", "openai", "claude-cli", "offline")
EPILOG = """FILE is a case that the daemon saved, a labelled case, what `opencode export` prints, or `-` for
stdin. The name of a case of yours (`reflectd case list`) will do, and so will a transcript of Claude Code
(~/.claude/projects/<folder>/<session>.jsonl). --last takes Claude Code's newest session of this project;
--all every session in DIR, or of all projects, each by its last turn. With --all the rules judge (offline)
unless --provider says who; a model is asked, and paid, once or twice for each session.

examples:
  reflectd judge .reflection/ses_58c3f0d91ffe_1760000001000.json
  opencode export ses_58c3f0d91ffe | reflectd judge -
  reflectd judge session.json --provider offline --json | jq .state
  reflectd judge --last
  reflectd judge --all ~/.claude/projects --json | jq -r 'select(.state=="incomplete").file'

exit codes: 0 complete, or it is the person's turn, or a guard ended the turn; 10 incomplete; 11 unscored (no
judge could say); 1 not available; 2 wrong arguments, settings or file. --all: 0 all were judged, 1 some
could not be, 2 there are none"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser(
        "judge",
        help="judge a saved case or a session, without a daemon",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="the case or session, `-` for stdin")
    parser.add_argument("--last", action="store_true", help="Claude Code's newest session of this project")
    parser.add_argument(
        "--all",
        metavar="DIR",
        nargs="?",
        const="",
        help="all of Claude Code's sessions (in DIR), one line each",
    )
    parser.add_argument("--verbose", "-v", action="store_true", help="show the evidence too")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the verdict object, as in verdict files (--all: one a line)",
    )
    parser.add_argument(
        "--provider", choices=PROVIDERS, help="who judges (your setting judge.provider; host means auto here)"
    )
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """The exit code says what the verdict is."""
    import asyncio

    from daemon import config, log
    from daemon.llm.select import providers

    if sum([args.file is not None, args.last, args.all is not None]) != 1:
        raise UserError("give one of FILE, --last and --all")
    settings, where = load(args)
    usual = "auto" if settings.judge.provider == "host" else settings.judge.provider
    chosen = args.provider or ("offline" if args.all is not None else usual)
    if args.all is not None:
        from daemon.cli.transcripts import corpus

        files = corpus(os.environ, args.all)
        judges = providers(
            chosen, settings, config.load_keys(os.environ, settings), folder=where.judge_folder
        )
        return asyncio.run(_corpus(args, files, judges, settings, where))
    loaded = _one(args, where)
    judges = providers(chosen, settings, config.load_keys(os.environ, settings), folder=where.judge_folder)
    log.configure(settings, sys.stderr)
    found = asyncio.run(_judge(loaded, judges, settings))
    verdict = found.decision.verdict
    if args.json:
        print_json(verdict_of(loaded, verdict, verbose=args.verbose))
    else:
        print("\n".join(render(loaded, found, Paint())))
        if args.verbose:
            from daemon.cli.transcripts import evidence_of

            print("\n".join(evidence_of(found.case, verdict)))
    return {"incomplete": INCOMPLETE, "unscored": UNSCORED}.get(verdict.state, 0)


def _one(args: argparse.Namespace, where: Paths) -> Loaded:
    """The case of FILE, or of the newest session."""
    from daemon.cli.transcripts import is_transcript_file, load_transcript, newest
    from daemon.engine.cases import load as load_case
    from daemon.files.case_folder import CaseFolder, read_bytes

    if args.last:
        return load_transcript(newest(os.environ, Path.cwd()), _templates(where))
    if args.file == "-":
        return load_case(sys.stdin.buffer.read(), "stdin", _templates(where))
    path = Path(args.file)
    path = path if path.exists() else CaseFolder(where.state_dir).find(args.file)
    if is_transcript_file(path):
        return load_transcript(path, _templates(where))
    return load_case(read_bytes(path), str(path), _templates(where))


async def _corpus(
    args: argparse.Namespace,
    files: list[Path],
    judges: tuple[Provider, ...],
    settings: Settings,
    where: Paths,
) -> int:
    """A line for each session as it is judged, and a table at the end."""
    import json

    from daemon import log
    from daemon.cli import transcripts as found_in

    log.configure(settings, sys.stderr)
    paint, progress, templates = Paint(), found_in.Progress(len(files)), _templates(where)
    verdicts, skipped = [], list[tuple[Path, str]]()
    try:
        for done, path in enumerate(files):
            progress.show(done, path.stem)
            for _, loaded in found_in.each([path], templates, skipped):
                verdict = (await _replayed(loaded, judges, settings)).decision.verdict
                verdicts.append(verdict)
                progress.clear()
                if args.json:
                    shown = {"file": str(path), **verdict_of(loaded, verdict, verbose=True)}
                    print(json.dumps(shown, ensure_ascii=False), flush=True)
                    continue
                print(found_in.line_of(path, loaded.case, verdict, paint), flush=True)
                if args.verbose:
                    print("\n".join(found_in.evidence_of(loaded.case, verdict)), flush=True)
    finally:
        progress.clear()
        await _close(judges)
    for path, why in skipped:
        print(f"reflectd: {plain(path)}: {plain(why)}", file=sys.stderr)
    if not args.json:
        print("\n" + "\n".join(found_in.summary(verdicts, len(skipped))))
    return 1 if skipped else 0


def verdict_of(loaded: Loaded, verdict: Verdict, *, verbose: bool) -> dict[str, object]:
    """The verdict object; with ``verbose`` what it was judged by as well."""
    from daemon.cli.transcripts import evidence_object
    from daemon.files.verdict import verdict_object

    found: dict[str, object] = verdict_object(verdict)
    if verbose:
        found["request"] = loaded.case.requests[-1] if loaded.case.requests else ""
        found["evidence"] = evidence_object(loaded.case)
    return found


def _templates(where: Paths) -> Callable[[str], Templates]:
    """The prompts in force, as the daemon would use them; what is wrong with one is said on stderr."""
    from daemon.clock import SystemClock
    from daemon.engine.cases import templates_of
    from daemon.files.prompts import Prompts
    from daemon.files.trust import FILE, Trust
    from daemon.paths import config_file, shipped

    trust = Trust(where.state_dir / FILE, SystemClock())
    prompts = Prompts(shipped("prompts"), config_file(os.environ).parent / "prompts", trust)

    def templates(directory: str) -> Templates:
        found = prompts.templates(directory)
        for problem in found.problems:
            print(f"reflectd: {plain(problem)}", file=sys.stderr)
        return templates_of(found.texts)

    return templates


async def _judge(loaded: Loaded, judges: tuple[Provider, ...], settings: Settings) -> Replayed:
    try:
        return await _replayed(loaded, judges, settings)
    finally:
        await _close(judges)


async def _replayed(loaded: Loaded, judges: tuple[Provider, ...], settings: Settings) -> Replayed:
    """Judged, unless a guard decides it."""
    from daemon.engine.replay import Replayed, replay
    from daemon.judge.flow import Opinion

    if loaded.decided is not None:
        return Replayed(loaded.case, Opinion(None), loaded.decided, ())
    timeout_s, second = float(settings.judge.timeout_s), settings.judge.second_look
    return await replay(loaded.case, *judges, timeout_s=timeout_s, second_look=second)


async def _close(judges: tuple[Provider, ...]) -> None:
    from daemon.core.ports import Client

    for judge in judges:
        if isinstance(judge, Client):
            await judge.close()


def render(loaded: Loaded, found: Replayed, paint: Paint) -> list[str]:
    """The verdict for people."""
    verdict, case = found.decision.verdict, found.case
    from daemon.judge.decide import cited_rows

    rows = {row.id: row for row in case.evidence.rows}
    severity = f" {verdict.severity}" if verdict.state in {"incomplete", "complete"} else ""
    title = f"session {case.session or '(no id)'}, turn {case.turn}"
    lines = [f"{paint.state(verdict.state)}{severity}  {short(title, 200)}"]
    lines += _field("request", short(case.requests[-1], 300) if case.requests else "")
    lines += _field("why", found.opinion.why or verdict.reason.removeprefix("judged"))
    lines += _field("feedback", verdict.feedback)
    for item in verdict.missing:
        row = next((rows[name] for name in cited_rows(item, case)), None)
        cited = f"{row.id}: {row.text}" if row else f'"{item.cites}"' if item.cites else ""
        lines += [*_field("missing", item.text), *_field("", cited)]
    for action in verdict.next_actions:
        lines += _field("next", action)
    if verdict.requires_human_action:
        lines += _field("needs", "only a person can go on")
    if loaded.label is not None:
        right = loaded.label.expect == verdict.state
        because = f": {loaded.label.why}" if loaded.label.why else ""
        lines += _field(
            "label", f"{loaded.label.expect}{because} ({'as judged' if right else 'NOT as judged'})"
        )
    return [*lines, *_field("judge", _judged_by(found))]


def _judged_by(found: Replayed) -> str:
    judge, calls = found.decision.verdict.judge, found.calls
    tokens = f"{sum(c.input for c in calls)} tokens in, {sum(c.output for c in calls)} out"
    many = f"{len(calls)} call{'' if len(calls) == 1 else 's'}"
    name = f"{judge.provider} {judge.model}".strip()
    return f"{name}, {many}, {judge.ms / 1000:.1f} s, {tokens}, {money(judge.cost)}"


def _field(name: str, text: str) -> list[str]:
    """A name and a text that may have several lines; nothing for an empty text."""
    return [f"  {name if i == 0 else '':<9} {line}" for i, line in enumerate(plain(text).splitlines())]
