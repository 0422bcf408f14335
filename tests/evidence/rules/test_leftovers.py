"""Words that smell of half-done work: a closed row, whatever else the text says."""

from __future__ import annotations

import pytest

from tests.support.tables import tables
from tests.support.transcripts import TEST, edit, evidence_of

ROWS = tables("requests")

HANDLERS = "Convert all handlers to async"


@pytest.mark.shows("I31")
@pytest.mark.parametrize(("ask", "final"), ROWS["smells"])
def test_smells(ask: str, final: str) -> None:
    """In several languages; a model has to weigh it, so it proves nothing."""
    assert [r.open for r in evidence_of(ask, edit(), TEST, final=final).of("unmet")] == [False]


@pytest.mark.shows("I31")
@pytest.mark.parametrize(("ask", "final"), ROWS["no_smell"])
def test_no_smell(ask: str, final: str) -> None:
    """Ideas, a request that was narrow itself, a plan and an answer leave nothing over."""
    assert not evidence_of(ask, edit(), TEST, final=final).of("unmet")


def test_what_is_proven_needs_no_smell() -> None:
    """Beside an open row the closed one would say nothing new."""
    found = evidence_of("Fix it and commit", edit(), TEST, final="This is a first step.")
    assert [r.topic for r in found.of("unmet")] == ["commit"]
