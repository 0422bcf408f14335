"""``reflectd judge FILE``: judge a saved case or an exported session in this process; no daemon is needed.

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

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon.core.ports import Provider
    from daemon.core.settings import Settings
    from daemon.engine.cases import Loaded
    from daemon.engine.replay import Replayed
    from daemon.judge.case import Templates
    from daemon.paths import Paths

INCOMPLETE = 10
UNSCORED = 11
PROVIDERS = ("auto", "anthropic", "openai", "claude-cli", "offline")
EPILOG = """FILE is a case that the daemon saved, a labelled case, what `opencode export` prints, or `-` for
stdin. The name of a case of yours (`reflectd case list`) will do.

examples:
  reflectd judge .reflection/ses_58c3f0d91ffe_1760000001000.json
  opencode export ses_58c3f0d91ffe | reflectd judge -
  reflectd judge session.json --provider offline --json | jq .state

exit codes: 0 complete, or it is the person's turn; 10 incomplete; 11 unscored (no judge could say);
1 not available; 2 wrong arguments, settings or file"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser(
        "judge",
        help="judge a saved case or an exported session, without a daemon",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the case or session, `-` for stdin")
    parser.add_argument("--json", action="store_true", help="print the verdict object, as in verdict files")
    parser.add_argument(
        "--provider", choices=PROVIDERS, help="who judges (your setting judge.provider; host means auto here)"
    )
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """The exit code says what the verdict is."""
    import asyncio

    from daemon import config, log
    from daemon.engine.cases import load as load_case
    from daemon.files.case_folder import CaseFolder, read_bytes
    from daemon.files.verdict import verdict_object
    from daemon.llm.select import providers

    settings, where = load(args)
    if args.file == "-":
        data, name = sys.stdin.buffer.read(), "stdin"
    else:
        path = Path(args.file)
        path = path if path.exists() else CaseFolder(where.state_dir).find(args.file)
        data, name = read_bytes(path), str(path)
    loaded = load_case(data, name, _templates(where))
    chosen = args.provider or ("auto" if settings.judge.provider == "host" else settings.judge.provider)
    keys = config.load_keys(os.environ, settings)
    judges = providers(chosen, settings, keys, folder=where.judge_folder)
    log.configure(settings, sys.stderr)
    found = asyncio.run(_judge(loaded, judges, settings))
    verdict = found.decision.verdict
    if args.json:
        print_json(verdict_object(verdict))
    else:
        print("\n".join(render(loaded, found, Paint())))
    return {"incomplete": INCOMPLETE, "unscored": UNSCORED}.get(verdict.state, 0)


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
    from daemon.core.ports import Client
    from daemon.engine.replay import replay

    try:
        timeout_s, second = float(settings.judge.timeout_s), settings.judge.second_look
        return await replay(loaded.case, *judges, timeout_s=timeout_s, second_look=second)
    finally:
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
