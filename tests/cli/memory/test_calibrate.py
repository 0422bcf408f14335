"""``reflectd memory calibrate``: the curve of a person's own tasks, without a daemon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.machine.sandbox import REPO, Sandbox
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said

TASKS = REPO / "tests" / "data" / "memory" / "tuning.jsonl"
WORDS = {"REFLECTD_EMBED_PROVIDER": "none"}
STORED = {"id": "a", "language": "en", "text": "Fix the parser", "group": "g", "stored": True}
STORED |= {"lesson": "Run its tests."}
ASKED = {"id": "b", "language": "en", "text": "Repair the parser", "group": "g"}
OTHER = {"id": "c", "language": "en", "text": "Write a letter"}


def test_the_curve_of_many_tasks(box: Sandbox) -> None:
    """As JSON: the share of right lessons falls as the line rises. Nothing is written."""
    before = sorted(box.home.rglob("*"))
    found = json.loads(said(reflectd(box, "memory", "calibrate", TASKS, "--json", **WORDS), 0))
    hits = [point["hits"] for point in found["curve"]]
    assert hits == sorted(hits)
    assert found["embedding"] == ""
    assert 0 < found["now"]["hits"] < 1
    assert found["best"]["false"] <= 0.10
    assert sorted(box.home.rglob("*")) == before


@pytest.mark.full("a pseudo-terminal is driven")
def test_a_person_sees_a_chart(box: Sandbox) -> None:
    """Eighty columns, a row a line, with the line that counts now."""
    code, shown = at_a_terminal(box, ["memory", "calibrate", str(TASKS), "--no-pager"], columns=80, **WORDS)
    assert code == 0
    assert "words alone" in shown
    assert "█" in shown
    assert "now" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((STORED, ASKED), "there must be tasks"),
        (({"id": 1},), "line 1"),
        ((), "can't be read"),
        ((STORED, ASKED, OTHER), "How often a task gets its lesson"),
    ],
    ids=["two", "no task", "no file", "three will do"],
)
def test_a_small_file(box: Sandbox, tmp_path: Path, rows: Any, words: str) -> None:
    """Three tasks will do; else code 2, with what is wrong and where."""
    file = tmp_path / "tasks.jsonl"
    if rows:
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said(reflectd(box, "memory", "calibrate", file, **WORDS), 0 if OTHER in rows else 2, words)
