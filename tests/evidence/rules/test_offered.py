"""Asking leave for what was asked for; and offers of more, which stay quiet."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from tests.support.tables import tables
from tests.support.transcripts import COMMIT, TEST, edit, evidence_of, opened, read

ROWS = tables("requests")

FORMS = "Migrate the user form and the invoice form"
ANSWER = "Two services write to it: checkout in OrderEvents.java:31 and refunds in Publisher.java:19. " * 2


@pytest.mark.parametrize(
    ("ask", "calls", "final"),
    [
        ("Fix it and run the tests", (edit(),), "Fixed. Want me to run the tests?"),
        ("Fix it and run the tests", (edit(),), "Fixed. Let me know if you want me to run the tests."),
        ("Fix it and commit", (edit(), TEST), "Fixed. Shall I commit this?"),
        ("Fix it, commit and open a PR", (edit(), COMMIT), "Committed. Would you like me to open a PR?"),
        ("1. add a\n2. add b\n3. add c", (edit(),), "Steps 1 and 2 are done. Shall I continue with step 3?"),
        ("Fix the login bug", (read(),), "The check is missing in a.py. Shall I implement it?"),
        ("Fix it and add a test", (edit(),), "Fixed.\n\n## Next steps\n- Add a test for the fix"),
        (FORMS, (edit(),), "The user form is migrated. Want me to migrate the invoice form as well?"),
        ("Fix it und führe die Tests aus", (edit(),), "Fertig. Soll ich die Tests jetzt ausführen?"),
    ],
)
def test_asking_leave_for_what_was_asked(ask: str, calls: tuple[ToolCall, ...], final: str) -> None:
    """Permission-seeking: the request was the permission."""
    rows = [r for r in opened(ask, *calls, final=final) if r.kind in {"offer", "unmet"}]
    assert rows
    assert all(r.cites for r in rows)


@pytest.mark.shows("I15")
@pytest.mark.parametrize(
    ("ask", "calls", "final"),
    [
        ("Fix it", (edit(), TEST), "Fixed. Want me to add tests too?"),
        ("Fix it", (edit(), TEST), "Fixed. Shall I commit this?"),
        ("Fix it and run the tests", (edit(), TEST), "All pass. Want me to run them again with coverage?"),
        ("Fix it. No commit.", (edit(), TEST), "Fixed. Shall I commit this?"),
        ("Clean up and commit", (edit(),), "Should I commit this or squash it into the last one?"),
        ("Clean up the database", (read(),), "Shall I delete the production tables now?"),
        ("Deploy it", (edit(),), "I need the API token. Can you send it?"),
        ("Make a plan", (read(),), "Here is the plan. Shall I implement it?"),
        ("Fix it", (edit(), TEST), "Done.\n\n## Next steps (optional)\n- add tests"),
        ("Add validation to the form", (edit(), TEST), "Done. Want me to add more validation to the form?"),
        ("Use a database", (read(),), "Which database do you want? Shall I start with Postgres?"),
    ],
)
def test_real_questions_and_offers_of_more(ask: str, calls: tuple[ToolCall, ...], final: str) -> None:
    """A choice, a credential, something destructive, or more than was asked for: the person's turn."""
    assert opened(ask, *calls, final=final) == []


def test_admitted_gaps() -> None:
    """The final text itself says what is left, and gives no reason."""
    ask = "Implement weekly and monthly recurrence rules"
    (row,) = opened(
        ask, edit(), TEST, final="Weekly is in. Monthly recurrence rules are not yet implemented."
    )
    assert (row.kind, row.cites) == ("offer", ("R1",))
    reason = "Weekly is in. Monthly recurrence is not implemented, as you asked to keep it out of scope."
    assert opened(ask, edit(), TEST, final=reason) == []


@pytest.mark.parametrize(("ask", "final"), ROWS["offered"])
def test_offers_of_what_was_asked(ask: str, final: str) -> None:
    """Permission for what was asked for is sought in many words and languages."""
    calls = () if "Switch" in ask else (edit(),)
    assert opened(ask, read(), *calls, final=final)


@pytest.mark.parametrize(("ask", "final"), ROWS["more"])
def test_offers_of_more(ask: str, final: str) -> None:
    """An offer of more than was asked for, or of something that can't be undone, is not open."""
    assert not opened(ask, edit(), TEST, final=final)


@pytest.mark.shows("I24")
def test_an_offer_with_a_pronoun() -> None:
    """ "update them?" where all of them were to be updated."""
    ask = "Change the signature of reserve() and update all callers"
    assert any(r.kind == "offer" for r in evidence_of(ask, edit(), final="Want me to update them?").open)
    ask = "Cambia la firma de reservar() y actualiza todas las llamadas"
    assert any(r.kind == "offer" for r in evidence_of(ask, edit(), final="¿Quieres que las actualice?").open)
    other = evidence_of("Change the signature of reserve()", edit(), TEST, final="Want me to update them?")
    assert not other.open


@pytest.mark.shows("I25")
@pytest.mark.parametrize(
    ("final", "rows"),
    [
        (f"{ANSWER}\n\nDo you want me to drop the old subscription?", [False]),
        ("Do you want me to drop the old subscription?", []),
        (f"{ANSWER}\n\nShould I look further?", []),
        (f"{ANSWER}\n\nWhich one do you mean?", []),
    ],
)
def test_an_answer_and_an_offer_on_top(final: str, rows: list[bool]) -> None:
    """A question that is answered is done, whatever change is offered on top."""
    found = evidence_of("Which services write to orders.v2?", final=final)
    assert [r.open for r in found.of("offer")] == rows


@pytest.mark.shows("I24")
@pytest.mark.parametrize(("heading", "only_extras"), [("Next steps (optional)", True), ("Next steps", False)])
def test_optional_next_steps(heading: str, *, only_extras: bool) -> None:
    """A list that calls itself optional holds back nothing; another list may."""
    final = f"Renamed; all tests pass.\n\n## {heading}\n- Tell the users in the newsletter"
    found = evidence_of("Rename the package foo to bar", edit(), TEST, final=final)
    assert found.ending == "next_steps"
    assert bool(found.of("offer")) is only_extras


@pytest.mark.shows("I25")
def test_planning_only() -> None:
    """A change was asked for; reading and a plan is not it. A plan that was asked for is."""
    plan = "Here's my plan: I'll move the check into a helper and then update the callers."
    (row,) = opened("Fix the login bug", read(), final=plan)
    assert (row.kind, row.cites) == ("unmet", ("R1",))
    assert opened("Make a plan for fixing the login bug", read(), final=plan) == []
    assert opened("Why does the login fail?", read(), final=plan) == []
    assert opened("Fix the login bug", read(), final="I would, but it is already fixed on main.") == []
