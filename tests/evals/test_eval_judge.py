"""``make eval-judge``: the figures are right, the table has its form, and the rules keep their invariant."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from evals.judge import aims_missed
from evals.report import table
from evals.score import Outcome, score
from tests.evals.running import REPO, evaluate

CLASSES = ["complete", "incomplete", "awaiting_user"]


PAGE = (("incomplete", 3), ("incomplete", 5), ("complete", 3), ("awaiting_user", 3))
"""The columns of the table in design/judge.md: a class, and its precision or recall."""


def outcome(expect: str, got: str, **more: Any) -> Outcome:
    return Outcome("case", "tuning", expect, got, **more)


def test_the_tuning_part_by_rules() -> None:
    """The table with its figures, which the page has too; the held-out part stays closed."""
    done = evaluate("judge")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    share = r"(?:-|[01]\.\d\d \([01]\.\d\d-[01]\.\d\d\))"
    with_counts = rf"(\d+) of (\d+), {share}"
    row = rf"(\w+) +(\d+) +{with_counts} +{with_counts} +{share} +(\d+) of (\d+)"
    rows = [m for line in lines if (m := re.fullmatch(row, line))]
    assert [m[1] for m in rows] == CLASSES
    total = int(re.search(r"tuning: (\d+) cases", lines[0])[1])  # type: ignore[index]
    assert sum(int(m[2]) for m in rows) == total
    assert all(m[2] == m[6] == m[8] and m[3] == m[5] for m in rows)  # recall and coverage are of its cases
    counts = [m for line in lines if (m := re.fullmatch(r"(\w+)((?: +\d+){4})", line))]
    assert [m[1] for m in counts] == CLASSES
    assert sum(int(n) for m in counts for n in m[2].split()) == total
    (speaks,) = (m for line in lines if (m := re.fullmatch(rf"speaks on {with_counts}", line)))
    assert (int(speaks[1]), int(speaks[2])) == (sum(int(m[7]) for m in rows), total)
    prompt = r"(system text|data|both)((?: +\d+){3})  characters / 4"
    tokens = {m[1]: [int(n) for n in m[2].split()] for line in lines if (m := re.fullmatch(prompt, line))}
    system, data, both = (tokens[name] for name in ("system text", "data", "both"))
    assert 0 < system[0] == system[1] == system[2] < both[0]  # it is the same for each case
    assert 0 < data[0] < data[1] < data[2] < both[2]
    assert any(re.match(r"calls \d+, tokens not counted, cost 0\.0000 USD, latency median", s) for s in lines)
    assert "complete on a failed check after the last write: 0" in lines
    assert not any(line.startswith(("aims", "AIM")) for line in lines)
    assert done.stderr.split() == [f"{total}/{total}", "judged"]
    page = (REPO / "design" / "judge.md").read_text("utf-8")
    by = {m[1]: m for m in rows}
    said = [f"{by[name][at]} of {by[name][at + 1]}" for name, at in PAGE]
    row = rf"\| tuning \| {total} \| {speaks[1]} [^|]*\| \d+ \| " + r" [^|]*\| ".join(said)
    assert re.search(row, page), f"the table in design/judge.md is not what the command says: {said}"


def test_the_same_as_json() -> None:
    """Programs get the same figures, and every case with what was expected and what came."""
    done = evaluate("judge", "--json")
    found = json.loads(done.stdout)
    tuning = found["splits"]["tuning"]
    assert (found["provider"], list(found["splits"]), tuning["broken"]) == ("offline", ["tuning"], 0)
    assert len(tuning["outcomes"]) == tuning["cases"]
    wrong = sum(o["got"] != o["expect"] for o in tuning["outcomes"])
    assert tuning["right"] == tuning["cases"] - wrong
    assert [c["name"] for c in tuning["classes"]] == CLASSES
    assert tuning["coverage"]["of"] - tuning["coverage"]["hits"] == tuning["unscored"]
    prompts, chars = tuning["prompt_tokens"], [o["data_chars"] for o in tuning["outcomes"]]
    assert (prompts["counted"], prompts["data"]["max"]) == (0, math.ceil(max(chars) / 4))


def test_cases_of_ones_own(tmp_path: Path) -> None:
    """A person's case folder is scored as it is: labelled cases count, others are left out."""
    case = json.loads((REPO / ".reflection" / "samples" / "case.json").read_text("utf-8"))
    (tmp_path / "plain.json").write_text(json.dumps(case))
    case["label"] = {"expect": "incomplete"}
    (tmp_path / "mine.json").write_text(json.dumps(case))
    done = evaluate("judge", "--cases", str(tmp_path))
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0,
        "offline, no split: 1 cases, 1 right, 0 unscored",
    )


def test_the_held_out_part(tmp_path: Path) -> None:
    """Only it has aims, and opening it is said; a missed one is an error for ``--strict`` alone."""
    case = json.loads((REPO / ".reflection" / "samples" / "case.json").read_text("utf-8"))
    for split, expect in (("tuning", "incomplete"), ("fresh", "complete")):
        of = case | {"split": split, "label": {"expect": expect}}
        (tmp_path / f"{split}.json").write_text(json.dumps(of))
    closed, opened, both, strict = (
        evaluate("judge", "--cases", str(tmp_path), *args)
        for args in ((), ("--split", "fresh"), ("--split", "all"), ("--split", "fresh", "--strict"))
    )
    assert (closed.returncode, "fresh" in closed.stdout + closed.stderr) == (0, False)
    assert "aims" not in closed.stdout
    assert opened.stdout.startswith("offline, fresh: 1 cases, 0 right")
    for done in (opened, both, strict):
        assert "evals: this opens the held-out part (fresh), once" in done.stderr
        assert (
            "\naims: precision of incomplete at least 0.90, precision of complete at least 0.85"
            in done.stdout
        )
        assert "AIM MISSED: precision of incomplete is 0 of 1, 0.00" in done.stdout
    assert (opened.returncode, both.returncode, strict.returncode) == (0, 0, 1)
    assert "offline, tuning: 1 cases, 1 right" in both.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--cases", "/nowhere"), "no labelled case"),
        (("--provider", "openai"), "OPENAI_API_KEY"),
        (("--split", "heldout"), "invalid choice"),
        (("--provider", "auto", "--dump", "x"), "not allowed with"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_wrong_arguments(args: tuple[str, ...], words: str) -> None:
    """Exit code 2 and what to do."""
    done = evaluate("judge", *args)
    assert (done.returncode, words in done.stderr) == (2, True), done


def test_a_broken_case_is_named(tmp_path: Path) -> None:
    """A case that can't be read stops the run: figures without it would be other figures."""
    (tmp_path / "bad.json").write_text("{")
    done = evaluate("judge", "--cases", str(tmp_path))
    assert (done.returncode, str(tmp_path / "bad.json") in done.stderr) == (2, True), done


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


def test_coverage_and_pending_cases() -> None:
    """Who is unscored counts against coverage, in all and in its class. A pending case counts nowhere."""
    found = score(
        [
            outcome("incomplete", "incomplete"),
            outcome("incomplete", "unscored"),
            outcome("complete", "incomplete"),
            outcome("complete", "pending"),
        ]
    )
    shares = {c.name: (c.coverage.hits, c.coverage.of) for c in found.classes}
    assert shares == {"complete": (1, 1), "incomplete": (1, 2), "awaiting_user": (0, 0)}
    assert (found.coverage.hits, found.coverage.of) == (2, 3)
    assert (found.cases, found.pending, found.unscored) == (3, 1, 1)


def test_tokens_of_the_prompts() -> None:
    """Four characters are a token, begun ones count; a model's own count is taken where there is one."""
    short, counted = (
        outcome("complete", "complete", system_chars=401, data_chars=n, counted=c)
        for n, c in ((10, None), (4000, 900))
    )
    found = score([short] * 9 + [counted]).prompt_tokens
    assert (found.system.median, found.system.p90, found.system.max) == (101, 101, 101)
    assert (found.data.median, found.data.p90, found.data.max) == (3, 3, 1000)
    assert (found.prompt.median, found.prompt.p90, found.prompt.max, found.counted) == (103, 103, 900, 1)
    assert score([short] * 8 + [counted] * 2).prompt_tokens.data.p90 == 1000
    lines = table("a model", score([short, counted]), [short, counted])
    assert any(line.endswith("900  counted by the model for 1 cases, else characters / 4") for line in lines)


def test_the_aims_on_the_held_out_part() -> None:
    """Precision where it speaks, of both; none for recall or coverage. Never complete on a failed check."""
    good = [
        *[outcome("incomplete", "incomplete")] * 9,
        *[outcome("complete", "complete")] * 9,
        *[outcome("incomplete", "unscored")] * 50,
    ]
    assert aims_missed(score(good)) == []
    assert aims_missed(score([outcome("complete", "unscored")])) == []
    (said,) = aims_missed(score([*good, *[outcome("complete", "incomplete")] * 2]))
    assert said.startswith("precision of incomplete is 9 of 11, 0.82")
    (said,) = aims_missed(score([*good, *[outcome("awaiting_user", "complete")] * 2]))
    assert said.startswith("precision of complete is 9 of 11, 0.82")
    broken = outcome("complete", "complete", broken=True)
    assert aims_missed(score([*good, broken])) == ["1 called complete on a failed check after the last write"]
