"""Files that others may have made or may read at the same moment, on a real file system."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.files.safe import (
    alone,
    make_folder,
    read_text,
    remove_empty,
    set_aside,
    write_atomic,
)


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
    """The message has the path; without a file nothing is set aside."""
    with pytest.raises(Unavailable, match=r"can't write .*/no/f: No such file"):
        write_atomic(tmp_path / "no" / "f", "x")
    with pytest.raises(Unavailable, match=r"can't set .* aside"):
        set_aside(tmp_path / "no", "s")
    assert os.listdir(tmp_path) == []


@pytest.mark.shows("I43")
@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.ENOSPC, "No space left"), (errno.EROFS, "Read-only")],
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


def test_a_text_and_no_file(tmp_path: Path) -> None:
    """UTF-8 without its BOM, up to exactly the limit; None when there is no file, or no folder."""
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf\xc3\xbc\n")
    assert read_text(tmp_path / "a", 6) == "ü\n"
    with pytest.raises(ValueError, match="larger than 5 bytes"):
        read_text(tmp_path / "a", 5)
    assert read_text(tmp_path / "b", 10) is None
    assert read_text(tmp_path / "a" / "c", 10) is None


def test_what_is_no_text_file(tmp_path: Path) -> None:
    """Bad input: a FIFO, a socket, a folder, other bytes. None of them is waited for."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "bytes").write_bytes(b"ab\xff")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        for name, words in (("fifo", "regular"), ("s", "regular"), ("bytes", r"not UTF-8 \(byte 2\)")):
            with pytest.raises(ValueError, match=words):
                read_text(tmp_path / name, 10)
    with pytest.raises((ValueError, OSError)):
        read_text(tmp_path, 10)


def test_links(tmp_path: Path) -> None:
    """A link is followed unless that is refused; one that leads nowhere is a mistake, not a missing file."""
    (tmp_path / "a").write_text("x")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "nowhere").symlink_to("gone")
    assert read_text(tmp_path / "link", 10) == "x"
    with pytest.raises(ValueError, match="it is a link"):
        read_text(tmp_path / "link", 10, follow=False)
    with pytest.raises(ValueError, match="leads nowhere"):
        read_text(tmp_path / "nowhere", 10)


def test_the_second_waits_or_is_told(tmp_path: Path) -> None:
    """Without words for it the second waits; with them it is refused at once. Neither leaves a file."""
    folder, entered = tmp_path / "state", threading.Event()

    def second() -> None:
        with alone(folder):
            entered.set()

    with alone(folder):
        waiting = threading.Thread(target=second)
        waiting.start()
        with (
            pytest.raises(Unavailable, match="somebody else is at it"),
            alone(folder, busy="somebody else is at it"),
        ):
            pass
        assert not entered.is_set()
    waiting.join()
    assert entered.is_set()
    with alone(folder, busy="nobody"):
        assert list(folder.iterdir()) == []


def test_folders_are_made_for_the_person_alone_and_removed_when_empty(tmp_path: Path) -> None:
    """What was made is told, and nobody else may write to it. One that holds something stays, with all above
    it; one that is not there is no error.
    """
    before = os.umask(0)
    try:
        made = make_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert made == [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert {folder.stat().st_mode & 0o777 for folder in made} == {0o755}
    assert make_folder(tmp_path / "a" / "b") == []
    remove_empty([tmp_path / "nowhere", *reversed(made)])
    assert list(tmp_path.iterdir()) == []
    make_folder(tmp_path / "a" / "b" / "c")
    (tmp_path / "a" / "own").touch()
    remove_empty(reversed(made))
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["own"]
