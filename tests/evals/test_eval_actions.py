"""``make eval-stuck`` and ``eval-compaction`` with files, and ``eval-cost``: figures, forms, page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daemon.redact import redact_value
from evals.actions import ANSWERS, CASES, read_cases
from evals.replies import nonce_of
from tests.evals.running import REPO, evaluate

FORMS = {
    "stuck": {"stuck": False, "reason": "complete", "confidence": 1.0},
    "compaction": {"action": "task_complete", "confidence": 1.0},
}


@pytest.mark.parametrize("question", [*CASES])
def test_replies_are_measured(question: str, tmp_path: Path) -> None:
    """Enough cases of each answer, of both hosts, each with a reason and no secret. A model that says
    "complete" each time is right for those, rules answer the rest, and what has no reply is pending.
    """
    cases = read_cases(CASES[question], question)
    assert {c.expect for c in cases} == {*ANSWERS[question]}
    assert ({c.host for c in cases}, len({c.name for c in cases})) == (
        {"opencode", "claude-code"},
        len(cases),
    )
    assert len(cases) >= 24
    assert all(c.why.endswith(".") for c in cases)
    text = CASES[question].read_text("utf-8")
    assert redact_value(lines := [json.loads(line) for line in text.splitlines()]) == lines
    done = evaluate("actions", question, "--dump", str(tmp_path))
    folders = sorted(p for p in tmp_path.iterdir())
    assert done.stdout.startswith(f"{len(folders)} prompts of {len(cases)} cases are in {tmp_path}\n")
    assert {p.name for p in folders} <= {nonce_of(c.name) for c in cases}
    for folder in folders[1:]:
        said = {**FORMS[question], "nonce": folder.name}
        (folder / f"1-{question}.reply.txt").write_text(json.dumps(said))
    found = json.loads(evaluate("actions", question, "--replies", str(tmp_path), "--json").stdout)
    end = ANSWERS[question][-1]
    of = found["figures"]["replies"]["right"]
    assert (len(found["pending"]), of["of"]) == (1, len(folders) - 1)
    assert found["figures"]["rules"]["right"]["hits"] == len(cases) - len(folders)
    assert found["figures"][end]["precision"]["of"] == of["of"]
    assert 5 <= of["hits"] < of["of"]


def test_wrong_cases_are_named(tmp_path: Path) -> None:
    """The file, the line, and that a silent session needs what events say."""
    path = tmp_path / "cases.jsonl"
    path.write_text(CASES["compaction"].read_text("utf-8"))
    done = evaluate("actions", "stuck", "--cases", str(path), "--dump", str(tmp_path / "dump"))
    assert (done.returncode, "line 1: no case for stuck" in done.stderr) == (2, True), done


def test_the_page_says_what_a_turn_costs() -> None:
    """Each line of the command, as it is, in the table of design/judge.md."""
    page = (REPO / "design" / "judge.md").read_text("utf-8")
    lines = [line.strip() for line in evaluate("cost").stdout.splitlines()]
    assert len(lines) == 7
    assert [line for line in lines if line not in page] == []
