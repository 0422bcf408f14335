"""Tests that get weaker, as edits show it."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from daemon.evidence.calls.weakened import has_tests, is_test, weakenings
from tests.support.transcripts import edit


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "test_a.py",
        "src/a_test.go",
        "src/a.test.ts",
        "a.spec.tsx",
        "__tests__/a.js",
        "spec/a_spec.rb",
        "src/test/java/AppTest.java",
        "FooTests.cs",
        "cypress/e2e/a.cy.ts",
        "lib/a_test.exs",
        "conftest.py",
        "t/basic.t",
        "src/test_list.c",
        "base/list_unittest.cc",
        "a.feature",
    ],
)
def test_test_files(path: str) -> None:
    """The usual layouts."""
    assert is_test(path)


@pytest.mark.parametrize(
    "path", ["src/a.py", "latest.py", "contest.ts", "src/attest.go", "docs/testing.md", "a/protest.rb"]
)
def test_other_files(path: str) -> None:
    """A name that only holds the word is none."""
    assert not is_test(path)


@pytest.mark.parametrize(
    ("path", "old", "new", "change"),
    [
        ("tests/test_a.py", "def test_x():", "@pytest.mark.skip\ndef test_x():", "skipped"),
        ("tests/test_a.py", "def test_x():", "@unittest.skip('x')\ndef test_x():", "skipped"),
        ("a.test.ts", "it('x', () => {", "it.skip('x', () => {", "skipped"),
        ("a.test.ts", "it('x', () => {", "xit('x', () => {", "skipped"),
        ("a.test.ts", "test('x', () => {", "test.only('x', () => {", "narrowed"),
        ("src/lib.rs", "#[test]\nfn x() {", "#[test]\n#[ignore]\nfn x() {", "skipped"),
        (
            "a_test.go",
            "func TestX(t *testing.T) {",
            'func TestX(t *testing.T) {\n\tt.Skip("flaky")',
            "skipped",
        ),
        ("src/test/java/ATest.java", "@Test void x() {", "@Disabled @Test void x() {", "skipped"),
        ("tests/ATest.php", "$this->assertSame(1, f());", "$this->markTestSkipped();", "skipped"),
        ("tests/a_test.exs", 'test "x" do', '@tag :skip\n  test "x" do', "skipped"),
        ("tests/test_a.py", "    assert a == 1\n    assert b == 2", "    assert a == 1", "assertions"),
        ("tests/test_a.py", "    assert a == 1", "    assert True", "assertions"),
        ("a.test.ts", "expect(a).toBe(1)", "expect(a).toBeDefined()", "assertions"),
        (
            "tests/test_a.py",
            "def test_x():\n    assert 1\ndef test_y():\n    assert 2",
            "def test_x():\n    assert 1",
            "tests_removed",
        ),
        ("package.json", '"test": "jest"', '"test": "jest || true"', "masked"),
        ("Makefile", "test:\n\tpytest", "test:\n\tpytest || true", "masked"),
        (
            ".github/workflows/ci.yml",
            "- run: npm test",
            "- run: npm test\n  continue-on-error: true",
            "masked",
        ),
    ],
)
def test_weaker(path: str, old: str, new: str, change: str) -> None:
    """Skips, ``.only``, lost assertions, lost tests, hidden exit codes."""
    assert change in [w.change for w in weakenings(edit(path, old, new))]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("tests/test_a.py", "assert a == 1", "assert b == 1"),
        ("tests/test_a.py", "assert a == 1", "assert a == 1\n    assert b == 2"),
        ("tests/test_a.py", "@pytest.mark.skip\ndef test_x():", "def test_x():"),
        ("src/a.py", "assert x", "pass"),
        ("src/a.py", "skip(1)", "skip(2)\nskip(3)"),
        ("Makefile", "clean:\n\trm -r x", "clean:\n\trm -r x || true"),
    ],
)
def test_not_weaker(path: str, old: str, new: str) -> None:
    """Other tests, stronger tests and other code."""
    assert weakenings(edit(path, old, new)) == ()


def test_patches_and_several_edits() -> None:
    """Both hosts' ways to edit: a patch, and a list of edits."""
    patch = "*** Begin Patch\n*** Update File: tests/test_a.py\n-    assert a == 1\n+    pass\n*** End Patch"
    call = ToolCall("p", "apply_patch", "completed", {"patchText": patch})
    assert [w.change for w in weakenings(call)] == ["assertions"]
    edits = [{"old_string": "it('a'", "new_string": "it.skip('a'"}]
    call = ToolCall("m", "MultiEdit", "completed", {"file_path": "a.test.js", "edits": edits})
    assert [w.change for w in weakenings(call)] == ["skipped"]


def test_tests_beside_the_code() -> None:
    """Rust keeps its tests in the file they test."""
    assert has_tests("#[cfg(test)]\nmod tests {\n    #[test]\n    fn x() {}\n}")
    assert not has_tests("fn test_like() {}")


def test_other_expected_values() -> None:
    """Only the literals of an assertion differ: noted, and weighed where the rows are made."""
    found = weakenings(edit("tests/test_a.py", "assert f(1) == 'a'", "assert f(1) == 'b'"))
    assert [w.change for w in found] == ["expected"]
