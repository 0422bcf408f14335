"""Pull requests and issues in prose: what counts, what only looks like one; hostile text is cheap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.compaction.references import MAX_FOUND, Reference, text_references
from tests.support.tables import tables


def found(text: str) -> list[list[str | int]]:
    return [[r.kind, r.number] for r in text_references(text)]


@pytest.mark.parametrize(("text", "expected"), tables("references")["found"])
def test_references(text: str, expected: list[list[str | int]]) -> None:
    """The seed's forms, and what people make of them; colours, code, ranks and other trackers are none."""
    assert found(text) == expected


def test_addresses_carry_their_repository() -> None:
    """github.com goes without saying; an enterprise host does not."""
    ours, theirs = text_references(
        "https://github.com/acme/shop/pull/12 https://git.example.com:8443/x/y/issues/3"
    )
    assert ours == Reference("pr", 12, "text", "https://github.com/acme/shop/pull/12", "acme/shop")
    assert (theirs.kind, theirs.number, theirs.repo) == ("issue", 3, "git.example.com:8443/x/y")


def test_each_is_named_once_and_not_without_end() -> None:
    """A text that says the same thing often says it once; a list of thousands is cut."""
    assert found("PR #3, PR #3 and once more PR #3") == [["pr", 3]]
    assert len(found("\n".join(f"PR #{n}" for n in range(1, 999)))) == MAX_FOUND


HOSTILE = [
    "#",
    "PR #",
    "PR",
    "pull request ",
    "`",
    "``a",
    "```\n",
    "<a",
    "https://",
    "#1 ",
    "\n#1",
    "(#1",
    "issue #",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_megabytes_are_linear(piece: str) -> None:
    """A megabyte of almost-references is read in bounded work (a quadratic one would meet the time limit)."""
    for text in (piece * (1_000_000 // len(piece)), (piece + "x") * (1_000_000 // (len(piece) + 1))):
        assert len(text_references(text)) <= 1


@given(st.text(alphabet=st.sampled_from("#123PRpr issue`\n/.:-({~<>"), max_size=300))
def test_any_text_is_read(text: str) -> None:
    """Whatever stands there: no error, sane numbers, each reference once, and a quote from the text."""
    references = text_references(text)
    assert len({(r.kind, r.number) for r in references}) == len(references)
    assert all(0 <= r.number < 10_000_000 and r.quote and r.quote in text for r in references)


@given(st.lists(st.sampled_from(["#", "PR #", "`", "```\n", "a", "1", " ", "<", "://", "\n"]), max_size=50))
def test_a_fence_hides_what_it_holds(pieces: list[str]) -> None:
    """Nothing inside a fence that no line closes is a reference."""
    body = "".join(pieces).replace("`", "'").replace("~", "-")
    assert text_references(f"````\n{body}") == ()
