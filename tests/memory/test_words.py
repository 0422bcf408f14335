"""What a text about a task is made of."""

from __future__ import annotations

import pytest

from daemon.memory.words import read


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("delete the user", "lösche den Benutzer"),
        ("delete the user", "supprime l'utilisateur"),
        ("delete the user", "elimina el usuario"),
        ("invoiceNumber", "invoice_number"),
        ("Rechnungsnummer", "invoice number"),
    ],
)
def test_the_same_in_other_words(one: str, other: str) -> None:
    """Languages, spellings and compounds meet in concepts."""
    assert set(read(one).terms) == set(read(other).terms)


def test_names_are_kept_whole() -> None:
    """Identifiers, files and errors, folded; plain words are none."""
    found = read("PaymentService.charge in src/pay/service.py raises `KeyError`, ENOENT after deploy")
    assert {"paymentservice.charge", "src/pay/service.py", "service.py", "keyerror", "enoent"} <= found.names
    assert "deploy" not in found.names
    assert found.errors == {"keyerror", "enoent"}


@pytest.mark.parametrize("text", ["", "the of and", "🙂 …", "\x00"])
def test_a_text_without_words(text: str) -> None:
    """Nothing is read, nothing fails."""
    assert read(text).terms == ()


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    """What stands behind 4,000 characters does not count."""
    assert "export" not in read("filler " * 1_000 + "export").terms
