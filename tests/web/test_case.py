"""What a verdict's page shows of a saved case, whatever stands in it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daemon.web.verdict import missing_items, shown

ROWS = [
    {"id": "R1", "kind": "requirement", "text": "Add a page"},
    {"id": "R2", "kind": "requirement", "text": "Run the tests"},
    {"id": "E1", "kind": "check", "text": "`pytest` passed", "outcome": "passed"},
    {"id": "E2", "kind": "unmet", "text": "no page was written", "open": True, "cites": ["R1"]},
]
LOG = [{"id": "A1-A3", "text": "read 3 files"}, {"id": "A4", "text": "bash `pytest`", "said": ["| 1 passed"]}]
ANSWER = {
    "nonce": "n",
    "requirements": [
        "the page: not met, E2",
        "the tests: met, by A4 and E1",
        "what was read: A2",
        "a colour",
    ],
    "complete": False,
    "severity": "HIGH",
    "missing": [{"item": "the page", "cites": "E2"}],
    "next_actions": [],
    "requires_human_action": False,
    "feedback": "Add the page.",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = ("requests", "evidence", "rows", "log", "files", "changed", "final", "nonce", "id", "cites", "lines")


def case(*replies: dict[str, Any]) -> dict[str, Any]:
    told = [
        {"provider": "anthropic", "model": "m", "text": json.dumps(r), "data": r, "seconds": 1.25}
        for r in replies
    ]
    evidence = {"rows": ROWS, "log": LOG}
    return {
        "version": 1,
        "case": {"nonce": "n", "requests": ["Add it"], "evidence": evidence},
        "replies": told,
    }


def refs(found: dict[str, Any]) -> list[list[str]]:
    return [[r["id"] for r in one["refs"]] for one in found["requirements"]]


def test_the_judge_says_what_shows_each_requirement() -> None:
    """Each of its sentences leads to the rows and log lines that it names."""
    found = shown(case(ANSWER))
    assert refs(found) == [["E2"], ["A4", "E1"], ["A1-A3"], []]
    assert [r["open"] for r in found["requirements"]] == [None] * 4
    assert found["requirements"][1]["refs"][0]["text"] == "bash `pytest`"


def test_missing_items_lead_to_what_they_cite() -> None:
    """A row, or the words of the request; without a case there are only the words."""
    missing = [{"item": "the page", "cites": "E2"}, {"item": "blue", "cites": "make it blue"}]
    found = missing_items(missing, case())
    assert [[r["id"] for r in m["refs"]] for m in found] == [["E2"], []]
    assert found[1]["cites"] == "make it blue"
    assert [m["refs"] for m in missing_items(missing, None)] == [[], []]


@given(st.dictionaries(st.sampled_from(("case", "prompts", "replies", "why")), JSON))
def test_any_json_can_be_shown(found: dict[str, Any]) -> None:
    """Bad input: a case that came with a clone."""
    assert shown(found)["log_more"] == 0


@given(st.dictionaries(st.sampled_from(NAMES), JSON), st.dictionaries(st.sampled_from(NAMES), JSON), JSON)
def test_any_evidence_can_be_shown(outer: dict[str, Any], evidence: dict[str, Any], row: object) -> None:
    """Bad input: fields of a wrong type at each depth."""
    whole = {"case": outer | {"evidence": evidence | {"rows": [row, outer], "log": [row], "files": [outer]}}}
    assert isinstance(shown(whole)["requirements"], list)
    assert missing_items([{"item": row, "cites": row}], whole)


def test_a_hostile_case_makes_no_large_page() -> None:
    """Each requirement cites every row, and each row is long: what is shown of it stays small."""
    rows = [{"id": f"E{n}", "text": "x" * 150_000} for n in range(100)]
    cites = " ".join(f"E{n}" for n in range(100))
    hostile = case(ANSWER | {"requirements": [cites] * 1_000})
    hostile["case"]["evidence"] = {
        "rows": rows,
        "log": [{"id": "A1", "said": ["y" * 10_000] * 1_000}] * 1_000,
    }
    hostile["case"] |= {"requests": ["z" * 500_000] * 100, "files": [{"lines": ["l" * 9_000] * 9_000}] * 9}
    hostile |= {"prompts": [{"text": "p" * 900_000}] * 100}
    found = shown(hostile)
    assert len(json.dumps(found)) < 25_000_000
    assert "characters more in the case file]" in found["requirements"][0]["refs"][0]["text"]


def test_a_hostile_log_costs_no_time() -> None:
    """Ids that stand for a great many calls, in digits that no log has, or in many."""
    for name in ("A1-A9999", f"A{'9' * 1_000}-A{'9' * 1_000}", "A\u00b2-A5", "A-A", "A1-A", "-", "A9-A1"):
        log = [{"id": name if n else f"{name}x", "text": "t"} for n in range(400)]
        hostile = case(ANSWER | {"requirements": [" ".join(f"A{n}" for n in range(100))] * 400})
        hostile["case"]["evidence"] = {"rows": [], "log": log}
        found = shown(hostile)["requirements"]
        assert len(found) == 400
        assert [r["id"] for r in found[0]["refs"]] == (["A1-A9999"] if name == "A1-A9999" else [])


def test_odd_seconds_are_not_shown() -> None:
    """A number that no float can hold."""
    odd = case(ANSWER)
    odd["replies"][0]["seconds"] = 10**400
    assert shown(odd)["replies"][0]["seconds"] == ""
