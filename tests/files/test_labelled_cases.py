"""The person's own cases: saved, labelled, listed, removed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable, UserError
from daemon.files.labelled_cases import CaseFolder, read, summary
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
    path, new = folder.save(source)
    assert (path, new) == (tmp_path / "state" / "cases" / source.name, True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert folder.label(path, "complete", "because") is None
    assert folder.save(source) == (path, False)
    assert read(path)["label"] == {"expect": "complete", "why": "because", "by": "person"}
    assert folder.label(path, "incomplete", "") == {"expect": "complete", "why": "because", "by": "person"}


def test_the_list(tmp_path: Path, source: Path) -> None:
    """Newest first, and a file that can't be used is there with the reason."""
    folder = CaseFolder(tmp_path)
    assert folder.list() == []
    path, _ = folder.save(source)
    (folder.path / "broken.json").write_text("{")
    (folder.path / ".hidden.json").write_text("{")
    found = folder.list()
    assert [s.path for s in found] == [path, folder.path / "broken.json"]
    assert found[0].problem == ""
    assert found[0].judged == read(source)["verdict"]["state"]
    assert found[0].request
    assert "not valid JSON" in found[1].problem


def test_the_persons_own_files_are_safe(tmp_path: Path, source: Path) -> None:
    """Only a case of the folder is removed, by its name; ``--out`` never overwrites a file."""
    folder = CaseFolder(tmp_path / "state")
    path, _ = folder.save(source)
    with pytest.raises(UserError, match="not in"):
        folder.remove(str(source))
    assert folder.remove(path.stem) == path
    with pytest.raises(UserError, match="case list"):
        folder.remove(path.stem)
    assert source.exists()
    chosen = tmp_path / "mine.json"
    assert folder.save(source, chosen) == (chosen, True)
    with pytest.raises(UserError, match="exists"):
        folder.save(source, chosen)


@pytest.mark.shows("I46")
def test_secrets_do_not_come_in(tmp_path: Path, source: Path) -> None:
    """A case is redacted once more before it is written."""
    found = json.loads(source.read_text())
    found["case"]["requests"] = ["my key is sk-ant-api03-" + "aB3xY9zQ7w" * 4]
    source.write_text(json.dumps(found))
    path, _ = CaseFolder(tmp_path / "state").save(source)
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
