"""What the final text offers; whether that had been asked for is shown in ``rules/test_open_rows``."""

from __future__ import annotations

import pytest

from daemon.evidence.answer.offers import leave_asked, offers, only_extras


@pytest.mark.parametrize(
    ("text", "topic", "step", "goes_on"),
    [
        ("Fixed. Want me to run the tests?", "tests", 0, False),
        ("Fixed. Let me know if you want me to commit it.", "commit", 0, False),
        ("Steps 1 and 2 are done. Shall I continue with step 3?", None, 3, True),
        ("Found it. Shall I go ahead?", None, 0, True),
        ("Fertig. Soll ich die Tests jetzt ausführen?", "tests", 0, False),
        ("Corrigé. Veux-tu que je lance les tests ?", "tests", 0, False),
    ],
)
def test_an_offer(text: str, topic: str | None, step: int, *, goes_on: bool) -> None:
    """Its topic where that is plain, the step it names, or that it only asks to go on."""
    (offer,) = offers(text)
    assert (offer.topic, offer.step, offer.goes_on, offer.listed) == (topic, step, goes_on, False)


REAL = [
    "Should I commit this or squash it into the last one?",
    "Shall I delete the production tables now?",
    "That would delete 41 backups for good. Shall I go ahead?",
    "I need the API token. Can you send it?",
    "All tests pass.",
]


@pytest.mark.shows("I15")
def test_no_offer() -> None:
    """A choice, something destructive, a credential: a real question is no offer."""
    assert [text for text in REAL if offers(text)] == []


def test_a_list_of_next_steps() -> None:
    """Each item is an offer, unless the list calls itself optional."""
    (offer,) = offers("Fixed.\n\n## Next steps\n- Add a test for the fix")
    assert (offer.listed, offer.topic) == (True, "new_tests")
    optional = "Fixed.\n\n## Next steps (optional)\n- Add a test"
    assert offers(optional) == ()
    assert only_extras(optional)
    assert not only_extras("Fixed.\n\n## Next steps\n- Add a test")


def test_what_leave_is_asked_for() -> None:
    """Of the last sentence, a real question or not; none where it lets choose."""
    assert leave_asked("It is slow. Do you want me to drop the index?") == "drop the index"
    assert leave_asked("Do you want me to drop it or keep it?") == ""
