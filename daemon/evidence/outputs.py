"""The decisive lines of a tool's output: failures, git's reports, the last lines.

Pure and linear in the size of the output. A line is never longer than ``MAX_LINE`` and never holds a control
character, so no output can forge a line of the log.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Cuts texts: to one line, and before what looks like the start of a sentence.

LINE: Final = 160  # characters of a text that is shown in a row


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The last place in ``text`` where ``pattern`` matches."""
    found = None
    for found in pattern.finditer(text):  # noqa: B007 -- the last one counts
        pass
    return found


def shorten(text: str, limit: int = LINE) -> str:
    """One line of at most ``limit`` characters."""
    text = " ".join(text[: limit * 5].split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


MAX_LINE: Final = 200
MAX_STRONG: Final = 8  # failure lines of one output: the first half and the last half
MAX_WEAK: Final = 3
MAX_GIT: Final = 10
MAX_TESTS: Final = 20  # names of failed tests
MAX_HITS: Final = 400  # places of one mark that are looked at, from each end
TAIL: Final = 4_000

_MARKS: Final = (  # small letters; a line without any of these is no failure
    "fail", "error", "panic", "traceback", "not ok", "fatal", "denied", "refused", "reject", "timed out",
    "cannot", "could not", "unable to", "conflict", "killed", "fault", "exception", "undefined",
    "not found", "no such", "✗", "✘", "✖", "✕", "❌", "●", "\u00d7",
)  # fmt: skip
_STRONG: Final = re.compile(
    r"^\W{0,12}(?:FAIL(?:ED|URES?|S)?|ERRORS?|FATAL|PANIC)\b"
    r"|^\s{0,8}(?:[✗✘✖✕❌\u00d7●]|not ok\b|panic: |E {2,3}\S)"
    r"|^(?:--- FAIL|thread '[^']{1,80}' panicked|Traceback \(most recent|fatal: |error(?:\[\w{1,12}\])?: )"
    r"|\b[1-9]\d{0,6} (?:failed|failures?|errors?|failing)\b|\b(?:failures|failed|errors)[:=] {0,4}[1-9]"
    r"|\b(?:FAILED|FAILURE)\b|: (?:fatal )?error\b|\berror (?:TS|CS)\d|\bBUILD FAILED"
    r"|^(?:[\w.]{1,80}(?:Error|Exception)|AssertionError)\b[:\s(]|Segmentation fault|core dumped"
    r"|! \[(?:remote )?rejected\]|^CONFLICT|\bERROR\b|Out of memory"
)
_WEAK: Final = re.compile(
    r"\b(?:fail(?:ed|s|ure)?|errors?|denied|refused|rejected|timed out|cannot|could not|unable to|killed"
    r"|conflict|exception|undefined|not found|no such|panic\w*)\b",
    re.IGNORECASE,
)
_FINE: Final = re.compile(
    r"\b(?:0|no|without|zero) (?:\w{1,12} )?(?:fail\w*|errors?|problems?|issues?|conflicts?)\b"
    r"|\b(?:fail\w*|errors?)[:=]? {0,4}0\b(?!\.)|\b0 (?:failed|failures|errors)",
    re.IGNORECASE,
)
_GIT: Final = re.compile(
    r"^(?:\[[^\]\n]{1,100}\] .*|[ ]?\d{1,7} files? changed.*|[ ]?(?:create|delete) mode \d{6} .*"
    r"|To \S.*|[ \t]{1,4}[*+!=-]? ?\S{1,160}[ \t].{0,80}-> .*|Everything up-to-date|remote: .*https?://.*"
    r"|.{0,40}https?://\S{1,200}/(?:pull|merge_requests|pull-requests|issues|actions)/.*"
    r"|nothing to commit.*|no changes added to commit.*|On branch .*|CONFLICT .*|Automatic merge failed.*)$",
    re.MULTILINE,
)
_TESTS: Final = re.compile(
    r"^(?:FAILED|ERROR) (?P<pytest>\S{1,200}::[^\n]{1,160}?)(?: - [^\n]{0,400})?$"
    r"|^\s{0,12}--- FAIL: (?P<go>\S{1,160})"
    r"|^test (?P<cargo>[\w:]{1,160}) \.\.\. FAILED$"
    r"|^\s{0,12}(?:[✕✗✘✖\u00d7]|\[ ?FAIL(?:ED)? ?\]) {1,3}(?P<js>\S[^\n]{1,160}?)(?: \(\d[^\n)]{0,12}\))?$"
    r"|^\s{0,4}● (?P<jest>[^\n]{1,160}) \u203a [^\n]{1,160}$"
    r"|^rspec (?P<rspec>\S{1,160}) #[^\n]{0,160}$"
    r"|^\s{0,4}\d{1,4}\) (?P<unit>(?:test )?[\w\\:.# -]{3,120}(?:::|\(|#)[^\n]{1,100})$"
    r"|^\s{0,4}Failed (?P<net>[\w.]{3,160}(?:\([^\n]{0,80}\))?) \["
    r"|^(?:\[ERROR\] {1,4}|\s{0,4})(?P<java>[A-Z]\w{1,80}(?:Test|Tests|IT|Spec)\w{0,40}[.>#]\w[\w.:#]{1,100})"
    r"|^(?P<gradle>[A-Z]\w{1,100} > [^\n]{1,120}) FAILED$"
    r"|^not ok \d{1,6} (?:- )?(?P<tap>[^\n#]{1,160})"
    r"|^\s{0,8}\d{1,5} - (?P<ctest>\S{1,120}) \((?:Failed|Timeout|SEGFAULT|ILLEGAL)\)"
    r"|^(?:FAIL|ERROR): (?P<py>test\w{1,100} \([\w.]{1,120}\))"
    r"|^(?:\S{1,80} )?(?P<mini>[A-Z][\w:]{1,80}#test_\w{1,100})"
    r"|^\s{0,8}Test Case '(?P<swift>-\[[^\]\n]{1,120}\])' failed",
    re.MULTILINE,
)
_ANSI: Final = re.compile(
    r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)?|[()][0-9A-B])"
)
_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_TAG: Final = re.compile(r"\s{0,8}</?[a-z_]{2,40}>\s{0,8}")  # what hosts put around notes of their own


def clean(output: str) -> str:
    """The output as a person sees it: without colours, and with the last state of an overwritten line."""
    text = output.replace("\r\n", "\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        text = "\n".join([line.rsplit("\r", 1)[-1] for line in text.split("\n")])
    return text


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """``text`` as one line without control characters, its middle left out when it is too long."""
    if len(text) <= limit and text.isprintable() and "  " not in text:
        return text.strip()
    ends = f"{text[: 4 * limit]} {text[-4 * limit :]}" if len(text) > 8 * limit else text
    plain = ends if ends.isprintable() else _CONTROL.sub(" ", ends)
    line = " ".join(plain.split())
    if len(line) <= limit:
        return line
    tail = limit // 4
    return f"{line[: limit - tail - 1]}…{line[-tail:]}"


def raw_line(text: str) -> str:
    """A line of output as it was printed, runs of blanks too, without control characters; its middle left out
    when it is too long.
    """
    line = text.rstrip()
    if len(line) > MAX_LINE:
        tail = MAX_LINE // 4
        line = f"{line[: MAX_LINE - tail - 1]}…{line[-tail:]}"
    return line if line.isprintable() else _CONTROL.sub(" ", line.replace("\t", "    "))[:MAX_LINE]


def code_line(text: str, limit: int) -> str:
    """As ``one_line``, with its indentation."""
    indent = len(text) - len(text.lstrip(" \t"))
    return " " * min(indent, 12) + one_line(text, limit)


def failure_lines(text: str, *, strong_only: bool = False) -> tuple[list[tuple[int, str]], int]:
    """((position, line) of the lines that tell of a failure, the number of further ones).

    ``strong_only``: only lines in the form of test runners, compilers and shells; for outputs that show the
    content of files.
    """
    strong: list[tuple[int, str]] = []
    weak: list[tuple[int, str]] = []
    for start, line in marked(text):
        if _FINE.search(line) and not re.search(r"\b[1-9]\d{0,6} (?:failed|failures?|errors?)", line):
            continue
        if _STRONG.search(line):
            strong.append((start, line))
        elif not strong_only and _WEAK.search(line):
            weak.append((start, line))
    if strong:
        return _ends(strong, MAX_STRONG), max(0, len(strong) - MAX_STRONG)
    return weak[:MAX_WEAK], max(0, len(weak) - MAX_WEAK)


def with_marks(texts: Sequence[str]) -> set[int]:
    """The places of those texts that may tell of a failure. Searching them together is ten times faster than
    one by one.
    """
    lowered = [text.lower() for text in texts]
    joined, ends = "\0".join(lowered), list(accumulate(len(text) + 1 for text in lowered))
    found: set[int] = set()
    for mark in _MARKS:
        at = joined.find(mark)
        while at >= 0:
            i = bisect_right(ends, at)
            found.add(i)
            at = joined.find(mark, ends[i])
    return found


def git_lines(text: str) -> list[tuple[int, str]]:
    """(position, line) of the reports of git and the forges' tools."""
    base = max(0, len(text) - 4 * TAIL)
    return [(base + m.start(), m[0]) for m in _GIT.finditer(text[base:])][:MAX_GIT]


def last_lines(text: str, count: int) -> list[tuple[int, str]]:
    """(position, line) of the last lines that are neither empty nor only a tag."""
    end = len(text)
    base = max(0, end - TAIL)
    found: list[tuple[int, str]] = []
    while end >= base and len(found) < count:
        start = text.rfind("\n", base, end) + 1 or base
        line = text[start:end]
        if line.strip() and not _TAG.fullmatch(line):
            found.append((start, line))
        end = start - 1
    return found[::-1]


def ends(text: str, first: int, last: int, picked: Sequence[tuple[int, str]] = ()) -> list[tuple[str, bool]]:
    """(line, whether it counts a gap): the first and last lines of ``text`` without empty ones, and between
    them the lines that start at the places of ``picked``.
    """
    found: list[tuple[int, str]] = []
    at = 0
    for line in text.split("\n"):
        if line.strip() and not _TAG.fullmatch(line[:200]):
            found.append((at, line))
        at += len(line) + 1
    kept = set(range(min(first, len(found)))) | set(range(max(0, len(found) - last), len(found)))
    places = {place for place, _ in picked}
    kept |= {i for i, (place, _) in enumerate(found) if place in places} if places else set()
    shown: list[tuple[str, bool]] = []
    before = -1
    for i in sorted(kept):
        if gap := i - before - 1:
            shown.append((f"({gap} lines)", True))
        shown.append((raw_line(found[i][1]), False))
        before = i
    return shown


def failed_tests(output: str) -> tuple[str, ...]:
    """The names of failed tests in a runner's output, each once, at most ``MAX_TESTS``."""
    names: dict[str, None] = {}
    for m in _TESTS.finditer(output):
        name = one_line(next(g for g in m.groups() if g), 120)
        names.setdefault(name)
        if len(names) >= MAX_TESTS:
            break
    return tuple(names)


def _ends(found: Sequence[tuple[int, str]], limit: int) -> list[tuple[int, str]]:
    half = limit // 2
    return list(found) if len(found) <= limit else [*found[:half], *found[-half:]]


def marked(text: str) -> Iterator[tuple[int, str]]:
    """(position, line) of the lines with one of ``_MARKS``, in order."""
    low = text.lower()
    low = low if len(low) == len(text) else text  # a letter whose small form is longer moves all places
    starts = dict(place for mark in _MARKS if mark in low for place in _places(low, mark))
    for start in sorted(starts):
        yield start, text[start : min(starts[start], start + 2 * MAX_LINE)]


def _places(low: str, mark: str) -> Iterator[tuple[int, int]]:
    """(start, end) of the lines that hold ``mark``: the first ``MAX_HITS``, then the last."""
    at, hits = low.find(mark), 0
    while at >= 0:
        end = low.find("\n", at)
        end = len(low) if end < 0 else end
        yield low.rfind("\n", 0, at) + 1, end
        hits += 1
        if hits == MAX_HITS:
            break
        at = low.find(mark, end)
    else:
        return
    stop, hits = low.rfind(mark), 0
    while stop >= 0 and hits < MAX_HITS:
        start = low.rfind("\n", 0, stop) + 1
        end = low.find("\n", stop)
        yield start, len(low) if end < 0 else end
        hits += 1
        stop = low.rfind(mark, 0, start)
