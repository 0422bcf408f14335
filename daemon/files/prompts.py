"""The prompts in force: the shipped ones, or in the place of each the person's own, or a trusted project's.

Each of the three folders is a layer; a later layer replaces single files of the earlier ones. A file that
can't be used is skipped, a problem text names it, and the earlier layer's file is used. A project's files are
used only when the person trusted exactly this content (``Trust``).

Nothing is cached: a judgement takes seconds, and reading all layers takes 0.03 to 0.6 ms. So the next
judgement uses an edited file, on every file system. ``watch`` only makes the log report an edit at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from contextlib import aclosing
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from ..core.errors import Unavailable, UserError, words
from .safe import alone, read_text, set_aside, write_atomic

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from watchfiles.main import Change, FileChange

    from ..core.ports import Clock

LIMIT = 32 * 1024  # bytes; a shipped prompt has about two thousand
PROJECT_FOLDER = ".reflection/prompts"
SUFFIX = ".txt"
DIRECTORIES_KEPT = 200
FILES_LISTED = 100


class Slots(NamedTuple):
    """The ``{names}`` in one prompt: the required and the optional ones."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


_DATA = frozenset({"nonce", "requests", "project", "evidence", "earlier", "final"})
SLOTS: Mapping[str, Slots] = {
    "judge": Slots(optional=frozenset({"nonce"})),  # the system prompt: the same for every call, so cacheable
    "judge_case": Slots(_DATA, frozenset({"log", "changes"})),
    "judge_again": Slots(
        frozenset({"case", "nonce", "why"})
    ),  # when the reply can't be parsed, or a row contradicts it
    "judge_second": Slots(optional=frozenset({"nonce"})),  # the system prompt of the second look
    "judge_second_case": Slots(frozenset({"case", "nonce", "missing"})),
    "stuck": Slots(optional=frozenset({"nonce"})),  # the system prompt: is a silent session stuck?
    "stuck_case": Slots(frozenset({"nonce", "request", "facts", "reply"})),
    "compaction": Slots(optional=frozenset({"nonce"})),  # the system prompt of the look after a compaction
    "compaction_case": Slots(frozenset({"nonce", "requests", "open", "tools", "github", "reply", "summary"})),
    "compaction_again": Slots(frozenset({"case", "nonce", "why"})),
    "reflector": Slots(  # rules and data in one text: the lines before the first placeholder are the rules
        frozenset({"nonce", "transcript", "playbook", "cited_ids"}), frozenset({"quarantined"})
    ),
    "curator": Slots(frozenset({"nonce", "reflector_output", "playbook"})),
    "keypoints": Slots(frozenset({"nonce", "transcript", "playbook"})),
    "reflexion": Slots(frozenset({"reward_score", "query", "context", "answer", "evaluation_reasoning"})),
    "reflexion_rules": Slots(),  # the system prompt of a reflexion
    "evaluation": Slots(frozenset({"nonce", "query", "context", "answer"})),
    "lessons": Slots(frozenset({"nonce", "lessons", "task"})),
    "signals": Slots(frozenset({"nonce", "messages"})),
    "contradicts": Slots(frozenset({"nonce", "statements"})),
    "playbook": Slots(frozenset({"key_points"})),  # what an agent is given
}
_SLOT = re.compile(r"\{([a-z][a-z0-9_]{0,30})\}")


class Layer(NamedTuple):
    """The usable prompts of one folder, and the problems of the others."""

    texts: dict[str, str]
    problems: list[str]


class InForce(NamedTuple):
    """Each prompt's text, the layer it is from, and the problems that were not reported before."""

    texts: dict[str, str]
    sources: dict[str, str]  # "shipped", "yours" or "project"
    problems: list[str]


class Prompts:
    """The prompts that are used for a directory."""

    def __init__(self, shipped: Path, person: Path, trust: Trust) -> None:
        """Raises ``UserError`` when a shipped prompt is missing or broken."""
        layer = read_layer(shipped)
        missing = [f"{shipped / (name + SUFFIX)} is missing" for name in SLOTS if name not in layer.texts]
        if layer.problems or missing:
            raise UserError(f"{[*layer.problems, *missing][0]}; install reflectd again")
        self._shipped = layer.texts
        self._person = person
        self.trust = trust
        self._told: dict[str, list[str]] = {}
        self._lock = threading.Lock()  # judgements make their cases in threads

    def templates(self, directory: str) -> InForce:
        """The prompts for a judgement in ``directory``; "" means in no project. Never raises."""
        texts, sources = dict(self._shipped), dict.fromkeys(self._shipped, "shipped")
        own = read_layer(self._person)
        texts |= own.texts
        sources |= dict.fromkeys(own.texts, "yours")
        problems = self._new("", own.problems)
        if directory:
            project = read_project(directory)
            told = list(project.problems)
            if project.texts:
                trusted, problem = self.trust.trusts(directory, project.texts)
                told += [problem] if problem else []
                if trusted:
                    texts |= project.texts
                    sources |= dict.fromkeys(project.texts, "project")
                else:
                    names = ", ".join(sorted(project.texts))
                    told.append(
                        f"{directory} brings prompts that you have not trusted as they are now ({names}), so "
                        "they are not used: look at them with `reflectd trust` in that folder"
                    )
            problems += self._new(directory, told)
        return InForce(texts, sources, problems)

    def _new(self, place: str, problems: list[str]) -> list[str]:
        """The problems that the last reading of this place did not find. So each is reported once."""
        with self._lock:
            before = self._told.pop(place, [])
            if problems:
                if len(self._told) >= DIRECTORIES_KEPT:
                    del self._told[next(iter(self._told))]
                self._told[place] = problems
        return [problem for problem in problems if problem not in before]


def read_project(directory: str | Path) -> Layer:
    """The prompts that a project brings, trusted or not. Links are not followed. Never raises."""
    folder = Path(directory, PROJECT_FOLDER)
    try:
        linked = next((path for path in (folder.parent, folder) if path.is_symlink()), None)
    except (OSError, ValueError) as error:
        return Layer({}, [f"{folder} is not used: {words(error)}"])
    if linked is not None:
        return Layer({}, [f"{linked} is not used: it is a link"])
    return read_layer(folder, follow=False)


def read_layer(folder: Path, *, follow: bool = True) -> Layer:
    """The usable prompts in ``folder``; an empty layer when there is no folder. Never raises."""
    texts: dict[str, str] = {}
    problems: list[str] = []
    try:
        with os.scandir(folder) as entries:
            found = sorted(islice((e.name for e in entries if e.name.endswith(SUFFIX)), FILES_LISTED))
    except (FileNotFoundError, NotADirectoryError):
        return Layer({}, [])
    except (OSError, ValueError) as error:
        return Layer({}, [f"{folder} is not used: {words(error)}"])
    for name in SLOTS:
        path = folder / f"{name}{SUFFIX}"
        try:
            text = read_text(path, LIMIT, follow=follow)
            if text is not None:
                check(name, text)
                texts[name] = text
        except (OSError, ValueError) as error:
            problems.append(f"{path} is not used: {words(error)}")
    names = {file.removesuffix(SUFFIX) for file in found} - SLOTS.keys()
    problems += [f"{folder}/{ascii(n)[1:-1]}{SUFFIX} is no prompt{_nearest(n)}" for n in sorted(names)]
    return Layer(texts, problems)


def check(name: str, text: str) -> None:
    """``ValueError`` when the prompt lacks a placeholder that it needs, or has one that nothing fills."""
    if not text.strip():
        raise ValueError("it is empty")
    slots, found = SLOTS[name], set(_SLOT.findall(text))
    if missing := sorted(slots.required - found):
        raise ValueError(f"it lacks {_braced(missing)}")
    if unknown := sorted(found - slots.required - slots.optional):
        known = _braced(sorted(slots.required | slots.optional))
        raise ValueError(f"nothing fills {_braced(unknown[:5])} (what this prompt may have: {known})")


def _braced(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name[:60].lower(), list(SLOTS), 1)
    return f", did you mean {near[0]}{SUFFIX}?" if near else f" (there are {', '.join(SLOTS)})"


# --- which projects' prompts the person trusts --------------------------------------------------------------


TRUST_FILE = "trust.json"  # in the state folder
COMMAND_FILE = ".reflection/config.toml"
TRUST_LIMIT = 1_000_000  # bytes
PROJECTS_KEPT = 1_000


class Grant(msgspec.Struct, frozen=True):
    """The content that the person trusted, by its digest, and when (epoch ms)."""

    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    at: int


class _Kept(msgspec.Struct):
    projects: dict[str, Grant]


def digest(prompts: Mapping[str, str]) -> str:
    """One digest for a set of prompts, by name and content."""
    pairs = sorted(prompts.items())
    return sha256(json.dumps(pairs, ensure_ascii=True).encode()).hexdigest()


class Trust:
    """The projects whose prompts the person trusts: ``<state>/trust.json``, 0600, replaced as a whole.

    Trust is given to one folder (its real path) and one content, so it ends when that changes. The file is
    read each time, so the daemon sees the command line's writes. One that can't be used trusts nothing; the
    next change renames it (I43).
    """

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    def trusts(self, directory: str | Path, prompts: Mapping[str, str]) -> tuple[bool, str]:
        """Says whether exactly these prompts of this folder are trusted, and names the problem of
        ``trust.json``.
        """
        grants, problem = self.load()
        grant = grants.get(os.path.realpath(directory))
        return grant is not None and grant.sha256 == digest(prompts), problem

    def grant(self, directory: str | Path, prompts: Mapping[str, str]) -> str:
        """Trust these prompts of this folder. Returns the file's problem. Raises ``Unavailable``."""
        return self._change(directory, Grant(digest(prompts), self._clock.now_ms()))

    def revoke(self, directory: str | Path) -> str:
        """Trust this folder no longer; returns the file's problem. Raises ``Unavailable``."""
        return self._change(directory, None)

    def load(self) -> tuple[dict[str, Grant], str]:
        """Every grant by folder, and a message when the file can't be used. Never raises."""
        try:
            return self._read()
        except OSError as error:
            return {}, f"{self._file} can't be read ({words(error)}): no project is trusted"

    def _read(self) -> tuple[dict[str, Grant], str]:
        """As ``load``. Raises ``OSError``: it can't be read, perhaps only now."""
        try:
            text = read_text(self._file, TRUST_LIMIT)
            return msgspec.convert(json.loads(text), _Kept).projects if text is not None else {}, ""
        except (ValueError, RecursionError) as error:
            return {}, (
                f"{self._file} can't be used ({words(error)}): no project is trusted. `reflectd trust` in a "
                "project keeps it aside and begins a new one"
            )

    def _change(self, directory: str | Path, grant: Grant | None) -> str:
        name = os.path.realpath(directory)
        with alone(self._file.parent):
            try:
                grants, problem = self._read()
            except OSError as error:  # not ours to replace
                raise Unavailable(f"{self._file} can't be read ({words(error)})") from None
            if problem:
                problem = f"{problem}: {set_aside(self._file, str(self._clock.now_ms())).name}"
            grants.pop(name, None)
            if grant is not None:
                while len(grants) >= PROJECTS_KEPT:
                    del grants[min(grants, key=lambda project: grants[project].at)]
                grants[name] = grant
            kept = msgspec.to_builtins(_Kept(grants))
            write_atomic(self._file, json.dumps(kept, indent=1) + "\n", mode=0o600)
        return problem


def trusts_command(trust: Trust, directory: str | Path, command: str) -> bool:
    """Says whether the person trusts this check of the project's file (``proof.command``), word for word."""
    return trust.trusts(command_place(directory), {"proof.command": command})[0]


def command_place(directory: str | Path) -> Path:
    """Under which name ``Trust`` keeps the project's check."""
    return Path(directory) / COMMAND_FILE


# --- edits in the person's settings folder ------------------------------------------------------------------


APPEARS_S = 2.0  # how often to look whether the folder is there
STEP_MS = 200  # how long to wait for the rest of an edit; also how long the thread outlives a cancellation
LOOK_MS = 2_000  # how often to look whether the folder is still there


async def watch(folder: Path, on_change: Callable[[], None], appears_s: float = APPEARS_S) -> None:
    """Call ``on_change`` after each change in ``folder`` or below it, until cancelled. The folder may be made
    and removed meanwhile. When it misses a change, as on a network file system, only a line in the log is
    missing. Projects are not watched: there may be hundreds of them, with millions of files.

    Measured: 10 ms of CPU in 10 s without changes, two threads, and 4 MB for the library, which takes 20 ms
    or more to load. So the library is imported in a thread, and only when the folder exists. Raises
    ``Unavailable`` when the system has no watches left.
    """
    there = _is_there(folder)
    while True:
        if _is_there(folder) is not there:
            there = not there
            on_change()
        if not there:
            await asyncio.sleep(appears_s)
            continue
        awatch, deleted = await asyncio.to_thread(_load)
        try:
            changes = awatch(
                folder,
                watch_filter=None,
                step=STEP_MS,
                rust_timeout=LOOK_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            )
            async with aclosing(changes):
                async for changed in changes:
                    if changed:
                        on_change()
                    there = (deleted, str(folder)) not in changed  # or a new one is there already
                    if not there or not _is_there(folder):
                        break
        except FileNotFoundError:
            continue
        except (OSError, RuntimeError) as error:
            why = f"{folder} can't be watched ({words(error)})"
            raise Unavailable(f"{why}: edits there are used, but the log does not report them") from error


def _load() -> tuple[Callable[..., AsyncGenerator[set[FileChange], None]], Change]:
    from watchfiles import Change, awatch

    return awatch, Change.deleted


def _is_there(folder: Path) -> bool:
    """Never raises, unlike ``Path.is_dir`` below a folder that can't be read."""
    return os.path.isdir(folder)  # noqa: PTH112 - as said
