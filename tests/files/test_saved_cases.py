"""Finding the cases that the daemon saved."""

from __future__ import annotations

from pathlib import Path

from daemon.files.saved_cases import folders, newest_cases

NAMES = (
    "ses_a_1760000001000.json",
    "ses_a_1760000003000.json",
    "ses_ab_1760000002000.json",
    "verdict_ses_a.json",
    "verdict_ses_1760000009000.json",
    "ses_a_12.json",
    "notes.json",
)


def fill(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_text("{}")
    return folder


def test_the_newest_come_first(tmp_path: Path) -> None:
    """By the time in their names; verdict files and other files are no cases."""
    folder = fill(tmp_path / ".reflection")
    assert [p.name for p in newest_cases([folder], limit=9)] == [NAMES[1], NAMES[2], NAMES[0]]
    assert newest_cases([folder]) == [folder / NAMES[1]]


def test_by_the_beginning_of_an_id_or_by_all_of_it(tmp_path: Path) -> None:
    """``ses_a`` begins two ids and is one of them."""
    folder = fill(tmp_path / ".reflection")
    assert [p.name for p in newest_cases([folder], "ses_a", limit=9)] == [NAMES[1], NAMES[2], NAMES[0]]
    assert [p.name for p in newest_cases([folder], "ses_a", exact=True, limit=9)] == [NAMES[1], NAMES[0]]
    assert newest_cases([folder], "ses_c") == []
    assert newest_cases([folder], "../x") == []


def test_both_folders_are_looked_at(tmp_path: Path) -> None:
    """The workspace's own and its stand-in; one that is not there, or no folder, holds none."""
    stand_in = fill(tmp_path / "state")
    own, other = folders(tmp_path, stand_in)
    assert (own, other) == (tmp_path / ".reflection", stand_in)
    assert newest_cases((own, other)) == [stand_in / NAMES[1]]
    own.write_text("a file")
    assert newest_cases((own, other), limit=9)[0] == stand_in / NAMES[1]
