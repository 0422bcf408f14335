"""``make eval-proof``: its figures, its form, and that labels are what hidden commands say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals import proof

REPO = Path(__file__).resolve().parents[2]
LABELS = ("right", "wrong")

CASE = '''language = "python"
label = "{label}"
kind = "{kind}"
request = "Make add right"
answer = "Done, tests pass."
check = "python3 -m unittest -q"
chosen = true
reveal = "python3 -c 'from calc import add; assert add(1, 2) == 3'"
[files]
"calc.py" = "def add(a, b):\\n    return a + b  # slow\\n"
"test_calc.py" = """import unittest
from calc import add
class T(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""
[[steps]]
write = "calc.py"
text = "def add(a, b):\\n    return {body}\\n"
'''


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """One right and one wrong case."""
    for label, kind, body in (("right", "right", "a + b"), ("wrong", "not_run", "a - b")):
        (tmp_path / f"{label}.toml").write_text(CASE.format(label=label, kind=kind, body=body))
    return tmp_path


@pytest.mark.parametrize("where", ["folder", "worktree"])
def test_the_wrong_one_is_stopped_and_the_right_one_proved(
    cases: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of the repository changes but what Python itself caches."""
    assert proof.main(["--cases", str(cases), "--where", where, "--json"]) == 0
    printed = capsys.readouterr().out
    right, wrong = json.loads(printed)
    assert (right["state"], right["proof"]) == ("complete", "passed")
    assert (wrong["state"], wrong["proof"]) == ("incomplete", "failed")
    changed = {name.split("/")[0] for o in (right, wrong) for name in o["changed"]}
    assert changed <= ({"__pycache__"} if where == "folder" else set())


def test_a_label_that_is_none_is_told(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the hidden command."""
    assert proof.main(["--cases", str(cases), "--verify"]) == 0
    text = (cases / "right.toml").read_text()
    (cases / "right.toml").write_text(text.replace("return a + b\\n", "return a\\n"))
    assert proof.main(["--cases", str(cases), "--verify"]) == 2
    assert "right: not right" in capsys.readouterr().out


def test_a_file_that_is_no_case_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its name; an empty folder too."""
    assert proof.main(["--cases", str(tmp_path)]) == 2
    (tmp_path / "x.toml").write_text("label = 1")
    assert proof.main(["--cases", str(tmp_path)]) == 2
    assert "x.toml" in capsys.readouterr().err


@pytest.mark.slow("forty repositories, each with its check")
def test_the_figures_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """design/proof.md says what this prints; a check that fails by chance may fail twice."""
    proof.main(["--json"])
    printed = capsys.readouterr().out
    found = json.loads(printed)
    sent = {label: sum(o["state"] == "incomplete" for o in found if o["label"] == label) for label in LABELS}
    page = (REPO / "design" / "proof.md").read_text("utf-8")
    assert f"| held out, 39 cases | {sent['wrong']} of 19 |" in page
    by_chance = sum(o["name"] == "shuffle_deck_flaky" and o["state"] == "incomplete" for o in found)
    assert f"| {sent['right'] - by_chance} of 20 |" in page


def test_the_held_out_cases_have_their_form() -> None:
    """At least 60 repositories in six languages, about as many right as wrong."""
    cases = [c for split in proof.SPLITS for c in proof.load(proof.CASES / split)]
    assert len(cases) >= 60
    assert len({c.language for c in cases}) >= 6
    assert 0.4 <= sum(c.label == "right" for c in cases) / len(cases) <= 0.6
