"""JSON out of prose: four strategies, in their order, in linear time."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.playbook.extract import extract_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FENCE = "```"


@pytest.mark.shows("REQ-REFL-008")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f'Look:\n{FENCE}json\n{{"a": 1}}\n{FENCE}\nDone.', {"a": 1}),
        (f'{FENCE}\n{{"a": 1}}\n{FENCE}', {"a": 1}),
        (f'{FENCE}\n{{"plain": 1}}\n{FENCE}\n{FENCE}json\n{{"tagged": 2}}\n{FENCE}', {"tagged": 2}),
        (f'{FENCE}json\nnot it\n{FENCE}\n{FENCE}json\n{{"a": 2}}\n{FENCE}', {"a": 2}),
        (f'{FENCE}json\n{{"a": "use {FENCE}bash in it"}}\n{FENCE}', {"a": f"use {FENCE}bash in it"}),
        ('Here: {"a": {"b": "}"}} and more', {"a": {"b": "}"}}),
        ('{no json} but {"a": "\\"{"}', {"a": '"{'}),
        ("  [1, 2]\n", [1, 2]),
        ('"text"', "text"),
        (f"{FENCE}json\n{{broken\n{FENCE}", None),
        ('{"a": 1', None),
        ("", None),
        ("[" * 100_000, None),
        ('{"a":' * 100_000, None),
    ],
)
def test_req_refl_008_the_first_strategy_that_finds_json_counts(text: str, found: Any) -> None:
    """A fence with the tag, one without, balanced braces, the whole text; else None."""
    assert extract_json(text) == found


@given(value=st.dictionaries(st.text(max_size=5), VALUES, max_size=4), before=st.text("ab .\n", max_size=20))
def test_any_object_is_found_in_prose_and_in_fences(value: Any, before: str) -> None:
    """Whatever its texts hold: braces, quotes, fences."""
    shown = json.dumps(value)
    assert extract_json(f"{before}{shown} {before}") == value
    assert extract_json(f"{before}\n{FENCE}json\n{shown}\n{FENCE}\n{before}") == value


@pytest.mark.shows("REQ-REFL-008")
@pytest.mark.parametrize(
    "piece", ["{", '{"', "}", "```", "```json", '{"a":', "\\", '"', "{}", '```json\n{"a":1']
)
def test_it_takes_linear_time(piece: str) -> None:
    """A million characters that almost are JSON end in seconds; quadratic time would take hours."""
    began = time.monotonic()
    extract_json(piece * (1_000_000 // len(piece)))
    assert time.monotonic() - began < 120
