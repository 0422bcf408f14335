"""Long texts cut in the middle; of a tool's output the lines that tell of failures stay."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.hosts import cuts
from daemon.hosts.cuts import KEPT_CHARS, KEPT_LINES, OUTPUT, cut, cut_output

SHIM = Path(__file__).resolve().parents[2] / "plugin-shim" / "opencode" / "src" / "project.ts"
FINE = [f"ok   example.org/shop/part{n} 0.1s" for n in range(400)]


def log(*lines: str, at: int = 200) -> str:
    """A long log with these lines in its middle."""
    return "\n".join([*FINE[:at], *lines, *FINE[at:]])


@pytest.mark.parametrize(
    "line",
    [
        "FAIL example.org/shop/refund 0.31s",
        "--- FAIL: TestRefund (0.00s)",
        "E   AssertionError: assert 1 == 2",
        "src/app.ts(3,7): error TS2304: Cannot find name 'x'.",
        "not ok 7 - refunds the rest",
        "  ✗ refunds the rest",
        "3 failed, 20 passed",
        "thread 'main' panicked at src/main.rs:3:5:",
        " create mode 100644 .env",
        " ! [rejected]        main -> main (fetch first)",
    ],
)
def test_a_line_that_tells_of_a_failure_stays(line: str) -> None:
    """Wherever it stands; what is missing is counted."""
    text, missing = cut_output(log(line))
    assert line in text.split("\n")
    assert f"[... {missing} characters cut, not these lines ...]" in text
    assert len(text) < sum(OUTPUT) + 600


def test_many_such_lines_are_bounded() -> None:
    """The first and the last ones stay."""
    text, _ = cut_output(log(*(f"FAIL part {n}" for n in range(1_000))))
    kept = [each for each in text.split("\n") if each.startswith("FAIL")]
    assert len(kept) <= KEPT_LINES
    assert (kept[0], kept[-1]) == ("FAIL part 0", "FAIL part 999")
    wide, _ = cut_output(log(*(f"FAIL {'x' * 250} {n}" for n in range(50))))
    assert sum(len(each) for each in wide.split("\n") if each.startswith("FAIL")) <= KEPT_CHARS


def test_half_a_line_is_never_kept() -> None:
    """It could hold half a secret, which the redaction would not know."""
    text, _ = cut_output("a" * 2_000 + " FAIL sk-ant-0123456789 " + "b" * 9_000)
    assert "sk-ant" not in text


@pytest.mark.shows("I46")
@pytest.mark.parametrize("shift", range(0, 60, 7))
def test_half_a_word_is_never_kept(shift: int) -> None:
    """Where no line end is near, the word at the cut goes: half of a token has no shape."""
    token = "ghp_" + "abcdefghij0123456789" * 2
    text, _ = cut("word " * 100 + "x" * shift + f" {token} " * 400, OUTPUT)
    assert [word for word in text.split() if "ghp" in word or "0123" in word if word != token] == []


def test_the_shim_keeps_the_same_lines() -> None:
    """opencode's outputs are cut by the shim, Claude Code's by the daemon: both look for the same marks."""
    source = SHIM.read_text("utf-8")
    block = re.search(r"const TELLS = new RegExp\(\s*\[(.*?)\]\.join", source, re.DOTALL)
    assert block is not None
    theirs = "|".join(json.loads(f"[{block[1].strip().rstrip(',')}]"))
    assert theirs == cuts._TELLS.pattern


@given(st.from_regex(cuts._TELLS))
def test_the_words_are_in_each_line_that_tells(line: str) -> None:
    """The quick look by words leaves out no line that the pattern finds."""
    assert any(word in line.lower() for word in cuts._WORDS)
