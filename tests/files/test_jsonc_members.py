"""One member of nested objects in a settings text. Any settings at all:
``tests/cli/setup/test_claude_code``.
"""

from __future__ import annotations

import pytest

from daemon.core.errors import UserError
from daemon.files.jsonc_members import is_bare, put, read, take

AB = ("a", "b")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "a": {"b": 1}\n}\n'),
        ("{}", '{\n  "a": {"b": 1}\n}'),
        ('{"x": 1}', '{"x": 1, "a": {"b": 1}}'),
        ('{"a": {"b": 2 /* two */}}', '{"a": {"b": 1 /* two */}}'),
        ('{"a": {"c": 2}}', '{"a": {"c": 2, "b": 1}}'),
        ('{"a": {"b": 1}} // as it is', '{"a": {"b": 1}} // as it is'),
    ],
)
def test_put(before: str, after: str) -> None:
    """Missing objects are made on the way, and nothing else moves."""
    assert put(before, AB, 1) == after
    assert read(after)["a"]["b"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ('{"a": {}}', '{"a": {}}'),
        ('{"a": {"b": 1}}', "{}"),
        ('{"a": {"b": 1 /* mine */}}', '{"a": { /* mine */}}'),
        ('{"x": 1, "a": {"b": 1, "c": 2}}', '{"x": 1, "a": {"c": 2}}'),
    ],
)
def test_take(before: str, after: str) -> None:
    """Objects that become empty go too, but not with a comment in them."""
    assert take(before, AB) == after


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1}', '"a" must be an object'),
        ("[]", "must be an object in braces"),
        ('{"a": {"b": 1, "b": 2}}', "stands twice"),
        ("{", "line 1|the end"),
    ],
)
def test_what_cannot_be_edited(text: str, words: str) -> None:
    """Bad input: a ``UserError`` with the place."""
    for edit in (lambda: put(text, AB, 1), lambda: take(text, AB), lambda: read(text, AB)):
        with pytest.raises(UserError, match=words):
            edit()


def test_bare() -> None:
    """Nothing is lost with an empty object; a comment would be."""
    assert [is_bare(t) for t in ("", "\ufeff{\n}\n", "{ }", "{} // mine", '{"a": 1}')] == [
        True,
        True,
        True,
        False,
        False,
    ]
