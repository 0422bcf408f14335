"""A person's preferences for one project: told to Workshop where it is installed, else kept in a file.

Workshop's command is run with its arguments as a list, from an absolute folder of PATH outside of the
project, for at most ``WORKSHOP_S``. Of the file sessions are given only texts that the state folder knows: a
clone may bring such a file.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ...core.errors import Unavailable, UserError, words
from ...core.given import known_as
from ...files.project import find_program
from ..texts import refusal
from .places import for_preferences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..state import ReflectState

WORKSPACE: Final = ".claude/memory"
WORKSHOP: Final = "workshop"
WORKSHOP_S: Final = 20.0
SAID_CHARS: Final = 200
KNOWN_KEPT: Final = 10_000


class WorkshopRefused(UserError):
    """Workshop said no, so it keeps nothing of it."""


class Preference(NamedTuple):
    """One that counts. ``known``: a person vouched for it. ``refused``: why no agent may be given it."""

    text: str
    known: bool
    refused: str


def those_that_count(project: Path, state: ReflectState) -> list[Preference]:
    """The active preferences in the project's file. Raises ``Unavailable`` and ``UserError``."""
    document = for_preferences(project).document()
    lines = [(r.line, r.text) for r in document.rules if r.active]
    lines += [(own.line, own.text) for own in document.own() if own.part == "active"]
    known = vouched_for(state)
    return [Preference(text, known_as(text) in known, refusal(text)) for _, text in sorted(lines)]


def vouched_for(state: ReflectState) -> dict[str, int]:
    """The digests of the preferences that a person typed or trusted, with when (epoch ms)."""
    return {d: at for d, at in state.load("preferences").items() if type(at) is int}


def vouch(state: ReflectState, texts: Iterable[str], now_ms: int) -> None:
    """A person vouches for these texts. The caller holds the lock. Raises ``Unavailable``."""
    known = vouched_for(state) | dict.fromkeys(map(known_as, texts), now_ms)
    state.save("preferences", dict(list(known.items())[-KNOWN_KEPT:]), now_ms)


def workshop(project: Path, env: Mapping[str, str]) -> str | None:
    """Workshop's command, None where it is not installed."""
    return find_program(WORKSHOP, env, Path(os.path.realpath(project)))


def tell_workshop(program: str, project: Path, text: str, timeout_s: float = WORKSHOP_S) -> None:
    """Have Workshop keep a preference (FR6). Raises ``WorkshopRefused`` when it said no, ``Unavailable`` when
    nobody can know whether it keeps it.
    """
    command = [program, "--workspace", WORKSPACE, "preference", text, "--category", "reflect"]
    try:
        process = subprocess.Popen(  # noqa: S603 - an absolute program and our own arguments, no shell
            command,
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise WorkshopRefused(f"{program} can't be started: {words(error)}") from None
    with process:
        try:
            _, said = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"Workshop did not answer in {timeout_s:g} s: look with `workshop preferences` if it keeps it"
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        line = " ".join(said.decode("utf-8", "backslashreplace").split())
        raise WorkshopRefused(f"Workshop refused it ({process.returncode}): {line[-SAID_CHARS:]}")
