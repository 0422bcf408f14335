"""How a check ended: from the exit code where that speaks for the check, else from the runner's own summary.

Reads only the tail of an output (``MAX_TAIL`` characters). Where the two disagree or say nothing: unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from daemon.core.actions import Check

MAX_TAIL: Final = 4000
MAX_NAMES: Final = 50
Result = Literal["passed", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``summary`` is the runner's line, shortened; ``failing`` the files it names as failed."""

    result: Result
    summary: str = ""
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    """A summary line of the tools named. ``says``: what it means; ``count``: failed if group 1 is not 0."""

    tools: frozenset[str]
    pattern: re.Pattern[str]
    says: Literal["passed", "failed", "count"]


def _line(tools: str, says: Literal["passed", "failed", "count"], pattern: str) -> _Line:
    return _Line(frozenset(tools.split()), re.compile(pattern, re.MULTILINE), says)


_PYTEST: Final = r"^=* ?(?=[^\n]{0,200}\d (?:passed|failed|errors?|skipped)\b[^\n]{0,200} in [\d.]+s)"
_LINES: Final = (
    _line("pytest tox nox", "failed", _PYTEST + r"[^\n]{0,200}?\b[1-9]\d* (?:failed|errors?)\b[^\n]{0,200}$"),
    _line("pytest tox nox", "passed", _PYTEST + r"(?![^\n]{0,200}?\b[1-9]\d* (?:failed|error))[^\n]{0,300}$"),
    _line("pytest", "failed", r"^(?:FAILED|ERROR) [\w./-]{1,200}\.py(?:::\S{1,200})?(?: - [^\n]{0,200})?$"),
    _line("pytest django tox nox", "failed", r"^FAILED \((?:failures|errors)=[^\n]{1,80}$"),
    _line("pytest django tox nox", "passed", r"^OK(?: \([^\n]{1,80}\))?$"),
    _line(
        "jest",
        "count",
        r"^(?:Tests|Test Suites|Test Files|[ ]{1,8}Tests"
        r"|[ ]{0,4}Test Files):?[ ]+(?:(\d+) failed)?[^\n]{0,120}$",
    ),
    _line("jest", "count", r"^[ ]{1,6}(\d+) failing$"),
    _line("jest", "passed", r"^[ ]{1,6}\d+ passing(?: \([^\n]{1,20}\))?$"),
    _line("node", "count", r"^[#\u2139] fail (\d+)$"),
    _line("bun", "count", r"^[ ]{0,4}(\d+) fail$"),
    _line("playwright", "failed", r"^[ ]{2}[1-9]\d* failed$"),
    _line("playwright", "passed", r"^[ ]{2}\d+ passed \([^\n]{1,20}\)$"),
    _line("cargo", "failed", r"^test result: FAILED\.[^\n]{0,160}$"),
    _line("cargo", "passed", r"^test result: ok\.[^\n]{0,160}$"),
    _line("cargo clippy", "failed", r"^error: (?:could not compile|test failed)[^\n]{0,160}$"),
    _line("go", "failed", r"^--- FAIL: [^\n]{1,160}$"),
    _line("go", "failed", r"^FAIL(?:\t[^\n]{1,160})?$"),
    _line("go", "passed", r"^ok  ?\t[^\n]{1,160}$"),
    _line("rspec rails", "count", r"^\d+ examples?, (\d+) failures?[^\n]{0,80}$"),
    _line("rails", "count", r"^\d+ (?:runs|tests), \d+ assertions, (\d+) failures[^\n]{0,80}$"),
    _line("phpunit", "failed", r"^(?:FAILURES!|ERRORS!)$"),
    _line("phpunit", "passed", r"^OK \(\d+ tests?[^\n]{0,60}\)$"),
    _line("mix", "count", r"^(?:\d+ doctests?, )?\d+ tests?, (\d+) failures?[^\n]{0,60}$"),
    _line("maven gradle", "failed", r"^(?:\[ERROR\] |\[INFO\] )?BUILD (?:FAILURE|FAILED)[^\n]{0,40}$"),
    _line("maven gradle", "passed", r"^(?:\[INFO\] )?BUILD SUCCESS(?:FUL)?[^\n]{0,40}$"),
    _line("dotnet", "failed", r"^(?:Failed!  - [^\n]{1,160}|Build FAILED\.)$"),
    _line("dotnet", "passed", r"^(?:Passed!  - [^\n]{1,160}|Build succeeded\.)$"),
    _line("swift", "count", r"^\s{0,8}Executed \d+ tests?, with (\d+) failures?[^\n]{0,100}$"),
    _line("ctest", "failed", r"^\d+% tests passed, [1-9]\d* tests? failed out of \d+$"),
    _line("ctest", "passed", r"^100% tests passed, 0 tests failed out of \d+$"),
    _line("ruff", "count", r"^Found (\d+) errors?[. ][^\n]{0,80}$"),
    _line("ruff", "passed", r"^All checks passed!$"),
    _line("mypy", "count", r"^Found (\d+) errors? in \d+ files?[^\n]{0,80}$"),
    _line("mypy", "passed", r"^Success: no issues found[^\n]{0,60}$"),
    _line("pyright", "count", r"^(\d+) errors?, \d+ warnings?[^\n]{0,60}$"),
    _line("eslint", "count", r"^[✖✗] \d+ problems? \((\d+) errors?[^\n]{0,60}$"),
    _line("tsc", "failed", r"^[^\n]{1,200}\berror TS\d+:[^\n]{0,160}$"),
    _line("tsc", "count", r"^Found (\d+) errors?[. ][^\n]{0,60}$"),
    _line(
        "make ninja",
        "failed",
        r"^(?:make(?:\[\d+\])?: \*\*\* \[[^\n]{1,120}\] Error \d+|ninja: build stopped[^\n]{0,60})$",
    ),
    _line(
        "npm", "failed", r"^npm (?:ERR!|error) (?:Test failed|code ELIFECYCLE|Lifecycle script)[^\n]{0,80}$"
    ),
)
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_NOT_RUN: Final = re.compile(
    r"command not found|: not found$|No module named ['\"]?(?:pytest|unittest|tox|nox|mypy|ruff"
    r"|flake8)\b|Missing script"
    r"|no test specified|No rule to make target|No tests? (?:files? )?found|no such command"
    r"|could not find `?Cargo\.toml"
    r"|could not determine executable|No such file or directory$|file or directory not found"
    r"|command .{1,40} not found"
    r"|can't open file|Permission denied$|no tests ran|ENOENT|not a git repository|no configuration file",
    re.MULTILINE,
)
_STOPPED: Final = re.compile(
    r"User aborted the command|exceed(?:ed|ing) timeout|timed out after \d+|Command timed out", re.IGNORECASE
)
_STOP_CODES: Final = frozenset({124, 126, 127, 130, 137, 141, 143})
_NO_TEST_CODES: Final = {"pytest": frozenset({4, 5})}
_FAILING: Final = re.compile(r"^(?:FAILED|ERROR|FAIL)[ \t]+([\w./@-]{1,200})", re.MULTILINE)


def judge_check(check: Check, output: str, exit_code: int | None) -> Outcome:
    """The outcome of one check whose call printed ``output`` and ended with ``exit_code``."""
    tail = _ANSI.sub("", output[-MAX_TAIL:]).replace("\r\n", "\n")
    said, summary = _summary(check, tail)
    if _STOPPED.search(tail[-1000:]) or exit_code in _STOP_CODES:
        return Outcome("unknown")
    result: Result = "unknown"
    if exit_code is None or not (check.proves_pass if exit_code == 0 else check.proves_fail):
        result = said
    elif exit_code == 0:
        result = "unknown" if said == "failed" else "passed"
    elif said != "failed" and (exit_code in _NO_TEST_CODES.get(check.tool, ()) or _NOT_RUN.search(tail)):
        result = "unknown"
    else:
        result = "failed"
    failing = _failing(tail) if result == "failed" else ()
    return Outcome(result, summary if said == result else "", failing)


def _summary(check: Check, tail: str) -> tuple[Result, str]:
    """The last summary lines in the tail: any that says failed wins over one that says passed."""
    passed = ""
    for line in _LINES:
        if not (check.wrap or check.tool in line.tools):
            continue
        last = None
        for last in line.pattern.finditer(tail):  # noqa: B007 -- the last one counts
            pass
        if last is None:
            continue
        failed = line.says == "failed" or (line.says == "count" and int(last[1] or 0) > 0)
        text = " ".join(last[0].strip(" =\t✖✗").split())[:120]
        if failed:
            return "failed", text
        passed = passed or text
    return ("passed", passed) if passed else ("unknown", "")


def _failing(tail: str) -> tuple[str, ...]:
    names = dict.fromkeys(m[1] for m in _FAILING.finditer(tail))
    return tuple(names)[:MAX_NAMES]
