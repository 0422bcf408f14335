"""The command ``reflectd``: starts what was typed, and ends with its exit code.

`reflectd line` runs at each prompt, so it is tried first, as the help is, before anything else is imported.
All else goes the way of all verbs. A reader that goes away, or that was never there, is no failure.
"""

from __future__ import annotations

import os
import sys


def entry() -> None:
    """The command ``reflectd``, and ``python -m`` with this package's name."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - until the end
    try:
        try:
            code = _run(sys.argv[1:])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        code = 0
    except OSError as e:  # the last of the output: a full disk
        _forget_output()
        print(f"reflectd: the output can't be written: {e.strerror}", file=sys.stderr)
        code = 1
    sys.exit(code)


def _forget_output() -> None:
    """Else the interpreter prints an error when it flushes stdout at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: list[str]) -> int:
    if argv[:1] == ["line"]:
        from .control.line import at_once

        try:
            if at_once(argv[1:]):
                sys.stdout.flush()
                return 0
        except OSError:  # a prompt has no use for an error
            _forget_output()
            return 0
    if argv in ([], ["--help"], ["-h"], ["help"]):
        from .verbs import page

        print(page())
        return 0
    from io import TextIOWrapper

    from .main import main

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what it can't show, half characters too
    return main(argv)
