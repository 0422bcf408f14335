"""A person's preferences for one project: told to Workshop where it is installed, else kept in a file.

Workshop's command is run with its arguments as a list, from an absolute folder of PATH outside of the
project, for at most ``WORKSHOP_S``. The file is ``.claude/memory/preferences.md``, in a project that only
opencode works in ``.reflection/preferences.md``; sessions are given of it only what the state folder knows: a
clone may bring such a file. Links are not followed, and nothing is done in a folder that is one.
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
from ...files.safe import make_folder
from ...files.verdict import make_reflection
from ..state import problem_of
from ..texts import refusal
from .rules_file import Place, only_opencode
from .section import PREFERENCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..state import ReflectState

FILE: Final = ".claude/memory/preferences.md"
OPENCODE_FILE: Final = ".reflection/preferences.md"
WORKSPACE: Final = ".claude/memory"
WORKSHOP: Final = "workshop"
WORKSHOP_S: Final = 20.0
SAID_CHARS: Final = 200
KNOWN_KEPT: Final = 10_000


class WorkshopRefused(Unavailable):
    """Workshop said no, so it keeps nothing of it."""


class Preference(NamedTuple):
    """One that counts. ``name``: its id, "" for one that a person wrote by hand. ``known``: whether a person
    vouched for this text. ``refused``: why no agent may be given it.
    """

    name: str
    text: str
    line: int
    known: bool
    refused: str


def place(project: Path) -> Place:
    """The project's file of preferences, there or not. Raises ``UserError`` for a folder that is a link."""
    name = OPENCODE_FILE if only_opencode(project) else FILE
    path = project / name
    if problem := problem_of(project, path):
        raise UserError(problem)
    return Place(name, name, path)


def make_its_folder(path: Path) -> None:
    """Make the folder of the file. Raises ``Unavailable``."""
    try:
        if path.parent.name == ".reflection":
            make_reflection(path.parent)
        else:
            make_folder(path.parent)
    except OSError as error:
        raise Unavailable(f"can't make the folder {path.parent}: {words(error)}") from error


def those_that_count(project: Path, state: ReflectState) -> list[Preference]:
    """The active preferences in the project's file. Raises ``Unavailable`` and ``UserError``."""
    found = place(project).document(PREFERENCES)
    lines = [(r.id, r.text, r.line) for r in found.rules if r.active]
    lines += [("", own.text, own.line) for own in found.own() if own.part == "active"]
    known = vouched_for(state)
    return [
        Preference(name, text, line, known_as(text) in known, refusal(text))
        for name, text, line in sorted(lines, key=lambda each: each[2])
    ]


def vouched_for(state: ReflectState) -> dict[str, int]:
    """The digests of the preferences that a person typed or trusted, with when (epoch ms)."""
    return {d: at for d, at in state.load("preferences").items() if type(at) is int}


def vouch(state: ReflectState, texts: Iterable[str], now_ms: int) -> None:
    """A person vouches for these texts. Who calls it holds the lock. Raises ``Unavailable``."""
    known = vouched_for(state) | dict.fromkeys(map(known_as, texts), now_ms)
    while len(known) > KNOWN_KEPT:
        del known[next(iter(known))]
    state.save("preferences", known, now_ms)


def workshop(project: Path, env: Mapping[str, str]) -> str | None:
    """Workshop's command, None where it is not installed."""
    return find_program(WORKSHOP, env, Path(os.path.realpath(project)))


def tell_workshop(program: str, project: Path, text: str, timeout_s: float = WORKSHOP_S) -> None:
    """Have Workshop keep a preference (FR6). Raises ``WorkshopRefused`` when it said no, ``Unavailable`` when
    nobody can know whether it keeps it.
    """
    line = [program, "--workspace", WORKSPACE, "preference", text, "--category", "reflect"]
    try:
        process = subprocess.Popen(  # noqa: S603 - an absolute program and our own arguments, no shell
            line,
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
            _, printed = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"Workshop did not answer in {timeout_s:g} s: look with `workshop preferences` if it keeps it"
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        why = " ".join(printed.decode("utf-8", "backslashreplace").split())
        raise WorkshopRefused(f"Workshop refused it ({process.returncode}): {why[-SAID_CHARS:]}")
