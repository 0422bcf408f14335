"""What ``git status`` says of a workspace, as values: parsed, compared with the task's start, cut to size.

Nothing is run here; ``files.workspace`` asks git.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from .cuts import head_and_tail
from .errors import BadReply
from .redact import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES: Final = 200  # in a case
NAME_CHARS: Final = 300
_LINE: Final = re.compile(rb"([ MTADRCU?!]{2}) (.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The file names that ``git status`` lists in the workspace when a case is made. What was committed is
    not among them.

    ``names``: relative to the session's folder. In a case each is one line: bytes that are no UTF-8 and
    characters that can't be printed are escapes. A folder that git does not track is one name, which ends
    with ``/``. ``more``: how many names were left out.

    ``since_task``: git was asked when the task began too, and only what is new or changed since then is
    listed. A file that was changed before the task is listed when its status, time or size differs from then.
    In a folder that git did not track then, only what was put directly into it or taken out shows.
    Without ``since_task`` a change may be older than the task.
    """

    names: tuple[str, ...] = ()
    since_task: bool = False
    more: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of ``git status``. ``path``: as git wrote it. ``stamp``: the file's time of change (ns) and
    size, two zeros when there is no file.
    """

    path: bytes
    status: str
    stamp: tuple[int, int] = (0, 0)


def parse(output: bytes) -> list[Entry]:
    """The lines of ``git status --porcelain=v1 -z --no-renames``, without stamps. Raises ``BadReply``."""
    entries = []
    for line in output.split(b"\0")[:-1]:
        found = _LINE.fullmatch(line)
        if found is None:
            raise BadReply("git status answered in an unknown form")
        entries.append(Entry(found[2], found[1].decode()))
    return entries


def changed_files(now: Sequence[Entry], before: Sequence[Entry] | None) -> ChangedFiles:
    """What changed. ``now``: what git lists. ``before``: what it listed when the task began, None if nobody
    asked then.
    """
    old = frozenset(before or ())
    left = [entry for entry in now if entry not in old]
    shown = tuple(e.path.decode("utf-8", "backslashreplace") for e in left[:NAMES])
    return ChangedFiles(shown, before is not None, max(0, len(left) - NAMES))


def for_a_case(changed: ChangedFiles) -> ChangedFiles:
    """The same in one line each, without secrets, and cut to size. It may come from a file of somebody
    else.
    """
    more = changed.more + max(0, len(changed.names) - NAMES)
    return replace(changed, names=tuple(map(_name, changed.names[:NAMES])), more=more)


def _name(name: str) -> str:
    """Cut after secrets are taken out, because half of a secret is not recognised."""
    text = redact(_one_line(name))
    return text if len(text) <= NAME_CHARS else head_and_tail(text, NAME_CHARS - 10)


def _one_line(text: str) -> str:
    """A file's name may hold line ends and what a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
