#!/usr/bin/env python3
"""Says a verdict aloud: reflectd watch --exec 'python3 speak.py'

``espeak-ng`` on Linux, ``say`` on macOS. While another speak.py is speaking, it waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import programs
import telling

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

LIMIT_S = 30.0
SPOKEN_CHARS = 400
LOOK_S = 0.1
INSTALL = "on Debian and Ubuntu: apt-get install espeak-ng"
_UNSPEAKABLE = re.compile(r"[`*_#\[\]<>|~{}\\]+")  # [[ ]] would be commands to both programs


def words(message: telling.Message) -> str:
    """One text to speak."""
    said = _UNSPEAKABLE.sub(" ", ". ".join((message.title, *message.lines)))
    return telling.clean(said, SPOKEN_CHARS)


def command(args: argparse.Namespace) -> list[str]:
    """The program and its arguments; the text comes on stdin."""
    wav = str(args.wav.absolute()) if args.wav else ""
    if args.program == "say":
        voice = ["-v", args.voice] if args.voice else []
        file = ["-o", wav, "--file-format=WAVE", "--data-format=LEI16@22050"] if wav else []
        return ["say", *voice, *file, "-f", "-"]
    return ["espeak-ng", "-v", args.voice or args.lang, "-b", "1", *(["-w", wav] if wav else []), "--stdin"]


def tell(message: telling.Message, args: argparse.Namespace) -> None:
    """Speak, after any other speak.py has ended."""
    until = time.monotonic() + args.timeout
    with contextlib.nullcontext() if args.wav else turn(until, args.timeout):
        left = max(0.1, until - time.monotonic())
        said = programs.last_line(programs.run(command(args), left, INSTALL, words(message)))
    if args.program == "espeak-ng" and said.startswith("error:"):  # its exit code is 0 even so
        raise telling.NotToldError(f"no sound device ({said[6:].strip()}); --wav FILE writes a file instead")


@contextlib.contextmanager
def turn(until: float, limit_s: float) -> Iterator[None]:
    """Hold the lock while speaking, so that only one voice speaks. Without a lock file: speak at once."""
    folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    try:
        path = Path(folder, f"reflectd-speak-{os.getuid()}.lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        while not _locked(lock):
            if time.monotonic() > until:
                raise telling.NotToldError(f"another one was still speaking after {limit_s:g} s")
            time.sleep(LOOK_S)
        yield
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = telling.parser(__doc__ or "", LIMIT_S)
    parser.add_argument("--wav", type=Path, metavar="FILE", help="write this sound file instead of speaking")
    parser.add_argument("--voice", default="", help="a voice of the program (of --lang)")
    parser.add_argument(
        "--program",
        choices=("espeak-ng", "say"),
        default="say" if sys.platform == "darwin" else "espeak-ng",
        help="who speaks (%(default)s)",
    )
    return telling.run(parser, argv, words, tell)


if __name__ == "__main__":
    sys.exit(main())
