"""The command ``reflectd``: starts what was typed, and ends with its exit code.

`reflectd line` runs at each prompt, so it is tried first, before anything else is imported. Whatever it does
not understand goes the way of all verbs. A reader that goes away is no failure.
"""

from __future__ import annotations

import sys


def entry() -> None:
    """The command ``reflectd``, and ``python -m`` with this package's name."""
    try:
        try:
            code = _run(sys.argv[1:])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        import os

        # else the interpreter prints an error when it flushes stdout at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _run(argv: list[str]) -> int:
    if argv[:1] == ["line"]:
        from .control.line import at_once

        if at_once(argv[1:]):
            return 0
    from .main import main

    return main(argv)
