"""``reflectd memory calibrate``: the curve of a person's own tasks, without a daemon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.machine.sandbox import REPO, Sandbox
from tests.cli.reflect.person import typed
from tests.support.machine.command_line import reflectd, said

TASKS = REPO / "tests" / "data" / "memory" / "tuning.jsonl"
WORDS = {"REFLECTD_EMBED_PROVIDER": "none"}
STORED = {
    "id": "a", "language": "en", "text": "Fix the parser", "group": "g", "lesson": "Run its tests.",
    "stored": True,
}  # fmt: skip
ASKED = {"id": "b", "language": "en", "text": "Repair the parser", "group": "g"}
OTHER = {"id": "c", "language": "en", "text": "Write a letter"}


def written(folder: Path, *rows: Any) -> Path:
    """A file of tasks."""
    file = folder / "tasks.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return file


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
    child = typed(box, ["memory", "calibrate", str(TASKS), "--no-pager"], columns=80, **WORDS)
    shown = str(child.read())
    child.close()
    assert "words alone" in shown
    assert "█" in shown
    assert "now" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((STORED, ASKED), "there must be tasks"),
        ((OTHER,), "there must be tasks"),
        (({"id": 1},), "line 1"),
    ],
)
def test_a_file_that_measures_nothing(box: Sandbox, tmp_path: Path, rows: Any, words: str) -> None:
    """Code 2, with what is wrong and where."""
    said(reflectd(box, "memory", "calibrate", written(tmp_path, *rows), **WORDS), 2, words)


def test_a_small_file_will_do(box: Sandbox, tmp_path: Path) -> None:
    """Three tasks; a file that is not there is named."""
    file = written(tmp_path, STORED, ASKED, OTHER)
    said(reflectd(box, "memory", "calibrate", file, **WORDS), 0, "How often a task gets its lesson")
    said(reflectd(box, "memory", "calibrate", tmp_path / "none", **WORDS), 2, "can't be read")
