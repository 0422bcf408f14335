"""Attacks regular expressions: texts made from a pattern's own parse tree, on which a bad one never ends.

``attack`` tries patterns in a process of its own, in which a match that takes too long is stopped. It says
which of them need more than linear time, and never raises for a pattern.

No limit is in seconds of a clock. A text is made four times as long: a linear pattern takes four times as
long then, a quadratic one sixteen times. Compared are seconds of processor time, the least of several runs,
which other programs hardly change. So a pattern that is slow on each character and linear passes.
"""

from __future__ import annotations

import math
import multiprocessing
import re
import resource
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

from harness.patterns import Place

SMALL: Final = 1_000  # characters of the texts that each pattern sees first
WORST: Final = 6  # texts of a pattern that are seen longer
LONGER: Final = (1_000, 4_000)  # characters of those, and four times as many: it is slow when both say so
FINE_S: Final = 2.5e-7  # seconds a character: a pattern that takes less on a long text does not grow
LINEAR: Final = 6.0  # times as long on a text of four times the length: less is linear for sure
GROWS: Final = 8.0  # from here on it is not,
SURE: Final = 12.0  # and from here on that is sure
RUNS: Final = 7  # of one text, the least of which counts, where it is not clear
LIMIT_S: Final = 0.3  # of processor time for one match: the slowest linear pattern takes a tenth of it
SILENT_S: Final = 60  # of processor time for one pattern, until the kernel ends a process that hears nothing
MANY: Final = 64  # texts of one pattern
_COMMON: Final = "aA0_- .,/:=\n\t\"'`é(<"


@dataclass(frozen=True, slots=True)
class Slow:
    """A pattern that needs more than linear time. ``text``: on what, in short; ``why``: what was seen."""

    place: Place
    text: str
    why: str

    def __str__(self) -> str:
        return f"{self.place.name}: {self.place.pattern!r} on {self.text}: {self.why}"


@dataclass(frozen=True, slots=True)
class Text:
    """``start``, then ``pump`` again and again, then ``end``."""

    start: str
    pump: str
    end: str

    def of(self, length: int) -> str:
        """The text in about ``length`` characters."""
        count = max(2, (length - len(self.start) - len(self.end)) // max(1, len(self.pump)))
        return self.start + self.pump * count + self.end


def texts(pattern: str, flags: int = 0) -> list[Text]:
    """At most ``MANY`` texts for the pattern: for each of its repeats what leads there, what the repeat takes
    in several readings, and ends that no part of the pattern takes.
    """
    tree = _parser.parse(pattern, flags)
    letters = _letters(tree, flags)
    ends = ["", "\0", "\n", letters[0] + "\0"]
    repeats = list(_repeats(list(tree), "", letters))
    own: dict[Text, None] = {}
    for start, body in repeats:
        pumps = dict.fromkeys(p for v in range(len(letters)) if (p := _sample(body, v, letters, 2)))
        for pump in list(pumps)[:8]:
            for text in (
                Text(start, pump, "\0"),
                Text("", start + pump, "\0"),
                Text("", start + pump * 60, "\n"),
            ):
                own.setdefault(text)
    whole = dict.fromkeys(_sample(list(tree), v, letters, 1) for v in range(3))
    common = [
        *(Text("", w, "") for w in whole if w),
        *(Text(w[:-1], w[-2:-1], "\0") for w in whole if len(w) > 2),
        *(Text("", w[:-1], "\0") for w in whole if len(w) > 1),
        *(Text("", c, end) for c in letters for end in ends[:2]),
        *(Text("", c + d, "\0") for c in letters[:7] for d in letters[:7] if c < d),
    ]
    few = list(own)
    step = max(1, len(few) // (MANY - min(len(common), MANY // 2)) + 1) if len(few) > MANY // 2 else 1
    return list(dict.fromkeys([*few[::step], *common]))[:MANY]


def _letters(tree: Any, flags: int) -> list[str]:
    """Letters that stand for all that the pattern tells apart, those that it names first."""
    named: dict[str, None] = {}

    def look(node: Any) -> None:
        if isinstance(node, tuple) and len(node) == 2 and node[0] in {op.LITERAL, op.NOT_LITERAL}:
            named.setdefault(chr(node[1]))
        elif isinstance(node, tuple) and len(node) == 2 and node[0] is op.RANGE:
            named.setdefault(chr(node[1][0]))
        elif isinstance(node, _parser.SubPattern | list | tuple):
            for inner in node:
                look(inner)

    look(tree)
    marks = [c for c in named if not c.isalnum()][:10]
    return [*dict.fromkeys([*marks, *_COMMON])]


def _repeats(nodes: list[Any], before: str, letters: list[str]) -> Iterator[tuple[str, list[Any]]]:
    """(what leads to it, its body) of each repeat that may take more than one."""
    for kind, value in nodes:
        for inner in _bodies(kind, value):
            yield from _repeats(inner, before, letters)
        if kind in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT} and value[1] > 1:
            yield before, list(value[2])
        before += _sample([(kind, value)], 0, letters, 1)


def _bodies(kind: Any, value: Any) -> list[list[Any]]:
    match kind:
        case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
            return [list(value[2])]
        case op.SUBPATTERN:
            return [list(value[3])]
        case op.ATOMIC_GROUP:
            return [list(value)]
        case op.ASSERT | op.ASSERT_NOT:
            return [list(value[1])]
        case op.BRANCH:
            return [list(b) for b in value[1]]
        case op.GROUPREF_EXISTS:
            return [list(b) for b in value[1:] if b]
    return []


def _sample(nodes: list[Any], variant: int, letters: list[str], most: int) -> str:
    """A text that the nodes take; ``variant`` picks the branches and the letters, ``most`` bounds repeats."""
    said = ""
    for kind, value in nodes:
        match kind:
            case op.LITERAL:
                said += chr(value)
            case op.NOT_LITERAL | op.ANY | op.IN:
                fine = [c for c in letters if _takes(kind, value, c)]
                more = [chr(i[1] if i[0] is op.LITERAL else i[1][0]) for i in _members(kind, value)]
                fine = fine or more
                said += fine[variant % len(fine)] if fine else ""
            case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
                low, high, body = value
                count = min(max(low, min(1, high) if variant % 2 else low, most - 1 if low else 0), high, 40)
                said += _sample(list(body), variant, letters, most) * count
            case op.BRANCH:
                said += _sample(list(value[1][variant % len(value[1])]), variant, letters, most)
            case op.SUBPATTERN | op.ATOMIC_GROUP:
                said += _sample(_bodies(kind, value)[0], variant, letters, most)
    return said


def _members(kind: Any, value: Any) -> list[Any]:
    return [i for i in value if i[0] in {op.LITERAL, op.RANGE}] if kind is op.IN else []


def _takes(kind: Any, value: Any, letter: str) -> bool:
    if kind is op.ANY:
        return letter != "\n"
    if kind is op.NOT_LITERAL:
        return ord(letter) != value
    inside = any(_is_in(item, letter) for item in value if item[0] is not op.NEGATE)
    return inside != any(item[0] is op.NEGATE for item in value)


def _is_in(item: Any, letter: str) -> bool:
    kind, value = item
    if kind is op.LITERAL:
        return ord(letter) == value
    if kind is op.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    word, space = letter.isalnum() or letter == "_", letter.isspace()
    known = {
        op.CATEGORY_DIGIT: letter.isdigit(),
        op.CATEGORY_NOT_DIGIT: not letter.isdigit(),
        op.CATEGORY_SPACE: space,
        op.CATEGORY_NOT_SPACE: not space,
        op.CATEGORY_WORD: word,
        op.CATEGORY_NOT_WORD: not word,
    }
    return known.get(value, False)


class _TooLongError(Exception):
    """A match took more than its time."""


def attack(places: Sequence[Place]) -> list[Slow]:
    """The patterns that need more than linear time.

    They are attacked in a process of its own. When that ends in the middle of a pattern, because it did not
    even hear its timer, the pattern is told and the next process goes on behind it.
    """
    slow: list[Slow] = []
    done = 0
    while done < len(places):
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("spawn").Process(target=_child, args=(there, places[done:]))
        child.start()
        there.close()
        try:
            while done < len(places):
                slow += here.recv()
                done += 1
        except EOFError:
            slow.append(Slow(places[done], "a text of its own", "its process ended"))
            done += 1
        finally:
            child.kill()
            child.join()
            here.close()
    return slow


def _child(there: Connection, places: Sequence[Place]) -> None:
    signal.signal(signal.SIGVTALRM, _too_long)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    for place in places:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + SILENT_S, most))
        there.send(_attacked(place))


def _attacked(place: Place) -> list[Slow]:
    """The pattern with the first text that it is too slow for; else nothing."""
    pattern = re.compile(place.pattern, place.flags)
    timed = []
    for text in texts(place.pattern, place.flags):
        spent = _time(pattern, text.of(SMALL), anchored=place.anchored)
        if spent == math.inf:
            return [Slow(place, str(text), f"{SMALL} characters do not end in time")]
        timed.append((spent, text))
    timed.sort(key=lambda found: -found[0])
    for _, text in timed[:WORST]:
        if why := _grows(pattern, text, anchored=place.anchored):
            return [Slow(place, str(text), why)]
    return []


def _grows(pattern: re.Pattern[str], text: Text, *, anchored: bool) -> str:
    """How much longer it takes on longer texts, where that is more than linear; else empty."""
    seen = []
    for at_least in LONGER:
        short = max(at_least, 4 * len(text.pump))
        first, second = _least(pattern, text.of(short), text.of(4 * short), anchored=anchored)
        if math.inf in {first, second}:
            return f"{4 * short} characters do not end in time"
        if second < FINE_S * 4 * short or second < GROWS * first:
            return ""
        seen.append(f"{4 * short} characters take {second / first:.1f} times as long as {short}")
    return ", ".join(seen)


def _least(pattern: re.Pattern[str], short: str, long: str, *, anchored: bool) -> tuple[float, float]:
    """The least seconds for each of both texts; after two runs of each when they are clear."""
    first = second = math.inf
    for run in range(RUNS):
        first = min(first, _time(pattern, short, anchored=anchored))
        if first == math.inf:
            break
        limit_s = max(LIMIT_S, SURE * first)
        second = min(second, _time(pattern, long, anchored=anchored, limit_s=limit_s))
        if second == math.inf:
            break
        if run and (second < FINE_S * len(long) or not LINEAR < second / first < SURE):
            break
    return first, second


def _time(pattern: re.Pattern[str], text: str, *, anchored: bool, limit_s: float = LIMIT_S) -> float:
    """Seconds of processor time of every match in the text; without end when they did not end in time."""
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    began = time.thread_time()
    try:
        if anchored:
            pattern.match(text)
            pattern.fullmatch(text)
        else:
            for _ in pattern.finditer(text):
                pass
        return time.thread_time() - began
    except _TooLongError:
        return math.inf
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _too_long(number: int, frame: object) -> None:
    raise _TooLongError
