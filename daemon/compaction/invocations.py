"""Finds the ``git`` and ``gh`` commands of a script that matter after a compaction.

Only commands that really run count: not ``echo "gh pr create"``, a comment, a here-document or a dry run.
Whether they succeeded is not said here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ..evidence.calls.prefixes import unwrap
from ..evidence.calls.shell import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .references import Kind

MAX_DEPTH: Final = 3
MAX_STEPS: Final = 300
_VERBS: Final[dict[str, tuple[str, ...]]] = {
    "pr": (
        *("create", "comment", "edit", "review", "ready", "merge", "close", "reopen"),
        *("view", "checks", "checkout", "diff"),
    ),
    "issue": ("create", "comment", "edit", "develop", "close", "delete", "reopen", "view"),
}
_ALIASES: Final = {"new": "create", "co": "checkout", "show": "view"}
_GIT_VALUES: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree"})
_GH_VALUES: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "-b --body -F --body-file -t --title -B --base -H --head -l --label -a --assignee -p --project -T "
        "--template -R --repo -q --jq --json -r --reviewer -m --milestone --subject -A --author-email "
        "--reason -i --interval --color --add-label --remove-label --add-assignee --remove-assignee "
        "--add-reviewer --remove-reviewer"
    ).split()
)
_BARE_OPTIONS: Final = {"merge": frozenset({"-m", "-r"}), "review": frozenset({"-a", "-r"})}
_LAST_WORDS: Final = frozenset({"-c", "--comment"})  # the value of ``gh pr close -c "superseded"``
_NO_RUN: Final = frozenset({"--help", "-h", "--dry-run"})
_BRANCH_LOOKS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "-a --all -r --remotes -l --list --show-current --contains --no-contains --merged --no-merged "
        "--points-at --sort --format"
    ).split()
)
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash"})
_INLINE: Final = re.compile(r"-[a-z]{0,5}c$")
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w{0,60}=\$\((?P<script>.{1,4000})\)$", re.DOTALL)
_REPO: Final = re.compile(r"(?:[\w.-]{1,100}(?::\d{1,5})?/)?[\w.-]{1,60}/[\w.-]{1,100}")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One command. ``tool``: for example ``gh pr create``. ``words``: all its words."""

    tool: str
    words: tuple[str, ...]

    @property
    def kind(self) -> Kind | None:
        """Whether a ``gh`` command is about a pull request or an issue; None for ``git``."""
        noun = self.tool.split(" ")[1]
        return "pr" if noun == "pr" else "issue" if noun == "issue" else None

    @property
    def argument(self) -> str:
        """The first word of a ``gh`` command that is no option: a number, an address or a branch."""
        return next(iter(_arguments(self.words[1:])[2:]), "")

    @property
    def repo(self) -> str:
        """The value of ``-R`` if it is the name of a repository, else empty."""
        for word, value in pairwise((*self.words, "")):
            named = value if word in {"-R", "--repo"} else word.removeprefix("--repo=")
            named = "" if named == word else named
            named = named.removeprefix("https://").removeprefix("github.com/")
            if named and _REPO.fullmatch(named):
                return named
        return ""


def invocations(script: str, *, depth: int = 0) -> Iterator[Invocation]:
    """The commands of ``script`` that matter here, in order."""
    for step in steps(script)[:MAX_STEPS]:
        for word in step.words:
            inside = _ASSIGNED.match(word) if "=$(" in word else None
            if inside and depth < MAX_DEPTH:
                yield from invocations(inside["script"], depth=depth + 1)
        words, _ = unwrap(step.words)
        name = words[0].rsplit("/", 1)[-1].removesuffix(".exe") if words else ""
        if name in _SHELLS and depth < MAX_DEPTH:
            yield from invocations(_inline(words), depth=depth + 1)
        elif tool := _git(words) if name == "git" else _gh(words) if name == "gh" else "":
            yield Invocation(tool, words)


def _inline(words: tuple[str, ...]) -> str:
    """The script of ``bash -lc '…'``."""
    return next((script for option, script in pairwise(words[1:]) if _INLINE.match(option)), "")


def _git(words: tuple[str, ...]) -> str:
    i = 1
    while i < len(words) and words[i].startswith("-"):
        i += 2 if words[i] in _GIT_VALUES else 1
    verb, rest = (words[i], words[i + 1 :]) if i < len(words) else ("", ())
    plain = any(not w.startswith("-") for w in rest)
    options = {w.split("=")[0] for w in rest if w.startswith("-")}
    if _NO_RUN & options:
        return ""
    match verb:
        case "commit":
            return "git commit"
        case "push":
            return "" if "-n" in options else "git push"
        case "branch":
            return "git branch" if plain and not _BRANCH_LOOKS & options else ""
        case "checkout" | "switch":
            return "git branch" if plain and {"-b", "-B", "-c", "-C", "--create"} & options else ""
        case _:
            return ""


def _gh(words: tuple[str, ...]) -> str:
    plain = _arguments(words[1:])
    if len(plain) < 2 or (_NO_RUN | {"--web", "-w"}) & set(words):
        return ""
    noun, verb = plain[0], _ALIASES.get(plain[1], plain[1])
    return f"gh {noun} {verb}" if verb in _VERBS.get(noun, ()) else ""


def _arguments(words: tuple[str, ...]) -> list[str]:
    """The words of a ``gh`` command that are neither options nor their values."""
    found: list[str] = []
    values, skip = _GH_VALUES, False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in values
        else:
            found.append(word)
            if len(found) == 2:
                values = _GH_VALUES - _BARE_OPTIONS.get(word, frozenset())
                values |= _LAST_WORDS if word in {"close", "reopen"} else frozenset()
    return found
