"""The net change of the task per file, from edits, writes, patches and here-documents.

Edits that share text are merged, and changes that git put back are dropped. Files are never read: the text
before a write is known only where a call showed it.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from ..core.evidence import FileChange
from .actions import SHELL_TOOLS, WRITE_TOOLS, Write, text_of
from .edits import edits, matters, patch_of
from .outputs import code_line, one_line
from .shell import steps
from .work import BY_SCRIPT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.transcript import ToolCall
    from .work import Seen, Work

MAX_FILES: Final = 60
MAX_HUNKS: Final = 40  # of one file
MAX_MERGED: Final = 12  # of them that a later edit is compared with
MAX_OVERLAP: Final = 60  # lines that two edits share
TELLING: Final = 12  # characters of a line that stands in few places
MAX_TEXT: Final = 100_000  # characters of one edit that are looked at
MAX_LINES: Final = 80  # lines of one file that are kept; the prompt shows fewer
MAX_LINE: Final = 160
_PUT_BACK: Final = frozenset({"git checkout", "git restore", "git reset"})
_REMOVERS: Final = frozenset({"rm", "unlink", "git rm"})
_FRAME: Final = re.compile(r"<(?:content|file)>\n")
_FRAME_END: Final = re.compile(r"(?:\n\n\((?:End|File|Output|Showing)[^\n]{0,400}\))?\n</(?:content|file)>")
_NUMBERED: Final = re.compile(r"[ \t]{0,8}\d{1,7}(?:\t|→|: ?|\| ?)")
_WHOLE: Final = re.compile(r"^\*\*\* (Add|Delete) File: ([^\n]{1,300})$", re.MULTILINE)  # in a patch


class _File(Struct):
    """``hunks``: [old, new] texts. ``new``: this task made the file."""

    new: bool = False
    deleted: bool = False
    by_command: bool = False
    hunks: list[list[str]] = field(default_factory=list)
    by: dict[str, None] = field(default_factory=dict)


class _Files(Struct):
    """The changed files by name, in the order of the first change. ``names``: the name of each path, empty
    for one that is no part of the work.
    """

    directory: str
    by_name: dict[str, _File] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def of(self, path: str, number: str) -> _File | None:
        """The file that call ``number`` changes; None for one that is not kept."""
        name = self.names.get(path)
        if name is None:
            name = _relative(path, self.directory) if matters(path, self.directory) else ""
            self.names[path] = name
        file = self.by_name.get(name)
        if file is None:
            if not name or len(self.by_name) >= MAX_FILES:
                return None
            file = self.by_name[name] = _File()
        file.by.setdefault(number)
        return file

    def put_back(self, path: str) -> None:
        """Git put ``path`` back as it was: a file, a folder, or all that git knows."""
        whole = path in {".", "./", ":/", "git reset", "git checkout", "git restore"}
        name = "" if whole else posixpath.normpath(_relative(path, self.directory))
        for known, file in self.by_name.items():
            if not file.new and (whole or known == name or known.startswith(f"{name}/")):
                file.hunks, file.by_command, file.deleted = [], False, False


def file_changes(work: Work, directory: str) -> tuple[FileChange, ...]:
    """The task's changes by file, in the order of the first change."""
    files = _Files(directory)
    for seen in work.calls:
        if seen.call.status != "completed":
            continue
        tool = seen.call.tool.lower()
        if tool in WRITE_TOOLS:
            _edited(seen.number, seen.call, files, work)
        elif tool in SHELL_TOOLS:
            _commanded(seen, files, work)
    found = (_change(path, f) for path, f in files.by_name.items())
    return tuple(c for c in found if c is not None)


def _edited(number: str, call: ToolCall, files: _Files, work: Work) -> None:
    whole = {m[2].strip(): m[1] for m in _WHOLE.finditer(patch_of(call)[:MAX_TEXT])}
    for path, old, new in edits(call):
        file = files.of(path, number)
        if file is None:
            continue
        if whole.get(path) == "Delete":
            file.deleted, file.hunks = True, []
        elif whole.get(path) == "Add" or (not old and "content" in call.input):
            _write(file, path, new, work)
        elif not (old or new):
            file.by_command = True
        else:
            file.deleted = False
            _merge(file.hunks, old[:MAX_TEXT], new[:MAX_TEXT])


def _commanded(seen: Seen, files: _Files, work: Work) -> None:
    call = seen.call
    bodies = dict(_here_documents(call)) if "<<" in text_of(call, "command", "cmd") else {}
    for action in seen.actions:
        if not isinstance(action, Write):
            continue
        path = action.path
        if action.by in _PUT_BACK and call.exit in {0, None}:
            files.put_back(path)
            continue
        file = files.of(path, seen.number)
        if file is None:
            continue
        if path in bodies and not BY_SCRIPT.search(path):
            body, appended = bodies[path]
            if appended:
                _merge(file.hunks, "", body[:MAX_TEXT])
            else:
                _write(file, path, body, work)
        elif action.by in _REMOVERS:
            file.deleted, file.hunks = True, []
        else:
            file.by_command = True


def _here_documents(call: ToolCall) -> Iterator[tuple[str, tuple[str, bool]]]:
    """(path, (text, whether it is added at the end)) of ``cat > path <<EOF`` and the like."""
    for step in steps(text_of(call, "command", "cmd")):
        if step.body and step.words[:1] in {("cat",), ("tee",)}:
            body = step.body.rstrip("\n").rpartition("\n")[0]  # without the line that ends it
            appended = ">>" in step.text or "-a" in step.words
            for path in (
                *step.outputs,
                *(w for w in step.words[1:] if step.words[0] == "tee" and w[:1] != "-"),
            ):
                yield path, (body, appended)


def _write(file: _File, path: str, text: str, work: Work) -> None:
    """A whole new content. The text before it is known only where a call read it or wrote it."""
    text = text[:MAX_TEXT]
    known = path in work.shown
    if not file.hunks and not known:
        file.new = True
    before = "" if file.new or file.hunks else _content(work.shown.get(path, ""))
    if file.hunks and not file.new:
        before = file.hunks[0][0]
    file.deleted, file.hunks = False, [[before, text]]


def _content(shown: str) -> str:
    """A file as a reading tool prints it, without the numbers of its lines and the host's own notes."""
    text = shown[:MAX_TEXT].partition("\n<system-reminder>")[0].rstrip("\n")
    if (frame := _FRAME.search(text)) and (end := _FRAME_END.search(text, frame.end())):
        text = text[frame.end() : end.start()]
    lines = text.split("\n")
    if all(_NUMBERED.match(line) for line in lines if line.strip()):
        lines = [_NUMBERED.sub("", line, count=1) for line in lines]
    return "\n".join(lines)


def _merge(hunks: list[list[str]], old: str, new: str) -> None:
    room = MAX_TEXT - len(new)
    for hunk in reversed(hunks[-MAX_MERGED:]):
        before, now = hunk
        if len(now) > room:
            continue  # a text that grows with each edit would be searched and copied each time
        if old and old in now:
            hunk[1] = now.replace(old, new, 1)
            return
        if now and now in old:
            hunk[:] = old.replace(now, before, 1), new
            return
    for hunk in reversed(hunks[-MAX_MERGED:]):
        if old and len(hunk[1]) <= room and (joined := _joined(hunk[0], hunk[1], old, new)):
            hunk[:] = joined
            return
    if len(hunks) < MAX_HUNKS:
        hunks.append([old, new])


def _joined(before: str, now: str, old: str, new: str) -> tuple[str, str] | None:
    """Two edits of which the second begins or ends inside what the first wrote, as one; None if they
    don't.
    """
    wrote, taken = now.split("\n"), old.split("\n")
    if k := _overlap(wrote, taken):
        rest = "\n".join(["", *taken[k:]])
        return before + rest, "\n".join([*wrote[:-k], new])
    if k := _overlap(taken, wrote):
        rest = "\n".join([*taken[:-k], ""])
        return rest + before, "\n".join([new, *wrote[k:]])
    return None


def _overlap(first: list[str], second: list[str]) -> int:
    """How many lines at the end of ``first`` are the beginning of ``second``, where they say anything."""
    for k in range(min(len(first), len(second), MAX_OVERLAP), 0, -1):
        if (
            first[-k] == second[0]
            and first[-k:] == second[:k]
            and any(len(line.strip()) >= TELLING for line in second[:k])
        ):
            return k
    return 0


def _change(path: str, file: _File) -> FileChange | None:
    by = tuple(file.by)
    if file.deleted:
        return None if file.new else FileChange(path, "deleted", by)
    if file.by_command and not file.hunks:
        return FileChange(path, "by_command", by)
    added = removed = 0
    lines: list[str] = []
    for old, new in file.hunks:
        minus, plus = (list(filter(str.strip, part)) for part in _trimmed(old, new))
        added, removed = added + len(plus), removed + len(minus)
        if room := MAX_LINES - len(lines):
            lines += [f"- {code_line(x, MAX_LINE)}" for x in minus[: min(room, MAX_LINES // 2)]]
            lines += [f"+ {code_line(x, MAX_LINE)}" for x in plus[: MAX_LINES - len(lines)]]
    if not (added or removed or file.by_command or file.new):
        return None  # what was tried here was taken back
    return FileChange(path, "new" if file.new else "edited", by, added, removed, tuple(lines))


def _trimmed(old: str, new: str) -> tuple[list[str], list[str]]:
    """The lines of both texts between their common beginning and their common end."""
    before, after = old.split("\n") if old else [], new.split("\n") if new else []
    start, most = 0, min(len(before), len(after))
    while start < most and before[start] == after[start]:
        start += 1
    end = 0
    while end < most - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end], after[start : len(after) - end]


def _relative(path: str, directory: str) -> str:
    root = directory.rstrip("/") + "/"
    return one_line(path.removeprefix(root) if directory else path, 200)
