"""The file of a playbook: read in every form, replaced as a whole, never lost when it is broken."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from daemon.core.errors import Unavailable
from daemon.learning.playbook.points import empty, migrated
from daemon.learning.playbook.project_playbook import dumped, load, save
from tests.learning.playbook.books import LEGACY, Json, book, point, said

OURS = Path(__file__).resolve().parents[3] / ".reflection"
SCHEMA = json.loads((OURS / "schemas" / "playbook.schema.json").read_text("utf-8"))
NOW = 1_760_000_000_000


def check(found: object) -> None:
    Draft202012Validator(SCHEMA).validate(found)


def test_the_sample_is_a_playbook_as_we_write_it() -> None:
    """Schema and sample agree with the code, byte for byte."""
    Draft202012Validator.check_schema(SCHEMA)
    path = OURS / "samples" / "playbook.json"
    found = load(path)
    assert (found.problem, found.told) == ("", ())
    assert dumped(found.playbook) == path.read_bytes()
    check(found.playbook)


@pytest.mark.shows("CON-ACE-004")
@given(data=LEGACY)
def test_everything_that_is_written_keeps_the_schema(data: Json) -> None:
    """Whatever it was made from."""
    check(json.loads(dumped(migrated(data).playbook)))


@pytest.mark.parametrize(
    "bad",
    [
        {"sections": {}},
        {**empty(), "score": 1},
        {**empty(), "key_points": []},
        {**empty(), "sections": {**empty()["sections"], "NEW": []}},
        book({**point("pat-001", "a"), "score": 1}),
        book(point("pat-001", " ")),
        book(point("pat-001", "a", -1)),
    ],
)
def test_the_schema_refuses_what_we_never_write(bad: Any) -> None:
    """Missing sections, a score, negative counters, an empty text."""
    assert not Draft202012Validator(SCHEMA).is_valid(bad)


def test_a_save_keeps_the_mode_and_replaces_a_link(tmp_path: Path) -> None:
    """A link in a clone can't make us write somewhere else."""
    path, other = tmp_path / "playbook.json", tmp_path / "mine"
    save(path, book(point("pat-001", "a")), NOW)
    path.chmod(0o640)
    save(path, book(point("pat-001", "b")), NOW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    other.write_bytes(dumped(book()))
    path.unlink()
    path.symlink_to(other)
    assert load(path, follow=False).problem
    save(path, book(point("pat-001", "c")), NOW)
    assert other.read_bytes() == dumped(book())
    assert not path.is_symlink()


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"sections": 3}', b'"x"'])
def test_a_broken_file_is_kept_aside_at_the_next_save(tmp_path: Path, raw: bytes) -> None:
    """It reads as empty, says why, and nothing of it is lost."""
    path = tmp_path / "playbook.json"
    path.write_bytes(raw)
    pauses: list[float] = []
    found = load(path, sleep=pauses.append)
    assert found.playbook == empty()
    assert f"{path} is no playbook that can be used: " in found.problem
    aside = save(path, book(point("pat-001", "a")), NOW, sleep=pauses.append)
    assert aside == tmp_path / f"playbook.json.corrupt-{NOW}"
    assert aside.read_bytes() == raw
    assert said(load(path).playbook) == ["a"]
    assert pauses == [0.2, 0.2]


def test_an_edit_that_is_being_written_is_not_taken_for_a_broken_file(tmp_path: Path) -> None:
    """The file is read once more, a moment later."""
    path = tmp_path / "playbook.json"
    path.write_bytes(dumped(book(point("pat-001", "half")))[:40])

    def editor_goes_on(_: float) -> None:
        path.write_bytes(dumped(book(point("pat-001", "whole"))))

    assert said(load(path, sleep=editor_goes_on).playbook) == ["whole"]
    path.write_bytes(b"{")
    assert save(path, book(point("pat-001", "new")), NOW, sleep=editor_goes_on) is None
    assert [p.name for p in tmp_path.iterdir()] == ["playbook.json"]


def test_what_is_no_file_blocks_nothing(tmp_path: Path) -> None:
    """A FIFO in a clone is a broken file, and a folder can't be replaced."""
    os.mkfifo(tmp_path / "fifo")
    assert "not a regular file" in load(tmp_path / "fifo").problem
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="can't make the folder"):
        save(tmp_path / "file" / "playbook.json", book(), NOW)


def test_half_a_character_is_written_as_json_allows(tmp_path: Path) -> None:
    """UTF-8 can't hold it, an escape can; the rest of the file is as readable as before."""
    path = tmp_path / "playbook.json"
    playbook = book(point("pat-001", "half \ud83d of it"))
    save(path, playbook, NOW)
    assert load(path).playbook == playbook
    assert dumped(book(point("pat-001", "日本"))).count("日本".encode()) == 1


def test_a_mark_tells_whether_the_file_changed(tmp_path: Path) -> None:
    """The digest of its bytes; none without a file."""
    path = tmp_path / "playbook.json"
    assert load(path).mark == ""
    save(path, book(), NOW)
    first = load(path).mark
    save(path, book(point("pat-001", "a")), NOW)
    assert load(path).mark != first != ""
