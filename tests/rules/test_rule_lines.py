"""The line of one rule: read as it was written, and which text may stand in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import UserError
from daemon.rules.rule_lines import BEGIN, Rule, checked, ending, written

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=80)


@given(TEXTS, TEXTS, st.booleans())
def test_what_is_written_is_read_as_it_was(text: str, reason: str, active: bool) -> None:
    """Whatever text may stand there, also brackets and bold words."""
    try:
        rule = Rule("rule-007", checked(text), active, "2025-11-27", "" if active else checked(reason))
    except UserError:
        return
    line = written(rule)
    begin = BEGIN.match(line)
    assert begin is not None
    assert begin[1] == "rule-007"
    assert ending(line[begin.end() :]) == (rule.text, rule.day, not active, rule.reason)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Use x", ("Use x", "", False, "")),
        ("Use x (archived: 2025-01-02, reason: a (b))", ("Use x", "2025-01-02", True, "a (b)")),
        ("Use x (learned: soon)", ("Use x (learned: soon)", "", False, "")),
        ("(learned: 2025-01-02) x", ("(learned: 2025-01-02) x", "", False, "")),
    ],
)
def test_lines_that_a_person_edited(text: str, found: tuple[str, str, bool, str]) -> None:
    """A date that is missing or written otherwise is part of the text, and nothing is lost."""
    assert ending(text) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" \n ", "empty"),
        ("a" * 501, "501 characters"),
        ("use\ud800tabs", "nobody sees"),
        ("a (learned: b", "leave `<!--`"),
    ],
)
def test_texts_that_can_not_stand_there(text: str, why: str) -> None:
    """They would be read otherwise, by us or by whoever reads the file."""
    with pytest.raises(UserError, match=why):
        checked(text)
