"""One value set in a settings text: what else is there stays, byte for byte."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import UserError
from daemon.files.toml_text import put
from tests.support.tables import tables


@pytest.mark.parametrize(("before", "section", "name", "value", "after"), tables("settings_texts")["toml"])
def test_one_value_is_set(before: str, section: str, name: str, value: bool | int | str, after: str) -> None:
    """In the section that is there, in the form that is there; comments, order and line ends stay."""
    assert put(before, section, name, value) == after
    assert put(after, section, name, value) == after


@pytest.mark.shows("I43")
@pytest.mark.parametrize("text", ['judge = {mode = "act"}\n', "judge = 1\n", "[[judge]]\nx = 1\n", "a = \n"])
def test_a_form_it_cannot_edit_is_refused(text: str) -> None:
    """Nothing is guessed; the person reads what to do."""
    with pytest.raises(UserError, match=r"yourself|not valid TOML"):
        put(text, "judge", "who", "me")


LINES = st.sampled_from([
    "[judge]", "[log]", "[judge.who]", "who = 'x'", "mode = 1", "judge.mode = 2", "# c", '"""', 'a = """', "",
])  # fmt: skip


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
