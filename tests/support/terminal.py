"""A program's terminal UI in a pseudo-terminal of 120 x 40, read like a person reads it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import threading
import time
from typing import TYPE_CHECKING, Self

import pexpect
import pyte

from tests.support.opencode import plain
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

COLUMNS, ROWS = 120, 40
_STRING = re.compile(rb"\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)")  # OSC, DCS, APC, PM, SOS
_PRIVATE = re.compile(rb"\x1b\[[<=>?][0-9;]*[a-zA-Z]|\x1b\[[0-9;?]*\$[a-z]|\x1b\[[0-9;]* [a-zA-Z]")
_REPLIES = {
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b]10;?": b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
}


class Terminal:
    """``with`` it: ready to be typed into when the block begins, that is, when ``ready`` is on the screen."""

    def __init__(self, command: Sequence[str], env: dict[str, str], cwd: Path, ready: str) -> None:
        self._command, self._cwd, self._ready = list(command), cwd, ready
        self._env = env | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._raw = bytearray()
        self._child: pexpect.spawn[bytes] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="tui", daemon=True)

    def __enter__(self) -> Self:
        self._child = pexpect.spawn(
            self._command[0],
            self._command[1:],
            env=self._env,
            cwd=str(self._cwd),
            dimensions=(ROWS, COLUMNS),
            timeout=None,
        )
        self._child.delaybeforesend = None
        self._thread.start()
        try:
            self.wait_for(self._ready, 60)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        assert self._child is not None
        rest = b""
        while not self._stop.is_set():
            if not select.select([self._child.child_fd], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self._child.child_fd, 65536)
            except OSError:
                return
            if not data:
                return
            self._answer(data)
            rest = self._feed(rest + data)

    def _answer(self, data: bytes) -> None:
        """Reply to the questions that a terminal is asked: cursor, device, colours."""
        assert self._child is not None
        for question, reply in _REPLIES.items():
            for _ in range(data.count(question)):
                self._child.send(reply)

    def _feed(self, data: bytes) -> bytes:
        """Draw ``data``; gives back an unfinished escape sequence. What pyte would misread is cut."""
        cut = data.rfind(b"\x1b")
        rest = data[cut:] if cut >= 0 and len(data) - cut < 4096 and not _finished(data[cut:]) else b""
        whole = data[: len(data) - len(rest)]
        with self._lock:
            self._raw += whole
            self._stream.feed(_PRIVATE.sub(_keep_modes, _STRING.sub(b"", whole)))
        return rest

    @property
    def screen(self) -> str:
        """What is on the screen now, 40 lines, trailing blanks cut."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def pid(self) -> int:
        assert self._child is not None
        assert self._child.pid is not None
        return self._child.pid

    def wait_for(self, words: str, timeout: float = 30) -> str:
        """Until ``words`` are on the screen (a line break in between doesn't matter); gives the screen."""
        wanted = " ".join(words.split())
        wait_until(
            lambda: wanted in " ".join(self.screen.split()),
            timeout,
            f"{words!r} on the screen",
            lambda: self.screen,
        )
        return self.screen

    def wait_gone(self, words: str, timeout: float = 30) -> None:
        wait_until(
            lambda: words not in self.screen, timeout, f"screen without {words!r}", lambda: self.screen
        )

    def type(self, text: str) -> None:
        """Type, and wait until it stands in the input line."""
        assert self._child is not None
        self._child.send(text.encode())
        self.wait_for(text, 10)

    def enter(self) -> None:
        self._key(b"\r")

    def escape(self) -> None:
        self._key(b"\x1b")

    def ask(self, text: str) -> None:
        """Type and send."""
        self.type(text)
        self.enter()

    def _key(self, key: bytes) -> None:
        assert self._child is not None
        self._child.send(key)

    def quit(self, timeout: float = 15) -> int:
        """Leave as a person does (Ctrl-C on an empty line); gives the exit status."""
        assert self._child is not None
        self._key(b"\x03")
        wait_until(
            lambda: self._child is None or not self._child.isalive(),
            timeout,
            "end of the TUI",
            lambda: self.screen,
        )
        status: int | None = self._child.exitstatus
        return -1 if status is None else status

    def text_after_exit(self) -> str:
        """All that was written to the terminal after the full-screen mode was left."""
        with self._lock:
            return plain(bytes(self._raw).rpartition(b"\x1b[?1049l")[2].decode("utf-8", "replace"))

    def close(self) -> None:
        self._stop.set()
        if self._child is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGTERM)
        end = time.monotonic() + 5
        while self._child.isalive() and time.monotonic() < end:
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._thread.join(5)
        self._child.close(force=True)


def _finished(sequence: bytes) -> bool:
    """Whether an escape sequence at the end of the data is whole."""
    if len(sequence) < 2:
        return False
    if sequence[1:2] in b"]P_^X":
        return sequence.endswith((b"\x07", b"\x1b\\"))
    if sequence[1:2] == b"[":
        return re.match(rb"\x1b\[[0-9;:<=>?!\"'$ ]*[@-~]", sequence) is not None
    return True


def _keep_modes(match: re.Match[bytes]) -> bytes:
    """Of the private sequences pyte knows only ``?…h`` and ``?…l``."""
    found = match.group()
    return found if re.fullmatch(rb"\x1b\[\?[0-9;]+[hl]", found) else b""
