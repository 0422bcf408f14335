"""A project's check that reflectd ran itself, and how it ended (``design/proof.md``)."""

from __future__ import annotations

from typing import Final, Literal, get_args

from msgspec import Struct

NAMES: Final = 6  # failed tests in one text
Source = Literal["person", "project", "agent"]
"""Who chose it: the person, the project's settings that the person trusts, or an agent that ran it."""


class Known(Struct, frozen=True):
    """A check that may be run. ``folder``: where, below the project's own, "" for that itself."""

    command: str
    folder: str = ""
    source: Source = "agent"

    @property
    def key(self) -> tuple[str, str]:
        """The same for the same check, from every source."""
        return self.command, self.folder

    @property
    def typed(self) -> str:
        """The command as a person types it in the project's folder."""
        return f"cd {self.folder} && {self.command}" if self.folder else self.command


ProofState = Literal[
    "passed",
    "failed",
    "failed_before",
    "tests_changed",
    "flaky",
    "timed_out",
    "not_started",
    "changed",
    "not_run",
]


class Proof(Struct, frozen=True):
    """A run of the project's own check by reflectd, after the agent's last edit (``design/proof.md``).

    ``exit``: its exit code, None when it did not end by itself. ``tests``: the names of the tests that
    failed. ``failed_before``: all of them failed before the task's first edit too. ``flaky``: it failed, then
    passed. ``tests_changed``: it passed, but the task's edits made tests weaker or changed the check itself.
    ``changed``: files changed while it ran. ``not_run``: a run could have decided, and none was made;
    ``reason`` says why. ``at``: when it ended, epoch ms; a run is not repeated while the files stay the same.
    ``place``: where it ran.
    """

    command: str
    exit: int | None
    seconds: float
    state: ProofState
    tests: tuple[str, ...] = ()
    folder: str = ""
    place: Literal["folder", "worktree"] = "folder"
    at: int = 0
    reason: str = ""

    @property
    def typed(self) -> str:
        return Known(self.command, self.folder).typed

    @property
    def published(self) -> dict[str, object]:
        """The run as verdict files and answers in JSON have it; ``in_words`` reads it."""
        return {
            "command": self.typed,
            "exit": self.exit,
            "seconds": self.seconds,
            "state": self.state,
            **({"reason": self.reason} if self.reason else {}),
        }

    @property
    def took(self) -> str:
        return f"{self.seconds:.0f} s" if self.seconds >= 1 else "under 1 s"

    @property
    def text(self) -> str:
        """The run in words: ``proved by `make test`, exit 0, 41 s``."""
        run, failed = f"`{self.typed}`", some(self.tests)
        took = self.took
        match self.state:
            case "passed":
                return f"proved by {run}, exit {self.exit}, {took}"
            case "failed":
                return f"{run} fails, exit {self.exit}, {took}{failed and f': {failed}'}"
            case "failed_before":
                return f"{run} fails as it did before the task's first edit{failed and f': {failed}'}"
            case "tests_changed":
                return (
                    f"{run} passes, exit {self.exit}, {took}, but tests or the check were changed: not proved"
                )
            case "flaky":
                return f"{run} failed, then passed: not proved{failed and f' ({failed})'}"
            case "timed_out":
                return f"{run} did not end within {took}: not proved"
            case "not_started":
                return f"{run} could not run (exit {self.exit}): not proved"
            case "changed":
                return f"files changed while {run} ran: not proved"
            case "not_run":
                return f"not proved: {self.reason}"


def in_words(published: object) -> str:
    """The run in a verdict file, in words; "" for none, and for a text that somebody else put there."""
    if not isinstance(published, dict) or published.get("state") not in get_args(ProofState):
        return ""
    command, code, seconds = (published.get(name) for name in ("command", "exit", "seconds"))
    if not isinstance(command, str) or not isinstance(seconds, int | float):
        return ""
    code, reason = (code if isinstance(code, int) else None), str(published.get("reason", ""))
    return Proof(command, code, seconds, published["state"], reason=reason).text


def some(tests: tuple[str, ...]) -> str:
    more = f" and {len(tests) - NAMES} more" if len(tests) > NAMES else ""
    return f"{'; '.join(tests[:NAMES])}{more}"


class Ended(Struct, frozen=True):
    """A run as the evidence has it. ``lines``: of its output, redacted. ``marks``: what tells its failure
    from others: the tests that failed, else the lines that tell of it. ``old``: the tests among
    ``proof.tests`` that failed before the task's first edit.
    """

    known: Known
    proof: Proof
    lines: tuple[str, ...] = ()
    summary: str = ""
    marks: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
