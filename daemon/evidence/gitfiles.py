"""The files of a commit, and the files that git was told to forget.

From git's own output where it speaks (``create mode 100644 .env``), else from the words of the commands. In
doubt a file is not in the commit, and a file that git may have forgotten is forgotten.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from .shell import commands_in, git_words, program
from .work import Commit, Untracked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .work import Work

MAX_COMMITS: Final = 50
MAX_FILES: Final = 200
_MADE: Final = re.compile(r"^\[[^\]\n]{1,100} [0-9a-f]{7,40}\]", re.MULTILINE)
_SUMMARY: Final = re.compile(
    r" \d{1,7} files? changed| (?:create|delete) mode \d{6} | (?:rename|copy|rewrite|mode change) "
    r"| (?:Date|Author):"
)
_CHANGED: Final = re.compile(r" (\d{1,7}) files? changed")
_MODIFIED: Final = re.compile(
    r"^(?:[ \t]{1,8}modified:[ ]{1,8}|(?: M|M[ M]) )(?P<path>[^\n]{1,300})$",
    re.MULTILINE,
)
_VALUED: Final = frozenset("mFCct")  # options of ``git commit`` behind which their value may stand
_CREATED: Final = re.compile(r" create mode \d{6} (.{1,300})")
_FORGOTTEN: Final = re.compile(
    r"^ ?delete mode \d{6} (?P<deleted>.{1,300})$|^rm '(?P<removed>[^'\n]{1,300})'$"
    r"|^ ?rename (?P<renamed>[^{\n]{1,300}) => ",
    re.MULTILINE,
)
_REFUSED: Final = re.compile(
    r"nothing to commit|no changes added|nothing added to commit|Aborting commit|hook .{0,40}failed|^fatal: ",
    re.MULTILINE,
)
_MOVES: Final = re.compile(r"(?:HEAD|@)(?:[~^]\d{0,3})+|[0-9a-f]{7,40}|\w+/[\w./-]+|main|master")
_REWRITES: Final = frozenset({"revert", "filter-repo", "filter-branch", "rebase"})


def taken_in(script: str, output: str, code: int | None, call: str, at: int, work: Work) -> None:
    """Takes in a script that uses git. ``at``: the position before its first action; ``code``: its exit code,
    None if unknown.
    """
    if "git" not in script:
        return
    made = _Made(*_created(output), call, at)
    committed = made.created is not None or (code == 0 and not _REFUSED.search(output))
    for found in _FORGOTTEN.finditer(output):
        _forget([next(g for g in found.groups() if g)], at, work)
    for found in _MODIFIED.finditer(output):
        if (path := found["path"].strip('"')) not in work.modified:
            work.modified = [*work.modified, path][-MAX_FILES:]
    for words in _git_commands(script):
        verb, rest = (words[0], words[1:]) if words else ("", ())
        paths = [w for w in rest if not w.startswith("-")]
        if verb in {"add", "stage"}:
            if code in {0, None} and not {"-n", "--dry-run"} & set(rest):
                work.added = [*work.added, *(p for p in paths if p not in {".", "*", ":/"})][-MAX_FILES:]
        elif verb in {"rm", "mv"} or (verb == "update-index" and "remove" in " ".join(rest)):
            if code in {0, None}:
                _forget(paths, at, work)
        elif verb == "commit" and committed:
            _commit(rest, made, work)
        else:
            _undo(verb, rest, paths, at, work)


class _Made(Struct, frozen=True):
    """A call's output about its commit: the files that git calls new (None where it does not say), and its
    count of files.
    """

    created: list[str] | None
    changed: int
    call: str
    at: int


def _commit(rest: tuple[str, ...], made: _Made, work: Work) -> None:
    if "--dry-run" in rest or len(work.commits) >= MAX_COMMITS:
        return
    if "--amend" in rest and made.created is not None and work.commits:
        work.commits.pop()  # git lists all that the new commit has
    files, created = _taken(rest, made, work), made.created or []
    work.commits.append(Commit(made.at, made.call, tuple(files)[:MAX_FILES], tuple(created)[:MAX_FILES]))
    work.added, work.modified = [], []


def _undo(verb: str, rest: tuple[str, ...], paths: list[str], at: int, work: Work) -> None:
    """Takes in commands that put commits or changes aside."""
    if verb == "stash" or "--hard" in rest:
        work.modified = []
    if verb in _REWRITES or (verb == "reset" and any(_MOVES.fullmatch(p) for p in paths)):
        _forget(["."], at, work)
    elif verb in {"reset", "restore", "checkout", "stash"}:
        gone = {posixpath.normpath(p) for p in paths}
        work.added = [p for p in work.added if posixpath.normpath(p) not in gone]
        if verb in {"restore", "checkout"} and "--staged" not in rest:
            kept = [p for p in work.modified if posixpath.normpath(p) not in gone]
            work.modified = [] if "." in gone else kept


def forgotten(path: str, since: int, work: Work) -> bool:
    """Says whether git was told to forget ``path`` after position ``since``, itself, its folder or all."""
    name = posixpath.normpath(path)
    return any(
        u.at >= since and (u.path in {".", name} or name.startswith(f"{u.path}/") or u.glob(name))
        for u in work.untracked
    )


def _taken(rest: tuple[str, ...], made: _Made, work: Work) -> list[str]:
    """The files of a commit: those that git calls new, those that were added by name, and with ``-a`` those
    that git called changed. The added ones must fit into git's count.
    """
    created = made.created or []
    named = [p for p in work.added if p not in created]
    if made.created is not None and len(named) > made.changed - len(created):
        named = [p for p in named if p in work.modified]
    listed = work.modified if _takes_all(rest) else [p for p in rest if p in work.modified]
    return list(dict.fromkeys([*created, *named, *listed]))


def _takes_all(rest: tuple[str, ...]) -> bool:
    """Says whether ``git commit`` has ``-a``, alone or before other letters, as in ``-am``."""
    for word in rest:
        letters = word[1:] if word.startswith("-") and not word.startswith("--") else ""
        valued = next((i for i, c in enumerate(letters) if c in _VALUED), len(letters))
        if word == "--all" or "a" in letters[:valued]:
            return True
    return False


def _git_commands(script: str) -> Iterator[tuple[str, ...]]:
    """The words behind ``git`` of each git command, also behind ``xargs`` and ``find``. A file whose name the
    words don't tell is ``.``: it may be any.
    """
    for words in commands_in(script):
        start = _fed(words)
        found = (*git_words(words[start:]), "{}") if start else git_words(words)
        yield tuple(_unknown(w) for w in found)


def _fed(words: tuple[str, ...]) -> int:
    """Where ``git`` stands in ``xargs -r git rm --cached`` and in ``find -exec git …``, or 0."""
    if program(words) not in {"xargs", "find", "parallel"}:
        return 0
    return next((i for i, w in enumerate(words) if i and w.rsplit("/", 1)[-1] == "git"), 0)


def _unknown(word: str) -> str:
    return "." if word == "{}" or (word.startswith(("$", "`")) and len(word) > 1) else word


def _created(output: str) -> tuple[list[str] | None, int]:
    """(The files that the commit's own summary calls new, None where there is no summary; how many files the
    summary counts).
    """
    made = None
    for made in _MADE.finditer(output):  # noqa: B007 -- the last one counts
        pass
    if made is None:
        return None, 0
    found: list[str] = []
    changed = 0
    for line in output[made.end() :].split("\n")[1:]:
        if not _SUMMARY.match(line) or len(found) >= MAX_FILES:
            break
        if count := _CHANGED.match(line):
            changed = int(count[1])
        if new := _CREATED.match(line):
            found.append(new[1].strip('"'))
    return found, changed


def _forget(paths: list[str], at: int, work: Work) -> None:
    found = [Untracked(at, posixpath.normpath(p.strip('"'))) for p in paths[:MAX_FILES]]
    work.untracked = [*work.untracked, *found][-MAX_FILES:]
    gone = {u.path for u in found}
    work.added = [p for p in work.added if posixpath.normpath(p) not in gone]
