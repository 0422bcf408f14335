"""The command that a failure hung on, in the form in which it is compared with later ones.

Two commands are the same when they run the same program on the same things in the same folder. How much they
print, in which order their options stand and what wraps them does not count. In doubt they differ: a
reminder at the wrong command is noise. Never raises.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ..evidence.calls.commands import inline
from ..evidence.calls.prefixes import unwrap
from ..evidence.calls.shell import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_COMMANDS: Final = 20  # of one script
MAX_CHARS: Final = 300
MAX_DEPTH: Final = 2
_LOOKS: Final = frozenset(  # they change nothing, so nothing goes wrong at them
    (  # noqa: SIM905 -- a word list
        "cd pushd popd export source . set unset echo printf true false test [ [[ : pwd date clear which "
        "type sleep wait alias ulimit cat head tail less more grep egrep rg ag ls find fd tree wc sort uniq "
        "cut tr awk sed jq diff stat file env printenv tee xargs kill pkill ps top exit return read local "
        "declare for while case esac fi done in mkdir touch"
    ).split()
)
_QUIET: Final = re.compile(  # options that say how much is printed, and how often to stop
    r"-[vqsx]{1,4}|--(?:verbose|quiet|silent|loglevel|color|colour|no-color|no-colour|tb|maxfail|durations"
    r"|progress|no-progress|no-header|no-summary|reporter|format|output-format|message-format|pretty|no-pager"
    r"|exitfirst|capture|show-capture|bail|ci|yes|no-input|no-interaction|non-interactive)(?:=.*)?"
    r"|-r[A-Za-z]|-n\d+|-j\d*|-y|-o[a-z]*=.*|-p|no:\w+"
)
_QUIET_VALUE: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "-n -j --tb --maxfail --durations --reporter --color --loglevel --format --message-format"
    ).split()
)
_SAYS: Final = frozenset(["-m", "--message", "-F", "--body", "-b", "--title", "-t", "--notes"])
_ONLY_TELLS: Final = frozenset(["--help", "-h", "--version", "-V", "--dry-run", "--list", "--collect-only"])
_SPEAKERS: Final = frozenset(["git", "gh", "glab", "jj", "hg"])
_MANAGERS: Final = frozenset(["npm", "pnpm", "yarn", "bun"])


@dataclass(frozen=True, slots=True)
class Command:
    """One command. ``folder``: where it ran below the project, None when unknown. ``operands``: in order."""

    folder: str | None
    program: str
    operands: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """What a trigger holds: it reads back as this command."""
        words = shlex.join((self.program, *self.operands, *sorted(self.options)))
        return f"cd {shlex.quote(self.folder)} && {words}" if self.folder else words

    def is_like(self, stored: Command) -> bool:
        """Whether this one does again what ``stored`` did: the same things, perhaps with more options."""
        if self.program != stored.program or len(self.operands) != len(stored.operands):
            return False
        if None not in {self.folder, stored.folder} and self.folder != stored.folder:
            return False
        same = all(a == b or _one_in_other(a, b) for a, b in zip(self.operands, stored.operands, strict=True))
        return same and stored.options <= self.options


@lru_cache(maxsize=1_024)
def commands_of(script: str, root: str = "", folder: str | None = "") -> tuple[Command, ...]:
    """What a script does, in order, without the steps that only look. ``root``: the project; ``folder``:
    where the script starts below it, None when unknown.
    """
    return tuple(dict.fromkeys(_read(script, root.rstrip("/"), folder, 0)))[:MAX_COMMANDS]


def _read(script: str, root: str, folder: str | None, depth: int) -> Iterator[Command]:
    for step in steps(script):
        words, _ = unwrap(step.words)
        name = words[0].rsplit("/", 1)[-1] if words else ""
        if name in {"cd", "pushd"}:
            folder = _moved(folder, words, root)
        elif depth < MAX_DEPTH and (inner := inline(words)):
            yield from _read(inner, root, folder, depth + 1)
        elif name and name not in _LOOKS and not _ONLY_TELLS & set(words):
            yield _command(words, root, folder)


def _command(words: tuple[str, ...], root: str, folder: str | None) -> Command:
    program = words[0].rsplit("/", 1)[-1]
    if re.fullmatch(r"(?:python|pypy)[\d.]*", program):
        program = "python"
    operands, options = list[str](), set[str]()
    rest = iter(words[1:])
    for word in rest:
        if (word in _SAYS and program in _SPEAKERS) or word in _QUIET_VALUE:
            next(rest, "")
        elif word.startswith("-") and len(word) > 1:
            if not _QUIET.fullmatch(word):
                options.add(word[:MAX_CHARS])
        elif word != "--" and not _QUIET.fullmatch(word):
            operands.append(_plain(word, root))
    if program in _MANAGERS and operands[:1] == ["run"] and len(operands) > 1:
        del operands[0]
    return Command(folder, program, tuple(operands), frozenset(options))


def _plain(word: str, root: str) -> str:
    """An operand as it is compared: a path of the project relative to it."""
    word = word[:MAX_CHARS]
    if root and word.startswith(f"{root}/"):
        word = word[len(root) + 1 :]
    return posixpath.normpath(word) if word.startswith("./") or word.endswith("/") else word


def _one_in_other(a: str, b: str) -> bool:
    """Whether one names a test in the file that the other names."""
    return a.startswith(f"{b}::") or b.startswith(f"{a}::")


def _moved(folder: str | None, words: tuple[str, ...], root: str) -> str | None:
    target = next((w for w in words[1:] if not w.startswith("-")), "")
    if not target or target[0] in "$~`" or "$" in target:
        return None
    if target == root or (root and target.startswith(f"{root}/")):
        return _below(target, root)
    if target.startswith("/") or folder is None:
        return None
    found = posixpath.normpath(posixpath.join(folder, target))
    return None if found.startswith("..") else "" if found == "." else found


def below(path: str, root: str) -> str | None:
    """``path`` as it stands below ``root``, "" for ``root`` itself; None for one that lies elsewhere."""
    if not path or not root:
        return "" if path == root else None
    return _below(posixpath.normpath(path), root.rstrip("/"))


def _below(path: str, root: str) -> str | None:
    if path.rstrip("/") == root:
        return ""
    return path[len(root) + 1 :].rstrip("/") if path.startswith(f"{root}/") else None
