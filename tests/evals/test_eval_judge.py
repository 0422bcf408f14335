"""``make eval-judge``: the figures are right, the table has its form, and the rules keep their invariant."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evals.judge import aims_missed
from evals.score import Outcome, score, wilson

REPO = Path(__file__).resolve().parents[2]
CLASSES = ["complete", "incomplete", "awaiting_user"]


def evaluate(*args: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "evals.judge", *args],
        cwd=REPO,
        env=os.environ | {"PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def outcome(expect: str, got: str, **more: Any) -> Outcome:
    return Outcome("case", "tuning", expect, got, **more)


def test_the_tuning_half_by_rules() -> None:
    """The table: each class with its figures and intervals, counts, cost, latency, and the invariant at 0."""
    done = evaluate("--split", "tuning")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    share = r"(?:-|[01]\.\d\d \([01]\.\d\d-[01]\.\d\d\))"
    rows = [m for line in lines if (m := re.fullmatch(rf"(\w+) +(\d+) +{share} +{share} +{share}", line))]
    assert [m[1] for m in rows] == CLASSES
    total = int(re.search(r"tuning: (\d+) cases", lines[0])[1])  # type: ignore[index]
    assert sum(int(m[2]) for m in rows) == total
    counts = [m for line in lines if (m := re.fullmatch(r"(\w+)((?: +\d+){4})", line))]
    assert [m[1] for m in counts] == CLASSES
    assert sum(int(n) for m in counts for n in m[2].split()) == total
    assert any(
        re.match(r"calls \d+, tokens 0 in and 0 out, cost 0\.0000 USD, latency median", s) for s in lines
    )
    assert "complete on a failed check after the last write: 0" in lines
    assert f"{total}/{total} judged" in done.stderr


def test_the_same_as_json() -> None:
    """Programs get the same figures, and every case with what was expected and what came."""
    done = evaluate("--split", "tuning", "--json")
    found = json.loads(done.stdout)
    tuning = found["splits"]["tuning"]
    assert (found["provider"], list(found["splits"]), tuning["broken"]) == ("offline", ["tuning"], 0)
    assert len(tuning["outcomes"]) == tuning["cases"]
    wrong = sum(o["got"] != o["expect"] for o in tuning["outcomes"])
    assert tuning["right"] == tuning["cases"] - wrong
    assert [c["name"] for c in tuning["classes"]] == CLASSES


def test_cases_of_ones_own(tmp_path: Path) -> None:
    """A person's case folder is scored as it is: labelled cases count, others are left out."""
    case = json.loads((REPO / ".reflection" / "samples" / "case.json").read_text("utf-8"))
    (tmp_path / "plain.json").write_text(json.dumps(case))
    case["label"] = {"expect": "incomplete"}
    (tmp_path / "mine.json").write_text(json.dumps(case))
    done = evaluate("--cases", str(tmp_path))
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0,
        "offline, no split: 1 cases, 1 right, 0 unscored",
    )


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--cases", "/nowhere"), "no labelled case"),
        (("--provider", "openai"), "OPENAI_API_KEY"),
        (("--split", "half"), "invalid choice"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_wrong_arguments(args: tuple[str, ...], words: str) -> None:
    """Exit code 2 and what to do."""
    done = evaluate(*args)
    assert (done.returncode, words in done.stderr) == (2, True), done


def test_a_broken_case_is_named(tmp_path: Path) -> None:
    """A case that can't be read stops the run: figures without it would be other figures."""
    (tmp_path / "bad.json").write_text("{")
    done = evaluate("--cases", str(tmp_path))
    assert (done.returncode, str(tmp_path / "bad.json") in done.stderr) == (2, True), done


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"), [(8, 10, 0.490, 0.943), (0, 5, 0.0, 0.434), (5, 5, 0.566, 1.0)]
)
def test_wilson_intervals(hits: int, of: int, low: float, high: float) -> None:
    """Against the published table of the score interval; none of nothing is no share at all."""
    share = wilson(hits, of)
    assert (round(share.low, 3), round(share.high, 3)) == (low, high)
    assert wilson(0, 0).value is None


def test_precision_recall_and_f1() -> None:
    """An unscored case is missed by its class and claimed by none; F1 is their harmonic mean."""
    found = score(
        [
            outcome("incomplete", "incomplete"),
            outcome("incomplete", "incomplete"),
            outcome("incomplete", "unscored"),
            outcome("incomplete", "complete"),
            outcome("complete", "incomplete"),
            outcome("complete", "complete"),
        ]
    )
    incomplete = next(c for c in found.classes if c.name == "incomplete")
    precision, recall = incomplete.precision.value, incomplete.recall.value
    assert (precision, recall) == (2 / 3, 2 / 4)
    assert incomplete.f1.value == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))
    assert incomplete.f1.low < incomplete.f1.value < incomplete.f1.high
    assert (found.right, found.unscored, found.cases) == (3, 1, 6)


def test_an_unknown_price_makes_the_sum_unknown() -> None:
    """Unknown is unknown, never 0; tokens and times are counted all the same."""
    known = outcome("complete", "complete", cost=0.01, tokens_in=100, ms=10)
    found = score([known, known, outcome("complete", "complete", cost=None, tokens_in=50, ms=1000)])
    assert (found.cost, found.tokens_in, found.median_ms, found.p95_ms) == (None, 250, 10, 1000)
    assert score([known, known]).cost == 0.02


def test_the_aims_on_the_held_out_half() -> None:
    """Precision first: feedback on finished work is the costly error. Never complete on a failed check."""
    good = [outcome("incomplete", "incomplete")] * 9 + [outcome("incomplete", "unscored")]
    assert aims_missed(score(good)) == []
    assert "precision" in aims_missed(score([*good, *[outcome("complete", "incomplete")] * 2]))[0]
    assert "recall" in aims_missed(score([*good, *[outcome("incomplete", "complete")] * 10]))[0]
    assert "failed check" in aims_missed(score([*good, outcome("incomplete", "complete", broken=True)]))[0]
