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

if TYPE_CHECKING:
    from .actions import Check

# The last words of test, build and lint runners: which line of an output says how it went.
#
# A table only; ``outcomes`` reads outputs with it. Every pattern is anchored and bounded.


@dataclass(frozen=True, slots=True)
class Line:
    """A summary line of the tools named. ``says``: what it means; ``count``: failed if group 1 is not 0."""

    tools: frozenset[str]
    pattern: re.Pattern[str]
    says: Literal["passed", "failed", "count"]


def _line(tools: str, says: Literal["passed", "failed", "count"], pattern: str) -> Line:
    return Line(frozenset(tools.split()), re.compile(pattern, re.MULTILINE), says)


_PYTEST: Final = r"^={0,200}+ ?(?=[^\n]{0,200}\d (?:passed|failed|errors?|skipped)\b[^\n]{0,200} in [\d.]+s)"
LINES: Final = (
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
    _line(
        "phpunit",
        "failed",
        r"^Tests: \d+, Assertions: \d+, [^\n]{0,60}(?:Failures"
        r"|Errors): [1-9][^\n]{0,60}$",
    ),
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
    # python
    _line("tox", "failed", r"^[ ]{0,2}evaluation failed :\([^\n]{0,60}$"),
    _line("tox", "passed", r"^[ ]{0,2}congratulations :\)[^\n]{0,60}$"),
    _line("nox", "failed", r"^nox > (?:\* [^\n]{1,60}: failed|Session [^\n]{1,60} failed\.?)$"),
    _line("nox", "passed", r"^nox > (?:\* [^\n]{1,60}: success|Session [^\n]{1,60} was successful\.?)$"),
    _line("flake8", "failed", r"^[\w./-]{1,200}\.py:\d{1,6}:\d{1,4}: [A-Z]\d{3} [^\n]{1,120}$"),
    _line("pylint", "failed", r"^[\w./-]{1,200}\.py:\d{1,6}:\d{1,4}: [EF]\d{4}: [^\n]{1,120}$"),
    _line(
        "ruff-format black-format",
        "failed",
        r"^(?:\d+ files? would be reformatted"
        r"|Would reformat: )[^\n]{0,120}$",
    ),
    _line("ruff-format", "passed", r"^\d+ files? already formatted$"),
    _line("black-format", "passed", r"^\d+ files? would be left unchanged\.$"),
    _line("pre-commit", "failed", r"^[^\n]{1,100}\.{3,80}Failed$"),
    _line("pre-commit", "passed", r"^[^\n]{1,100}\.{3,80}Passed$"),
    # javascript
    _line("jest", "count", r"^[ ]{1,4}(\d+) tests? failed$"),
    _line("jest", "passed", r"^[ ]{1,4}\d+ tests? passed$"),
    _line("cypress", "failed", r"^[ ]{1,6}✖[ ]{1,4}\d+ of \d+ failed[^\n]{0,100}$"),
    _line("cypress", "passed", r"^[ ]{1,6}✔[ ]{1,4}All specs passed![^\n]{0,100}$"),
    _line("karma", "failed", r"Executed \d+ of \d+ [^\n]{0,40}\([1-9]\d* FAILED\)"),
    _line("karma", "passed", r"Executed \d+ of \d+ (?:\([^\n]{1,40}\) )?SUCCESS"),
    _line("bun", "passed", r"^[ ]{0,4}\d+ pass$"),
    _line("deno", "failed", r"^FAILED \| \d+ passed[^\n]{0,80}$"),
    _line("deno", "passed", r"^ok \| \d+ passed[^\n]{0,80}$"),
    _line("next", "failed", r"^(?:> Build (?:failed|error occurred)|Failed to compile\.?)[^\n]{0,60}$"),
    _line("next", "passed", r"^[ ]{0,2}(?:✓ )?Compiled successfully[^\n]{0,60}$"),
    _line("vite", "failed", r"^(?:✗ Build failed|error during build:)[^\n]{0,80}$"),
    _line("vite", "passed", r"^✓ built in [^\n]{1,40}$"),
    _line("webpack", "failed", r"^webpack [\d.]{1,12} compiled with [1-9]\d* errors?[^\n]{0,60}$"),
    _line(
        "webpack",
        "passed",
        r"^webpack [\d.]{1,12} compiled (?:successfully"
        r"|with \d+ warnings?)[^\n]{0,60}$",
    ),
    _line("angular", "failed", r"^(?:✖ Failed to compile|Application bundle generation failed)[^\n]{0,60}$"),
    _line("angular", "passed", r"^Application bundle generation complete[^\n]{0,60}$"),
    _line("prettier-format", "failed", r"^\[warn\] Code style issues[^\n]{0,120}$"),
    _line("prettier-format", "passed", r"^All matched files use Prettier code style!$"),
    _line("biome", "count", r"^Found (\d+) errors?\.$"),
    _line("biome", "passed", r"^Checked \d+ files? in [^\n]{1,40}$"),
    _line("oxlint", "count", r"^Found \d+ warnings? and (\d+) errors?\.$"),
    _line("stylelint", "count", r"^[✖✗] \d+ problems? \((\d+) errors?[^\n]{0,60}$"),
    _line(
        "npm script",
        "failed",
        r"^(?:[ ]?ELIFECYCLE[ ]{1,4}"
        r"|error Command failed with exit code )[^\n]{1,80}$",
    ),
    # rust, go, c, swift, zig
    _line(
        "cargo",
        "count",
        r"^[ ]{1,8}Summary \[[^\]\n]{1,20}\] \d+ tests? run: [^\n]{0,60}?(?:(\d+)"
        r" failed[^\n]{0,40})?$",
    ),
    _line("cargo clippy", "passed", r"^[ ]{1,6}Finished [^\n]{1,100}$"),
    _line("cargo-format", "failed", r"^Diff in [^\n]{1,200}$"),
    _line("go vet", "failed", r"^(?:vet: )?(?:\./)?[\w./-]{1,200}\.go:\d{1,6}:\d{1,4}: [^\n]{1,160}$"),
    _line("gotestsum", "failed", r"^DONE \d+ tests?[^\n]{0,40}\b[1-9]\d* failures?[^\n]{0,40}$"),
    _line("gotestsum", "passed", r"^DONE \d+ tests?(?:, \d+ skipped)? in [^\n]{1,20}$"),
    _line("ginkgo go", "failed", r"^FAIL! -- \d+ Passed \| [1-9]\d* Failed[^\n]{0,60}$"),
    _line("ginkgo go", "passed", r"^SUCCESS! -- \d+ Passed \| 0 Failed[^\n]{0,60}$"),
    _line("golangci", "count", r"^(\d+) issues?(?::|\.)$"),
    _line("make ninja", "passed", r"^(?:\[100%\] Built target [^\n]{1,80}|ninja: no work to do\.)$"),
    _line(
        "make ninja",
        "failed",
        r"^[\w./-]{1,200}\.(?:c|cc|cpp|h"
        r"|hpp):\d{1,6}:\d{1,4}: (?:fatal )?error: [^\n]{1,120}$",
    ),
    _line("meson", "count", r"^Fail:[ ]{1,20}(\d+)[ ]{0,20}$"),
    _line("swift", "failed", r"^✘ Test run with \d+ tests?[^\n]{0,60} failed[^\n]{0,80}$"),
    _line(
        "swift",
        "passed",
        r"^(?:✔ Test run with \d+ tests?[^\n]{0,60} passed[^\n]{0,80}"
        r"|Build complete![^\n]{0,40})$",
    ),
    _line("xcodebuild", "failed", r"^\*\* (?:TEST|BUILD) FAILED \*\*$"),
    _line("xcodebuild", "passed", r"^\*\* (?:TEST|BUILD) SUCCEEDED \*\*$"),
    _line("swiftlint", "failed", r"^Done linting! Found \d+ violations?, [1-9]\d* serious[^\n]{0,60}$"),
    _line("swiftlint", "passed", r"^Done linting! Found \d+ violations?, 0 serious[^\n]{0,60}$"),
    _line("zig", "passed", r"^All \d+ tests passed\.$"),
    _line(
        "zig",
        "failed",
        r"^\d+ passed; \d+ skipped; [1-9]\d* failed\.$|^error: the following (?:build"
        r"|test) command failed[^\n]{0,60}$",
    ),
    # jvm, dotnet
    _line(
        "maven",
        "failed",
        r"^(?:\[ERROR\] )?Tests run: \d{1,7}, [^\n]{1,80}<<< (?:FAILURE|ERROR)![^\n]{0,160}$",
    ),
    _line(
        "maven",
        "failed",
        r"Tests run: \d{1,7}, Failures: (?:[1-9]\d*, Errors: \d+"
        r"|\d+, Errors: [1-9]\d*)[^\n]{0,60}$",
    ),
    _line(
        "gradle",
        "failed",
        r"^(?:\d+ tests completed, [1-9]\d* failed[^\n]{0,40}"
        r"|FAILURE: Build failed with an exception\.)$",
    ),
    _line(
        "sbt",
        "failed",
        r"^\[error\] (?:Failed: Total \d+|\(\w[^\n]{0,40}\) (?:sbt\.TestsFailed"
        r"|Compilation failed))[^\n]{0,80}$",
    ),
    _line("sbt", "passed", r"^\[(?:info\] Passed: Total \d+|success\] Total time)[^\n]{0,80}$"),
    _line("detekt ktlint", "failed", r"^Analysis failed with [^\n]{1,80}$"),
    _line("dotnet", "failed", r"^(?:Test Run Failed\.|[ ]{1,6}[1-9]\d* Error\(s\))$"),
    _line("dotnet", "passed", r"^Test Run Successful\.$"),
    # ruby, php, elixir, others
    _line(
        "rspec rails minitest",
        "failed",
        r"^\d+ (?:runs"
        r"|tests), \d+ assertions, \d+ failures, [1-9]\d* errors[^\n]{0,40}$",
    ),
    _line("minitest", "count", r"^\d+ (?:runs|tests), \d+ assertions, (\d+) failures[^\n]{0,80}$"),
    _line("rspec", "failed", r"^[^\n]{0,80}\b[1-9]\d* errors? occurred outside of examples$"),
    _line("cucumber", "failed", r"^\d+ scenarios? \([^\n]{0,40}[1-9]\d* failed[^\n]{0,60}\)$"),
    _line("cucumber", "passed", r"^\d+ scenarios? \(\d+ passed\)$"),
    _line("rubocop", "failed", r"^\d+ files? inspected, [1-9]\d* offenses? detected[^\n]{0,60}$"),
    _line("rubocop", "passed", r"^\d+ files? inspected, no offenses detected$"),
    _line("phpunit", "count", r"^[ ]{1,4}Tests:[ ]{1,6}(?:(\d+) failed)?[^\n]{0,100}$"),
    _line("phpunit", "passed", r"^OK, but [^\n]{1,100}$"),
    _line("phpstan", "failed", r"^[ ]{0,2}\[ERROR\] Found [1-9]\d* errors?[^\n]{0,40}$"),
    _line("phpstan", "passed", r"^[ ]{0,2}\[OK\] No errors[^\n]{0,40}$"),
    _line("phpcs", "failed", r"^FOUND [1-9]\d* ERRORS?[^\n]{0,80}$"),
    _line("psalm", "count", r"^(\d+) errors? found$"),
    _line("psalm", "passed", r"^[ ]{0,8}No errors found!$"),
    _line("mix", "failed", r"^== Compilation error in file [^\n]{1,160}$"),
    _line("dart", "failed", r"(?:^|: )Some tests failed\.$"),
    _line("dart", "passed", r"(?:^|: )All tests passed!$|^No issues found![^\n]{0,40}$"),
    _line("dart", "count", r"^(\d+) issues? found\.[^\n]{0,40}$"),
    _line("prove", "failed", r"^Result: FAIL$"),
    _line("prove", "passed", r"^Result: PASS$"),
    _line("bats", "count", r"^\d+ tests?, (\d+) failures?[^\n]{0,40}$"),
    _line(
        "bazel",
        "failed",
        r"^(?:Executed \d+ out of \d+ tests?: [^\n]{0,60}\bfails?\b[^\n]{0,40}"
        r"|ERROR: Build did NOT complete successfully)$",
    ),
    _line(
        "bazel",
        "passed",
        r"^(?:Executed \d+ out of \d+ tests?: \d+ tests? pass(?:es)?\."
        r"|INFO: Build completed successfully[^\n]{0,60})$",
    ),
    _line("stack", "failed", r"^(?:Test suite \S{1,80}: FAIL|Error: \[S-\d+\])[^\n]{0,60}$"),
    _line("stack", "passed", r"^\d+ of \d+ test suites[^\n]{1,60} passed\.$|^Test suite \S{1,80}: PASS$"),
    _line("rebar", "failed", r"^(?:Failed: [1-9]\d*\.|===> [^\n]{0,60}failed)[^\n]{0,80}$"),
    _line("rebar", "passed", r"^(?:All \d+ tests passed\.|[ ]{2}All \d+ tests passed\.)$"),
    _line("just", "failed", r"^error: [Rr]ecipe `[^`\n]{1,60}` failed[^\n]{0,80}$"),
    _line("task", "failed", r"^task: Failed to run task[^\n]{0,120}$"),
)


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
