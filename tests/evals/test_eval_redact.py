"""``make eval-redact``: the redaction keeps its aims on the labelled cases, and these upset no scanner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals.redact import DATA, FILES, PIECE, Case, Outcome, aims_missed, main, outcome, packed, read

PAGE = Path(__file__).resolve().parents[2] / "design" / "security.md"


@pytest.mark.shows("I46")
@pytest.mark.main("secrets are found")
def test_the_cases_keep_the_aims(capsys: pytest.CaptureFixture[str]) -> None:
    """Recall at least 0.97, and at most 2 % of ordinary texts changed; the table says so."""
    assert main([]) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert said.startswith("recall ")
    assert "AIM MISSED" not in said
    assert main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["aims_missed"] == []


@pytest.mark.parametrize("cases", ["heldout", "outsider"])
def test_the_figures_of_the_page_are_the_commands(cases: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What ``design/security.md`` says of texts that nobody tuned on is what the command prints."""
    assert main(["--cases", str(DATA / cases), "--json"]) == 1, "the aim was missed when they were opened"
    said = json.loads(capsys.readouterr().out)
    page = " ".join(PAGE.read_text("utf-8").split())
    secrets, ordinary = said["recall"], said["changed"]
    assert f"{secrets['hits']} of {secrets['of']} secrets were found" in page
    assert f"{ordinary['hits']} of {ordinary['of']} ordinary texts were changed" in page


def test_an_aim_that_is_missed_is_told() -> None:
    """Too few secrets found, too many texts changed."""
    found, lost = (
        Outcome(1, "a", secret=True, right=True, clean=""),
        Outcome(2, "a", secret=True, right=False, clean=""),
    )
    kept, changed = (
        Outcome(3, "b", secret=False, right=True, clean=""),
        Outcome(4, "b", secret=False, right=False, clean=""),
    )
    assert aims_missed([found] * 97 + [lost] * 3 + [kept] * 98 + [changed] * 2) == []
    assert len(aims_missed([found] * 96 + [lost] * 4 + [kept] * 97 + [changed] * 3)) == 2


def test_no_secret_stands_in_one_piece() -> None:
    """A scanner for leaks finds nothing in the files."""
    for name in FILES:
        text = (DATA / "tuning" / f"{name}.jsonl").read_text("utf-8")
        for case in read(DATA / "tuning" / f"{name}.jsonl"):
            assert (name == "secrets") == bool(case.secrets())
            assert not case.text
            for secret in case.secrets():
                assert len(secret) <= PIECE or secret not in text
                assert secret in case.whole()


def test_cases_are_packed_without_a_loss(tmp_path: Path) -> None:
    """``--pack`` keeps text and secrets, also of a secret that stands twice or holds another one."""
    raw = Case(
        "1", "twice", text="a=abcdefghijklmnop b=abcdefghijklmnop c=abc", secret=["abcdefghijklmnop", "abc"]
    )
    again = Case("1", "twice", parts=packed(raw)["parts"])
    assert (again.whole(), again.secrets()) == (raw.whole(), raw.secrets())
    for name in FILES:
        (tmp_path / f"{name}.jsonl").write_text(
            json.dumps({"id": 1, "kind": "k", "text": "x=abcdefghijklmno", "secret": []})
        )
    out = tmp_path / "out"
    out.mkdir()
    assert main(["--cases", str(tmp_path), "--pack", str(out)]) == 0
    assert read(out / "ordinary.jsonl")[0].whole() == "x=abcdefghijklmno"


def test_what_is_left_of_a_secret_is_a_miss() -> None:
    """Any secret of a case counts; an ordinary text must stay as it is."""
    assert not outcome(Case("1", "k", text="see fooBarBaz", secret=["fooBarBaz"]), secret=True).right
    assert outcome(Case("2", "k", text="PASSWORD=fooBar9", secret=["fooBar9"]), secret=True).right
    assert not outcome(Case("3", "k", text="PASSWORD=fooBar9"), secret=False).right


def test_wrong_cases_end_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback: the file is named."""
    assert main(["--cases", str(tmp_path)]) == 2
    assert "secrets.jsonl" in capsys.readouterr().err
