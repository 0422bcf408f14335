"""What the model is asked after a compaction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.compaction.flow import evaluate
from tests.compaction.samples import GOOD, NONCE, case, run


def test_the_prompt_shows_what_was_recorded() -> None:
    """The seed's context: original task, last reply, tools used, PR references."""
    _, (prompt,) = run(evaluate(case()), GOOD)
    for shown in (
        "Add a login page",
        "an earlier request) Look at the shop first",
        "The page is there.",
        "## Goal",
        "edit x1, bash x1",
        "commands that ran: git push, gh pr create",
        "the last command was about: PR #12",
        "open item: No test covers the login page",
        "open todo: write tests",
        "the last verdict: incomplete",
    ):
        assert shown in prompt.text


@pytest.mark.shows("I27")
@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
def test_any_data_makes_one_fenced_prompt(request: str, summary: str, said: str) -> None:
    """Braces and markers in the data change nothing: each fence stands once, in its order."""
    found = case(requests=(request,), summary=summary, last_reply=said)
    prompt = next(evaluate(found))
    assert prompt.text.startswith(f"The marker of this data is {NONCE}.")
    assert prompt.text.rstrip().endswith(f"--- end {NONCE}")
