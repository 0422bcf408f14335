"""Tests that got weaker: deleted, skipped, narrowed, with assertions gone, or with their exit code hidden.

Compares the old and the new text of edits; never reads files. It states facts and judges nothing, because
many such changes are right (a test of removed code, a skip the person asked for).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from .actions import WRITE_TOOLS, Write, first_text, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..core.transcript import ToolCall

# Which files a command or a tool call changes, and which of them are part of the work: no log, no cache.

_PATH_KEYS: Final = ("filePath", "file_path", "path", "notebook_path", "filename", "file")
_PATCH_KEYS: Final = ("patchText", "patch", "input", "diff")
_PATCHED: Final = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)([^\n\t]{1,300})", re.MULTILINE
)
_TEMPORARY: Final = ("/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/dev/", "/proc/")  # noqa: S108 -- compared
_BY_PRODUCT: Final = re.compile(
    r"(?:^|/)(?:node_modules|__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|htmlcov|coverage|dist"
    r"|build|target"
    r"|\.next|\.cache|\.coverage|\.venv|\.git)(?:/|$)|\.(?:log|tmp|pyc|out|pid)$"
)
_PROSE: Final = re.compile(
    r"\.(?:md|mdx|rst|txt|adoc|org)$|(?:^|/)(?:license|changelog|readme|notice|authors|\.gitignore)$",
    re.IGNORECASE,
)
_BUILDS: Final = re.compile(
    r"(?:^|/)(?:[\w.-]{0,60}requirements[\w.-]{0,60}|constraints[\w.-]{0,60}|cmakelists)\.txt$"
    r"|(?:^|/)requirements/[^/]{1,80}\.txt$",
    re.IGNORECASE,
)
_DATA: Final = re.compile(r"\.txt$", re.IGNORECASE)


def written_by_tool(tool: str, arguments: Mapping[str, object]) -> tuple[Write, ...]:
    """The files an edit tool changes; empty for every other tool."""
    name = tool.lower()
    if name not in WRITE_TOOLS:
        return ()
    for key in _PATH_KEYS:
        path = arguments.get(key)
        if isinstance(path, str) and path:
            return (Write(path, name),)
    for key in _PATCH_KEYS:
        patch = arguments.get(key)
        if isinstance(patch, str) and (paths := _PATCHED.findall(patch)):
            return tuple(Write(p.strip(), name) for p in paths[:100])
    return (Write("a file", name),)


def matters(path: str, directory: str) -> bool:
    """Says whether a written path is part of the work: not a scratch file, a cache or a build product."""
    inside = path
    if directory and path.startswith(directory.rstrip("/") + "/"):
        inside = path[len(directory.rstrip("/")) + 1 :]
    elif path.startswith(_TEMPORARY) or path in {"/dev/null", "/tmp"}:  # noqa: S108 -- only compared
        return False
    return (
        bool(path) and not path.startswith(("$TMP", "${TMP", "$(mktemp")) and not _BY_PRODUCT.search(inside)
    )


def is_prose(path: str) -> bool:
    """Documents, which no test has to run after. A file that a build reads is none, whatever its ending."""
    return bool(_PROSE.search(path)) and not _BUILDS.search(path)


def may_be_data(path: str) -> bool:
    """Says whether the file may be data that the program or its tests read, such as a text file."""
    return not is_prose(path) or bool(_DATA.search(path))


def file_name(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rsplit("/", 1)[-1]


# Written code that stands in for work: "not implemented", empty bodies, "… rest of the file unchanged".
#
# Looks at one edit at a time. Whether such a stand-in was asked for, a model reads.

MAX_STUB_TEXT: Final = 20_000  # characters of one edit
MAX_MARKS: Final = 20  # of one edit
_COMMENT: Final = r"(?:#|//|--|;|%|/\*|<!--|\{/\*|\"\"\"|\*)"
_STUB: Final = re.compile(
    r"raise NotImplementedError|\b(?:todo|unimplemented)!\("
    r"|throw new (?:Error\(['\"`](?:not (?:yet )?implemented|TODO)"
    r"|NotImplemented\w*|UnsupportedOperationException\()|panic\(\"(?:not implemented|TODO)"
    r"|\bTODO\(\"|\bfatalError\(\"(?:not|un)[ -]?implemented"
    r"|\b(?:TODO|FIXME)\b[^\n\w]{0,6}(?:\(\w{1,20}\)[: ]{0,2})?[^\n]{0,40}?\b(?:implement|finish|handl"
    r"|support|wire|complete"
    r"|fill in|umsetzen|implementieren|implémenter|implementar)\w*"
    rf"|{_COMMENT}[ ]?(?:this is )?(?:an? |just a )?(?:placeholder|stub\b|dummy implementation"
    rf"|not (?:yet )?implemented"
    r"|noch nicht implementiert|pas encore implémenté|sin implementar|ainda não implementado)"
    r"|\"(?:not (?:yet )?implemented|coming soon)\"",
    re.IGNORECASE,
)
_EMPTY_BODY: Final = re.compile(
    r"^[ \t]{0,24}(?:async )?def (?!__)\w{1,60}\([^()\n]{0,200}\)[^:\n]{0,60}:[ ]?\n"
    r"(?:[ \t]{1,32}(?:#[^\n]{0,120}|\"\"\"[^\"\n]{0,200}\"\"\")\n){0,2}[ \t]{1,32}(?:pass"
    r"|\.\.\.)[ \t]{0,4}(?:#[^\n]{0,120})?$",
    re.MULTILINE,
)
_ELIDED: Final = re.compile(
    rf"^[ \t]{{0,40}}{_COMMENT}[ \t]{{0,4}}(?:(?:\.\.\.|…)[^\n]{{0,40}}?\b(?:rest|existing|remaining"
    rf"|remainder|other|previous|unchanged"
    r"|same as|as before|omitted|truncated|original|unverändert|bisherig\w*|reste|existant|inchangé|resto"
    r"|existente)\b"
    r"|(?:rest|remainder|remaining (?:code|functions|methods|part))\b[^\n]{0,40}\b(?:unchanged|same"
    r"|omitted|as before|stays)\b"
    r"|(?:existing|previous|original) (?:code|functions|methods|content"
    r"|implementation)\b[^\n]{0,30}(?:\.\.\.|…|\bhere\b|unchanged|\bstays\b))"
    r"[^\n]{0,60}$",
    re.MULTILINE | re.IGNORECASE,
)
_MARKS: Final = (
    "mplement", "MPLEMENT", "todo!", "TODO", "Unsupported", "FIXME", "laceholder", "stub", "Stub", "dummy",
    "pass\n", "...", "…", "oming soon", "est of", "xisting code", "nchanged",
)  # fmt: skip
_ABSTRACT: Final = re.compile(
    r"\bABC\b|abstractmethod|\babstract\b|\bProtocol\b|@overload|\binterface\b|class \w{0,40}(?:Base"
    r"|Abstract|Mock|Fake"
    r"|Dummy|Null|Noop)|class (?:Base|Abstract|Mock|Fake|Dummy|Null|Noop|I[A-Z])|subclass|override"
)


class Stub(Struct, frozen=True):
    """One stand-in: ``line`` as written. ``elided``: code was cut away."""

    path: str
    line: str
    elided: bool = False


def stubs(path: str, old: str, new: str) -> tuple[Stub, ...]:
    """The stand-ins that an edit put in; none in documents and tests, nor in abstract classes."""
    if is_prose(path) or is_test(path) or not any(mark in new for mark in _MARKS):
        return ()
    text = new[:MAX_STUB_TEXT]
    found: list[Stub] = []
    for pattern, elided in ((_ELIDED, True), (_STUB, False), (_EMPTY_BODY, False)):
        if not elided and _ABSTRACT.search(text):
            break
        for m in pattern.finditer(text):
            start = text.rfind("\n", 0, m.start()) + 1 if m[0][:1] != "\n" else m.start()
            end = text.find("\n", m.end())
            line = text[start : end if end >= 0 else len(text)].strip()[:200]
            if line and line not in old and len(found) < MAX_MARKS:
                found.append(Stub(path, line, elided))
    return tuple(found)


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


class Weakening(Struct, frozen=True):
    """A weakening of a file. ``count``: the number of marks or assertions."""

    change: Change
    path: str
    count: int = 1


def is_test(path: str) -> bool:
    """Says whether a path looks like a test file, in any of the usual layouts."""
    return bool(_TEST_PATH.search(path[-300:]))


def has_tests(text: str) -> bool:
    """Says whether code holds tests of its own (Rust and others keep them beside the code)."""
    return bool(_TEST_START.search(text[:MAX_TEXT]))


def weakenings(call: ToolCall) -> tuple[Weakening, ...]:
    """The weakenings by one finished edit call."""
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
