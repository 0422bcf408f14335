"""The items of a list such as opencode's plugins, and one member of nested objects, in a settings text:
nothing else moves.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import UserError
from daemon.files.jsonc import (
    MAX_DEPTH,
    add_item,
    drop_items,
    is_bare,
    items,
    put,
    read,
    take,
)
from tests.support.tables import tables

ROWS = tables("settings_texts")
OURS = "file:///opt/reflectd/index.ts"
NO_MEANING = re.compile(r'("(?:\\.|[^"\\])*")|//[^\r\n]*|/\*.*?\*/|\s+', re.DOTALL)
LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=[\]}])')


LIST = ("plugin",)


def spec_of(entry: Any) -> Any:
    return entry[0] if isinstance(entry, list) else entry


def is_ours(entry: Any) -> bool:
    return bool(spec_of(entry) == OURS)


def meaning(text: str) -> Any:
    """What another reader of JSONC makes of it: comments and last commas dropped, the rest is JSON."""
    bare = NO_MEANING.sub(lambda found: found[1] or "", text.removeprefix("\ufeff"))
    return json.loads(LAST_COMMA.sub(lambda found: found[1] or "", bare))


def comments(text: str) -> list[str]:
    """Its comments, in order."""
    return [found[0] for found in NO_MEANING.finditer(text) if found[0].startswith("/")]


@dataclass(frozen=True)
class Document:
    before: str
    list_text: str
    after: str
    entries: list[Any]

    @property
    def text(self) -> str:
        return self.before + self.list_text + self.after


BITS = ["", " ", "\t", "\n", "\n    ", "/* c */", "/**/", '/* "plugin": [ \n */', "// ] x\n"]
SPACES = st.sampled_from(["", *(one + two for one in BITS for two in BITS)])
NAMES = st.text(alphabet='ab/*"\\,[]{}: é\U0001f600', max_size=6)
PLAIN = st.none() | st.booleans() | st.integers(-999, 999) | st.floats(-1e6, 1e6) | NAMES
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.just("plugin"), inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.lists(
    NAMES | st.tuples(NAMES, st.dictionaries(NAMES, PLAIN, max_size=2)).map(list), max_size=4
).filter(lambda entries: all(spec_of(entry) != OURS for entry in entries))


def written(draw: st.DrawFn, value: Any) -> str:
    """``value`` as JSONC, with any spaces, comments and trailing commas."""
    if isinstance(value, list):
        return joined(draw, "[", [written(draw, item) for item in value], "]")
    if isinstance(value, dict):
        members = [member(draw, name, written(draw, item)) for name, item in value.items()]
        return joined(draw, "{", members, "}")
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


def member(draw: st.DrawFn, name: str, value: str) -> str:
    return f"{json.dumps(name)}{draw(SPACES)}:{draw(SPACES)}{value}"


def joined(draw: st.DrawFn, opening: str, parts: list[str], closing: str) -> str:
    text = opening + draw(SPACES)
    for i, part in enumerate(parts):
        comma = "," if i < len(parts) - 1 or draw(st.booleans()) else ""
        text += part + draw(SPACES) + comma + draw(SPACES)
    return text + closing


@st.composite
def documents(draw: st.DrawFn) -> Document:
    others = st.lists(st.tuples(NAMES, VALUES), max_size=3, unique_by=lambda pair: pair[0])
    members = [member(draw, name, written(draw, value)) for name, value in draw(others)]
    entries = draw(ENTRIES)
    place = draw(st.integers(0, len(members)))
    members.insert(place, member(draw, "plugin", "\0"))
    start = draw(st.sampled_from(["", "\ufeff"])) + draw(SPACES)
    frame = start + joined(draw, "{", members, "}") + draw(SPACES)
    before, after = frame.split("\0")
    return Document(before, written(draw, entries), after, entries)


@st.composite
def documents_without_list(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    value = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    return draw(SPACES) + written(draw, value) + draw(SPACES), value


@given(documents())
def test_add_then_remove_gives_the_same_bytes(doc: Document) -> None:
    """Adding changes only the list, only by insertion, and removing again restores every byte."""
    assert items(doc.text, LIST) == doc.entries
    grown = add_item(doc.text, LIST, OURS)
    assert items(grown, LIST) == [*doc.entries, OURS]
    assert grown.startswith(doc.before)
    assert grown.endswith(doc.after)
    assert meaning(grown) == meaning(doc.text) | {"plugin": [*doc.entries, OURS]}
    assert drop_items(grown, LIST, is_ours) == doc.text


@given(documents(), st.data())
def test_removal_keeps_comments_and_the_rest(doc: Document, data: st.DataObject) -> None:
    """Whichever entries go, every comment of the list stays, and every byte outside it."""
    gone = data.draw(st.sets(st.sampled_from([spec_of(e) for e in doc.entries] or ["none"])))
    shrunk = drop_items(doc.text, LIST, lambda entry: spec_of(entry) in gone)
    assert items(shrunk, LIST) == [entry for entry in doc.entries if spec_of(entry) not in gone]
    assert shrunk.startswith(doc.before)
    assert shrunk.endswith(doc.after)
    if all(isinstance(entry, str) for entry in doc.entries):  # an option's comments go with it
        assert comments(shrunk) == comments(doc.text)
    if not gone:
        assert shrunk == doc.text


@given(documents(), st.data())
def test_a_replaced_item_keeps_its_place(doc: Document, data: st.DataObject) -> None:
    """The new value stands where the old one was, also inside an item; the same value changes nothing."""
    if not doc.entries:
        return
    at = data.draw(st.integers(0, len(doc.entries) - 1))
    entry = doc.entries[at]
    swapped = put(doc.text, (*LIST, at, 0) if isinstance(entry, list) else (*LIST, at), OURS)
    wanted = [OURS, *entry[1:]] if isinstance(entry, list) else OURS
    assert items(swapped, LIST) == [*doc.entries[:at], wanted, *doc.entries[at + 1 :]]
    assert swapped.startswith(doc.before)
    assert swapped.endswith(doc.after)
    assert put(doc.text, (*LIST, at), entry) == doc.text


@given(documents(), st.data())
def test_items_behind_another_go(doc: Document, data: st.DataObject) -> None:
    """Those before it stay, also where they match."""
    at = data.draw(st.integers(-1, len(doc.entries)))
    shrunk = drop_items(doc.text, LIST, lambda _: True, after=at)
    assert items(shrunk, LIST) == doc.entries[: at + 1]


@given(documents_without_list())
def test_a_list_is_made_where_there_is_none(case: tuple[str, dict[str, Any]]) -> None:
    """A text without the key gets one; after removal only an empty list is left, all else as it was."""
    text, value = case
    if "plugin" in value:
        return
    grown = add_item(text, LIST, OURS)
    assert items(grown, LIST) == [OURS]
    assert meaning(grown) == {**value, "plugin": [OURS]}
    assert meaning(drop_items(grown, LIST, is_ours)) == {**value, "plugin": []}


@given(st.text(alphabet='{}[],:"\\/*\n 1-etruplgin', max_size=40))
def test_any_text_is_edited_or_refused(text: str) -> None:
    """No text makes it crash: it is edited, or a UserError says why not."""
    try:
        grown = add_item(text, LIST, OURS)
    except UserError:
        return
    assert items(grown, LIST)[-1] == OURS
    assert drop_items(grown, LIST, is_ours).count(OURS) == text.count(OURS)


NEW = f'"{OURS}"'


@pytest.mark.parametrize(("name", "text", "expected"), ROWS["added"])
def test_the_new_line_looks_like_its_neighbours(name: str, text: str, expected: str) -> None:
    """Indentation, line ends, comments and last commas are taken over from the text."""
    assert add_item(text, LIST, OURS) == expected


@pytest.mark.parametrize(("name", "text", "expected"), ROWS["removed"])
def test_what_goes_with_a_removed_line(name: str, text: str, expected: str) -> None:
    """Its comma and its own line, never a comment: not even the bracket may end up inside one."""
    assert drop_items(text, LIST, is_ours) == expected


DEEP = ["[" * (MAX_DEPTH + 1), f"line 1, column {MAX_DEPTH + 1}", "brackets inside each other"]


@pytest.mark.parametrize(("text", "place", "words"), [*ROWS["faulty"], DEEP])
def test_a_faulty_text_is_refused_with_its_place(text: str, place: str, words: str) -> None:
    """What opencode's own parser refuses is refused here, in words; so is what would be ambiguous."""
    for edit in (lambda: add_item(text, LIST, OURS), lambda: drop_items(text, LIST, is_ours)):
        with pytest.raises(UserError) as error:
            edit()
        assert place in str(error.value)
        assert words in str(error.value)


def test_a_large_text_is_quick() -> None:
    """50 KB of settings take about 0.2 s: time grows with the length, not faster."""
    text = "{" + "".join(f'"k{i}": {{"a": [1, 2, "x"]}}, // c\n' for i in range(1500)) + '"plugin": ["a"]}'
    assert add_item(text, LIST, OURS) == text[:-2] + f", {NEW}]}}"


AB = ("a", "b")


@pytest.mark.parametrize(("before", "after"), ROWS["put"])
def test_a_member_is_put(before: str, after: str) -> None:
    """Missing objects are made on the way, and nothing else moves."""
    assert put(before, AB, 1) == after
    assert read(after)["a"]["b"] == 1


@pytest.mark.parametrize(("before", "after"), ROWS["take"])
def test_a_member_is_taken(before: str, after: str) -> None:
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
def test_what_has_no_such_member(text: str, words: str) -> None:
    """Bad input: a ``UserError`` with the place."""
    for edit in (lambda: put(text, AB, 1), lambda: take(text, AB), lambda: read(text, AB)):
        with pytest.raises(UserError, match=words):
            edit()


def test_bare() -> None:
    """Nothing is lost with an empty object; a comment would be."""
    texts = ("", "\ufeff{\n}\n", "{ }", "{} // mine", '{"a": 1}')
    assert [is_bare(text) for text in texts] == [True] * 3 + [False] * 2
