"""Runs the one program that speaks or notifies: no shell, a time limit, nothing on the terminal."""

from __future__ import annotations

import subprocess

from telling import NotToldError


def run(command: list[str], limit_s: float, install: str, text: str = "") -> str:
    """Run it with ``text`` on its stdin; returns what it wrote to stderr. Raises ``NotToldError``."""
    name = command[0]
    try:
        done = subprocess.run(  # noqa: S603 - a list of our own, no shell
            command,
            input=text,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=limit_s,
            check=False,
        )
    except FileNotFoundError:
        raise NotToldError(f"{name} is not installed; {install}") from None
    except subprocess.TimeoutExpired:
        raise NotToldError(f"{name} took longer than {round(limit_s, 1):g} s and was ended") from None
    except OSError as e:
        raise NotToldError(f"{name} cannot be run: {e.strerror}") from None
    if done.returncode:
        raise NotToldError(
            f"{name} ended with {done.returncode}: {last_line(done.stderr) or 'no reason given'}"
        )
    return done.stderr


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")
