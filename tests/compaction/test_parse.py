"""A model's reply after a compaction: taken in the agreed form, refused in any other."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.compaction.parse import ACTIONS, Answer, parse
from daemon.core.errors import BadReply
from daemon.core.llm import Reply
from daemon.testing import reply
from tests.compaction.samples import GOOD, NONCE


@pytest.mark.shows("I18")
@pytest.mark.parametrize(
    "change",
    [
        {"action": "continue"},
        {"action": "COMPLETE"},
        {"action": None},
        {"action": ["continue_task"]},
        {"confidence": 1.5},
        {"confidence": -0.1},
        {"confidence": "0.9"},
        {"confidence": True},
        {"confidence": None},
        {"confidence": float("nan")},
        {"reason": 3},
        {"message": ["x"]},
        {"message": None},
    ],
)
def test_a_reply_out_of_form_is_refused(change: dict[str, Any]) -> None:
    """Off-menu actions and wrong types never count, in prose or structured."""
    with pytest.raises(BadReply):
        parse(reply(GOOD | change, NONCE), NONCE)
    with pytest.raises(BadReply):
        parse(Reply(text="", provider="t", data=GOOD | change))


@pytest.mark.shows("I18")
@pytest.mark.parametrize("missing", ["action", "confidence", "nonce"])
def test_a_reply_that_lacks_something_is_refused(missing: str) -> None:
    """The keys that decide must be there; the words may be missing."""
    said = {k: v for k, v in (GOOD | {"nonce": NONCE}).items() if k != missing}
    with pytest.raises(BadReply, match="no action object"):
        parse(Reply(json.dumps(said), "t"), NONCE)
    assert parse(Reply("", "t", data={"action": "task_complete", "confidence": 1})) == Answer("task_complete")


json_values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.lists(st.text())
)
DECIDE = dict.fromkeys(("action", "confidence"), json_values)


@pytest.mark.shows("I18")
@given(st.fixed_dictionaries(DECIDE, optional={"message": json_values}))
def test_any_object_parses_or_is_refused(data: dict[str, object]) -> None:
    """Nothing but an answer or ``BadReply`` ever comes out."""
    with contextlib.suppress(BadReply):
        assert parse(Reply("", "t", data=data)).action in ACTIONS
