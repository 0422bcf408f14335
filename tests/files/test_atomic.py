"""Whole-file writes, corrupt files set aside, backups: on a real file system."""

from __future__ import annotations

import errno
import os
import signal
import stat
import threading
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.files.atomic import back_up, backups, set_aside, write_atomic


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
    """0600 by default. With None a person's file keeps its mode, and a new one gets what the umask leaves."""
    file, mine = tmp_path / "f", tmp_path / "mine"
    file.write_text("old")
    file.chmod(0o644)
    before = os.umask(0o027)
    try:
        for path, mode, expected in ((file, 0o600, 0o600), (file, 0o644, 0o644), (mine, None, 0o640)):
            write_atomic(path, "new", mode)
            assert mode_of(path) == expected
        mine.chmod(0o604)
        write_atomic(mine, "2", None)
        assert mode_of(mine) == 0o604
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
    dangling = tmp_path / "dangling"
    dangling.symlink_to("later")
    write_atomic(dangling, "x", follow=True)
    assert (dangling.is_symlink(), (tmp_path / "later").read_text()) == (True, "x")


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
    """The message has the path; without a file nothing is set aside, and there are no backups."""
    with pytest.raises(Unavailable, match=r"can't write .*/no/f: the folder or file does not exist"):
        write_atomic(tmp_path / "no" / "f", "x")
    with pytest.raises(Unavailable, match=r"can't set .* aside"):
        set_aside(tmp_path / "no", "s")
    assert backups(tmp_path / "no" / "f") == []
    assert os.listdir(tmp_path) == []


@pytest.mark.shows("I43")
@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only"), (errno.EIO, os.strerror(errno.EIO))],
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
    monkeypatch.setattr(os, "fsync", lambda _: signal.raise_signal(signal.SIGINT))
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
    """Each keeps its content under a name of its own; of a link only the link is renamed."""
    file = tmp_path / "playbook.json"
    kept = []
    for text in ("first", "second", "third"):
        file.write_text(text)
        kept.append(set_aside(file, "1"))
        assert not file.exists()
    assert [path.name.partition("corrupt-")[2] for path in kept] == ["1", "1-2", "1-3"]
    assert [path.read_text() for path in kept] == ["first", "second", "third"]
    file.symlink_to(kept[0])
    assert set_aside(file, "2").is_symlink()
    assert (kept[0].read_text(), file.is_symlink()) == ("first", False)


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
