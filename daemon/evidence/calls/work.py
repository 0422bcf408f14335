"""What the calls of a task did, taken together: checks, writes, commits and the like, weakened tests.

Values only; ``reading`` fills them in. Positions count actions, so that "after the last write" can be told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Final

from ...core.evidence import Outcome
from .actions import Action, Deed, Write
from .checks import Runs
from .failures import Failures
from .outcomes import Outcome as Result
from .stubs import Stub
from .weakened import Weakening, is_test
from .writes import is_prose

if TYPE_CHECKING:
    from ...core.evidence import Topic

BY_SCRIPT: Final = re.compile(r"^(?:files, by a|a patch|a file$|git )|[*?$]|/$")  # which files isn't known


@dataclass(frozen=True, slots=True)
class Done:
    """A deed at position ``at``, how it ended, and what its output names."""

    at: int
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

    ``opaque``: calls whose work we can't see (sub-agents, unknown tools, scripts that may do anything), by
    position. ``testish``: commands that are no known runner but may well be a test.
    """

    runs: Runs = field(default_factory=Runs)
    writes: list[Write] = field(default_factory=list)
    last_code: int = -1
    last_data: int = -1
    last_edit: int = -1
    code_writes: int = 0
    done: list[Done] = field(default_factory=list)
    weak: list[Weak] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    testish: int = -1
    inline_tests: bool = False
    stubs: dict[str, tuple[Stub, ...]] = field(default_factory=dict)  # stand-ins left in a file
    base_failed: dict[str, Result] = field(default_factory=dict)  # by tool: failed without the work too
    shown: dict[str, str] = field(default_factory=dict)  # what a file held when it was read
    failures: Failures = field(default_factory=Failures)
    scripts: set[str] = field(default_factory=set)  # what ran, as typed
    commits: list[Commit] = field(default_factory=list)
    untracked: list[Untracked] = field(default_factory=list)
    added: list[str] = field(default_factory=list)  # paths of ``git add`` that no commit took in yet
    modified: list[str] = field(default_factory=list)  # tracked files that git called changed since then
    delegated: bool = False
    blind_writes: bool = False
    actions: dict[str, tuple[Action, ...]] = field(default_factory=dict)  # by the number of the call: ``A12``
    last_code_call: str = ""  # the number of the call with the last write to code

    def did(self, *kinds: str) -> list[Done]:
        """The deeds of these kinds, oldest first."""
        return [d for d in self.done if d.deed.kind in kinds]

    def mentions(self, word: str) -> bool:
        """Whether a call we can't see into may have done ``word``."""
        return self.delegated or any(word in name for name in self.opaque)

    def shows(self, topic: Topic) -> bool:
        """Whether anything in the calls may have met ``topic``: doubt counts as yes."""
        match topic:
            case "tests" | "build" | "lint":
                kinds = {"tests": {"test"}, "build": {"build", "test"}, "lint": {"lint"}}[topic]
                ran = any(r.at > self.last_code and r.check.kind in kinds for r in self.runs.all)
                return ran or self.testish > self.last_code or self.mentions(topic.rstrip("s"))
            case "new_tests":
                wrote = self.inline_tests or any(
                    is_test(w.path) or BY_SCRIPT.search(w.path) for w in self.writes
                )
                return wrote or self.delegated
            case "docs":
                return (
                    self.blind_writes
                    or self.delegated
                    or any(is_prose(w.path) or "doc" in w.path.lower() for w in self.writes)
                )
            case "changelog":
                named = any(
                    "change" in w.path.lower() or "history" in w.path.lower() or "news" in w.path.lower()
                    for w in self.writes
                )
                return named or self.blind_writes or self.delegated
            case "commit" | "push":
                kinds = {"commit", "push", "pr"} if topic == "commit" else {"push", "pr"}
                return any(d.outcome != "failed" for d in self.did(*kinds)) or self.mentions(topic)
            case "pr":
                made = any(d.outcome != "failed" for d in self.did("pr"))
                return made or any(self.mentions(word) for word in ("pull", "merge", "gh api", "_pr", "pr_"))
            case "ci" | "deploy":
                last = self.did(topic)[-1:]
                return any(d.outcome != "failed" for d in last) or self.mentions(topic)
            case "browser":
                return bool(self.did("run")) or bool(self.opaque) or self.delegated
