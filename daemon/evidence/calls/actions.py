"""What a tool call does that matters here: checks it runs, files it writes, states it puts aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...core.evidence import CheckKind

DeedKind = Literal["commit", "push", "pr", "issue", "ci", "deploy", "run", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """One run of a runner. ``text``: what to type again. ``cwd``: where, None when it can't be known.

    ``paths`` and ``filters`` narrow what it looks at (none: everything). ``proves_pass``: exit code 0 of
    the whole script means that this run passed; ``proves_fail``: another code means that it failed.
    """

    kind: CheckKind
    tool: str
    eco: str
    text: str
    wrap: bool = False
    cwd: str | None = None
    paths: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    proves_pass: bool = True
    proves_fail: bool = True

    def covers(self, other: Check) -> bool:
        """Whether this run says at least what ``other`` said: same kind of tool, same scope or broader."""
        if not self.same_kind(other) or not _within(other.cwd, self.cwd):
            return False
        if not set(self.filters) <= set(other.filters):
            return False
        return not self.paths or (bool(other.paths) and all(self.reaches(p) for p in other.paths))

    def same_kind(self, other: Check) -> bool:
        """Whether both look for the same sort of fault, with the same tool or one that wraps it."""
        if self.kind != other.kind:
            return False
        wraps = (self.wrap or other.wrap) and ("any" in {self.eco, other.eco} or self.eco == other.eco)
        return self.tool == other.tool or wraps

    def reaches(self, path: str) -> bool:
        """Whether ``path`` (a file, a folder or a test id) lies in this run's scope."""
        if not self.paths or path in self.paths:
            return True
        return any(
            path.startswith(p) and path[len(p) : len(p) + 2].startswith(("/", "::")) for p in self.paths
        )


@dataclass(frozen=True, slots=True)
class Write:
    """A file the script changes; ``path`` as written."""

    path: str
    by: str


@dataclass(frozen=True, slots=True)
class Stash:
    """``git stash`` (``away``) or ``git stash pop``: runs between the two judge the old state."""

    away: bool


@dataclass(frozen=True, slots=True)
class Deed:
    """What else a command did: a commit, a push, a pull request, a deployment, a run of the program.

    ``unknown``: a command we can't place; ``text`` tells, so that no rule says that nothing was done.
    """

    kind: DeedKind
    text: str
    proves_pass: bool = True
    proves_fail: bool = True


Action = Check | Write | Stash | Deed


def _within(inner: str | None, outer: str | None) -> bool:
    """Whether folder ``inner`` is ``outer`` or lies in it; an unknown folder may be any."""
    if inner is None or outer is None or outer in {"", "."} or inner == outer:
        return True
    return inner.startswith(outer.rstrip("/") + "/")
