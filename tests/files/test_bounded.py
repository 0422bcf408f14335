"""Small text files that somebody else may have put there."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from daemon.files.bounded import read_text, reason


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
    with pytest.raises((ValueError, OSError)) as raised:
        read_text(tmp_path, 10)
    assert reason(raised.value)


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


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """The reason is in words, without path and number."""
    error = PermissionError(13, "Permission denied", str(tmp_path))
    assert reason(error) == "Permission denied"
    assert reason(ValueError("it is a link")) == "it is a link"
