"""Pull requests and issues in prose: what counts, what only looks like one; hostile text is cheap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.compaction.references import MAX_FOUND, Reference, text_references

FOUND = [
    ("Fixed in #123.", [("unknown", 123)]),
    ("#482: reject empty names", [("unknown", 482)]),
    ("see (#123) for more", [("unknown", 123)]),
    ("Fixes #7", [("unknown", 7)]),
    ("closes: #9", [("unknown", 9)]),
    ("Resolves #5 and #6", [("unknown", 5), ("unknown", 6)]),
    ("bug #431 is back", [("unknown", 431)]),
    ("PR #34", [("pr", 34)]),
    ("PR#34", [("pr", 34)]),
    ("PR34", [("pr", 34)]),
    ("pr 34 needs a rebase", [("pr", 34)]),
    ("PR #3 days of work", [("pr", 3)]),
    ("I pushed to PR #34, which closes issue #42.", [("pr", 34), ("issue", 42)]),
    ("pull request #12", [("pr", 12)]),
    ("Pull-request 12 is green", [("pr", 12)]),
    ("Merge pull request #88 from acme/fix", [("pr", 88)]),
    ("issue #42", [("issue", 42)]),
    ("Issues #42, #43", [("issue", 42), ("unknown", 43)]),
    ("work on issue #1: the button", [("issue", 1)]),
    ("I opened a pull request for review.", [("pr", 0)]),
    ("https://github.com/acme/shop/pull/12", [("pr", 12)]),
    ("see https://github.com/acme/shop/issues/7#issuecomment-99", [("issue", 7)]),
    ("[the PR](https://git.example.com/acme/shop/pull/5/files)", [("pr", 5)]),
    ("PR #34 fixes the color of the button", [("pr", 34)]),
    ("# Notes\n\nIssue #42 is next", [("issue", 42)]),
    ("```\n#99 in code\n```\nbut #123 after it", [("unknown", 123)]),
    ("the PR is #512", [("unknown", 512)]),
]
NOTHING = [
    "",
    "# 123",
    "## 2",
    "### 2. Results",
    "#fff",
    "#123456",
    "#12ab34",
    "color: #123",
    "color:#123;",
    "background-color: #1234",
    "the border is 1px solid #345",
    "set the theme's accent to #222",
    "fill #334 and stroke #556",
    '<path fill="#123"/>',
    '<img alt="see PR 12 there">',
    "<a href=#123>top</a>",
    "`#123`",
    "`git commit -m 'PR #34'`",
    "``see #123``",
    "```\nPR #34\n```",
    "~~~md\nfixes #12\n~~~",
    "- ```\n  fixes #12\n  ```",
    "```python\nfixes #12  # never closed",
    "#app { margin: 0 }",
    "#123 { color: red }",
    "page.html#12",
    "docs/setup#123",
    "see https://example.com/a#123",
    "https://example.com/pull-request-12",
    "www.example.com/#123",
    "https://github.com/acme/shop/pull/new/fix-12",
    "https://gitlab.com/acme/shop/-/merge_requests/12",
    "https://github.com/acme/shop/pull/12-old",
    "#define X 1",
    "\\newcommand{\\x}[1]{#1}",
    "the #1 reason",
    "our #2 priority",
    "#1 on the list",
    "We are #1!",
    "Issue 1: the name is empty",
    "Issue #1: the name is empty",
    "**Issue #2**: the name is long",
    "- issue #3: no tests",
    "issue 42 of the magazine",
    "JIRA-123",
    "order #4711",
    "ticket #123",
    "Ticket #5512 in Zendesk",
    "build #88 failed",
    "step #12",
    "test #14 fails",
    "line #200",
    "attempt #11",
    "join #2600 on IRC",
    "version 1.2.3",
    "v1.2.3#4",
    "#1.2.3",
    "PR 1.2.3",
    "PRIMARY34",
    "sprint34",
    "APR34",
    "spr 34",
    "pr-34-preview.example.com",
    "a PR 3 days ago",
    "PR 2 of 5",
    "PR 90 % done",
    "&#123;",
    "a#123",
    "C#12",
    "#123abc",
    "#12-34",
    "#31#",
    "# PR",
    "Do not open a pull request.",
    "I don't think a pull request is needed",
    "without a pull request",
    "pull requests welcome",
    "print 34",
    "prepare 12 things",
    "#0",
    "#0123",
    'id="#123"',
    "key: #123",
]


def found(text: str) -> list[tuple[str, int]]:
    return [(r.kind, r.number) for r in text_references(text)]


@pytest.mark.parametrize(("text", "expected"), FOUND, ids=[text for text, _ in FOUND])
def test_references_are_found(text: str, expected: list[tuple[str, int]]) -> None:
    """The seed's forms and what people make of them, in the order of the text."""
    assert found(text) == expected


@pytest.mark.parametrize("text", NOTHING)
def test_hard_negatives(text: str) -> None:
    """Headings, colours, code, anchors, ranks, lists, other trackers and other words are no GitHub work."""
    assert found(text) == []


def test_addresses_carry_their_repository() -> None:
    """github.com goes without saying; an enterprise host does not."""
    ours, theirs = text_references(
        "https://github.com/acme/shop/pull/12 https://git.example.com:8443/x/y/issues/3"
    )
    assert ours == Reference("pr", 12, "text", "https://github.com/acme/shop/pull/12", "acme/shop")
    assert (theirs.kind, theirs.number, theirs.repo) == ("issue", 3, "git.example.com:8443/x/y")


def test_each_is_named_once_and_not_without_end() -> None:
    """A text that says the same thing often says it once; a list of thousands is cut."""
    assert found("PR #3, PR #3 and once more PR #3") == [("pr", 3)]
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
    "issue #",
    "\n#1",
    "(#1",
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
    for r in references:
        assert 0 <= r.number < 10_000_000
        assert r.quote
        assert r.quote in text


@given(st.lists(st.sampled_from(["#", "PR #", "`", "```\n", "a", "1", " ", "<", "://", "\n"]), max_size=50))
def test_a_fence_hides_what_it_holds(pieces: list[str]) -> None:
    """Nothing inside a fence that no line closes is a reference."""
    body = "".join(pieces).replace("`", "'").replace("~", "-")
    assert text_references(f"````\n{body}") == ()
