"""Which lines of an output decide, and that no line can be more than a line."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daemon.evidence.outputs import (
    MAX_GIT,
    MAX_LINE,
    MAX_STRONG,
    MAX_WEAK,
    clean,
    failed_tests,
    failure_lines,
    git_lines,
    last_lines,
    one_line,
)
from tests.support.tables import tables

ROWS = tables("outputs")

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
NOISE = "\n".join(f"compiled file {i}" for i in range(2_000))


def texts(found: list[tuple[int, str]]) -> list[str]:
    return [line for _, line in found]


@pytest.mark.shows("I27")
@given(text=st.text(), limit=st.integers(8, 300))
@example(text="x" * 5_000 + "\n" + "y" * 5_000, limit=MAX_LINE)
@example(text="a\r\n\u2028b\x1b[31m\x85c\u202ed", limit=MAX_LINE)
def test_a_line_is_one_short_line(text: str, limit: int) -> None:
    """No control character, no line break of any kind, never more than the limit."""
    line = one_line(text, limit)
    assert len(line) <= limit
    assert not CONTROL.search(line)
    assert line.splitlines() in ([], [line])
    assert one_line(line, limit) == line


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("\x1b[1;31mFAILED\x1b[0m a", "FAILED a"),
        ("\x1b]0;title\x07ok", "ok"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("10%\r50%\r100% done\nnext", "100% done\nnext"),
        ("a\r\nb\r\n", "a\nb\n"),
    ],
)
def test_an_output_as_a_person_sees_it(raw: str, seen: str) -> None:
    """No colours, no titles, and of a progress line its last state."""
    assert clean(raw) == seen


@pytest.mark.parametrize("line", ROWS["failures"])
def test_a_failure_is_seen_wherever_it_stands(line: str) -> None:
    """In the middle of thousands of good lines, and in a file's content too; at its own position."""
    text = f"{NOISE}\n{line}\n{NOISE}"
    for strong_only in (False, True):
        found, more = failure_lines(text, strong_only=strong_only)
        assert (texts(found), more) == ([line], 0)
        assert text[found[0][0] :].startswith(line)


def test_a_good_summary_is_no_failure() -> None:
    """A count of zero tells of no failure."""
    assert [line for line in ROWS["fine"] if failure_lines(f"{NOISE}\n{line}") != ([], 0)] == []


def test_weak_words_count_where_nothing_stronger_stands() -> None:
    """``cannot`` is a hint in the output of a command, and nothing in the content of a file."""
    text = "warning: cannot open a\nthe server refused it\nit failed\nnot found: x"
    found, more = failure_lines(text)
    assert (len(found), more) == (MAX_WEAK, 1)
    assert failure_lines(text, strong_only=True) == ([], 0)
    assert texts(failure_lines(f"{text}\nFAILED x")[0]) == ["FAILED x"]


def test_of_many_failures_the_first_and_the_last() -> None:
    """The others are counted. Marks are looked for from both ends, so a flood in the middle hides neither. A
    letter whose small form is longer moves no position.
    """
    found, more = failure_lines("\n".join(f"FAILED test_{i}" for i in range(50)))
    assert [line.rsplit("_", 1)[1] for line in texts(found)] == ["0", "1", "2", "3", "46", "47", "48", "49"]
    assert more == 50 - MAX_STRONG
    text = "FAILED first\n" + "an error is handled\n" * 20_000 + "FAILED last\n"
    assert texts(failure_lines(text)[0]) == ["FAILED first", "FAILED last"]
    text = "İ\nFAILED x\nthe error"
    assert all(text[at:].startswith(line) for at, line in failure_lines(text)[0])


def test_what_git_reports() -> None:
    """Files, modes, where it went; not the lines between."""
    text = (
        "Enumerating objects: 5, done.\n[main 1a2b3c4] Fix\n 2 files changed, 5 insertions(+)\n"
        " create mode 100644 .env\n delete mode 100644 a.py\nTo github.com:a/b.git\n"
        "   1a2b3c4..5d6e7f8  main -> main\nremote: Create a pull request: https://github.com/a/b/pull/new/x\n"
        "Writing objects: 100%"
    )
    assert texts(git_lines(text)) == [line for line in text.split("\n") if " objects: " not in line]
    assert len(git_lines("\n".join(f" create mode 100644 f{i}" for i in range(99)))) == MAX_GIT


def test_the_last_lines() -> None:
    """Empty lines and a host's tags around its own notes don't count; positions hold."""
    text = "first\n\n12 passed\n\n<bash_metadata>\nstopped after 2 s\n</bash_metadata>\n"
    assert texts(last_lines(text, 2)) == ["12 passed", "stopped after 2 s"]
    assert last_lines(text, 0) == []
    assert [at for at, _ in last_lines(text, 3)] == [text.index(x) for x in ("first", "12", "stopped")]


@pytest.mark.parametrize(("output", "names"), ROWS["names"])
def test_names_of_failed_tests(output: str, names: list[str]) -> None:
    """Of each runner, each name once."""
    assert list(failed_tests(f"{output}\n{output}")) == names


@given(text=st.text(max_size=400))
def test_any_output_is_read(text: str) -> None:
    """Positions lie in the text, in order, and whatever is found stands there."""
    for found in (failure_lines(text)[0], git_lines(text), last_lines(text, 3)):
        assert found == sorted(found)
        assert all(text[at : at + len(line)] == line for at, line in found)
    assert all(one_line(name) == name for name in failed_tests(text))
