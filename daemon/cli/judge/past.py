"""``reflectd judge --past``: what reflectd would have done in past sessions, before it is let do anything.

Every stop is judged as it was, by the rules, for free and without a daemon; with ``--provider`` by a model,
after an estimate and a yes on a terminal, and only through the daemon, in whose ledger and within whose caps
the calls are. Nothing is sent to an agent, and no setting is changed. Each opinion of a model and each answer
of the person is kept when it is there, so Ctrl-C and a kill pay for nothing twice.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ... import __version__
from ...client import request
from ...clock import SystemClock
from ...core.errors import BadReply, ReflectdError, Refused, Unavailable, UserError
from ...core.fast import needs_second_look
from ...core.guards import Limits
from ...core.llm import Prompt, Reply
from ...core.words import PROVIDERS
from ...engine.budget import likely_tokens
from ...engine.hosts.host import capabilities
from ...files.cases import CaseFolder
from ...files.project import ProjectRules
from ...files.safe import alone
from ...judge.case import Case
from ...judge.decide import Decision
from ...judge.flow import Opinion
from ...llm.prices import estimate_usd
from ...paths import find_socket
from ...replay.report import Report, Result, precision, result_of, sample
from ...replay.stops import Walk, driven, mark_of, rules
from ...store.backtests import Backtests, Label, Paid
from ..render import Paint, count, money, plain, print_json
from ..settings import look
from ..terminal import Choice, Progress, asked, attended, choose, say, show
from .report import lines, proposal, shown
from .sessions import sessions_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...core.question import Texts
    from ...core.settings import Settings
    from ...paths import Paths
    from ...replay.report import Answer, Precision
    from .sessions import Session

RULES: Final = "offline"
MODELS: Final = ("anthropic", "openai", "claude-cli")
DAY_MS: Final = 86_400_000
PROBLEMS: Final = 5  # that are named
EVERY: Final = 20  # files after which the bar is drawn anew
NONCE: Final = "0" * 16  # of the rules, which read no prompt
LOOKS: Final = 2  # calls for most stops at most; four where a reply broke the form
TOKENS_OUT: Final = 1_500  # of one reply, at most
EXTRA_S: Final = 30.0  # the daemon answers before that, also when its model does not
ROUTE: Final = "/v1/features/backtest/"
BUSY: Final = "another `reflectd judge --past` runs; run this again when that one is done"
REFUSAL: Final = (
    "there is no terminal to ask on, and a model is asked only after a yes there. Nothing was asked"
)
ANSWERS: Final[Mapping[str, Answer]] = {"r": "right", "w": "complete", "t": "awaiting_user", "d": "unknown"}
CHOICES: Final = (
    Choice("r", "Right", "something was missing, and the agent should have gone on"),
    Choice("w", "Wrong", "it was done"),
    Choice("t", "Wrong, my turn", "the agent had to wait for me"),
    Choice("d", "Don't know", ""),
    Choice("q", "Stop here", "what you said is kept"),
)
_RESULT: Final = msgspec.json.Decoder(Result)
_OPINION: Final = msgspec.json.Decoder(Opinion)
_encode = msgspec.json.Encoder().encode


class Ended(Exception):
    """Nobody can be asked any more, and why."""


def run(args: argparse.Namespace, templates: Callable[[str], Texts]) -> int:
    _check(args)
    settings, where = look(args)
    since = int(time.time() * 1000) - args.days * DAY_MS if args.days else 0
    found = sessions_of(os.environ, where, args.file, since)
    with alone(where.state_dir / "backtest", busy=BUSY):
        past = Past(found, Backtests(where.state_dir), Judging(settings, templates), since)
        try:
            return _run(args, past, settings, where)
        except KeyboardInterrupt:
            say("Stopped. What a model or you said is kept.", sys.stderr)
            return 130


def _check(args: argparse.Namespace) -> None:
    if args.days is not None and not 1 <= args.days <= 36_500:
        raise UserError("--days must be from 1 to 36500")
    if args.provider not in {None, RULES, *MODELS}:
        raise UserError(f"past sessions are judged by the rules, or by one of {', '.join(MODELS)}")
    if args.label and (args.json or not attended()):
        raise UserError("--label asks a person: run it on a terminal, without --json")


def _run(args: argparse.Namespace, past: Past, settings: Settings, where: Paths) -> int:
    past.scan()
    judge, code = args.provider or RULES, 0
    if judge != RULES:
        asker = Asker(judge, settings, where)
        estimate = past.estimate(asker)
        if estimate.stops and not _agreed(args, estimate, asker):
            return 1
        code = past.ask(asker, LOOKS * estimate.stops)
        if code:
            return code
    report = Report(judge)
    for _, _, result in past.results(judge):
        report.add(result)
    if args.label:
        past.label(judge, CaseFolder(where.state_dir))
        return code
    quality = past.quality(judge)
    if args.json:
        more = {"files": len(past.sessions), "problems": past.problems(), "labels": quality.json()}
        print_json({**report.json(), **more})
        return code
    show(lines(report, quality, len(past.sessions), Paint()))
    problems = past.problems()
    for each in problems[:PROBLEMS]:
        say(f"left out: {plain(each['file'])}: {plain(each['why'])}", sys.stderr)
    if len(problems) > PROBLEMS:
        say(f"left out: {count(len(problems) - PROBLEMS, 'more file')} (--json names all)", sys.stderr)
    return code


# --- a model ------------------------------------------------------------------------------------------------


class Estimate(Struct, frozen=True):
    """The stops left to ask. ``tokens``: of the first prompts, about. ``usd``: about, None when unknown."""

    stops: int
    tokens: int
    usd: float | None


class Asker:
    """Asks a model through the daemon. ``limits``: what a person is told of the caps. Raises ``UserError``
    where the daemon may not ask it.
    """

    def __init__(self, name: str, settings: Settings, where: Paths) -> None:
        self.name = name
        self.model = str(getattr(settings, name.replace("-", "_")).model)
        self._socket = find_socket(where)
        self._timeout_s = float(settings.judge.timeout_s)
        try:
            told = request(self._socket, "GET", f"{ROUTE}limits?provider={name}")
        except (Refused, Unavailable) as e:
            through = "A model is asked through the daemon (`reflectd start`)"
            raise UserError(f"nobody can be asked yet: {e}. {through}") from e
        limits, spent = told["limits"], told["spent_24h"]
        self.limits = (
            f"it ends before {limits['usd']:.2f} USD (or {limits['tokens']:,} tokens at an unknown price) in "
            f"24 hours, with what judging cost: {spent['usd']:.2f} USD and {spent['tokens']:,} tokens so far"
        )

    def ask(self, prompt: Prompt) -> Reply:
        """One reply. Raises ``BadReply``, and ``Ended``."""
        names = ("purpose", "system", "text", "nonce", "schema", "max_tokens")
        body = {name: getattr(prompt, name) for name in names}
        body |= {"provider": self.name, "deadline_s": self._timeout_s}
        try:
            found = request(self._socket, "POST", f"{ROUTE}ask", body, self._timeout_s + EXTRA_S)
        except (Unavailable, Refused) as e:
            raise Ended(str(e)) from e
        if found["state"] == "answered":
            return msgspec.convert(found["reply"], Reply)
        if found["state"] == "bad":
            raise BadReply(str(found["why"]), raw=str(found["raw"]))
        raise Ended(str(found["why"]))


def _agreed(args: argparse.Namespace, found: Estimate, asker: Asker) -> bool:
    """Show the estimate, and whether the person wants it asked. Raises ``UserError`` without a terminal."""
    if args.json:
        raise UserError(REFUSAL)
    most = found.stops * LOOKS
    price = "the price is unknown" if found.usd is None else f"about {money(found.usd)}"
    who = PROVIDERS.get(asker.name, asker.name)
    say(f"to ask     {count(found.stops, 'stop')}; guards and the rules decided the others for free")
    say(f"asked      {asker.model or 'a model that it chooses'} by {who}")
    say(
        f"estimate   {found.stops:,} to {most:,} calls; {most:,} are about {found.tokens * LOOKS:,} "
        f"tokens in and {most * TOKENS_OUT:,} out: {price}"
    )
    say(f"limits     {asker.limits}")
    if asked(f"Ask the model about {count(found.stops, 'stop')}?", REFUSAL):
        return True
    say("Nothing was asked.")
    return False


# --- the stops ----------------------------------------------------------------------------------------------


class Stopped(Struct, frozen=True):
    """One stop with its verdict. ``case`` and ``opinion``: None where a guard decided."""

    mark: str
    decision: Decision
    result: Result
    case: Case | None = None
    opinion: Opinion | None = None


class Judging:
    """Judges the stops of a session as the daemon would have judged them then, with the settings, the prompts
    and the projects' own files as they are now. It sends nothing and stores nothing.
    """

    def __init__(self, settings: Settings, templates: Callable[[str], Texts]) -> None:
        self._rules = ProjectRules(SystemClock())
        self._judge, self._templates = settings.judge, templates
        self._second_look = partial(needs_second_look, settings)
        self._models = {name: getattr(settings, name.replace("-", "_")).model for name in MODELS}
        self._own = templates("")
        known = (self._own, self._judge.max_attempts)
        self._by = f"{__version__} {sha256(repr(known).encode()).hexdigest()[:16]}"

    def by(self, judge: str) -> str:
        """The things on which a model's opinions depend: with another value they count no more."""
        return f"{self._by} {self._models.get(judge, '')}"

    def each(
        self,
        session: Session,
        ask: Callable[[Prompt], Reply] = rules,
        *,
        known: Callable[[str], Opinion | None] = lambda _: None,
        since: int = 0,
    ) -> Iterator[Stopped]:
        """The stops of a session. ``known``: a mark → the opinion that was paid for, which is not asked for
        again. ``since``: stops before that (epoch ms) are judged by the rules, whoever is asked. Raises
        ``ReflectdError``, and what ``ask`` raises to end it.
        """
        most = self._judge.max_attempts
        limits = Limits(max_attempts=min(most, capabilities(session.host).prompts or most))
        walk, by_rules = Walk(session.host, limits), ask is rules
        for stop in session.read():
            directory = stop.transcript.directory
            found = walk.prepare(
                stop,
                self._own if by_rules else self._templates(directory),
                project=self._rules.lines(directory) if directory else "",
                nonce=NONCE if by_rules else secrets.token_hex(8),
            )
            if found is None:
                continue
            mark = mark_of(stop.transcript)
            if found.decided is not None:
                yield Stopped(mark, found.decided, result_of(found, session.host, found.decided))
            elif found.case is not None:
                whom = ask if found.case.at >= since else rules
                opinion = known(mark) or driven(found.case, whom, second_look=self._second_look)
                decision = walk.decide(found, opinion)
                result = result_of(found, session.host, decision, opinion)
                tokens = sum(likely_tokens(t) for p in opinion.prompts[:1] for t in (p.system, p.text))
                yield Stopped(mark, decision, replace(result, tokens=tokens), found.case, opinion)


class Past:
    """The sessions of a command, and what is kept. Stops before ``since`` (epoch ms) don't count."""

    def __init__(self, sessions: Sequence[Session], kept: Backtests, judging: Judging, since: int) -> None:
        self.sessions = sessions
        self._kept, self._judging, self._since = kept, judging, since
        self._stops: dict[str, dict[str, Result]] = {}  # by session and mark
        self._problems: dict[str, str] = {}

    def scan(self) -> None:
        stops = 0
        with Progress(len(self.sessions)) as progress:
            for n, s in enumerate(self.sessions):
                if n % EVERY == 0 or s.size > 1 << 20:
                    progress.show(n, f"{count(stops, 'stop')}; {s.name.rpartition('/')[2]}")
                try:
                    self._stops[s.name] = {j.mark: j.result for j in self._judging.each(s)}
                    stops += len(self._stops[s.name])
                except Exception as e:  # noqa: BLE001 - a file that we fail to read must not cost the others
                    self._problems[s.name] = s.why(e)

    def results(self, judge: str) -> list[tuple[Session, str, Result]]:
        """Session, mark and result of each stop that counts, in order of time. Of a stop and its copies in
        forks one counts.
        """
        found: dict[str, tuple[Session, str, Result]] = {}
        for s in sorted(self.sessions, key=lambda s: s.name):
            for mark, by_rules in self._stops.get(s.name, {}).items():
                paid = self._paid(judge, mark) if judge != RULES else None
                if mark not in found and (paid is not None or judge == RULES):
                    found[mark] = (s, mark, by_rules if paid is None else _RESULT.decode(paid.result))
        counted = (each for each in found.values() if each[2].at >= self._since)
        return sorted(counted, key=lambda each: (each[2].at, each[1]))

    def problems(self) -> list[dict[str, str]]:
        return [{"file": name, "why": why} for name, why in sorted(self._problems.items())]

    def estimate(self, asker: Asker) -> Estimate:
        left = [r for _, mark, r in self.results(RULES) if r.asks and self._paid(asker.name, mark) is None]
        stops, tokens = len(left), sum(r.tokens for r in left)
        usd = estimate_usd(asker.name, asker.model, tokens * LOOKS, stops * LOOKS * TOKENS_OUT)
        return Estimate(stops, tokens, usd if stops else 0.0)

    def ask(self, asker: Asker, calls: int) -> int:
        """Session after session, until all are done or something ends it; at most so many calls as were
        agreed to. The exit code.
        """
        done, usd, left = 0, 0.0, calls

        def ask(prompt: Prompt) -> Reply:
            nonlocal left
            if not left:
                raise _NotAgreedError
            left -= 1
            return asker.ask(prompt)

        over, by, known = False, self._judging.by(asker.name), partial(self._opinion, asker.name)
        try:
            with Progress(len(self.sessions)) as progress:
                for n, s in enumerate(self.sessions):
                    if not self._is_open(s, asker.name):
                        continue
                    try:
                        for judged in self._judging.each(s, ask, known=known, since=self._since):
                            if judged.result.at < self._since:
                                continue
                            opinion = _slim(judged.opinion) if judged.opinion is not None else ""
                            raw = msgspec.Raw(_encode(judged.result))
                            self._kept.add(Paid(asker.name, by, judged.mark, raw, opinion))
                            done += judged.result.calls > 0
                            usd += judged.result.cost or 0.0
                            progress.show(n, f"{count(done, 'stop')} judged, {money(usd)}")
                    except _NotAgreedError:
                        over = True
                    except (ReflectdError, OSError) as e:
                        say(f"left out: {plain(s.name)}: {plain(s.why(e))}", sys.stderr)
        except Ended as e:
            say(f"It ended early: {plain(e)}. Judged stops are kept; run it again to go on.")
            return 1
        if over and calls:
            say(
                "Some stops needed more calls than the estimate said and are left out. Run it again to go on."
            )
        return 0

    def quality(self, judge: str) -> Precision:
        sent = [mark for _, mark, r in self.results(judge) if r.feedback]
        return precision(sent, self._answers(judge))

    def label(self, judge: str, folder: CaseFolder) -> None:
        """Show what is left of the sample, and keep each answer with its case. It proposes a setting and
        changes none. Raises ``KeyboardInterrupt``.
        """
        sent = {mark: (s, r) for s, mark, r in self.results(judge) if r.feedback}
        chosen, paint = sample(sent), Paint()
        left = [mark for mark in chosen if mark not in self._answers(judge)]
        many = count(len(sent), "feedback")
        say(f"{many} would have been sent; {len(left)} of {len(chosen)} are left to look at.")
        for n, mark in enumerate(left, 1):
            session, result = sent[mark]
            print("\n".join(shown(result, f"{n} of {len(left)}", paint)), flush=True)
            try:
                key = choose(CHOICES, "d")
            except EOFError:
                key = "q"
            if key == "q":
                break
            if ANSWERS[key] != "unknown":
                self._keep(session, mark, ANSWERS[key], judge, folder)
            self._kept.add(Label(judge, mark, ANSWERS[key]))
        quality = self.quality(judge)
        say("")
        say(f"{quality.sentence[:1].upper()}{quality.sentence[1:]}.")
        say(proposal(quality))
        if quality.share.of:
            say("Your answers are cases of yours now: `reflectd dispute list`. No setting was changed.")

    def _keep(self, session: Session, mark: str, answer: Answer, judge: str, folder: CaseFolder) -> None:
        """Make the case anew from the session, and keep it with the label."""
        from ...engine.filing import case_object

        whom = rules if judge == RULES else _nobody
        each = self._judging.each(session, whom, known=partial(self._opinion, judge))
        try:
            one = next((j for j in each if j.mark == mark), None)
            if one is None or one.opinion is None or one.case is None:
                say("  (the session has changed since; your answer counts, but no case is kept)")
                return
            content: dict[str, Any] = msgspec.to_builtins(case_object(one.case, one.opinion, one.decision))
            path = folder.keep(one.result.session, one.result.at, content)
            folder.label(path, "incomplete" if answer == "right" else answer, "looked at in a back-test")
        except ReflectdError as e:
            say(f"  (no case is kept: {plain(e)})")

    def _paid(self, judge: str, mark: str) -> Paid | None:
        return self._kept.paid.get((judge, self._judging.by(judge), mark))

    def _opinion(self, judge: str, mark: str) -> Opinion | None:
        paid = self._paid(judge, mark)
        return _OPINION.decode(paid.opinion) if paid is not None and paid.opinion else None

    def _is_open(self, session: Session, judge: str) -> bool:
        """Says whether a stop of the session has no result of this judge yet."""
        return any(
            self._paid(judge, mark) is None
            for mark, result in self._stops.get(session.name, {}).items()
            if result.at >= self._since
        )

    def _answers(self, judge: str) -> dict[str, Answer]:
        known = {answer: answer for answer in ANSWERS.values()}
        labels = self._kept.labels.items()
        return {mark: known[said] for (by, mark), said in labels if by == judge and said in known}


class _NotAgreedError(Exception):
    """This call is not among those that the person said yes to."""


def _slim(opinion: Opinion) -> str:
    """The parts for deciding again: the replies' figures without their prompts and evidence."""
    prompts = tuple(replace(p, text="", system="", evidence=None, schema=None) for p in opinion.prompts)
    return _encode(replace(opinion, prompts=prompts)).decode()


def _nobody(_: Prompt) -> Reply:
    """Nothing is asked while a person looks."""
    raise UserError("it was not judged to its end")
