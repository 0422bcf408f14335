"""What opencode says of its providers, to core values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import BadReply
from daemon.hosts.opencode.messages import MAX_ID, MOST_MODELS, parse_providers


@pytest.mark.shows("I36")
@pytest.mark.parametrize(
    ("providers", "found"),
    [
        ([], {}),
        ([7, None, "x", [], {}], {}),
        ([{"id": 1, "models": ["m"]}, {"id": "", "models": ["m"]}, {"id": "p"}], {}),
        ([{"id": "p", "models": {"m": {}}}, {"id": "q", "models": ["m"]}], {"q": ("m",)}),
        ([{"id": "p", "models": [7, None, "", "m", {}, "x" * (MAX_ID + 1)]}], {"p": ("m",)}),
        ([{"id": "x" * (MAX_ID + 1), "models": ["m"]}], {}),
        ([{"id": "p", "models": ["m"]}, {"id": "p", "models": ["n"]}], {"p": ("m",)}),
        ([{"id": "p", "models": ["m"], "key": "k", "newer": [1]}], {"p": ("m",)}),
    ],
)
def test_one_bad_item_costs_only_itself(providers: list[Any], found: dict[str, Any]) -> None:
    """Odd types, empty and endless ids, repeats and newer fields are left out."""
    assert parse_providers({"providers": providers, "newer": 1}) == found


@pytest.mark.shows("I44")
def test_what_is_kept_is_bounded() -> None:
    """Ten thousand ids in all."""
    data = {"providers": [{"id": f"p{n}", "models": [f"m{i}" for i in range(4_000)]} for n in range(5)]}
    assert sum(map(len, parse_providers(data).values())) == MOST_MODELS


@pytest.mark.shows("I36")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_any_json(value: object) -> None:
    """Never anything but a mapping or ``BadReply``."""
    for body in (value, {"providers": value}, {"providers": [{"id": "p", "models": value}]}):
        try:
            found = parse_providers(json.dumps(body).encode())
        except BadReply:
            continue
        assert all(ids for ids in found.values())
