"""``reflectd playbook bootstrap``: builds a project's playbook from its past sessions, in order of time.

It reads the sessions here (Claude Code's transcripts of this project, or the files that the person names:
transcripts, and what `opencode export` prints), says what looking back on them would cost, asks, and sends
one after the other to the daemon, which asks a model, keeps new texts apart and counts the cost. The daemon's
database is read, and never written here. A file that can't be used is reported and left out. Ctrl-C, a kill
and a limit lose nothing: the next run goes on with the sessions that are left. Exit codes: 0 done,
nothing to do, or `--max-cost` was reached · 1 a limit on spending, no answer of a model or no daemon ended
it, or the person said no · 2 wrong arguments, no session, or nothing may be learned here · 130 Ctrl-C.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...client import request
from ...core.errors import ReflectdError, UserError, told, words
from ...core.words import PROVIDERS
from ...hosts.claude_code.past import named as folder_of
from ...hosts.claude_code.past import projects
from ...paths import find_socket
from ...replay.past import Known, Past, past_of, prompt_tokens
from ..progress import Progress
from ..render import Paint, clock, count, money, place, plain, print_json, short
from ..setup.confirm import agreed
from ..terminal import attended, say
from ..verdicts.transcripts import is_transcript_file, sessions
from .learned import About, Json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Mapping

    from ...core.transcript import Transcript
    from ...paths import Paths
    from ...store.readonly import Reads

QUIET_S: Final = 120.0  # a file that was written to since then may belong to a session that is open
VERDICTS: Final = 500


@dataclass(frozen=True, slots=True)
class Found:
    """A session that was read. ``past`` has no stretch here, so that many of them take no room; ``tokens``:
    of its prompt, at most, 0 for one that is left out.
    """

    path: Path
    host: str
    past: Past
    tokens: int = 0


def files_of(project: Path, env: Mapping[str, str], named: list[str]) -> list[Path]:
    """The files to read, oldest first where nobody named them. Raises ``UserError`` when there are none."""
    if named:
        return [Path(name).expanduser() for name in named]
    names = dict.fromkeys((str(project), os.path.realpath(project)))
    places = [projects(env) / folder_of(name) for name in names]
    found = [file for place in places for file in sessions(place)]
    if not found:
        raise UserError(
            f"Claude Code has no session of {project} in {projects(env)}; a session of opencode is given as "
            "a file: `opencode export SESSION > FILE`, then `reflectd playbook bootstrap FILE`"
        )
    return found


def read_all(
    files: list[Path], reader: Reader, template: str, told: Callable[[int, str], None]
) -> list[Found]:
    """All sessions, in order of time. ``template``: the reflector's prompt. ``told``: how far it is."""
    found, seen = list[Found](), set[str]()
    for done, path in enumerate(files):
        told(done, path.stem)
        host = "claude-code"
        try:
            host, past = reader.read(path, seen)
        except (ReflectdError, OSError) as e:
            past = Past(path.stem, 0, why=words(e).removeprefix(f"{path}: "))
        except Exception as e:  # noqa: BLE001 - a file that we fail to read must not cost the others
            past = Past(path.stem, 0, why=f"a bug of reflectd: {type(e).__name__}: {e}")
        if past.session in {f.past.session for f in found if not f.past.why}:
            past = replace(past, stretch=None, why="another file has this session")
        seen |= past.marks
        size = prompt_tokens(past.stretch, template) if past.stretch is not None else 0
        found.append(Found(path, host, replace(past, stretch=None), size))
    return sorted(found, key=lambda f: (f.past.at, f.past.session))


class Reader:
    """Reads one file after the other. ``named``: the person named the files."""

    def __init__(self, project: Path, db: Reads, *, named: bool) -> None:
        from ...files.project import project_rule_lines

        self._project = os.path.realpath(project)
        self._rules = project_rule_lines(str(project))
        self._db = db
        self._named = named

    def read(
        self, path: Path, seen: Collection[str] = (), only: Collection[str] | None = None
    ) -> tuple[str, Past]:
        """Its host, and the session. Raises ``UserError`` and ``Unavailable``."""
        host, transcript = self._transcript(path)
        if not self._named and time.time() - path.stat().st_mtime < QUIET_S:
            return host, Past(transcript.session, 0, why="it was written to a moment ago, so it may be open")
        if transcript.directory and os.path.realpath(transcript.directory) != self._project:
            return host, Past(transcript.session, 0, why=f"it is a session of {transcript.directory}")
        known = self._known(transcript.session)
        return host, past_of(transcript, host, known, seen=seen, only=only, project=self._rules)

    def _transcript(self, path: Path) -> tuple[str, Transcript]:
        import msgspec

        from ...files.cases import read_file
        from ...hosts.claude_code.transcript import every_task
        from ...hosts.opencode.export import parse_export

        if not path.exists():
            raise UserError("there is no such file")
        if is_transcript_file(path):
            return "claude-code", every_task(path)
        try:
            found = parse_export(msgspec.json.decode(read_file(path)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ReflectdError) as e:
            said = f"neither a transcript of Claude Code nor what `opencode export` prints: {e}"
            raise UserError(said) from None
        return "opencode", found if found.session else replace(found, session=path.stem)

    def _known(self, session: str) -> Known:
        from ...store import injections
        from ...store.verdicts import Verdicts

        given = injections.behind_calls(self._db, session)
        verdicts = (kept.verdict for kept in Verdicts(self._db).newest(session, VERDICTS))
        return Known(given, {v.turn: v for v in verdicts})


SILENT_MOST: Final = 3  # sessions in a row without an answer: then there is no model


@dataclass(slots=True)
class Run:
    """What came of it so far. ``spent``: USD, and tokens at an unknown price. ``stopped``: why it ended
    early.
    """

    sessions: list[Json] = field(default_factory=list)
    spent: Json = field(default_factory=lambda: {"usd": 0.0, "tokens": 0})
    stopped: str = ""
    code: int = 0
    _silent: int = 0

    def add(self, session: Json) -> None:
        """One more session; afterwards ``stopped`` says whether another one is to be tried."""
        self.spent = session.pop("spent", self.spent)
        self.sessions.append(session)
        silent = session["state"] == "silent"
        self._silent = self._silent + 1 if silent else 0
        if silent:
            self.code = 1
        if session["state"] == "over":
            self.stopped, self.code = session["why"], 0 if session["limit"] == "command_limit" else 1
        elif self._silent == SILENT_MOST:
            self.stopped = session["why"]


@dataclass(frozen=True, slots=True)
class Plan:
    """``chosen``: the sessions to look back on, oldest first; ``left``: how many there are without --limit.
    ``out``: those that are left out, with the reason. ``told``: the daemon's estimate.
    """

    project: Path
    chosen: list[Found]
    left: int
    out: list[tuple[Found, str]]
    told: Json


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
    about = About.of(args)
    project, where = about.rules.project, about.where
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
    from ...files.prompts import TRUST_FILE, Prompts, Trust
    from ...paths import config_file, shipped

    trust = Trust(where.state_dir / TRUST_FILE, SystemClock())
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


REASONS: Final = 8
TEXT: Final = 400
AGAIN: Final = "`reflectd playbook bootstrap` goes on with the rest"
HISTORY: Final = "`reflectd learned undo` each change"
STATES: Final = {"failed": "its answer could not be used", "silent": "no answer", "over": "not asked"}


def estimate(plan: Plan, max_cost: float | None, paint: Paint) -> list[str]:
    """What would be done and what it would cost at most."""
    told, chosen = plan.told, plan.chosen
    lines = paint.row("", paint(f"past sessions of {place(plan.project)}", "bold"), "  ")
    what = count(len(chosen), "session")
    if len(chosen) < plan.left:
        what += f", the oldest of {plan.left:,} (--limit)"
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
    size = f"about {told['tokens_in']:,} tokens in, at most {told['tokens_out']:,} out"
    lines += paint.row("  estimate  ", f"at most {count(told['calls'], 'call')}, {size}: {_price(told)}")
    lines += paint.row("  asked     ", "; ".join(dict.fromkeys(_model(m) for m in told["models"])))
    lines += paint.row("  limits    ", _limits(told, max_cost))
    kept = "What it learns is kept apart until a later session shows that it is true, or you approve it."
    return [*lines, *paint.row("  ", kept)]


def _price(told: Json) -> str:
    if told["usd"] is None:
        return "the price is unknown, so tokens are counted"
    return f"{told['usd']:.2f} USD" if told["usd"] >= 0.01 else "less than 0.01 USD"


def _model(model: Json) -> str:
    name = short(model["model"], 60) or "a model that it chooses"
    plan = ", which uses up the limits of your plan" if model["provider"] == "claude-cli" else ""
    return f"{name} by {PROVIDERS.get(model['provider'], short(model['provider'], 40))}{plan}"


def _limits(told: Json, max_cost: float | None) -> str:
    spent, limits = told["spent_24h"], told["limits"]
    most, used = f"{limits['usd']:.2f} USD", f"{spent['usd']:.2f} USD"
    if told["usd"] is None:
        most, used = f"{limits['tokens']:,} tokens", f"{spent['tokens']:,}"
    own = f", and before {max_cost:g} USD (--max-cost)" if max_cost is not None else ""
    return f"it ends before {most} in 24 hours, with what judging cost ({used} so far){own}"


def session_lines(session: Json, paint: Paint) -> list[str]:
    """One session, and what it taught."""
    state = session["state"]
    words = _learned(session) or "nothing new" if state == "learned" else STATES.get(state, "left out")
    if session.get("why") and state != "over":  # that is told at the end
        words += f": {short(session['why'], 300)}"
    title = short(session["title"], 60) or short(session["session"], 40)
    lines = paint.row(f"{clock(session['at'])}  ", f"{paint(title, 'bold')}  {words}")
    for label in ("new", "confirmed"):
        for found in session.get(label, ()):
            lines += paint.row(f"    {label:<10} ", short(found["text"], TEXT))
    for label in ("removed", "merged"):
        if session.get(label):
            lines += paint.row(f"    {label:<10} ", short(", ".join(session[label]), TEXT))
    return lines


def _learned(session: Json) -> str:
    told = [(len(session.get(what, ())), what) for what in ("new", "confirmed", "removed", "merged")]
    counted = Counter(session.get("tags", {}).values())
    told += [(counted[tag], tag) for tag in ("helpful", "harmful")]
    return ", ".join(f"{number} {what}" for number, what in told if number)


def so_far(ran: Run) -> str:
    """In a few words, beside the bar."""
    new, confirmed = (sum(len(s.get(what, ())) for s in ran.sessions) for what in ("new", "confirmed"))
    return f"{new} new, {confirmed} confirmed, {_cost(ran)}"


def _cost(ran: Run) -> str:
    usd, tokens = ran.spent["usd"], ran.spent["tokens"]
    if not tokens:
        return money(usd)
    unknown = f"{tokens:,} tokens at an unknown price"
    return f"{money(usd)} and {unknown}" if usd else unknown


def end(plan: Plan, ran: Run, paint: Paint) -> list[str]:
    """What came of all of it, and what to do next."""
    done = sum(s["state"] in {"learned", "failed"} for s in ran.sessions)
    new, confirmed = (sum(len(s.get(what, ())) for s in ran.sessions) for what in ("new", "confirmed"))
    said = f"looked back on {count(done, 'session')}: {count(new, 'new text')}, {confirmed} confirmed"
    lines = ["", *paint.row("", f"{said}; {_cost(ran)}", "  ")]
    gone = sum(s["state"] in {"learned", "failed", "done", "skipped"} for s in ran.sessions)
    if ran.stopped:
        lines += paint.row("", f"It ended early: {plain(ran.stopped)}", "  ")
    if left := plan.left - gone:
        lines += paint.row("", f"{count(left, 'session')} left; {AGAIN}", "  ")
    if new or confirmed:
        lines += paint.row("", f"`reflectd learned approve` lists what is kept apart, {HISTORY}", "  ")
    return lines
