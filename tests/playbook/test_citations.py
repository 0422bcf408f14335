"""Cited ids: those of the assistant, each once, in texts and in blocks."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.playbook.citations import CITED, cited_ids, cited_in

IDS = st.sampled_from(["[pat-001]", "[mis-002]", "[kpt_003]", "pat-004", "[xyz-001]", "[pat-]", " and "])


def says(content: Any, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "content": content}


@pytest.mark.shows("REQ-REFL-001")
def test_req_refl_001_the_pattern_is_the_agreed_one() -> None:
    """Exactly these ids."""
    assert CITED.pattern == r"\[((?:pat|mis|pref|ctx|oth)-\d+|kpt_\d+)\]"


@pytest.mark.shows("REQ-REFL-001")
def test_blocks_are_read_like_texts() -> None:
    """Texts and thoughts of blocks count; what a tool was asked and answered does not."""
    blocks = [
        {"type": "thinking", "thinking": "as [ctx-001] says"},
        {"type": "reasoning", "text": "[pref-002]"},
        {"type": "text", "text": "I follow [pat-001]."},
        "[oth-009]",
        {"type": "tool_use", "name": "write", "input": {"content": "[mis-001]"}},
        {"type": "tool_result", "content": "[mis-002]"},
        {"type": "text"},
        7,
    ]
    assert cited_ids([says(blocks)]) == ["ctx-001", "pref-002", "pat-001", "oth-009"]


def test_what_is_no_message_is_passed_over() -> None:
    """A damaged transcript loses only what is damaged."""
    assert cited_ids([None, 3, "x [pat-001]", {}, says(None), says(["[pat-002]"])]) == ["pat-002"]


@pytest.mark.shows("INV-REFL-001")
@given(
    texts=st.lists(st.lists(IDS, max_size=5).map("".join), max_size=6),
    roles=st.lists(st.booleans(), max_size=6),
)
def test_inv_refl_001_each_cited_id_comes_once(texts: list[str], roles: list[bool]) -> None:
    """No id twice, none of a user, and every id that an assistant cites."""
    messages = [says(t, "assistant" if r else "user") for t, r in zip(texts, roles, strict=False)]
    found = cited_ids(messages)
    assert len(set(found)) == len(found)
    own = "".join(m["content"] + "|" for m in messages if m["role"] == "assistant")
    assert set(found) == set(re.findall(CITED, own))


def test_many_brackets_take_linear_time() -> None:
    """Ten million characters that almost cite end at once."""
    assert cited_in(["[pat-" * 2_000_000 + "1]"]) == ["pat-1"]
