"""Words that smell of half-done work: a closed row, whatever else the text says."""

from __future__ import annotations

import pytest

from tests.support.transcripts import TEST, edit, evidence_of

HANDLERS = "Convert all handlers to async"


@pytest.mark.shows("I31")
@pytest.mark.parametrize(
    ("ask", "final"),
    [
        ("Convert the importer to async", "I put the foundation in place."),
        ("Convert the importer to async", "This is a first step."),
        ("Convert the importer to async", "The main parts work for now."),
        ("Convert the importer to async", "Basis steht, vorerst."),
        (HANDLERS, "Users and orders are async. The other handlers follow the same pattern."),
        (HANDLERS, "I left the admin handlers for a follow-up."),
        (HANDLERS, "I've only converted the users handlers so far."),
        ("Stell alle Handler auf async um", "users ist umgestellt, die übrigen Handler folgen später."),
        ("Convierte todos los handlers a async", "Los demás handlers quedan pendientes."),
    ],
)
def test_smells(ask: str, final: str) -> None:
    """In several languages; a model has to weigh it, so it proves nothing."""
    assert [r.open for r in evidence_of(ask, edit(), TEST, final=final).of("unmet")] == [False]


@pytest.mark.shows("I31")
@pytest.mark.parametrize(
    ("ask", "final"),
    [
        (HANDLERS, "All 8 handlers are async. The other modules are unchanged."),
        (HANDLERS, "All handlers are async. A follow-up could drop the old helper."),
        (HANDLERS, "All handlers are async. You may want to profile it later."),
        (
            "Only convert the users handler for now",
            "users is async. The other handlers follow the same pattern.",
        ),
        ("Start with the first two handlers", "2 of the 8 handlers are async so far."),
        ("Make a plan for converting all handlers", "Remaining:\n- orders handlers\n- billing handlers"),
        ("How many handlers are async?", "3 of the 8 handlers are async so far."),
    ],
)
def test_no_smell(ask: str, final: str) -> None:
    """Ideas, a request that was narrow itself, a plan and an answer leave nothing over."""
    assert not evidence_of(ask, edit(), TEST, final=final).of("unmet")


def test_what_is_proven_needs_no_smell() -> None:
    """Beside an open row the closed one would say nothing new."""
    found = evidence_of("Fix it and commit", edit(), TEST, final="This is a first step.")
    assert [r.topic for r in found.of("unmet")] == ["commit"]
