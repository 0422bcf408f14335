"""Tests that got weaker: deleted, skipped, narrowed, with assertions gone, or with their exit code hidden.

Compares the old and the new text of edits; never reads files. Says what happened and judges nothing, for
many such changes are right (a test of removed code, a skip the person asked for).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from .tools import first_text, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...core.transcript import ToolCall

MAX_TEXT: Final = 40_000  # characters of one edit
MAX_EDITS: Final = 50  # of one call
Change = Literal["skipped", "narrowed", "assertions", "tests_removed", "masked", "deleted", "expected"]

_TEST_PATH: Final = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testing|e2e|cypress)/[^\n]{1,200}$|(?:^|/)(?:tests?_[^/\n]{1,100}\.\w{1,5}|conftest\.py)$|\.(?:t|bats|feature)$"
    r"|[._-](?:test|tests|spec|cy)\.[cm]?[jt]sx?$|_(?:test|spec)\.(?:go|py|rb|exs|dart|cc|cpp|lua)$"
    r"|(?:Tests?|Spec|IT|_unittest)\.(?:java|kts?|cs|swift|php|scala|groovy|cc|cpp|h)$|(?:^|/)test\.[jt]sx?$|Test\.php$",
    re.IGNORECASE,
)
_SKIP: Final = re.compile(
    r"@(?:pytest\.mark\.)?(?:skip|skipif|xfail)\b|@unittest\.(?:skip|expectedFailure)|\bpytest\.skip\(|\bself\.skipTest\("
    r"|\b(?:it|test|describe|suite|context)\.(?:skip|todo|fixme)\b|\bx(?:it|test|describe|context|specify)\("
    r"|#\[ignore|\bt\.Skip(?:f|Now)?\(|\bb\.Skip\(|@(?:Disabled|Ignore)\b|\[(?:Ignore|Fact\(Skip|Theory\(Skip)"
    r"|\bmarkTestSkipped\(|\bmarkTestIncomplete\(|@tag :skip|\bXCTSkip|\bpending\(|^\s{0,40}skip(?:\s"
    r"|\()|\bGTEST_SKIP\(|\bDISABLED_\w",
    re.MULTILINE,
)
_ONLY: Final = re.compile(r"\b(?:it|test|describe)\.only\b|\bf(?:it|describe)\(")
_ASSERTION: Final = re.compile(
    r"\bassert(?:\w{0,40}!?)?\b|\bexpect\(|\.should\b|\bt\.(?:Error|Errorf|Fatal|Fatalf)\(|\brequire\.\w{1,40}\(|\bXCTAssert\w{0,40}"
    r"|\bEXPECT_\w{1,20}|\bASSERT_\w{1,20}|\bis_expected\b"
)
_LOOSE: Final = re.compile(
    r"\bassert True\b|\bassert!\(true\)|expect\(true\)\.to(?:Be|Equal)\(true\)|\bassertTrue\((?:true"
    r"|True)\)|\.toBeDefined\(\)|\.toBeTruthy\(\)"
    r"|\bassert \w{1,40} is not None\b|\bassertIsNotNone\(|\bassertNotNull\(|\bexpect\.anything\(\)"
)
_TOLERANCE: Final = re.compile(
    r"\bassertAlmostEquals?\b|\bpytest\.approx\(|\bisclose\(|\ballclose\(|\b(?:delta|places|tolerance|epsilon|eps"
    r"|atol|rtol|abs_tol|rel_tol)\b|\btoBeCloseTo\(|\bbe_within\(|\bbe_close|closeTo\(|assertEqualsWithDelta"
    r"|toEqualWithDelta|\bInDelta(?:f)?\(|\bInEpsilon\(|\bassert_(?:relative|abs_diff|in_delta|in_epsilon)\w{0,20}"
    r"|\bWithin\(|EXPECT_NEAR|ASSERT_NEAR|\babs\([^\n]{1,80}\) <=?",
    re.IGNORECASE,
)
_TEST_START: Final = re.compile(
    r"^[ \t]{0,40}(?:async )?def test_?\w|^[ \t]{0,40}(?:it|test)(?:\.\w{1,12})?\("
    r"|^[ \t]{0,40}#\[(?:tokio::)?test\]|^func Test\w|^[ \t]{0,40}@Test\b"
    r"|^[ \t]{0,40}\[(?:Fact|Test|TestMethod|Theory)\b|^[ \t]{0,40}test \""
    r"|^[ \t]{0,40}public function test\w|^[ \t]{1,40}data_tests:",
    re.MULTILINE,
)
_LITERAL: Final = re.compile(
    r"\"(?:[^\"\\\n]|\\.){0,200}+\"|'(?:[^'\\\n]|\\.){0,200}+'|`[^`\n]{0,400}`|-?\b\d[\w.]{0,40}"
    r"|\b(?:true|false|null|nil|none|undefined|nan)\b",
    re.IGNORECASE,
)
_MASKED: Final = re.compile(
    r"^[^\n]{0,300}\b(?:tests?|pytest|jest|vitest|mocha|cargo|go test|lint"
    r"|tsc)\b[^\n]{0,300}(?:\|\| ?(?:true|:|exit 0|echo)|; ?(?:true|exit 0)\b)"
    r"|--passWithNoTests|continue-on-error: ?true|^\t-(?:pytest|npm|go|cargo)\b",
    re.MULTILINE,
)
_MASKS: Final = ("||", "true", "exit 0", "--passWithNoTests", "\t-")  # what a masked line holds at least
_HUNK_FILE: Final = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)([^\n\t]{1,300})")


@dataclass(frozen=True, slots=True)
class Weakening:
    """What happened to which file. ``count``: how many marks or assertions."""

    change: Change
    path: str
    count: int = 1


def is_test(path: str) -> bool:
    """Whether a path looks like a test file, in any of the usual layouts."""
    return bool(_TEST_PATH.search(path[-300:]))


def has_tests(text: str) -> bool:
    """Whether code holds tests of its own (Rust and others keep them beside the code)."""
    return bool(_TEST_START.search(text[:MAX_TEXT]))


def weakenings(call: ToolCall) -> tuple[Weakening, ...]:
    """What one finished edit call made weaker."""
    found: list[Weakening] = []
    for path, old, new in edits(call):
        found.extend(_compare(path, old[:MAX_TEXT], new[:MAX_TEXT]))
    return tuple(dict.fromkeys(found))


def edits(call: ToolCall) -> Iterator[tuple[str, str, str]]:
    """(path, old text, new text) of each edit of the call; old is empty where it isn't known."""
    path = first_text(call.input, "filePath", "file_path", "path", "notebook_path")
    several = call.input.get("edits")
    parts = several[:MAX_EDITS] if isinstance(several, list) else [call.input]
    for part in parts:
        if isinstance(part, dict):
            new = first_text(part, "newString", "new_string", "new_str", "content", "new_source", "file_text")
            yield path, first_text(part, "oldString", "old_string", "old_str"), new
    if patch := patch_of(call):
        yield from _patched(patch[: 4 * MAX_TEXT])


def patch_of(call: ToolCall) -> str:
    """The patch that an edit call applies, or an empty text."""
    return text_of(call, "patchText", "patch", "diff", "input")


def _patched(patch: str) -> Iterator[tuple[str, str, str]]:
    path, old, new = "", [""], [""]
    for line in patch.split("\n"):
        if head := _HUNK_FILE.match(line):
            if path:
                yield path, "\n".join(old), "\n".join(new)
            path, old, new = head[1].strip(), [], []
        elif line.startswith("-") and not line.startswith("---"):
            old.append(line[1:])
        elif line.startswith("+"):
            new.append(line[1:])
    if path:
        yield path, "\n".join(old), "\n".join(new)


def _compare(path: str, old: str, new: str) -> Iterator[Weakening]:
    if not is_test(path) and not (has_tests(old) or has_tests(new)):
        if any(mark in new for mark in _MASKS) and _MASKED.search(new) and not _MASKED.search(old):
            yield Weakening("masked", path)
        return
    if (more := _count(_SKIP, new) - _count(_SKIP, old)) > 0:
        yield Weakening("skipped", path, more)
    if (more := _count(_ONLY, new) - _count(_ONLY, old)) > 0:
        yield Weakening("narrowed", path, more)
    tests_gone = _count(_TEST_START, old) - _count(_TEST_START, new)
    if tests_gone > 0:
        yield Weakening("tests_removed", path, tests_gone)
    real = _count(_ASSERTION, old) - _count(_LOOSE, old)
    left = _count(_ASSERTION, new) - _count(_LOOSE, new)
    if tests_gone <= 0 and old and left < real:
        yield Weakening("assertions", path, real - left)
    if (
        old
        and left >= real > 0
        and old != new
        and (
            _bare(old) == _bare(new)
            or (tests_gone == 0 and _count(_TOLERANCE, new) > _count(_TOLERANCE, old))
        )
    ):
        yield Weakening("expected", path)


def _bare(text: str) -> str:
    """Code without its literals: two texts that differ in nothing else expect other values."""
    return " ".join(_LITERAL.sub("0", text).split())


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def describe(found: Weakening) -> str:
    """The change in words."""
    many = found.count != 1
    return {
        "skipped": f"{found.count} test skip{'s' if many else ''} added in {found.path}",
        "narrowed": f"only some tests of {found.path} run now (.only)",
        "assertions": f"{found.count} assertion{'s' if many else ''} removed or loosened in {found.path}",
        "tests_removed": f"{found.count} test{'s' if many else ''} removed from {found.path}",
        "masked": f"the exit code of a check is hidden in {found.path}",
        "deleted": f"test file {found.path} deleted",
        "expected": f"the values that tests expect were changed in {found.path}",
    }[found.change]
