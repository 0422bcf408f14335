"""What ``git status`` says, as values: read, compared with the start, and made fit for a case."""

from __future__ import annotations

import pytest

from daemon.core.errors import BadReply
from daemon.core.workspace import (
    NAME_CHARS,
    NAMES,
    ChangedFiles,
    Entry,
    changed_files,
    for_a_case,
    parse,
)

TOKEN = "ghp_" + "a1B2" * 9


def test_each_line_is_read() -> None:
    """Two letters, a blank, and a path of any bytes but NUL."""
    assert parse(b"") == []
    found = parse(b" M a b\0?? \n\xff\0A   x\0UU -> y\0")
    assert found == [Entry(b"a b", " M"), Entry(b"\n\xff", "??"), Entry(b" x", "A "), Entry(b"-> y", "UU")]


@pytest.mark.parametrize("output", [b"M a\0", b" M \0", b"xx a\0", b"\0", b"## main\0", b" M\ta\0"])
def test_an_unknown_form_is_refused(output: bytes) -> None:
    """Rather no list than a wrong one."""
    with pytest.raises(BadReply):
        parse(output)


def test_since_the_task_began() -> None:
    """Left out is what was listed then with the same status, time and size."""
    same, touched, staged = Entry(b"same", " M", (1, 1)), Entry(b"touched", " M", (1, 1)), Entry(b"s", " M")
    gone = Entry(b"gone", "??", (1, 1))
    now = [same, Entry(b"touched", " M", (2, 1)), Entry(b"s", "M "), Entry(b"new", "??", (3, 0))]
    found = changed_files(now, [same, touched, staged, gone])
    assert found == ChangedFiles(("touched", "s", "new"), since_task=True, more=0)
    assert changed_files(now, now) == ChangedFiles((), since_task=True)


def test_without_a_start_everything_is_listed() -> None:
    """And it says that it is not known since when."""
    found = changed_files([Entry(b"a", " M")], None)
    assert found == ChangedFiles(("a",), since_task=False)


def test_a_long_list_says_how_many_are_left_out() -> None:
    """Never silently: 200 names, and the number of the others. Also for a list from a file."""
    found = changed_files([Entry(b"%d" % n, "??") for n in range(NAMES + 7)], None)
    assert (len(found.names), found.more) == (NAMES, 7)
    longer = ChangedFiles(tuple(str(n) for n in range(NAMES + 3)), more=4)
    assert (len(for_a_case(longer).names), for_a_case(longer).more) == (NAMES, 7)


@pytest.mark.shows("I46")
def test_a_name_is_one_line_without_secrets() -> None:
    """Line ends, escape sequences, invisible characters and other bytes are escapes; tokens go, also where a
    name is cut.
    """
    names = [b"a\nb\x1b[2K\r", b"caf\xc3\xa9 \xff", "\u202e\u200b\u2028".encode(), TOKEN.encode()]
    names.append(b"x" * (NAME_CHARS // 2 - 20) + b"/" + TOKEN.encode() + b"/" + b"y" * NAME_CHARS)
    made = for_a_case(changed_files([Entry(n, "??") for n in names], None))
    shown = made.names
    assert shown[:3] == ("a\\nb\\x1b[2K\\r", "café \\xff", "\\u202e\\u200b\\u2028")
    assert shown[3] == "[redacted:github]"
    assert TOKEN[:12] not in shown[4]
    assert len(shown[4]) <= NAME_CHARS
    assert for_a_case(made) == made
