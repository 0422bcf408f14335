"""Cases: those that the daemon saved are found, the person's own are saved, labelled, listed, removed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable, UserError
from daemon.files.cases import CaseFolder, folders, newest_cases, read, summary
from harness.machine.sandbox import REPO

SAMPLE = REPO / ".reflection" / "samples" / "case.json"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A case as the daemon saved it."""
    path = tmp_path / "ses_one_1760000001000.json"
    path.write_bytes(SAMPLE.read_bytes())
    return path


def test_saved_once_and_private(tmp_path: Path, source: Path) -> None:
    """A second save changes nothing; the folder is 0700 and the file 0600."""
    folder = CaseFolder(tmp_path / "state")
    path = folder.save(source)
    assert path == tmp_path / "state" / "cases" / source.name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert folder.label(path, "complete", "because") is None
    assert folder.save(source) == path
    assert read(path)["label"] == {"expect": "complete", "why": "because", "by": "person"}
    assert folder.label(path, "incomplete", "") == {"expect": "complete", "why": "because", "by": "person"}


def test_the_list(tmp_path: Path, source: Path) -> None:
    """Newest first, and a file that can't be used is there with the reason."""
    folder = CaseFolder(tmp_path)
    assert folder.list() == []
    path = folder.save(source)
    (folder.path / "broken.json").write_text("{")
    (folder.path / ".hidden.json").write_text("{")
    found = folder.list()
    assert [s.path for s in found] == [path, folder.path / "broken.json"]
    assert found[0].problem == ""
    assert found[0].judged == read(source)["verdict"]["state"]
    assert found[0].request
    assert "not valid JSON" in found[1].problem


def test_the_persons_own_files_are_safe(tmp_path: Path, source: Path) -> None:
    """Only a case of the folder is removed, by its name."""
    folder = CaseFolder(tmp_path / "state")
    path = folder.save(source)
    with pytest.raises(UserError, match="not in"):
        folder.remove(str(source))
    assert folder.remove(path.stem) == path
    with pytest.raises(UserError, match="dispute list"):
        folder.remove(path.stem)
    assert source.exists()


@pytest.mark.shows("I46")
def test_secrets_do_not_come_in(tmp_path: Path, source: Path) -> None:
    """A case is redacted once more before it is written."""
    found = json.loads(source.read_text())
    found["case"]["requests"] = ["my key is sk-ant-api03-" + "aB3xY9zQ7w" * 4]
    source.write_text(json.dumps(found))
    path = CaseFolder(tmp_path / "state").save(source)
    assert "sk-ant" not in path.read_text()


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"case": 7, "verdict": [], "label": 1}'])
def test_any_json_may_lie_there(tmp_path: Path, text: str) -> None:
    """Bad input: a list never fails for one file."""
    path = tmp_path / "x.json"
    path.write_text(text)
    assert summary(path).path == path


def test_what_is_no_file(tmp_path: Path, source: Path) -> None:
    """Bad input: a FIFO is refused at once, and a folder that can't be made is ``Unavailable``."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UserError, match="not a regular file"):
        read(tmp_path / "fifo")
    with pytest.raises(UserError, match="no such file"):
        read(tmp_path / "gone")
    (tmp_path / "state").write_text("a file")
    with pytest.raises(Unavailable):
        CaseFolder(tmp_path / "state").save(source)


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
