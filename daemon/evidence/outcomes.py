"""The outcome of a check: from the exit code where that speaks for the check, else from the runner's own
summary.

Reads the tail of an output (``MAX_TAIL`` characters), and before it the lines that tell of a failure, since a
workflow may end well after a failed test. Unknown where exit code and output disagree or say nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from ..tables import Tables
from .outputs import failed_tests, last_match, marked

if TYPE_CHECKING:
    from ..core.evidence import Outcome
    from .actions import Check, Deed

# the summary lines of runners: what a line says, the tools that print it, its pattern
LINES: Final = [
    (says, frozenset(tools.split("/")), re.compile(pattern, re.MULTILINE))
    for says, tools, pattern in Tables(__package__).rows("outcomes.lines", 3)
]
MAX_TAIL: Final = 4000
MAX_OUTPUT: Final = 40_000  # characters in which names of failed tests are looked for
MAX_NAMES: Final = 50
Result = Literal["passed", "failed", "unknown"]


class Ended(Struct, frozen=True):
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


def judge_check(check: Check, output: str, exit_code: int | None) -> Ended:
    """The outcome of one check whose call printed ``output`` and ended with ``exit_code``."""
    tail = _ANSI.sub("", output[-MAX_TAIL:]).replace("\r\n", "\n")
    said, summary = _summary(check, tail)
    if said != "failed" and exit_code in {0, None} and len(output) > MAX_TAIL:
        said, summary = _earlier(check, output, (said, summary))
    if _STOPPED.search(tail[-1000:]) or exit_code in _STOP_CODES:
        return Ended("unknown")
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
    return Ended(result, summary if said == result or hidden else "", failing, places, tests)


def _earlier(check: Check, output: str, late: tuple[Result, str]) -> tuple[Result, str]:
    """``late`` is the result of the tail; it does not overrule a runner's "failed" before it."""
    lines = "\n".join([line for _, line in marked(output[-MAX_OUTPUT:-MAX_TAIL])])[:MAX_TAIL]
    early = _summary(check, _ANSI.sub("", lines)) if lines else late
    return early if early[0] == "failed" else late


def _summary(check: Check, tail: str) -> tuple[Result, str]:
    """The last summary lines in the tail: any that says failed wins over one that says passed."""
    passed = ""
    for says, _, pattern in LINES if check.wrap else _lines(check.tool):
        last = last_match(pattern, tail)
        if last is None:
            continue
        failed = says == "failed" or (says == "count" and int(last[1] or 0) > 0)
        text = " ".join(last[0].strip(" =\t✖✗").split())[:120]
        if failed:
            return "failed", text
        passed = passed or text
    return ("passed", passed) if passed else ("unknown", "")


@lru_cache(maxsize=256)
def _lines(tool: str) -> list[tuple[str, frozenset[str], re.Pattern[str]]]:
    """The summary lines that ``tool`` prints."""
    return [line for line in LINES if tool in line[1]]


def _places(tail: str) -> tuple[str, ...]:
    names = dict.fromkeys(m["path"] for m in _PLACE.finditer(tail))
    return tuple(names) if len(names) <= MAX_NAMES else ()


def _failing(tail: str) -> tuple[str, ...]:
    names = dict.fromkeys(m[1] for m in _FAILING.finditer(tail))
    return tuple(names)[:MAX_NAMES]


MAX_DEED_OUTPUT: Final = 6_000


_COMMITTED: Final = re.compile(r"^\[([^\]\n]{1,100})\] ?([^\n]{0,100})$", re.MULTILINE)


_NOT_COMMITTED: Final = re.compile(
    r"nothing to commit|no changes added to commit|nothing added to commit|Aborting commit|^error: |^fatal: "
    r"|hook .{0,40}failed|husky - pre-commit",
    re.MULTILINE,
)


_PUSHED: Final = re.compile(
    r"^ {0,3}[*+ ]? {0,3}\S[^\n]{0,120} -> [^\n]{1,120}$|Everything up-to-date|^To \S+", re.MULTILINE
)


_NOT_PUSHED: Final = re.compile(
    r"! \[(?:remote )?rejected\]|^error: failed to push|^fatal: |Permission denied|Authentication failed"
    r"|hook declined"
    r"|could not read Username",
    re.MULTILINE,
)


_LINK: Final = re.compile(
    r"https://[\w.:-]{1,80}/[\w./~-]{1,160}/(pull|merge_requests|pull-requests|issues)/(\d{1,9})"
)


_GH_FAILED: Final = re.compile(
    r"^(?:GraphQL: |error: |failed to |could not |pull request create failed"
    r"|To get started with GitHub CLI|gh: |HTTP \d{3})"
    r"|^fatal: |already exists:",
    re.MULTILINE | re.IGNORECASE,
)


_CI_FAILED: Final = re.compile(
    r"^(?:X |.{0,80}\t(?:fail|failure|cancelled)\b)|\b[1-9]\d* failing\b|completed with 'failure'",
    re.MULTILINE,
)


_CI_PASSED: Final = re.compile(
    r"All checks were successful|0 failing\b|^\S.{0,80}\tpass\b|completed with 'success'", re.MULTILINE
)


_CI_PENDING: Final = re.compile(r"\bpending\b|in progress|Some checks are still", re.IGNORECASE)


def result(done: Deed, output: str, exit_code: int | None, *, alone: bool) -> tuple[Outcome, str]:
    """The outcome, and the names in its output (a commit, a link). ``alone``: the output is all its own."""
    tail = output[-MAX_DEED_OUTPUT:]
    failed = exit_code not in {0, None} and done.proves_fail
    passed = exit_code == 0 and done.proves_pass
    named = ""
    match done.kind:
        case "commit":
            found = _COMMITTED.search(tail)
            named = f"[{found[1]}] {found[2]}".strip() if found else ""
            passed, failed = (
                passed or bool(found),
                failed or (not found and bool(_NOT_COMMITTED.search(tail))),
            )
        case "push":
            failed = failed or bool(_NOT_PUSHED.search(tail))
            passed = passed or bool(_PUSHED.search(tail))
        case "pr" | "issue":
            wanted = {"pr": ("pull", "merge_requests", "pull-requests"), "issue": ("issues",)}[done.kind]
            link = next((m for m in _LINK.finditer(tail) if m[1] in wanted), None)
            named = f"#{link[2]} {link[0]}" if link else ""
            failed = failed or (not link and bool(_GH_FAILED.search(tail)))
            passed = passed or bool(link)
        case "ci":
            failed = bool(_CI_FAILED.search(tail))
            passed = not failed and not _CI_PENDING.search(tail) and bool(_CI_PASSED.search(tail))
        case _:
            if not alone:
                failed = False
    return ("failed" if failed else "passed" if passed else "unknown"), named
