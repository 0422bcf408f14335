"""How a check ended: from the exit code where that speaks for the check, else from the runner's own summary.

Reads the tail of an output (``MAX_TAIL`` characters), and of what stands before it the lines that tell of a
failure: a workflow of several commands may end well after a failed test. Where exit code and output disagree
or say nothing: unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from ..outputs import failed_tests, marked
from ..words import last_match
from .summaries import LINES, Line

if TYPE_CHECKING:
    from .actions import Check

MAX_TAIL: Final = 4000
MAX_OUTPUT: Final = 40_000  # characters in which names of failed tests are looked for
MAX_NAMES: Final = 50
Result = Literal["passed", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``summary`` is the runner's line, shortened; ``failing`` the files it names as failed.

    ``places``: the files in which a style checker found something, where the output is whole. ``tests``: the
    names of the tests that failed.
    """

    result: Result
    summary: str = ""
    failing: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


_ANSI: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_NOT_RUN: Final = re.compile(
    r"command not found|: not found$|No module named ['\"]?(?:pytest|unittest|tox|nox|mypy|ruff"
    r"|flake8)\b|Missing script"
    r"|no test specified|No rule to make target|No tests? (?:files? )?found|no such command"
    r"|could not find `?Cargo\.toml"
    r"|could not determine executable|No such file or directory$|file or directory not found"
    r"|command .{1,40} not found|No tests were (?:found|executed)|unrecognized (?:option|argument)"
    r"|no such task"
    r"|Unknown command|Cannot find module|is not recognized as"
    r"|ModuleNotFoundError: No module named '(?:tox|nox)"
    r"|can't open file|Permission denied$|no tests ran|ENOENT|not a git repository|no configuration file",
    re.MULTILINE,
)
_STOPPED: Final = re.compile(
    r"User aborted the command|exceed(?:ed|ing) timeout|timed out after \d+|Command timed out", re.IGNORECASE
)
_IGNORED: Final = re.compile(r"^g?make(?:\[\d+\])?: [^\n]{0,160}Error \d+ \(ignored\)$", re.MULTILINE)
_STOP_CODES: Final = frozenset({124, 126, 127, 130, 137, 141, 143})
_NO_TEST_CODES: Final = {"pytest": frozenset({4, 5})}
_PLACE: Final = re.compile(
    r"^[ \t>]{0,8}(?:[EWCF]: )?(?P<path>[\w./@+-]{1,200}\.[A-Za-z]\w{0,7})(?=[ \t]*$|:\d|\(\d|[ \t]+\d+:\d)",
    re.MULTILINE,
)
_STYLE: Final = frozenset(  # they look at each file on its own: what one file holds can't break another
    (  # noqa: SIM905 -- a word list
        "eslint oxlint stylelint biome xo rubocop flake8 pylint ruff phpcs swiftlint ktlint shellcheck "
        "hadolint yamllint markdownlint"
    ).split()
)
_FAILING: Final = re.compile(
    r"^(?:\d{1,6} of \d{1,6} )?(?:FAILED|ERROR|FAIL)[ \t]+(?:\d{1,6}[ \t]+)?([\w./@-]{1,200})", re.MULTILINE
)


def judge_check(check: Check, output: str, exit_code: int | None) -> Outcome:
    """The outcome of one check whose call printed ``output`` and ended with ``exit_code``."""
    tail = _ANSI.sub("", output[-MAX_TAIL:]).replace("\r\n", "\n")
    said, summary = _summary(check, tail)
    if said != "failed" and exit_code in {0, None} and len(output) > MAX_TAIL:
        said, summary = _earlier(check, output, (said, summary))
    if _STOPPED.search(tail[-1000:]) or exit_code in _STOP_CODES:
        return Outcome("unknown")
    result: Result = "unknown"
    if exit_code is None or not (check.proves_pass if exit_code == 0 else check.proves_fail):
        result = said
    elif exit_code == 0:
        ignored = check.wrap and said == "failed" and _IGNORED.search(tail)
        result = "failed" if ignored else "unknown" if said == "failed" else "passed"
    elif said != "failed" and (exit_code in _NO_TEST_CODES.get(check.tool, ()) or _NOT_RUN.search(tail)):
        result = "unknown"
    else:
        result = "failed"
    failing = _failing(tail) if result == "failed" else ()
    style = result == "failed" and check.kind == "lint" and check.tool in _STYLE
    places = _places(tail) if style and len(output) <= MAX_TAIL else ()
    hidden = result == "unknown" and said == "failed" and exit_code == 0  # the two disagree
    tests = (
        failed_tests(output[-MAX_OUTPUT:]) if check.kind == "test" and (result == "failed" or hidden) else ()
    )
    return Outcome(result, summary if said == result or hidden else "", failing, places, tests)


def _earlier(check: Check, output: str, late: tuple[Result, str]) -> tuple[Result, str]:
    """``late`` is what the tail says; a runner that said "failed" before it is not overruled."""
    lines = "\n".join([line for _, line in marked(output[-MAX_OUTPUT:-MAX_TAIL])])[:MAX_TAIL]
    early = _summary(check, _ANSI.sub("", lines)) if lines else late
    return early if early[0] == "failed" else late


def _summary(check: Check, tail: str) -> tuple[Result, str]:
    """The last summary lines in the tail: any that says failed wins over one that says passed."""
    passed = ""
    for line in LINES if check.wrap else _lines(check.tool):
        last = last_match(line.pattern, tail)
        if last is None:
            continue
        failed = line.says == "failed" or (line.says == "count" and int(last[1] or 0) > 0)
        text = " ".join(last[0].strip(" =\t✖✗").split())[:120]
        if failed:
            return "failed", text
        passed = passed or text
    return ("passed", passed) if passed else ("unknown", "")


@lru_cache(maxsize=256)
def _lines(tool: str) -> tuple[Line, ...]:
    """The summary lines that ``tool`` prints."""
    return tuple(line for line in LINES if tool in line.tools)


def _places(tail: str) -> tuple[str, ...]:
    names = dict.fromkeys(m["path"] for m in _PLACE.finditer(tail))
    return tuple(names) if len(names) <= MAX_NAMES else ()


def _failing(tail: str) -> tuple[str, ...]:
    names = dict.fromkeys(m[1] for m in _FAILING.finditer(tail))
    return tuple(names)[:MAX_NAMES]
