"""Reads the prompts: the shipped ones, or in the place of each the person's own, or a trusted project's.

Each of the three folders is a layer; a later layer replaces single files of the earlier ones. This module
reads and checks them; it never writes and never logs. A file that can't be used is skipped, a problem text
names it, and the earlier layer's file is used. A project's files are used only when the person trusted
exactly this content (``files.trust``).

Nothing is cached: a judgement takes seconds, and reading all layers takes 0.03 to 0.6 ms. So the next
judgement uses an edited file, on every file system. ``files.watch`` only makes the log say at once what an
edit did.
"""

from __future__ import annotations

import os
import re
import threading
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import UserError
from .bounded import read_text, reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .trust import Trust

LIMIT = 32 * 1024  # bytes; a shipped prompt has about two thousand
PROJECT_FOLDER = ".reflection/prompts"
SUFFIX = ".txt"
DIRECTORIES_KEPT = 200
FILES_LISTED = 100


class Slots(NamedTuple):
    """The ``{names}`` in one prompt: those that must be there, and those that may be there."""

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
    """The usable prompts of one folder, and why others are not."""

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
        self._trust = trust
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
                trusted, problem = self._trust.trusts(directory, project.texts)
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
        return Layer({}, [f"{folder} is not used: {reason(error)}"])
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
        return Layer({}, [f"{folder} is not used: {reason(error)}"])
    for name in SLOTS:
        path = folder / f"{name}{SUFFIX}"
        try:
            text = read_text(path, LIMIT, follow=follow)
            if text is not None:
                check(name, text)
                texts[name] = text
        except (OSError, ValueError) as error:
            problems.append(f"{path} is not used: {reason(error)}")
    names = {file.removesuffix(SUFFIX) for file in found} - SLOTS.keys()
    problems += [f"{ascii(str(folder / n))[1:-1]}{SUFFIX} is no prompt{_nearest(n)}" for n in sorted(names)]
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
