"""Whole-file writes, corrupt files set aside, backups: on a real file system."""

from __future__ import annotations

import errno
import os
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from daemon.core.errors import Unavailable
from daemon.files.atomic import back_up, backups, set_aside, write_atomic

if TYPE_CHECKING:
    from pathlib import Path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("durable", [True, False])
def test_text_and_bytes_replace_what_was_there(tmp_path: Path, durable: bool) -> None:
    """The file holds exactly what was given, newlines included, and nothing else is in the folder."""
    file = tmp_path / "verdict.json"
    write_atomic(file, "é\r\n", durable=durable)
    assert file.read_bytes() == b"\xc3\xa9\r\n"
    write_atomic(str(file), b"\x00new", durable=durable)
    assert file.read_bytes() == b"\x00new"
    assert os.listdir(tmp_path) == ["verdict.json"]


def test_mode_is_exact_whatever_the_umask(tmp_path: Path) -> None:
    """0600 by default, also over a file that others could read; a given mode is not cut by the umask."""
    file = tmp_path / "f"
    file.write_text("old")
    file.chmod(0o644)
    write_atomic(file, "new")
    assert mode_of(file) == 0o600
    before = os.umask(0o077)
    try:
        write_atomic(file, "new", 0o644)
    finally:
        os.umask(before)
    assert mode_of(file) == 0o644


def test_mode_none_keeps_the_old_one_and_leaves_a_new_file_to_the_umask(tmp_path: Path) -> None:
    """A person's file keeps its mode; a new file gets the mode that the umask leaves."""
    file = tmp_path / "f"
    before = os.umask(0o027)
    try:
        write_atomic(file, "1", None)
        assert mode_of(file) == 0o640
        file.chmod(0o604)
        write_atomic(file, "2", None)
        assert mode_of(file) == 0o604
    finally:
        os.umask(before)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_root_keeps_the_owner(tmp_path: Path) -> None:
    """Run by root with the mode kept, the file still belongs to its owner."""
    file = tmp_path / "f"
    file.write_text("old")
    os.chown(file, 1234, 2345)
    write_atomic(file, "new", None)
    found = file.stat()
    assert (found.st_uid, found.st_gid, file.read_text()) == (1234, 2345, "new")


def test_a_link_is_replaced_or_followed(tmp_path: Path) -> None:
    """By default a link in a cloned repository can't redirect a write; ``follow`` keeps a linked dotfile."""
    (tmp_path / "dotfiles").mkdir()
    real, link = tmp_path / "dotfiles" / "real", tmp_path / "link"
    real.write_text("mine")
    link.symlink_to("dotfiles/real")
    write_atomic(link, "followed", follow=True)
    assert link.is_symlink()
    assert real.read_text() == "followed"
    write_atomic(link, "replaced")
    assert not link.is_symlink()
    assert (link.read_text(), real.read_text()) == ("replaced", "followed")


def test_a_dangling_link_gets_its_file(tmp_path: Path) -> None:
    """``follow`` makes the missing file that a link points at."""
    link = tmp_path / "link"
    link.symlink_to("later")
    write_atomic(link, "x", follow=True)
    assert link.is_symlink()
    assert (tmp_path / "later").read_text() == "x"


@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_only_regular_files_are_replaced(tmp_path: Path, kind: str) -> None:
    """A folder, a pipe or a device (/dev/null!) is refused, and stays what it is."""
    path = tmp_path / "p"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(Unavailable, match=f"can't write {path}: it is not a regular file"):
        write_atomic(path, "x")
    assert os.listdir(tmp_path) == ["p"]
    assert not path.is_file()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The message has the path and the reason."""
    with pytest.raises(Unavailable, match=r"can't write .*/no/f: the folder or file does not exist"):
        write_atomic(tmp_path / "no" / "f", "x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    """The reason is said in words."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(Unavailable, match="permission denied"):
            write_atomic(tmp_path / "f", "x")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.shows("I43")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str, call: str
) -> None:
    """Whichever step the system refuses, the old content stands and the temporary file is gone."""
    file = tmp_path / "f"
    file.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(Unavailable, match=words):
        write_atomic(file, "new")
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_an_interrupt_leaves_no_trace_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle is not swallowed and cleans up."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "f", "new")
    assert os.listdir(tmp_path) == []


@pytest.mark.shows("I22")
def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    """With several writers at once, every read is one whole version."""
    file = tmp_path / "f"
    versions = {letter * 200_000 for letter in "abc"}
    write_atomic(file, "a" * 200_000)

    def write(text: str) -> None:
        for _ in range(30):
            write_atomic(file, text, durable=False)

    writers = [threading.Thread(target=write, args=(text,)) for text in versions]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        seen.add(file.read_text())
    assert seen <= versions
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.shows("I43")
def test_corrupt_files_are_set_aside_one_by_one(tmp_path: Path) -> None:
    """Each keeps its content under a name of its own, even with the same stamp."""
    file = tmp_path / "playbook.json"
    kept = []
    for text in ("first", "second", "third"):
        file.write_text(text)
        kept.append(set_aside(file, "20260101T000000"))
        assert not file.exists()
    assert [path.name.removeprefix("playbook.json.corrupt-20260101T000000") for path in kept] == [
        "",
        "-2",
        "-3",
    ]
    assert [path.read_text() for path in kept] == ["first", "second", "third"]


def test_setting_aside_a_link_leaves_its_target(tmp_path: Path) -> None:
    """Of a link only the link is renamed, not the file it points at."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("x")
    link.symlink_to(real)
    aside = set_aside(link, "s")
    assert aside.is_symlink()
    assert real.read_text() == "x"
    assert not link.exists()


def test_setting_aside_what_is_not_there(tmp_path: Path) -> None:
    """When there is no file, no reserved name is left behind."""
    with pytest.raises(Unavailable, match=r"can't set .* aside: the folder or file does not exist"):
        set_aside(tmp_path / "no", "s")
    assert os.listdir(tmp_path) == []


def test_backups_keep_mode_and_number(tmp_path: Path) -> None:
    """The newest ``keep`` stay, in order also within one second; foreign files are left alone."""
    file, foreign = tmp_path / "c.json", tmp_path / "c.json.reflectd-backup-mine"
    file.touch(0o640)
    file.chmod(0o640)
    foreign.touch()
    for number in range(8):
        file.write_text(str(number))
        backup = back_up(file, f"2026010{number // 4 + 1}T000000", keep=5)
        assert mode_of(backup) == 0o640
    assert [path.read_text() for _, path in backups(file)] == ["3", "4", "5", "6", "7"]
    assert foreign.exists()


def test_no_backups_without_a_folder(tmp_path: Path) -> None:
    """Listing backups where there are none, or no folder, gives none."""
    assert backups(tmp_path / "no" / "f") == []
