"""Finds loops: does the agent repeat itself right now, and what does it repeat?

``fold`` takes in one step, and ``found`` says which loop the steps end with. A step that brings something new
(a new outcome, a new write) ends every loop, so work that makes progress is never one. Waiting counts as a
loop only after a long time, and so does what a person asked to have repeated. Thresholds and reasons are in
``design/stuck.md``. This module does not decide what follows from a loop, reads no text for its meaning, and
never raises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from .digests import alike, digest
from .steps import Step, last_steps, step_from_digests, step_of, steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.transcript import Transcript

__all__ = [
    "Loop",
    "Step",
    "Window",
    "asks_to_repeat",
    "fold",
    "found",
    "loop_in",
    "step_from_digests",
    "step_of",
    "steps",
]

LoopKind = Literal["same_call", "failing_call", "alternation", "cycle", "monologue", "planning"]

SIZE: Final = 128  # calls that are remembered: enough for the largest numbers in PATIENCE and ASKED
LONGEST: Final = 5  # calls of a cycle
RECENT: Final = 64  # calls in which rounds are looked for that have lookups between them
FAILURES: Final = 4  # equal failures with different arguments
LOOK_FAILURES: Final = 6  # the same for lookups: to search is to try several places
MAX_READ: Final = 20  # new lookups between equal failures; more than half as many as failures mean work
IDLE: Final = 12  # calls in a row that look at something known or plan again
TEXTS: Final = 3
MAX_TEXTS: Final = 16
SAME_TEXT: Final = 0.8
SAME_PLAN: Final = 0.6
MAX_PLANS: Final = 8
# By sort: how often a call, and how often a round of 2 to 5 calls, must come with one outcome to be a loop.
PATIENCE: Final = {
    "act": (4, 3),
    "look": (4, 3),
    "plan": (4, 3),
    "text": (4, 3),
    "check": (8, 5),  # a check is repeated to see whether it is flaky
    "other": (8, 5),  # an unknown tool may make progress that its outcome does not show
    "probe": (12, 8),
    "wait": (30, 20),
}
ASKED: Final = (40, 20)
_IDLE_SORTS: Final = frozenset({"look", "plan", "check"})
_ASKABLE: Final = frozenset({"act", "check", "other", "probe", "wait"})
_WISH: Final = re.compile(
    r"\b(?:[4-9]|\d{2,6}) ?(?:x|times|runs|iterations|rounds|repetitions)\b|\btimes in a row\b"
    r"|\b(?:ten|twenty|fifty|hundred|several|many) times\b|\brepeat(?:ed(?:ly)?)?\b|\bover and over\b"
    r"|\bin a loop\b|\bstress(?:[- ]?test\w{0,3})?\b|\bsoak\b|\bflak\w{1,8}|\bintermittent|\bbenchmark"
    r"|\bmonitor\b|\bpoll\b|\bkeep an eye\b|\bwatch (?:the|for|it|this|over)\b|\bwait (?:for|until|till)\b"
    r"|\bevery \d{1,4} ?(?:s|sec|min|h|m)\w{0,6}\b|\b\d{1,6} ?(?:mal|fois|veces|vezes)\b|\bwiederhol",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop. ``what``: names the calls or the text that repeat. ``count``: how often (the rounds of a
    cycle, the calls of planning). ``key``: stays the same while the loop goes on.
    """

    kind: LoopKind
    what: str
    count: int
    key: str


@dataclass(frozen=True, slots=True)
class Window:
    """The last ``SIZE`` calls of a session, and the texts after the last of them.

    ``symbols``: each call and its outcome as one text. ``known``: whether each symbol came before. ``idle``:
    how many of the last calls brought nothing new and changed nothing. ``asked``: the person wants something
    repeated.
    """

    calls: tuple[Step, ...] = ()
    symbols: tuple[str, ...] = ()
    known: tuple[bool, ...] = ()
    texts: tuple[Step, ...] = ()
    idle: int = 0
    asked: bool = False


def fold(window: Window, step: Step) -> Window:
    """The window after one more step."""
    if step.kind == "text":
        return Window(
            window.calls,
            window.symbols,
            window.known,
            (*window.texts[1 - MAX_TEXTS :], step),
            window.idle,
            window.asked,
        )
    symbol = step.call + step.result
    known = symbol in window.symbols or (step.sort == "plan" and _planned(window.calls, step))
    idles = known and not step.writes and step.sort in ({"look", "plan"} if window.asked else _IDLE_SORTS)
    keep = 1 - SIZE
    return Window(
        (*window.calls[keep:], step),
        (*window.symbols[keep:], symbol),
        (*window.known[keep:], known),
        (),
        window.idle + 1 if idles else 0,
        window.asked,
    )


def found(window: Window) -> Loop | None:
    """The loop at the end of the window, or None."""
    if window.texts:
        if loop := _monologue(window.texts):
            return loop
        if window.texts[-1].closes:  # the agent ended its turn; the judge says whether that was right
            return None
    if not window.calls or not (window.known[-1] or window.calls[-1].failed):
        return None
    return _rounds(window) or _failing(window) or _planning(window)


def loop_in(transcript: Transcript) -> Loop | None:
    """The loop that a session is in at the end of its transcript."""
    window = Window(asked=asks_to_repeat("\n".join(m.text for m in transcript.requests)))
    for step in last_steps(transcript, 2 * SIZE):
        window = fold(window, step)
    return found(window)


def asks_to_repeat(request: str) -> bool:
    """Whether a person wants something done again and again, or watched."""
    return bool(_WISH.search(request[:20_000]))


def _planned(calls: Sequence[Step], step: Step) -> bool:
    """Whether ``step`` is a plan that says the same as an earlier one and reports no progress."""
    if not step.words:  # only digests came, so plans can't be compared
        return any(c.sort == "plan" for c in calls[-MAX_PLANS:])
    earlier = [c for c in calls[-2 * MAX_PLANS :] if c.sort == "plan" and c.tool == step.tool][-MAX_PLANS:]
    return any(c.result == step.result and alike(c.words, step.words, SAME_PLAN) for c in reversed(earlier))


def _monologue(texts: Sequence[Step]) -> Loop | None:
    last, count = texts[-1], 0
    for text in reversed(texts):
        if text.result != last.result or not alike(text.words, last.words, SAME_TEXT):
            break
        count += 1
    if count < TEXTS or not last.words:
        return None
    first = texts[len(texts) - count]
    return Loop("monologue", f"the text “{first.what}”", count, digest("monologue", first.result))


def _rounds(window: Window) -> Loop | None:
    """A loop of 1 to ``LONGEST`` calls that come again and again with the same outcomes."""
    if loop := _period(window.calls, window.symbols, asked=window.asked):
        return loop
    end = len(window.calls)
    while end and window.known[end - 1] and window.calls[end - 1].sort == "look":
        end -= 1
        if len(window.calls) - end > LONGEST:
            return None
    if not end or window.calls[end - 1].sort in {"look", "plan"}:
        return None
    acts = [  # a repeated look at something known is left out
        i
        for i in range(max(0, end - RECENT), end)
        if not (window.known[i] and window.calls[i].sort == "look")
    ]
    return _period([window.calls[i] for i in acts], [window.symbols[i] for i in acts], asked=window.asked)


def _period(calls: Sequence[Step], symbols: Sequence[str], *, asked: bool) -> Loop | None:
    end = len(symbols) - 1
    for period in range(1, LONGEST + 1):
        i = end
        while i >= period and symbols[i] == symbols[i - period]:
            i -= 1
        rounds = (end - i + period) // period
        if rounds < 3:
            continue
        members = calls[len(calls) - period :]
        if rounds < max(_patience(step, asked)[period > 1] for step in members):
            return None  # longer periods would only count the same rounds in another way
        return _named(members, rounds)
    return None


def _patience(step: Step, asked: bool) -> tuple[int, int]:
    if asked and step.sort in _ASKABLE and not step.writes:
        return ASKED
    return PATIENCE["act"] if step.failed and step.sort in {"check", "other"} else PATIENCE[step.sort]


def _named(members: Sequence[Step], rounds: int) -> Loop:
    acts = {s.call: s for s in members if s.sort != "look"}
    told = list(acts.values()) if len(acts) == 1 and next(iter(acts.values())).failed else members
    names = list(dict.fromkeys(step.what or step.tool or "a call" for step in sorted(told, key=_order)))
    what = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    kind: LoopKind = "alternation" if len(members) == 2 else "cycle"
    if all(step.sort == "plan" for step in members):
        kind = "planning"
    elif len(told) == 1:
        kind = "failing_call" if told[0].failed else "same_call"
    return Loop(kind, what, rounds, _key(members))


def _order(step: Step) -> tuple[bool, str]:
    """Sorts acts before lookups; the order does not depend on where in the round the window ends."""
    return step.sort == "look", step.call


def _key(members: Sequence[Step]) -> str:
    """The loop's key, made of the steps that act: one more look between two rounds does not change it."""
    core = [s for s in members if s.sort != "look"] or list(members)
    faults = {s.fault if s.failed else "" for s in core}
    if len(faults) == 1 and (fault := faults.pop()):
        return digest("failing", fault)
    if all(s.sort == "plan" for s in core):
        return digest("planning")
    return digest("rounds", *sorted({s.call + s.result for s in core}))


def _failing(window: Window) -> Loop | None:
    """A loop of failures: one tool fails at one thing with one error, and little new is read between."""
    last: Step | None = None
    count = read = enough = 0
    for i in range(len(window.calls) - 1, -1, -1):
        step = window.calls[i]
        if step.failed and step.fault and (last is None or step.fault == last.fault):
            if last is None and step.sort in {"probe", "wait"}:
                return None
            last, count = last or step, count + 1
            enough = count if read <= count // 2 else enough
        elif step.sort in {"look", "plan"} and (last is None or not (step.failed and step.fault)):
            read += not window.known[i]
        else:
            break
        if read > MAX_READ or (last is None and len(window.calls) - i > LONGEST):
            break
    if last is None or enough < (LOOK_FAILURES if last.sort == "look" else FAILURES):
        return None
    if window.asked and last.sort in _ASKABLE and not last.target and enough < ASKED[0]:
        return None
    return Loop("failing_call", last.what or last.tool, enough, digest("failing", last.fault))


def _planning(window: Window) -> Loop | None:
    """A loop of calls that plan again or look at something known, and change nothing."""
    if window.idle < IDLE:
        return None
    run = window.calls[-min(window.idle, 2 * IDLE) :]
    names = [step.what or step.tool for step in run]
    often = sorted(dict.fromkeys(names), key=lambda name: (-names.count(name), name))[:3]
    return Loop("planning", ", ".join(often), window.idle, digest("planning"))
