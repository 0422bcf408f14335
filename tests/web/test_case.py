"""What a verdict's page shows of a saved case, whatever stands in it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import Unavailable
from daemon.files.cases import read_case
from daemon.web.verdict import References, as_case, requirements
from harness.machine.sandbox import REPO

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


def shown(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The requirements, each with the rows that it cites."""
    made = as_case(found)
    return requirements(made, References(made))


def refs(found: dict[str, Any]) -> list[list[str]]:
    return [[r["id"] for r in one["refs"]] for one in shown(found)]


def test_the_judge_says_what_shows_each_requirement() -> None:
    """Each of its sentences leads to the rows and log lines that it names; a request is named ``M1``."""
    found = shown(case(ANSWER))
    assert refs(case(ANSWER)) == [["E2"], ["A4", "E1"], ["A1-A3"], []]
    assert found[1]["refs"][0]["text"] == "bash `pytest`"
    assert References(as_case(case())).in_text("E2 and M1")[1]["text"] == "Add it"
    assert References(as_case({})).in_text("E2") == []


def test_a_case_of_the_engine_is_shown() -> None:
    """The sample, which the engine wrote, has every part."""
    made = as_case(read_case(REPO / ".reflection" / "samples" / "case.json"))
    assert made.case.requests
    assert made.case.final
    assert [r.id for r in made.case.evidence.rows][:1] == ["E1"]
    assert made.case.evidence.log[0].text
    assert made.case.evidence.files[0].path == "login.py"
    assert made.prompts[0].system
    assert made.replies[0].text


@given(st.dictionaries(st.sampled_from(("case", "prompts", "replies", "why")), JSON), JSON, JSON)
def test_any_json_is_shown_or_refused(found: dict[str, Any], row: object, outer: dict[str, Any]) -> None:
    """Bad input: a case that came with a clone, with fields of a wrong type at each depth."""
    for each in (found, {"case": {"requests": [row], "evidence": {"rows": [row, outer], "log": [row]}}}):
        with contextlib.suppress(Unavailable):
            shown(each)


def test_a_hostile_case_makes_no_large_page() -> None:
    """Each requirement cites every row, and each row is long: what is shown of it stays small."""
    rows = [{"id": f"E{n}", "text": "x" * 150_000} for n in range(100)]
    cites = " ".join(f"E{n}" for n in range(100))
    hostile = case(ANSWER | {"requirements": [cites] * 1_000})
    log = [{"id": "A1", "said": ["y" * 10_000] * 1_000}] * 1_000
    files = [{"lines": ["l" * 9_000] * 9_000}] * 9
    hostile["case"]["evidence"] = {"rows": rows, "log": log, "files": files}
    hostile["case"]["requests"] = ["z" * 500_000] * 100
    hostile |= {"prompts": [{"text": "p" * 900_000}] * 100}
    made = as_case(hostile)
    assert len(msgspec.json.encode(made)) < 8_000_000
    assert len(json.dumps(shown(hostile))) < 8_000_000
    assert "characters more in the case file]" in References(made).in_text("E1")[0]["text"]
    assert "more in the case file]" in made.case.evidence.log[-1].text


def test_a_hostile_log_costs_no_time() -> None:
    """Ids that stand for a great many calls, in digits that no log has, or in many."""
    for name in ("A1-A9999", f"A{'9' * 1_000}-A{'9' * 1_000}", "A\u00b2-A5", "A-A", "A1-A", "-", "A9-A1"):
        log = [{"id": name if n else f"{name}x", "text": "t"} for n in range(400)]
        hostile = case(ANSWER | {"requirements": [" ".join(f"A{n}" for n in range(100))] * 400})
        hostile["case"]["evidence"] = {"rows": [], "log": log}
        found = shown(hostile)
        assert len(found) == 400
        assert [r["id"] for r in found[0]["refs"]] == (["A1-A9999"] if name == "A1-A9999" else [])
