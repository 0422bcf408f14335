"""Attacks regular expressions: texts made from a pattern's own parse tree, on which a bad one never ends.

``attack`` tries patterns in a process of its own, in which a match that takes too long is stopped. It says
which of them need more than linear time, and never raises for a pattern.
"""

from __future__ import annotations

import multiprocessing
import re
import signal
import time
from dataclasses import dataclass
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

    from harness.patterns import Place

FULL: Final = 100_000  # characters of the longest texts
SMALL: Final = 1_000  # of those that each pattern sees first
MIDDLE: Final = 8_000  # of the worst of them
STEP_S: Final = 3e-6  # seconds a character: a pattern that takes longer on a middle text sees a long one
LIMIT_S: Final = 3.0  # of processor time for one match: a linear pattern takes a tenth of it
ANSWER_S: Final = 90.0  # until a process that does not answer is killed
WORST: Final = 2  # texts of a pattern that are tried in full length
MANY: Final = 64  # texts of one pattern
_COMMON: Final = "aA0_- .,/:=\n\t\"'`é(<"


@dataclass(frozen=True, slots=True)
class Slow:
    """A pattern that needs more than linear time: ``text``, in short, took ``seconds`` or never ended."""

    place: Place
    text: str
    length: int
    seconds: float


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


def attack(places: Sequence[Place], budget_s: float = 60.0) -> tuple[list[Slow], int]:
    """(the patterns that need more than linear time, how many were attacked before ``budget_s`` was over).

    Runs in a process of its own. One that does not even hear its timer is killed, and its pattern told.
    """
    slow: list[Slow] = []
    done, began = 0, time.monotonic()
    while done < len(places) and time.monotonic() - began < budget_s:
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("spawn").Process(target=_child, args=(there, places[done:]))
        child.start()
        there.close()
        try:
            while done < len(places) and (left := budget_s - (time.monotonic() - began)) > 0:
                if not here.poll(min(left, ANSWER_S)):
                    if left > ANSWER_S:
                        slow.append(Slow(places[done], "it does not hear its timer", 0, 0.0))
                        done += 1
                    break
                slow += here.recv()
                done += 1
        except EOFError:
            slow.append(Slow(places[done], "its process died", 0, 0.0))
            done += 1
        finally:
            child.kill()
            child.join()
            here.close()
    return slow, done


def _child(there: Connection, places: Sequence[Place]) -> None:
    signal.signal(signal.SIGVTALRM, _too_long)
    for place in places:
        there.send(_attacked(place))


def _attacked(place: Place) -> list[Slow]:
    """The worst text of the pattern, when it is too slow for one; else nothing."""
    pattern = re.compile(place.pattern, place.flags)
    timed = []
    for text in texts(place.pattern, place.flags):
        spent = _time(pattern, text.of(SMALL), anchored=place.anchored)
        if spent >= LIMIT_S:
            return [Slow(place, repr(text), SMALL, spent)]
        timed.append((spent, text))
    timed.sort(key=lambda found: -found[0])
    for _, text in timed[:WORST]:
        if _time(pattern, text.of(MIDDLE), anchored=place.anchored) > MIDDLE * STEP_S:
            whole = _time(pattern, text.of(FULL), anchored=place.anchored)
            if whole >= LIMIT_S:
                return [Slow(place, repr(text), FULL, whole)]
    return []


def _time(pattern: re.Pattern[str], text: str, *, anchored: bool) -> float:
    """Seconds of every match in the text, ``LIMIT_S`` when they did not end in that much processor time."""
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    began = time.perf_counter()
    try:
        if anchored:
            pattern.match(text)
            pattern.fullmatch(text)
        else:
            for _ in pattern.finditer(text):
                pass
        return min(time.perf_counter() - began, LIMIT_S * 0.99)  # others may have had the processor
    except _TooLongError:
        return LIMIT_S
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _too_long(number: int, frame: object) -> None:
    raise _TooLongError
