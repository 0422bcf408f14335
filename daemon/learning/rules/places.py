"""Where a project keeps rules and preferences: its files, and Workshop.

Rules go to CLAUDE.md, or to AGENTS.md where the project has it: one file, never both. A link or an import
(``@AGENTS.md``) makes them one; of two that have nothing to do with each other the one with the section
counts, else the one that the host reads, else CLAUDE.md. Nothing outside the project is ever touched, above
all not ``~/.claude/CLAUDE.md``: a link that leads there gives a ``UserError``. Preferences go to
``.claude/memory/preferences.md``; no folder on the way there may be a link. Of that file sessions are given
only texts that the state folder knows: a clone may bring it.

Workshop's command is run with its arguments as a list, from an absolute folder of PATH outside of the
project, for at most ``WORKSHOP_S``.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import Unavailable, UserError, words
from ...core.given import known_as
from ...files.safe import read_bytes
from ..state import problem_of
from ..texts import refusal
from .section import PREFERENCES, RULES, Document, Form, decoded, scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..state import ReflectState

LIMIT: Final = 4 * 1024 * 1024
CLAUDE: Final = ("CLAUDE.md", ".claude/CLAUDE.md")
AGENTS: Final = "AGENTS.md"
READ_AGENTS: Final = frozenset({"opencode", "codex"})
"""The hosts that read AGENTS.md, where there is also a CLAUDE.md."""
SOFT: Final = ".claude/memory/preferences.md"
WORKSPACE: Final = ".claude/memory"
WORKSHOP_S: Final = 20.0
SAID_CHARS: Final = 200
KNOWN_KEPT: Final = 10_000
_SPAN: Final = re.compile(r"`[^`]*`")
_IMPORT: Final = re.compile(r"(?<!\S)@(\S+)")


class Place(Struct, frozen=True):
    """A file for rules or preferences. ``name``: its path from the project. ``path``: the real file, where
    that is a link. ``note``: a sentence for the person about this choice.
    """

    name: str
    path: Path
    note: str = ""
    form: Form = RULES

    def read(self) -> bytes:
        """Its bytes, none when it is not there. Raises ``Unavailable`` and ``UserError``."""
        try:
            return read_bytes(self.path, LIMIT, follow=False) or b""
        except OSError as error:
            raise Unavailable(f"{self.path} can't be read: {words(error)}") from error
        except ValueError as error:
            raise UserError(f"{self.path} can't be used: {error}") from None

    def document(self) -> Document:
        """The same as a document. Raises ``Unavailable`` and ``UserError``."""
        data = self.read()
        try:
            return Document(data, self.form)
        except UserError as error:
            raise UserError(f"{self.path} is not changed: {error}") from None


def for_preferences(project: Path) -> Place:
    """The project's file of preferences, there or not. Raises ``UserError`` for a folder that is a link."""
    if problem := problem_of(project, project / SOFT):
        raise UserError(problem)
    return Place(SOFT, project / SOFT, form=PREFERENCES)


def for_rules(project: str | Path, env: Mapping[str, str], host: str = "") -> Place:
    """The file for the project's rules, there or not. ``host``: whose file counts, where there is none, or
    two that have nothing to do with each other. Raises ``UserError`` when there is none that may be written,
    and ``Unavailable``.
    """
    root = Path(os.path.realpath(project))
    if str(root) in {"/", os.path.realpath(env.get("HOME") or "/")}:
        raise UserError(f"{project} is no project")
    names = [name for name in CLAUDE if os.path.lexists(root / name)][:1]
    names += [AGENTS] if os.path.lexists(root / AGENTS) else []
    reads_agents = host in READ_AGENTS
    if not names:
        return _place(root, AGENTS if reads_agents else CLAUDE[0], env)
    found, refused = _places(root, names, env)
    if not found:
        raise UserError(refused[0])
    if len(found) < 2:
        note = refused[0] if refused else found[0].note
        if names == [AGENTS] and not reads_agents:
            note = "Claude Code reads it only through a CLAUDE.md that says @AGENTS.md"
        return replace(found[0], note=note)
    claude, agents = found
    if claude.path == agents.path:
        return agents if claude.note else claude
    if _imports(claude, agents.path):
        return replace(agents, note=f"{claude.name} imports it")
    with_section = [place for place in found if place.document().there]
    if len(with_section) == 1:
        return with_section[0]
    place, other = (agents, claude) if reads_agents else (claude, agents)
    return replace(place, note=f"{other.name} is another file: @{AGENTS} in CLAUDE.md makes them one")


def every(project: Path, env: Mapping[str, str]) -> tuple[list[Place], list[str]]:
    """Each file of the project that may hold rules or preferences, once, and the problems of the others."""
    root = Path(os.path.realpath(project))
    there = [name for name in (*CLAUDE, AGENTS) if os.path.lexists(root / name)]
    found, problems = _places(root, there, env)
    once = {place.path: place for place in reversed(found)}
    places = [place for place in found if once[place.path] is place]
    try:
        places.append(for_preferences(project))
    except UserError as error:
        problems.append(str(error))
    return places, problems


def _places(root: Path, names: Sequence[str], env: Mapping[str, str]) -> tuple[list[Place], list[str]]:
    found, problems = list[Place](), list[str]()
    for name in names:
        try:
            found.append(_place(root, name, env))
        except UserError as error:
            problems.append(str(error))
    return found, problems


def _place(root: Path, name: str, env: Mapping[str, str]) -> Place:
    """The real file behind a name. Raises ``UserError`` for one that is not the project's own."""
    real = Path(os.path.realpath(root / name))
    if not real.is_relative_to(root):
        raise UserError(f"{root / name} leads out of the project, to {real}: nothing is written there")
    if real.parent in _global_folders(env):
        raise UserError(f"{real} counts for all projects: reflectd never writes there")
    if os.path.lexists(real) and not real.is_file():
        raise UserError(f"{real} is not a regular file")
    shown = str(real.relative_to(root))
    return Place(shown, real, f"{name} is a link to it" if shown != name else "")


def _global_folders(env: Mapping[str, str]) -> set[Path]:
    home = env.get("HOME") or "/"
    config = env.get("XDG_CONFIG_HOME") or f"{home}/.config"
    names = (f"{home}/.claude", env.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude", f"{config}/opencode")
    return {Path(os.path.realpath(name)) for name in names}


def _imports(place: Place, target: Path) -> bool:
    """Says whether this file imports that one, as Claude Code reads it: outside of code."""
    try:
        lines = scan(decoded(place.read()))
    except (UserError, Unavailable):
        return False
    names = (name for line in lines if not line.code for name in _IMPORT.findall(_SPAN.sub(" ", line.text)))
    return any(os.path.realpath(place.path.parent / n.rstrip(".,;:)")) == str(target) for n in names)


# --- preferences ------------------------------------------------------------------------------------------


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


class WorkshopRefused(UserError):
    """Workshop said no, so it keeps nothing of it."""


def tell_workshop(program: str, project: Path, text: str, timeout_s: float = WORKSHOP_S) -> None:
    """Have Workshop keep a preference (FR6). Raises ``WorkshopRefused`` when it said no, ``Unavailable`` when
    nobody can know whether it keeps it.
    """
    command = [program, "--workspace", WORKSPACE, "preference", text, "--category", "reflect"]
    no = subprocess.DEVNULL
    try:
        process = subprocess.Popen(  # noqa: S603 - an absolute program and our own arguments, no shell
            command, cwd=project, stdin=no, stdout=no, stderr=subprocess.PIPE, start_new_session=True
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
            if process.returncode is None:  # with all that it started
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        line = " ".join(said.decode("utf-8", "backslashreplace").split())
        raise WorkshopRefused(f"Workshop refused it ({process.returncode}): {line[-SAID_CHARS:]}")
