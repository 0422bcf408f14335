"""``make eval-memory``: prompts as files, replies from files, and what they come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals.replies import nonce_of
from tests.evals.running import evaluate

CASE: dict[str, Any] = {
    "project": "shop",
    "lessons": [{"id": "a", "text": "Round at the end."}, {"id": "b", "text": "Stop the workers first."}],
    "tasks": [
        {"text": "Fix the totals of invoices", "wants": ["a"]},
        {"text": "Migrate the orders table", "wants": ["b"]},
        {"text": "Write the release notes", "wants": []},
        {"text": "Rename a button", "wants": []},
    ],
}


def test_replies_are_measured(tmp_path: Path) -> None:
    """Each task has a prompt; hits, false lessons and what was not answered are told, with intervals."""
    cases, folder = tmp_path / "cases.jsonl", tmp_path / "dump"
    cases.write_text(json.dumps(CASE))
    assert evaluate("memory", "--cases", str(cases), "--dump", str(folder)).returncode == 0
    names = [nonce_of(f"001-{n:02d}") for n in range(1, 5)]
    assert {p.name for p in folder.iterdir()} == {*names}
    for name, numbers in zip(names, ([1], [1], [2]), strict=False):
        prompt = (folder / name / "1-lessons.txt").read_text("utf-8")
        nonce = prompt.split("The marker of this data is ", 1)[1].split(".", 1)[0]
        said = json.dumps({"nonce": nonce, "lessons": numbers})
        (folder / name / "1-lessons.reply.txt").write_text(said)
    done = evaluate("memory", "--cases", str(cases), "--replies", str(folder), "--json")
    found = json.loads(done.stdout)
    shares = {k: (v["hits"], v["of"]) for k, v in found["figures"].items()}
    assert shares == {
        "tasks that want lessons and got one of theirs": (1, 2),
        "tasks that want none and got some": (1, 1),
        "lessons given that were wanted": (1, 3),
    }
    assert [w["name"] for w in found["wrong"]] == ["001-02", "001-03"]
    assert found["pending"] == ["001-04"]
    said = evaluate("memory", "--cases", str(cases), "--replies", str(folder), "--wrong").stdout
    assert "1 of 2, 0.50 (0.09-0.91)" in said
    assert "Write the release notes" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1"),
        ("", "no case"),
        (json.dumps({**CASE, "tasks": [{"text": "x", "wants": ["c"]}]}), "wanted ones among them"),
        (json.dumps({**CASE, "lessons": CASE["lessons"] * 2}), "each id once"),
    ],
)
def test_wrong_cases_are_named(tmp_path: Path, text: str, words: str) -> None:
    """Exit code 2, and nothing is written."""
    path = tmp_path / "cases.jsonl"
    path.write_text(text)
    done = evaluate("memory", "--cases", str(path), "--dump", str(tmp_path / "dump"))
    assert (done.returncode, words in done.stderr) == (2, True), done
    assert not (tmp_path / "dump").exists()
