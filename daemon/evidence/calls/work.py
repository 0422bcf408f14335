"""What the calls of a task did, taken together: checks, writes, commits and the like, weakened tests.

Values only; ``reading`` fills them in. Positions count actions, so that "after the last write" can be told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Final

from ...core.evidence import Outcome
from ...core.transcript import ToolCall
from .actions import Action, Deed, Write
from .checks import Runs
from .failures import Failures
from .outcomes import Outcome as Result
from .stubs import Stub
from .weakened import Weakening

BY_SCRIPT: Final = re.compile(r"^(?:files, by a|a patch|a file$|git )|[*?$]|/$")  # which files isn't known


@dataclass(frozen=True, slots=True)
class Seen:
    """One call with its number in the activity log (``A12``, ``A12.3`` inside a sub-agent) and what it
    did.
    """

    number: str
    call: ToolCall
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """A deed at position ``at`` by ``call``, how it ended, and what its output names."""

    at: int
    call: str
    deed: Deed
    outcome: Outcome
    named: str = ""


@dataclass(frozen=True, slots=True)
class Weak:
    """A weakening at position ``at``; ``after_failure``: a test run had failed and nothing passed since."""

    at: int
    what: Weakening
    after_failure: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit at position ``at`` by ``call``. ``files``: all that are known to be in it; ``created``: those
    that git calls new.
    """

    at: int
    call: str
    files: tuple[str, ...]
    created: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Untracked:
    """Git was told at position ``at`` to forget ``path``: a file, a folder, a pattern, ``.`` for all."""

    at: int
    path: str

    def glob(self, name: str) -> bool:
        """Whether ``path`` is a pattern for the file ``name``."""
        return any(c in self.path for c in "*?[") and fnmatch(name, self.path)


@dataclass(slots=True)
class Work:
    """What the calls of a task did. ``last_code``: position of the last write to code, -1 for none;
    ``last_data``: the same for files that may be data too; ``last_edit``: for any file.

    ``calls``: every call, those of sub-agents before their own. ``delegated``: a sub-agent whose calls were
    not read may have written; ``blind_writes``: a call wrote files that can't be named.
    """

    runs: Runs = field(default_factory=Runs)
    writes: list[Write] = field(default_factory=list)
    last_code: int = -1
    last_data: int = -1
    last_edit: int = -1
    code_writes: int = 0
    done: list[Done] = field(default_factory=list)
    weak: list[Weak] = field(default_factory=list)
    stubs: dict[str, tuple[Stub, ...]] = field(default_factory=dict)  # stand-ins left in a file
    base_failed: dict[str, Result] = field(default_factory=dict)  # by tool: failed without the work too
    shown: dict[str, str] = field(default_factory=dict)  # what a file held when it was read
    failures: Failures = field(default_factory=Failures)
    commits: list[Commit] = field(default_factory=list)
    untracked: list[Untracked] = field(default_factory=list)
    added: list[str] = field(default_factory=list)  # paths of ``git add`` that no commit took in yet
    modified: list[str] = field(default_factory=list)  # tracked files that git called changed since then
    delegated: bool = False
    blind_writes: bool = False
    calls: list[Seen] = field(default_factory=list)
    last_code_call: str = ""  # the number of the call with the last write to code

    @property
    def actions(self) -> dict[str, tuple[Action, ...]]:
        """What each call did, by its number."""
        return {seen.number: seen.actions for seen in self.calls}

    def did(self, *kinds: str) -> list[Done]:
        """The deeds of these kinds, oldest first."""
        return [d for d in self.done if d.deed.kind in kinds]
