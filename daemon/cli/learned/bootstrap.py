"""``reflectd playbook bootstrap``: builds a project's playbook from its past sessions, in order of time.

It reads the sessions here (Claude Code's and Codex's of this project, or the files that the person names:
transcripts, and what `opencode export` prints), says what looking back on them would cost, asks, and hands
them to the daemon, which asks a model in the background, keeps new texts apart and counts the cost. A file
that can't be used is reported and left out. A kill and a limit lose nothing: each session is looked back on
once. Exit codes: 0 done, or nothing to do · 1 no daemon, or the person said no · 2 wrong arguments, no
session, or nothing may be learned here · 130 Ctrl-C.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ...client import request
from ...core.cuts import tokens
from ...core.errors import ReflectdError, UserError, words
from ...core.words import PROVIDERS
from ...hosts.claude_code.past import named as folder_of
from ...hosts.claude_code.past import projects
from ...hosts.codex.past import files_of as codex_files
from ...learning.playbook.questions import Past, of_past, of_stretch
from ...paths import find_socket
from ..judge.sessions import is_transcript_file, sessions
from ..render import Paint, clock, count, place, plain, print_json, short
from ..terminal import Progress, agreed, attended, say
from .learned import About, Json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Mapping

    from ...core.transcript import Transcript
    from ...paths import Paths
    from ...store.readonly import Reads

ROUTE: Final = "/v1/features/bootstrap/"
PLAN_S: Final = 60.0
QUIET_S: Final = 120.0  # a file that was written to since then may belong to a session that is open
VERDICTS: Final = 500
MOST: Final = 10_000
REFUSAL: Final = (
    "there is no terminal to ask on: look at the estimate with --dry-run, then add --yes. Nothing was asked"
)


class Found(Struct, frozen=True):
    """A session that was read. ``past`` has no stretch: ``packed`` is that, as it is sent, and ``tokens`` its
    size for a model.
    """

    path: Path
    host: str
    past: Past
    tokens: int = 0
    packed: bytes = b""

    @property
    def about(self) -> Json:
        """Its account for the person."""
        return {
            "session": self.past.session, "host": self.host, "at": self.past.at, "title": self.past.title
        }  # fmt: skip


class Plan(Struct, frozen=True):
    """``chosen``: the sessions to look back on, oldest first. ``out``: those that are left out, with the
    reason. ``told``: the daemon's estimate; its ``left`` is how many there are without --limit.
    """

    project: Path
    chosen: list[Found]
    out: list[tuple[Found, str]]
    told: Json


def bootstrap(args: argparse.Namespace) -> int:
    """Read, estimate, ask, and hand the sessions to the daemon; or stop those that wait."""
    if args.limit is not None and args.limit < 1:
        raise UserError("--limit must be at least 1")
    if not (args.yes or args.dry_run or args.stop) and (args.json or not attended()):
        raise UserError(REFUSAL)  # before anything is read
    about = About.of(args)
    if args.stop:
        return _stop(args, about)
    plan = _plan(args, about.rules.project, about.where)
    if not args.json:
        print("\n".join(estimate(plan, Paint())), flush=True)
    added = list[Json]()
    if plan.chosen and not args.dry_run:
        if not agreed(args, f"Look back on {count(len(plan.chosen), 'session')}?", REFUSAL):
            say("Nothing was asked.")
            return 1
        added = _add(plan, about.where)
    if args.json:
        print_json(_object(plan, added))
    elif added:
        waits = sum(one["state"] == "waits" for one in added)
        say(f"{count(waits, 'session')} to look back on, the oldest first, while the daemon runs.")
        say(f"`reflectd learned` shows what it learned, `{STOP}` gives up those that wait.")
    return 0


def _stop(args: argparse.Namespace, about: About) -> int:
    stopped = about.post("bootstrap/stop", {"directory": str(about.rules.project)})["stopped"]
    if args.json:
        print_json({"project": str(about.rules.project), "stopped": stopped})
    else:
        say(f"{count(stopped, 'session')} given up; what was learned stays")
    return 0


# --- reading the sessions -----------------------------------------------------------------------------------


def _plan(args: argparse.Namespace, project: Path, where: Paths) -> Plan:
    """Read all sessions, and ask the daemon what it would do: first whether it may do anything at all."""
    body: Json = {"directory": str(project), "hosts": [] if args.files else ["claude-code"], "sessions": []}
    files = _files(project, args.files)
    request(find_socket(where), "POST", f"{ROUTE}plan", body, PLAN_S)
    every = read_all(files, project, where, named=bool(args.files))
    body["sessions"] = [
        {"session": f.past.session, "host": f.host, "tokens": f.tokens} for f in every if f.packed
    ]
    body |= {"hosts": [], "limit": args.limit or MOST}
    answer = request(find_socket(where), "POST", f"{ROUTE}plan", body, PLAN_S)
    whys = [(f, f.past.why or answer["skipped"].get(f.past.session, "")) for f in every]
    chosen = [f for f, why in whys if not why][: args.limit]
    return Plan(project, chosen, [(f, why) for f, why in whys if why], answer)


def _files(project: Path, named: list[str]) -> list[Path]:
    """The files to read. Raises ``UserError`` when there are none."""
    if named:
        return [Path(name).expanduser() for name in named]
    names = dict.fromkeys((str(project), os.path.realpath(project)))
    files = [file for name in names for file in sessions(projects(os.environ) / folder_of(name))]
    files += codex_files(project, os.environ)
    if not files:
        raise UserError(
            f"neither Claude Code nor Codex has a session of {project}; a session of opencode is given as a "
            "file: `opencode export SESSION > FILE`, then `reflectd playbook bootstrap FILE`"
        )
    return files


def read_all(files: list[Path], project: Path, where: Paths, *, named: bool) -> list[Found]:
    """All sessions, in order of time. ``named``: the person named the files."""
    import msgspec

    from ...files.project import project_rule_lines
    from ...store.readonly import ReadOnly

    every, seen, known = list[Found](), set[str](), set[str]()
    rules, progress = project_rule_lines(str(project)), Progress(len(files))
    with ReadOnly(where.database) as db:
        for done, path in enumerate(files):
            progress.show(done, path.stem)
            host, past = "claude-code", Past(path.stem)
            try:
                host, transcript = _transcript(path)
                why = _why_not(path, transcript, project, named=named)
                past = Past(transcript.session, why=why) if why else _past(transcript, db, seen, rules)
            except (ReflectdError, OSError) as e:
                past = past._replace(why=words(e).removeprefix(f"{path}: "))
            except Exception as e:  # noqa: BLE001 - a file that we fail to read must not cost the others
                past = past._replace(why=f"a bug of reflectd: {type(e).__name__}: {e}")
            if past.session in known:
                past = past._replace(stretch=None, why="another file has this session")
            seen |= past.marks
            known |= set() if past.why else {past.session}
            size, packed = 0, b""
            if past.stretch is not None:
                size = tokens(of_stretch("", past.stretch)["transcript"])
                packed = zlib.compress(msgspec.json.encode(past.stretch))
            every.append(Found(path, host, past._replace(stretch=None), size, packed))
    progress.clear()
    return sorted(every, key=lambda f: (f.past.at, f.past.session))


def _transcript(path: Path) -> tuple[str, Transcript]:
    """The host and what its session's file holds. Raises ``UserError`` and ``Unavailable``."""
    import msgspec

    from ...files.cases import read_file
    from ...hosts.claude_code.transcript import every_task
    from ...hosts.codex import rollout as codex
    from ...hosts.codex.past import is_named_so
    from ...hosts.opencode.past import parse_export

    if not path.exists():
        raise UserError("there is no such file")
    if is_transcript_file(path):
        return ("codex", codex.every_task(path)) if is_named_so(path) else ("claude-code", every_task(path))
    try:
        transcript = parse_export(msgspec.json.decode(read_file(path)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ReflectdError) as e:
        why = f"neither a transcript of Claude Code nor what `opencode export` prints: {e}"
        raise UserError(why) from None
    return "opencode", transcript if transcript.session else replace(transcript, session=path.stem)


def _why_not(path: Path, transcript: Transcript, project: Path, *, named: bool) -> str:
    if not named and time.time() - path.stat().st_mtime < QUIET_S:
        return "it was written to a moment ago, so it may be open"
    if transcript.directory and os.path.realpath(transcript.directory) != os.path.realpath(project):
        return f"it is a session of {transcript.directory}"
    return ""


def _past(transcript: Transcript, db: Reads, seen: Collection[str], rules: str) -> Past:
    """The session with what the daemon knows of it."""
    from ...store import injections
    from ...store.verdicts import Verdicts

    given = injections.behind_calls(db, transcript.session)
    kept = Verdicts(db).newest(transcript.session, VERDICTS)
    return of_past(transcript, given, {k.verdict.turn: k.verdict for k in kept}, seen, rules)


# --- what is said -------------------------------------------------------------------------------------------


def _add(plan: Plan, where: Paths) -> list[Json]:
    """Hand them over, the oldest first. One that is there already is left as it is."""
    import msgspec

    progress, added = Progress(len(plan.chosen)), list[Json]()
    try:
        for n, found in enumerate(plan.chosen):
            progress.show(n, found.past.session)
            stretch = msgspec.json.decode(zlib.decompress(found.packed))
            body = {"directory": str(plan.project), "host": found.host, "stretch": stretch}
            answer = request(find_socket(where), "POST", f"{ROUTE}add", body, PLAN_S)
            added.append(found.about | {k: answer[k] for k in ("state", "why") if k in answer})
    finally:
        progress.clear()
    return added


REASONS: Final = 8
STOP: Final = "reflectd playbook bootstrap --stop"


def _object(plan: Plan, added: list[Json]) -> Json:
    """For scripts. Without a yes ``sessions`` are those that would be looked back on."""
    names = ("models", "calls", "tokens_in", "tokens_out", "usd", "spent_24h", "limits")
    return {
        "project": str(plan.project),
        "estimate": {name: plan.told[name] for name in names},
        "sessions": added or [f.about | {"state": "left"} for f in plan.chosen],
        "left_out": [{"file": str(f.path), "session": f.past.session, "why": why} for f, why in plan.out],
    }


def estimate(plan: Plan, paint: Paint) -> list[str]:
    """The plan and its highest cost."""
    told, chosen = plan.told, plan.chosen
    lines = paint.row("", paint(f"past sessions of {place(plan.project)}", "bold"), "  ")
    what = count(len(chosen), "session")
    if len(chosen) < told["left"]:
        what += f", the oldest of {told['left']:,} (--limit)"
    if chosen:
        what += f"; {clock(chosen[0].past.at)} to {clock(chosen[-1].past.at)}"
    lines += paint.row("  to do     ", what)
    reasons = Counter(why for _, why in plan.out).most_common()
    for n, (why, number) in enumerate(reasons[:REASONS]):
        lines += paint.row("            " if n else "  left out  ", f"{number:,}: {plain(why)}")
    if len(reasons) > REASONS:
        lines += paint.row("            ", "… (--json names all)")
    if not chosen:
        return [*lines, *paint.row("  ", "There is nothing to look back on.")]
    price = "the price is unknown, so tokens are counted"
    spent, limits = told["spent_24h"], told["limits"]
    most, used = f"{limits['tokens']:,} tokens", f"{spent['tokens']:,}"
    if told["usd"] is not None:
        price = f"{told['usd']:.2f} USD" if told["usd"] >= 0.01 else "less than 0.01 USD"
        most, used = f"{limits['usd']:.2f} USD", f"{spent['usd']:.2f} USD"
    size = f"about {told['tokens_in']:,} tokens in, at most {told['tokens_out']:,} out"
    lines += paint.row("  estimate  ", f"at most {count(told['calls'], 'call')}, {size}: {price}")
    lines += paint.row("  asked     ", "; ".join(dict.fromkeys(_model(m) for m in told["models"])))
    ends = f"at most {most} in 24 hours, with what judging cost ({used} so far); the rest waits"
    lines += paint.row("  limits    ", ends)
    kept = "New texts are kept apart until a later session shows that they are true, or you approve them."
    return [*lines, *paint.row("  ", kept)]


def _model(model: Mapping[str, str]) -> str:
    name = short(model["model"], 60) or "a model that it chooses"
    plan = ", which uses up the limits of your plan" if model["provider"] == "claude-cli" else ""
    return f"{name} by {PROVIDERS.get(model['provider'], short(model['provider'], 40))}{plan}"
