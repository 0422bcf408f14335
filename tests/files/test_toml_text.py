"""One value set in a settings text: what else is there stays, byte for byte."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import UserError
from daemon.files.toml_text import put


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[judge]\nwho = "me"\n'),
        ("# mine\n", '# mine\n\n[judge]\nwho = "me"\n'),
        ("toasts = false", 'toasts = false\n\n[judge]\nwho = "me"\n'),
        ("[judge]", '[judge]\nwho = "me"\n'),
        (
            '[ judge ] # who\n# quiet\nmode = "observe"\n\n[log]\ndebug = true\n',
            '[ judge ] # who\nwho = "me"\n# quiet\nmode = "observe"\n\n[log]\ndebug = true\n',
        ),
        ("[judge]\r\nx = 1\r\n", '[judge]\r\nwho = "me"\r\nx = 1\r\n'),
        ("[judge]\n  who = 'you'   # for now\nx = 1\n", '[judge]\n  who = "me"   # for now\nx = 1\n'),
        ('judge.mode = "act"\n[log]\n', 'judge.mode = "act"\njudge.who = "me"\n[log]\n'),
        ('judge . who = "you"\n', 'judge . who = "me"\n'),
        ('[other]\nwho = "x"\n[judge]\nwho = "y"\n', '[other]\nwho = "x"\n[judge]\nwho = "me"\n'),
        ('[judge]\nwho = "me" # stays\n', '[judge]\nwho = "me" # stays\n'),
        ('a = """\n[judge]\n"""\n', 'a = """\n[judge]\n"""\n\n[judge]\nwho = "me"\n'),
    ],
)
def test_one_value_is_set(before: str, after: str) -> None:
    """In the section that is there, in the form that is there; comments, order and line ends stay."""
    assert put(before, "judge", "who", "me") == after
    assert put(after, "judge", "who", "me") == after


@pytest.mark.parametrize(
    ("before", "section", "name", "value", "after"),
    [
        ("[a]\nx = 1 # why\n", "a", "x", 22, "[a]\nx = 22 # why\n"),
        ("[a]\nx = 1\n", "a", "x", True, "[a]\nx = true\n"),
        ("a.x=true#why\n", "a", "x", False, "a.x=false#why\n"),
        ("# mine\n[a]\nx = 1\n", "", "x", False, "x = false\n# mine\n[a]\nx = 1\n"),
        ("y = 1\nx = 2\n[a]\nx = 3\n", "", "x", 4, "y = 1\nx = 4\n[a]\nx = 3\n"),
        ("", "a", "x", 'a "b" \\', '[a]\nx = "a \\"b\\" \\\\"\n'),
    ],
)
def test_numbers_and_values_outside_of_sections(
    before: str, section: str, name: str, value: bool | int | str, after: str
) -> None:
    """Numbers, true and false, quotes in a text, and a setting that is in no section."""
    assert put(before, section, name, value) == after


@pytest.mark.shows("I43")
@pytest.mark.parametrize("text", ['judge = {mode = "act"}\n', "judge = 1\n", "[[judge]]\nx = 1\n", "a = \n"])
def test_a_form_it_cannot_edit_is_refused(text: str) -> None:
    """Nothing is guessed; the person reads what to do."""
    with pytest.raises(UserError, match=r"yourself|not valid TOML"):
        put(text, "judge", "who", "me")


LINES = st.sampled_from(
    [
        "[judge]",
        "[log]",
        "[judge.who]",
        "who = 'x'",
        "mode = 1",
        "judge.mode = 2",
        "# c",
        '"""',
        'a = """',
        "",
    ]
)


@pytest.mark.shows("I43")
@given(lines=st.lists(LINES, max_size=8), end=st.sampled_from(["\n", "\r\n"]))
def test_any_text_is_edited_rightly_or_not_at_all(lines: list[str], end: str) -> None:
    """What comes back differs in one value and holds every line that was there, but that value's."""
    text = end.join(lines)
    try:
        after = put(text, "judge", "who", "me")
    except UserError:
        return
    found, was = tomllib.loads(after), tomllib.loads(text)
    assert found["judge"].pop("who") == "me"
    was.setdefault("judge", {}).pop("who", None)
    assert found == was
    gone = [line for line in text.splitlines() if line not in after.splitlines()]
    assert gone in ([], ["who = 'x'"])
