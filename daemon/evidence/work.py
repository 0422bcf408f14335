"""The actions of a task's calls, taken together: checks, writes, commits, weakened tests.

Values only; ``collect`` fills them in. Positions count actions, so that "after the last write" can be told.
"""

from __future__ import annotations

import re
from collections import deque
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.evidence import Outcome
from ..core.transcript import ToolCall, is_denied
from .actions import WRITE_TOOLS, Action, Check, Deed, Write
from .edits import Stub, Weakening, file_name, written_by_tool
from .outcomes import Ended

if TYPE_CHECKING:
    from collections.abc import Sequence

# Edits that failed and commands that were killed, where nothing after them may have made them good.
#
# Takes the calls in order.

MAX_KEPT: Final = 20
_KILLED: Final = re.compile(
    r"terminated command after exceeding timeout|Command timed out after|\bCommand timed out\b"
    r"|exceeded (?:the )?(?:timeout|time limit) of|(?:^|\n)Killed(?:$|\n)|Out of memory: Killed"
)
_KILL_CODES: Final = frozenset({124, 137})
_LASTS: Final = re.compile(  # meant to run on: killing it is how the agent stops it
    r"\b(?:serve|server|start|dev|watch|runserver|uvicorn|gunicorn|up|tail -f|logs? -f|nohup|timeout"
    r"|preview|sleep|monitor"
    r"|listen|attach|repl|shell|http\.server|port-forward|ping|top|nodemon|daemon|emulator|simulator)\b"
    r"|--watch|&\s*$"
)
_ENDS: Final = re.compile(
    r"\b(?:docker|podman|buildah) (?:build|pull|push)\b|\b(?:compile|install|migrate)\b"
)
_FALLBACK: Final = re.compile(
    r"no changes to (?:apply|make)|are (?:identical|the same)|already", re.IGNORECASE
)
_TAIL: Final = 600  # characters of an output that say that it was killed


class Failures(Struct):
    """Failures without a later success: paths of failed edits, killed commands."""

    edits: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)

    def take(self, call: ToolCall, script: str, actions: Sequence[Action]) -> None:
        """The next call. ``script``: of a shell call; ``actions``: those read from it."""
        if call.status == "error" and call.tool.lower() in WRITE_TOOLS:
            if not is_denied(call) and not _FALLBACK.search(call.error[:400] or call.output[:400]):
                found = [w.path for w in written_by_tool(call.tool, call.input) if w.path != "a file"]
                self.edits = (self.edits + found)[-MAX_KEPT:]
            return
        if script:
            self._ran(call, script)
        writes = {file_name(a.path) for a in actions if isinstance(a, Write)}
        self.edits = [e for e in self.edits if file_name(e) not in writes and file_name(e) not in script]

    def _ran(self, call: ToolCall, script: str) -> None:
        if self.killed:
            core = _core(script)
            self.killed = [k for k in self.killed if 2 * len(core & _core(k)) < len(_core(k))]
        stopped = was_stopped(call)
        lasts = _LASTS.search(script[:500]) and not (_ENDS.search(script[:500]) and "watch" not in script)
        if stopped and not lasts and len(self.killed) < MAX_KEPT:
            self.killed.append(" ".join(script[:300].split()))


def was_stopped(call: ToolCall) -> bool:
    """Says whether a command was killed, by a timeout or for its memory."""
    if call.exit == 0 or call.exit in _KILL_CODES:
        return call.exit != 0
    return bool(_KILLED.search(f"{call.output[-_TAIL:]}\n{call.error[-_TAIL:]}"))


def _core(script: str) -> set[str]:
    """The words that tell a command from others: names of files, targets, sub-commands."""
    return set(re.findall(r"[\w./:-]{4,80}", script[:500]))


# The check runs of one task: which of them no later run has replaced, and which failures are unanswered.
#
# A later run replaces an earlier one of the same kind when it looks at the same files or more. A failure is
# answered by a later run that passed for what had failed.

MAX_RUNS: Final = 50

_LEAVES_OUT: Final = re.compile(
    r"--deselect|--ignore|--skip|--exclude|-LE |-[km][ =]?['\"]?not |-Dtest=['\"]?!|--grep-invert"
    r"|--testPathIgnorePatterns"
)


_PACKAGE: Final = re.compile(r"(?:--filter|-F|--workspace|-w|--package|--project)[ =]")


class Run(Struct, frozen=True):
    """One check that ran, at position ``at``. Before it, ``code_at`` is the last write to code and
    ``edit_at`` the last one to any file, and ``deed_at`` the last other command, which may have written some
    (-1: none).
    """

    at: int
    code_at: int
    check: Check
    outcome: Ended
    call: str = ""  # its number in the activity log
    flaky: int = 0  # earlier runs that failed on the same files, nothing written in between
    edit_at: int = -1
    deed_at: int = -1


class Runs:
    """The runs that no later run has replaced, oldest first; at most ``MAX_RUNS``.

    ``all`` keeps the latest runs, replaced or not.
    """

    def __init__(self) -> None:
        self.current: list[Run] = []
        self.all: deque[Run] = deque(maxlen=MAX_RUNS)

    @property
    def failing_tests(self) -> bool:
        """Says whether the newest result of some test run is a failure."""
        return any(r.outcome.result == "failed" and r.check.kind == "test" for r in self.current)

    def add(self, run: Run) -> None:
        """Take a run in, and drop those it covers."""
        replaced = [old for old in self.current if _replaces(run, old)]
        now = (run.edit_at, run.deed_at)
        same = [old for old in replaced if (old.edit_at, old.deed_at) == now and old.check.covers(run.check)]
        if run.outcome.result == "passed":
            run = replace(run, flaky=sum(old.flaky + (old.outcome.result == "failed") for old in same))
        gone = {id(old) for old in replaced}
        self.current = [old for old in self.current if id(old) not in gone][1 - MAX_RUNS :]
        self.current.append(run)
        self.all.append(run)

    def settled(self, run: Run) -> bool:
        """Says whether later, narrower runs passed for every file that ``run`` named as failed."""
        parts = [p for p in self._parts(run) if not p.check.filters]
        names = run.outcome.failing
        return bool(names) and all(any(p.check.reaches(name) for p in parts) for name in names)

    def unanswered(self, run: Run) -> bool:
        """Says whether no later run speaks for the parts that failed in ``run``, not even a partial run."""
        if run.outcome.result != "failed":
            return False
        parts = [p for p in self._parts(run) if not _leaves_out(p.check)]
        if run.outcome.failing:
            return not all(
                any(p.check.filters or p.check.reaches(name) for p in parts) for name in run.outcome.failing
            )
        return not any(p.edit_at > run.edit_at for p in parts)

    def _parts(self, run: Run) -> list[Run]:
        return [
            later
            for later in self.current
            if later.at > run.at
            and later.outcome.result == "passed"
            and later.check.same_kind(run.check)
            and not _other_part(later.check, run.check)
        ]


def _other_part(new: Check, old: Check) -> bool:
    """Says whether two runs look at different packages of one repository."""
    parts = [{f for f in c.filters if _PACKAGE.match(f)} for c in (new, old)]
    return bool(parts[0] and parts[1]) and not parts[0] & parts[1]


def _leaves_out(check: Check) -> bool:
    """Says whether a run's filters keep something out, about which its pass says nothing."""
    return any(_LEAVES_OUT.match(f) for f in check.filters)


def _replaces(new: Run, old: Run) -> bool:
    """A run of unknown outcome replaces a failure only when something was written in between."""
    if new.outcome.result == "unknown" and old.outcome.result != "unknown" and new.edit_at == old.edit_at:
        return False
    return new.check.covers(old.check)


BY_SCRIPT: Final = re.compile(r"^(?:files, by a|a patch|a file$|git )|[*?$]|/$")  # which files isn't known


class Seen(Struct, frozen=True):
    """A call with its number in the activity log (``A12``, ``A12.3`` inside a sub-agent) and its actions."""

    number: str
    call: ToolCall
    actions: tuple[Action, ...]


class Done(Struct, frozen=True):
    """A deed at position ``at`` by ``call``, its outcome, and the names in its output."""

    at: int
    call: str
    deed: Deed
    outcome: Outcome
    named: str = ""


class Weak(Struct, frozen=True):
    """A weakening at position ``at``; ``after_failure``: a test run had failed and nothing passed since."""

    at: int
    what: Weakening
    after_failure: bool


class Commit(Struct, frozen=True):
    """A commit at position ``at`` by ``call``. ``files``: all that are known to be in it; ``created``: those
    that git calls new.
    """

    at: int
    call: str
    files: tuple[str, ...]
    created: tuple[str, ...]


class Untracked(Struct, frozen=True):
    """Git was told at position ``at`` to forget ``path``: a file, a folder, a pattern, ``.`` for all."""

    at: int
    path: str

    def glob(self, name: str) -> bool:
        """Says whether ``path`` is a pattern for the file ``name``."""
        return any(c in self.path for c in "*?[") and fnmatch(name, self.path)


class Work(Struct):
    """The work of a task's calls. ``last_code``: position of the last write to code, -1 for none;
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
    base_failed: dict[str, Ended] = field(default_factory=dict)  # by tool: failed without the work too
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
        """The actions of each call, by its number."""
        return {seen.number: seen.actions for seen in self.calls}

    def did(self, *kinds: str) -> list[Done]:
        """The deeds of these kinds, oldest first."""
        return [d for d in self.done if d.deed.kind in kinds]
