"""Every promise has a test, and every mark names a promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.shows import main, marks, promises


def test_every_promise_has_a_test() -> None:
    """A promise that no test shows is a wish. What does not hold yet has none."""
    shown = marks()
    assert [name for name, p in promises().items() if (name in shown) is (p.holds == "not yet")] == []


def test_every_mark_names_a_promise() -> None:
    """A misspelt id would count for nothing."""
    known = promises()
    assert {name: tests for name, tests in marks().items() if name not in known} == {}


def test_marks_are_read_from_both_languages(tmp_path: Path) -> None:
    """Async tests, tests in classes, several ids, other decorators, and the plugin's comments."""
    python = tmp_path / "tests" / "a" / "test_b.py"
    python.parent.mkdir(parents=True)
    python.write_text(
        '@pytest.mark.shows("I1", "FR5")\n@pytest.mark.slow("why")\nasync def test_x(): ...\n\n'
        'class TestY:\n    @pytest.mark.shows("I1")\n    def test_y(self): ...\n\ndef test_z(): ...\n'
    )
    plugin = tmp_path / "plugin-shim" / "opencode" / "test" / "v2" / "c.test.ts"
    plugin.parent.mkdir(parents=True)
    plugin.write_text('// shows: I1, I34\ntest("it waits", async () => {})\n\ntest("no mark", () => {})\n')
    first, last = "tests/a/test_b.py::test_", "plugin-shim/opencode/test/v2/c.test.ts::it waits"
    assert marks(tmp_path) == {"I1": [last, f"{first}x", f"{first}y"], "FR5": [f"{first}x"], "I34": [last]}


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A promise with its sentence and its tests, as text and as JSON; an id that is none is an error."""
    assert main(["--only", "I20"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("I20  A verdict with severity BLOCKER is never complete.\n    tests/")
    assert main(["--json", "--only", "I20"]) == 0
    (row,) = json.loads(capsys.readouterr().out).values()
    assert row["tests"] == [line.strip() for line in text.splitlines()[1:] if line]
    assert main(["--only", "NONE-1"]) == 2
    assert capsys.readouterr().err == "no such promise: NONE-1\n"
