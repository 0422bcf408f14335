"""A Markdown file line by line: headings, code, comments; joined again it is the same file."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import UserError
from daemon.rules.markdown import decoded, joined, scan


def headings(text: str) -> list[tuple[int, str]]:
    return [(line.level, line.title) for line in scan(text) if line.level]


@given(st.text(st.sampled_from("\n\r\t `~#-<>!=*\ufeff\u2028\x0b\x85aÄ"), max_size=60))
def test_joined_again_it_is_the_same(text: str) -> None:
    """Every line end of the three kinds, also mixed; what other programs take for a line end is text."""
    data = text.encode()
    assert joined(scan(decoded(data))) == data


def test_headings_of_both_kinds() -> None:
    """With up to three spaces before them and marks behind them; ``#name`` and an indented one are none."""
    text = "# One\n   ## Two ##\n### a # b#\n#no\n    # no\n#\n####### no\nThree\n===\nFour\n---\n"
    found = [(1, "One"), (2, "Two"), (3, "a # b#"), (1, ""), (1, "Three"), (2, "Four")]
    assert headings(text) == found
    assert headings("\ufeff# After a BOM\n") == [(1, "After a BOM")]
    assert headings("- item\n---\n\n| a |\n---\n> b\n---\n---\n") == []


@pytest.mark.parametrize(
    "quoted",
    [
        "```\n## Quoted\n```\n",
        "````md\n```\n## Quoted\n```\n````\n",
        "~~~\n```\n## Quoted\n~~~\n",
        "- item\n  ```\n  ## Quoted\n  ```\n",
        "<!--\n## Quoted\n-->\n",
        "<pre>\n## Quoted\n</pre>\n",
        "<STYLE media='x'>\n\n## Quoted\n</style>\n",
        "    ## Quoted\n",
    ],
)
def test_what_is_quoted_is_no_heading(quoted: str) -> None:
    """Fences of both kinds, comments, raw HTML and indented lines; what follows them counts again."""
    assert headings(f"{quoted}## After\n") == [(2, "After")]


def test_a_fence_ends_with_its_list_item() -> None:
    """One that nobody closed in a list does not swallow the rest of the file; one outside of a list does."""
    assert headings("- item\n  ```\n  code\n\n## After\n") == [(2, "After")]
    assert headings("```\ncode\n\n## Inside\n") == []
    assert headings("- item\n\ntext\n\n```\n## Inside\n") == []
    assert headings("```a`b\n## No fence\n") == [(2, "No fence")]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (codecs.BOM_UTF16_LE + "x".encode("utf-16-le"), "it is UTF-16: save it as UTF-8 first"),
        (codecs.BOM_UTF32_LE + "x".encode("utf-32-le"), "it is UTF-32"),
        (b"caf\xe9", r"it is not UTF-8 \(byte 3\)"),
        (b"a\0b", "it holds a NUL"),
    ],
)
def test_odd_encodings_are_refused(data: bytes, why: str) -> None:
    """With what is wrong and what to do."""
    with pytest.raises(UserError, match=why):
        decoded(data)
