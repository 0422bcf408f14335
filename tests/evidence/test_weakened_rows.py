"""Weakened tests are said, and never prove by themselves that work is left."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from daemon.evidence.edits import weakenings
from tests.support.transcripts import FAILED, RED, TEST, bash, edit, evidence_of, write

SKIP = edit("tests/test_a.py", "def test_x():", "@pytest.mark.skip\ndef test_x():")
BENT = edit("tests/test_a.py", "assert tax(10) == 517", "assert tax(10) == 500")


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    ("calls", "said"),
    [
        (
            (edit(), bash("pytest", FAILED, 1), SKIP, TEST),
            "1 test skip added in tests/test_a.py while a test",
        ),
        ((SKIP, TEST), "1 test skip added in tests/test_a.py"),
        ((edit("tests/test_a.py", "assert a == 1", "pass"), TEST), "1 assertion removed or loosened"),
        ((bash("git rm tests/test_a.py"), TEST), "test file tests/test_a.py deleted"),
        ((RED, BENT, TEST), "the values that tests expect were changed"),
    ],
)
def test_weakened_tests(calls: tuple[ToolCall, ...], said: str) -> None:
    """The row says what became weaker, and whether a test had failed; a model reads whether that was
    wanted.
    """
    (row,) = evidence_of("Add a cache", *calls).of("tests_changed")
    assert row.text.startswith(said)
    assert not row.open


@pytest.mark.shows("I24")
@pytest.mark.parametrize("calls", [(RED, BENT, edit("src/tax.py"), TEST), (BENT, TEST)])
def test_new_behaviour_has_new_values(calls: tuple[ToolCall, ...]) -> None:
    """Other expected values count only while a test had failed and nothing but tests was written."""
    assert evidence_of("Fix it", *calls).of("tests_changed") == ()


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    "calls",
    [
        (write("tests/test_tmp.py", "x"), bash("rm tests/test_tmp.py")),
        (write("/repo/tests/test_tmp.py", "x"), bash("rm tests/test_tmp.py")),
        (bash("cat > tests/test_tmp.py <<'E'\nassert 1\nE"), bash("rm -f tests/test_tmp.py")),
        (write("tests/tmp/test_a.py", "x"), bash("rm -rf tests/tmp")),
        (write("tests/test_tmp.py", "assert a == 1"), edit("tests/test_tmp.py", "assert a == 1", "pass")),
    ],
)
def test_the_agents_own_temporary_tests(calls: tuple[ToolCall, ...]) -> None:
    """Tests that this task made itself are no loss, however they were written and removed."""
    assert evidence_of("Fix it", *calls, TEST).of("tests_changed") == ()


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("assertEqual(a, b)", "assertAlmostEqual(a, b, delta=0.05)"),
        ("assert a == b", "assert a == pytest.approx(b, abs=1)"),
        ("expect(a).toBe(b)", "expect(a).toBeCloseTo(b, 0)"),
        ("assert.Equal(t, a, b)", "assert.InDelta(t, a, b, 0.1)"),
        ("EXPECT_EQ(a, b);", "EXPECT_NEAR(a, b, 1);"),
    ],
)
def test_a_wider_tolerance(old: str, new: str) -> None:
    """A tolerance put in while a test failed is a change of what tests expect."""
    loosen = edit("/repo/tests/test_a.py", old, new)
    assert [w.change for w in weakenings(loosen)] == ["expected"]
    assert evidence_of("Find the cause", RED, loosen, TEST).of("tests_changed")
    assert not evidence_of("Fix the total", RED, edit(), loosen, TEST).of("tests_changed")
