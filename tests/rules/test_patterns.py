"""What counts as the same instruction, and from when on it is suggested."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.rules.patterns import THRESHOLDS, Groups, alike, is_due, ranked, shape_of
from harness.machine.sandbox import REPO

WORDS = st.sampled_from(
    ["use", "tests", "run", "before", "not", "never", "npm", "bun", "the", "lint", "commit", "always", "src"]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)


@pytest.mark.shows("FR3")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Use strict TypeScript", "Always use strict TypeScript"),
        ("Don't commit without tests", "never commit without tests"),
        ("Run the linter before you commit", "run linter before committing, please"),
        ("Use pnpm", "Use pnpm instead of npm"),
        ("Avoid default exports", "don\u2019t use default exports"),
    ],
)
def test_the_same_in_other_words_is_one_group(a: str, b: str) -> None:
    """Endings, politeness and how long it holds make no difference."""
    assert alike(shape_of(a), shape_of(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Use tabs", "Use spaces"),
        ("Use pnpm, not npm", "Use npm, not pnpm"),
        ("Run the tests before the build", "Run the build before the tests"),
        ("Use default exports", "Don't use default exports"),
        ("Put helpers into src/utils", "Put helpers into src/lib"),
        ("Wait 5 seconds between retries", "Wait 10 seconds between retries"),
        ("Run the linter", "Run the linter, the tests, the type checker and the formatter"),
    ],
)
def test_another_object_order_or_negation_is_another_group(a: str, b: str) -> None:
    """A word in the place of another one means something else, however long the rest is."""
    assert not alike(shape_of(a), shape_of(b))


@given(a=TEXTS, b=TEXTS)
def test_alike_works_both_ways(a: str, b: str) -> None:
    """Of two texts none is the first one, and each is alike to itself."""
    assert alike(shape_of(a), shape_of(b)) == alike(shape_of(b), shape_of(a))
    assert alike(shape_of(a), shape_of(a))


@given(texts=st.lists(TEXTS, max_size=12), text=TEXTS, dropped=st.sets(st.integers(0, 11)))
def test_a_group_is_found_as_if_all_were_compared(texts: list[str], text: str, dropped: set[int]) -> None:
    """The search by words finds exactly what comparing with each of them would find."""
    groups = Groups()
    for n, known in enumerate(texts):
        groups.put(f"sig-{n}", known)
    for n in dropped:
        groups.drop(f"sig-{n}")
    left = [n for n in range(len(texts)) if n not in dropped]
    expected = next((f"sig-{n}" for n in left if alike(shape_of(texts[n]), shape_of(text))), "")
    assert groups.find(text) == expected


def test_a_name_can_get_another_text() -> None:
    """Then it is found by the new text only."""
    groups = Groups()
    groups.put("a", "Run the linter first")
    groups.put("a", "Write tests for each fix")
    assert groups.find("run the linter first") == ""
    assert groups.find("Write a test for each fix") == "a"


@given(text=st.text(max_size=200))
def test_any_text_has_a_shape(text: str) -> None:
    """Nothing is raised, and there is always a word to compare."""
    assert shape_of(text).words


def signal(severity: str, seen: int, **more: str) -> dict[str, object]:
    return {"type": "correction", "status": "pending", "severity": severity, "occurrences": seen, **more}


@pytest.mark.shows("POISON_PATH-3")
def test_grouping_needs_no_model() -> None:
    """Patterns are found by words; neither a model nor a library for vectors is loaded."""
    code = (
        "import sys; import daemon.rules.journal, daemon.rules.gather, daemon.rules.patterns;"
        "print([n for n in sys.modules if n.startswith(('numpy', 'onnx', 'daemon.embed', 'daemon.llm',"
        " 'anthropic', 'openai', 'sklearn', 'daemon.engine'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.shows("FR3")
def test_thresholds_by_severity() -> None:
    """High after one session, medium after two, low after three; nothing that was decided, no praise."""
    assert THRESHOLDS == {"high": 1, "medium": 2, "low": 3}
    for severity, needed in THRESHOLDS.items():
        assert [is_due(signal(severity, n)) for n in (needed - 1, needed, needed + 1)] == [False, True, True]
    for other in ({"status": "dismissed"}, {"status": "promoted"}, {"type": "feedback"}):
        assert not is_due(signal("high", 9, **other))


def test_what_is_suggested_first() -> None:
    """Severe before mild, often before seldom, new before old."""
    listed = [
        signal("low", 9, last_seen="2026-01-01"),
        signal("high", 1, last_seen="2026-01-01"),
        signal("high", 1, last_seen="2026-02-01"),
        signal("high", 3, last_seen="2025-01-01"),
    ]
    assert [listed.index(dict(s)) for s in ranked(listed)] == [3, 2, 1, 0]
