"""A program's terminal UI in a pseudo-terminal, read like a person reads it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pexpect
import pyte
from pyte.screens import Char

from harness.hosts.opencode import plain
from harness.machine.waiting import PATIENCE_S, wait_until

COLUMNS, ROWS = 120, 40
_ENTER_S = 5.0
_PIECE = 4096  # bytes drawn at once: what is drawn and wiped in one piece is never seen
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

    columns, rows = COLUMNS, ROWS

    def __init__(
        self,
        command: Sequence[str],
        env: dict[str, str],
        cwd: Path,
        ready: str,
        *,
        size: tuple[int, int] | None = None,
    ) -> None:
        self._command, self._cwd, self._ready = list(command), cwd, ready
        self._env = {"TERM": "xterm-256color", "COLORTERM": "truecolor"} | env
        self.columns, self.rows = size or (self.columns, self.rows)
        self._screen = pyte.Screen(self.columns, self.rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._raw = bytearray()
        self._watched: dict[str, bool] = {}  # words, and whether they were on the screen
        self._child: pexpect.spawn[bytes] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="tui", daemon=True)

    def __enter__(self) -> Self:
        self._child = pexpect.spawn(
            self._command[0],
            self._command[1:],
            env=self._env,
            cwd=str(self._cwd),
            dimensions=(self.rows, self.columns),
            timeout=None,
        )
        self._child.delaybeforesend = None
        self._thread.start()
        try:
            self.wait_for(self._ready)
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
                data = os.read(self._child.child_fd, _PIECE)
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
            missed = [words for words, seen in self._watched.items() if not seen]
            if missed:
                shown = _flat(self._lines())
                self._watched |= {words: words in shown for words in missed}
        return rest

    def _lines(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def screen(self) -> str:
        """What is on the screen now, a line a row, trailing blanks cut."""
        with self._lock:
            return self._lines()

    @property
    def cells(self) -> list[list[Char]]:
        """What is on the screen now, with its colours: a list of rows."""
        with self._lock:
            buffer = self._screen.buffer
            return [[buffer[y][x] for x in range(self.columns)] for y in range(self.rows)]

    @property
    def pid(self) -> int:
        assert self._child is not None
        assert self._child.pid is not None
        return self._child.pid

    def watch(self, words: str) -> None:
        """From now on these words count for ``wait_for``, also when they are gone before it is called.

        What is there from before (a toast) is waited away first.
        """
        self.wait_gone(words)
        with self._lock:
            self._watched[_flat(words)] = False

    def wait_for(self, words: str) -> str:
        """Until ``words`` are on the screen, a line break in between or not, or were there since this call or
        since ``watch``; gives the screen.

        What is drawn for a moment (a toast) counts, also when this thread gets no time during that moment.
        """
        wanted = _flat(words)
        with self._lock:
            self._watched.setdefault(wanted, wanted in _flat(self._lines()))
        wait_until(lambda: self._watched[wanted], f"{words!r} on the screen", lambda: self.screen)
        with self._lock:
            del self._watched[wanted]
        return self.screen

    def wait_gone(self, words: str) -> None:
        wait_until(lambda: words not in self.screen, f"screen without {words!r}", lambda: self.screen)

    def type(self, text: str) -> None:
        """Type, and wait until it stands in the input line."""
        assert self._child is not None
        self._child.send(text.encode())
        self.wait_for(text)

    def enter(self) -> None:
        self._key(b"\r")

    def enter_until(self, done: Callable[[], bool], what: str) -> None:
        """Press Enter until ``done``."""
        self.press_until("\r", done, what)

    def press_until(self, keys: str, done: Callable[[], bool], what: str) -> None:
        """Press these keys, and again every 5 s until ``done``: a UI that draws may lose them."""
        again = 0.0

        def pressed() -> bool:
            nonlocal again
            if done():
                return True
            if time.monotonic() > again:
                again = time.monotonic() + _ENTER_S
                self.press(keys)
            return False

        wait_until(pressed, what, lambda: self.screen)

    def escape(self) -> None:
        self._key(b"\x1b")

    def ask(self, text: str) -> None:
        """Type and send."""
        self.type(text)
        self.enter()

    def _key(self, key: bytes) -> None:
        assert self._child is not None
        self._child.send(key)

    def press(self, keys: str) -> None:
        """Send keys, and wait for nothing."""
        self._key(keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, as a person who pulls at its window."""
        assert self._child is not None
        with self._lock:
            self.columns, self.rows = columns, rows
            self._screen.resize(rows, columns)
        self._child.setwinsize(rows, columns)

    def quit(self) -> int:
        """Leave as a person does (Ctrl-C on an empty line); gives the exit status."""
        self._key(b"\x03")
        return self.ended()

    def ended(self) -> int:
        """Wait until the program has ended by itself; gives the exit status, -1 for one that was killed."""
        child = self._child
        assert child is not None
        wait_until(lambda: not child.isalive(), "end of the TUI", lambda: self.screen)
        return -1 if child.exitstatus is None else int(child.exitstatus)

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
        child = self._child
        wait_until(lambda: not child.isalive(), "the end of the killed TUI")  # ``close`` waits a moment only
        self._thread.join(PATIENCE_S)
        child.close(force=True)


def _flat(words: str) -> str:
    return " ".join(words.split())


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
