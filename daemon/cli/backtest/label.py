"""``reflectd backtest --label``: a person looks at up to 20 of the feedbacks that would have been sent.

One key for each answer, which is kept when it is given, together with the case: Ctrl-C and a kill lose none,
and whoever goes on later sees only what is left. It proposes a setting and never changes one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import msgspec

from ...core.errors import ReflectdError, UserError
from ...replay.sample import Answer, Candidate, precision, sample
from ..choices import Choice, choose
from ..render import Paint, clock, count, money, place, plain, short
from ..terminal import say
from .scanning import RULES, results, version_of
from .text import proposal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.llm import Prompt, Reply
    from ...paths import Paths
    from ...replay.backtest import Result
    from ...replay.sample import Precision
    from ...store.backtests import Backtests
    from .judging import Judging
    from .reading import Source

ANSWERS: Final[Mapping[str, Answer]] = {"r": "right", "w": "complete", "t": "awaiting_user", "d": "unknown"}
CHOICES: Final = (
    Choice("r", "Right", "something was missing, and the agent should have gone on"),
    Choice("w", "Wrong", "it was done"),
    Choice("t", "Wrong, my turn", "the agent had to wait for me"),
    Choice("d", "Don't know", ""),
    Choice("q", "Stop here", "what you said is kept"),
)
TEXT: Final = 1_500
_KNOWN: Final = frozenset(get_args(Answer))


def answers_of(kept: Backtests, judge: str) -> dict[str, Answer]:
    """What the person said so far, by mark."""
    return {mark: cast("Answer", said) for mark, said in kept.labels(judge).items() if said in _KNOWN}


def found_so_far(kept: Backtests, judging: Judging, judge: str, since: int) -> Precision:
    """What the answers show of the feedbacks that would have been sent."""
    sent = [mark for _, mark, r in results(kept, judge, judging, since) if r.feedback]
    return precision(sent, answers_of(kept, judge))


def quality_object(found: Precision) -> dict[str, object]:
    """For scripts."""
    share = found.share
    known = {"looked_at": share.of, "right": share.hits, "unknown": found.unknown, "sent": found.sent}
    if not share.of:
        return {**known, "precision": None, "low": None, "high": None, "proposes": found.proposes}
    figures = {"precision": share.value, "low": share.low, "high": share.high}
    return {**known, **figures, "proposes": found.proposes, "sentence": found.sentence}


def label(
    files: Sequence[Source],
    kept: Backtests,
    judging: Judging,
    judge: str,
    since: int,
    where: Paths,
) -> None:
    """Show what is left of the sample, and keep each answer. Raises ``KeyboardInterrupt``."""
    candidates = [
        Candidate(mark, r.severity, r.project)
        for _, mark, r in results(kept, judge, judging, since)
        if r.feedback
    ]
    chosen, said = sample(candidates), answers_of(kept, judge)
    left = [mark for mark in chosen if mark not in said]
    by_name, paint = {f.name: f for f in files}, Paint()
    many = count(len(candidates), "feedback")
    say(f"{many} would have been sent; {len(left)} of {len(chosen)} are left to look at.")
    wanted = set(left)
    found: dict[str, tuple[str, Result]] = {}
    for name, mark, r in results(kept, judge, judging, since):
        if mark in wanted:
            found[mark] = (name, r)
    for n, mark in enumerate(left, 1):
        name, r = found[mark]
        print("\n".join(shown(r, f"{n} of {len(left)}", paint)), flush=True)
        try:
            key = choose(CHOICES, "d")
        except EOFError:
            key = "q"
        if key == "q":
            break
        answer = ANSWERS[key]
        file = by_name.get(name)
        if answer != "unknown" and file is not None:
            _keep(file, mark, answer, kept, judging, judge, where)
        kept.label(judge, mark, answer, int(time.time() * 1000))
    quality = found_so_far(kept, judging, judge, since)
    say("")
    for line in (f"{quality.sentence[:1].upper()}{quality.sentence[1:]}.", proposal(quality)):
        say(line)
    if quality.share.of:
        say("Your answers are cases of yours now: `reflectd dispute list`. No setting was changed.")


def shown(r: Result, number: str, paint: Paint) -> list[str]:
    """One feedback, with what led to it."""
    lines = [
        "",
        *paint.row("", paint(f"{number}  {r.severity}  {clock(r.at)}  {place(r.project)}", "bold"), "  "),
    ]
    lines += _field("you asked", r.request, paint)
    lines += _field("the agent", r.final[-TEXT:], paint)
    for row in r.happened:
        lines += paint.row("            ", short(row, 220) if row.startswith("!") else f"  {short(row, 218)}")
    lines += _field("feedback", r.feedback[:TEXT], paint)
    if r.said:
        lines += _field("you then", r.said, paint)
    if r.calls:
        lines += _field("cost", f"{count(r.calls, 'call')}, {money(r.cost)}", paint)
    return lines


def _field(name: str, text: str, paint: Paint) -> list[str]:
    found = [line for line in plain(text).splitlines() if line.strip()] or ["(nothing)"]
    rows = (paint.row(f"  {name if not i else '':<10}", line) for i, line in enumerate(found))
    return [line for row in rows for line in row]


def _keep(
    file: Source,
    mark: str,
    answer: Answer,
    kept: Backtests,
    judging: Judging,
    judge: str,
    where: Paths,
) -> None:
    """Make the case anew from the session's file, and keep it with the label."""
    from ...engine.filing import case_object
    from ...files.cases import CaseFolder
    from .asking import known_opinions

    folder = CaseFolder(where.state_dir)
    try:
        known = known_opinions(kept, version_of(file, judge, judging))
        each = judging.each(file) if judge == RULES else judging.each(file, _nobody, known=known)
        one = next((j for j in each if j.mark == mark), None)
        if one is None or one.opinion is None or one.prepared.case is None:
            say("  (the session has changed since; your answer counts, but no case is kept)")
            return
        content: dict[str, Any] = msgspec.to_builtins(
            case_object(one.prepared.case, one.opinion, one.decision)
        )
        path = folder.keep(one.result.session, one.result.at, content)
        expect = "incomplete" if answer == "right" else answer
        folder.label(path, expect, "looked at in a back-test")
    except ReflectdError as e:
        say(f"  (no case is kept: {plain(e)})")


def _nobody(_: Prompt) -> Reply:
    """Nothing is asked while a person looks."""
    raise UserError("it was not judged to its end")
