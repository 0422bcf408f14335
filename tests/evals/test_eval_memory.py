"""``make eval-memory``: the figures of the page are those that the command prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daemon.embed.minilm import missing
from tests.evals.running import REPO, evaluate

DATA = REPO / "tests" / "data" / "memory"


@pytest.mark.parametrize("split", ["tuning", "heldout"])
def test_the_page_says_what_the_command_says(split: str) -> None:
    """Each row of the table in design/memory-retrieval.md, for every ranker that can run here."""
    done = evaluate("memory", "--cases", str(DATA / f"{split}.jsonl"), "--json")
    found = json.loads(done.stdout)
    page = (REPO / "design" / "memory-retrieval.md").read_text("utf-8")
    names = [r["name"] for r in found["results"]]
    assert names[-1] == "words alone"
    assert len(names) == (1 if missing() else 3)
    for r in found["results"]:
        cells = [f"{r[k]['hits']} of {r[k]['of']}" for k in ("hits", "near", "unrelated", "third")]
        assert f"| {split} | {r['name']} | {' | '.join(cells)} |" in page, cells
    told = [f"{found['actions'][k]['hits']} of {found['actions'][k]['of']}" for k in ("hits", "false")]
    assert f"| {split} | {' | '.join(told)} |" in page, told
    assert found["aims_missed"]


def test_wrong_cases_are_named(tmp_path: Path) -> None:
    """A line that is none, a group without a lesson, a set that measures nothing: exit code 2."""
    path = tmp_path / "cases.jsonl"
    for text, words in (
        ("{", "line 1"),
        ('{"id": "a", "language": "en", "text": "x", "group": "g"}', "no task of group g is stored"),
        ('{"id": "a", "language": "en", "text": "x"}', "there must be"),
    ):
        path.write_text(text)
        done = evaluate("memory", "--cases", str(path))
        assert (done.returncode, words in done.stderr) == (2, True), done


def test_the_tuning_set_is_large_enough() -> None:
    """At least 120 tasks in groups or near them, 60 unrelated ones, four languages."""
    tasks = [json.loads(line) for line in (DATA / "tuning.jsonl").read_text("utf-8").splitlines()]
    unrelated = [t for t in tasks if not t["group"] and not t["near_miss_of"]]
    assert len(tasks) - len(unrelated) >= 120
    assert len(unrelated) >= 60
    assert len({t["language"] for t in tasks}) == 4
