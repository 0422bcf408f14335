"""``make eval-reflect``: the rules keep their aims on the labelled messages, which have their form."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from daemon.rules.signals import Reading
from evals.reflect import (
    CASES,
    SIGNALS,
    Case,
    Outcome,
    aims_missed,
    as_json,
    false_alarms,
    precision,
    read_cases,
    recall,
    table,
    worded,
)
from tests.evals.running import REPO, evaluate


def outcome(expect: str, got: str, content: str = "", said: str = "") -> Outcome:
    """A figure, made without a rule: figures are figures."""
    return Outcome(Case("t", expect, "", content), Reading(got, said, "low", 0.9))  # type: ignore[arg-type]


@pytest.mark.shows("RULES-01")
def test_the_aims_are_kept_on_the_messages_that_the_rules_were_made_with() -> None:
    """A floor, not a proof: these were tuned on. Each class keeps its precision."""
    done = evaluate("reflect", "--strict")
    assert done.returncode == 0, done.stdout
    assert "all signals" in done.stdout
    found = json.loads(evaluate("reflect", "--json").stdout)
    for name in SIGNALS:
        assert found["classes"][name]["precision"]["value"] >= 0.9, name
    assert found["false_alarms"]["value"] <= 0.03


def test_the_messages_have_their_form() -> None:
    """Each once, about half of them no signal; what is one has an instruction, what is none has nothing."""
    cases = read_cases(CASES)
    assert len({(c.text, c.prior_assistant) for c in cases}) == len(cases) >= 150
    kinds = Counter(c.type for c in cases)
    assert 0.4 <= kinds["none"] / len(cases) <= 0.6
    for case in cases:
        assert bool(case.content) is (case.type in SIGNALS[:2]), case.text


def test_the_figures() -> None:
    """Precision is of what was called so, recall of what is so; a wrong class counts against both."""
    found = [
        outcome("correction", "correction", "Use strict mode", "use strict mode, please"),
        outcome("correction", "correction", "Use tabs", "Use spaces"),
        outcome("correction", "instruction"),
        outcome("negative", "none"),
        outcome("none", "positive"),
        outcome("none", "none"),
    ]
    assert (precision(found, SIGNALS).hits, precision(found, SIGNALS).of) == (2, 4)
    assert (recall(found, SIGNALS).hits, recall(found, SIGNALS).of) == (2, 4)
    assert (false_alarms(found).hits, false_alarms(found).of) == (1, 2)
    assert (worded(found).hits, worded(found).of) == (1, 2)
    assert aims_missed(found) == ["precision is 0.50, wanted 0.85"]
    assert aims_missed([outcome("negative", "none")]) == [
        "precision is 0.00, wanted 0.85",
        "recall is 0.00, wanted 0.5",
    ]
    assert "  none called positive (0.90): t" in table(found)
    assert len(as_json(found)["wrong"]) == 3


def test_wrong_cases_are_named(tmp_path: Path) -> None:
    """The file, the line and what is wrong; one file may be named too."""
    (tmp_path / "a.jsonl").write_text(
        '{"text": "x", "type": "none", "prior_assistant": null}\n\n{"text": "y"}\n'
    )
    done = evaluate("reflect", "--cases", str(tmp_path))
    assert done.returncode == 2
    assert "a.jsonl, line 3" in done.stderr
    assert evaluate("reflect", "--cases", str(tmp_path / "none")).returncode == 2
    (tmp_path / "a.jsonl").write_text('{"text": "continue", "type": "none", "by": "somebody"}\n')
    assert evaluate("reflect", "--cases", str(tmp_path / "a.jsonl")).returncode == 0


@pytest.mark.shows("RULES-01")
def test_the_page_has_the_figures_of_the_held_out_messages() -> None:
    """`design/rules.md` says how well the rules read words that they were not written with."""
    outcomes = evaluate("reflect", "--cases", str(CASES.parent / "heldout")).stdout.splitlines()
    page = (REPO / "design" / "rules.md").read_text("utf-8")
    rows = [re.findall(r"\d+ of \d+, \d\.\d\d \([^)]*\)", line) for line in outcomes]
    figures = [row for row in rows if len(row) == 2]
    assert len(figures) == len(SIGNALS) + 1
    assert [row for row in figures if " | ".join(row) not in page] == []
