"""The prompts, filled with hostile text."""

from __future__ import annotations

import pytest

from daemon.memory.case import Case, Settings, Templates, asked
from daemon.memory.prompts import evaluation, reflexion
from daemon.paths import shipped
from tests.memory.failures import failed

TEXTS = {p.stem: p.read_text("utf-8") for p in shipped("prompts").glob("*.txt")}


@pytest.mark.shows("AC-2.6.1")
def test_the_question_of_the_daemon() -> None:
    """The requirements' text as it is, with the rules for lessons before it."""
    found = reflexion(asked(failed(), Templates.of(TEXTS), Settings(), "n1"))
    assert found.system == TEXTS["reflexion_rules"]
    head, tail = TEXTS["reflexion"].split("{reward_score}")[0], TEXTS["reflexion"].split("reasoning}")[1]
    assert found.text.startswith(head)
    assert found.text.endswith(tail)
    assert (found.purpose, found.tier) == ("haiku_reflexion", "fast")
    wanted = (0.7, 1_000, "claude-3-5-haiku-20241022")
    assert (found.temperature, found.max_tokens, found.wanted) == wanted


def test_names_in_braces_in_the_data_are_data() -> None:
    """A query that holds `{answer}` is shown as it is; an empty context says so."""
    case = Case("{answer} {nonce}", (), "{query}", TEXTS["evaluation"], nonce="n1")
    text = evaluation(case).text
    assert "--- the query n1\n{answer} {nonce}\n" in text
    assert "--- the answer n1\n{query}\n" in text
    assert "(no context was retrieved)" in text
