"""The half of ``evals.memory`` about reminders at the action: a stored failure, a later tool call, and
whether the one should be remembered at the other.

The failure goes the product's way: a task in which that call failed, and what it hung on.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from daemon.core.episodes import Episode
from daemon.core.evidence import Evidence
from daemon.core.shares import Share, wilson
from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.memory.triggers import matching, triggers_of
from evals.report import counted

if TYPE_CHECKING:
    from collections.abc import Sequence


class Failure(msgspec.Struct):
    """What went wrong once. Empty: not known."""

    lesson: str
    command: str = ""
    file: str = ""
    tool: str = ""
    error: str = ""


class Call(msgspec.Struct):
    """A tool call of a later session."""

    tool: str
    input: dict[str, object]
    output: str = ""
    exit: int | None = None


class Pair(msgspec.Struct):
    """One case."""

    stored: Failure
    call: Call
    should_remind: bool
    id: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What ``triggers_of`` reads of a judged case."""

    transcript: Transcript | None
    evidence: Evidence = field(default_factory=Evidence)


@dataclass(frozen=True, slots=True)
class Reminded:
    """A pair, and by what the call was recognized; empty: it was not."""

    pair: Pair
    by: str


def reminded(pairs: Sequence[Pair]) -> list[Reminded]:
    """What becomes of each pair."""
    found = []
    for pair in pairs:
        episode = Episode(
            pair.id, "", "", -1.0, "", pair.stored.lesson, "", triggers=triggers_of(_case(pair.stored))
        )
        met = matching(_call(pair.call), [episode])
        found.append(Reminded(pair, met[0].trigger.kind if met else ""))
    return found


def hits(met: Sequence[Reminded]) -> Share:
    """Of the calls that come back to the failure, those that are recognized."""
    of = [r for r in met if r.pair.should_remind]
    return wilson(sum(bool(r.by) for r in of), len(of))


def false(met: Sequence[Reminded]) -> Share:
    """Of the others, those that are taken for it."""
    of = [r for r in met if not r.pair.should_remind]
    return wilson(sum(bool(r.by) for r in of), len(of))


def table_of(met: Sequence[Reminded]) -> list[str]:
    """The figures for a person."""
    return [
        "",
        f"{len(met)} calls after a stored failure",
        f"  {'reminded':<24}{counted(hits(met)):>28}",
        f"  {'false reminders':<24}{counted(false(met)):>28}",
    ]


def as_json_of(met: Sequence[Reminded]) -> dict[str, Any]:
    """The same, for programs."""
    wrong = [
        {"id": r.pair.id, "should_remind": r.pair.should_remind, "by": r.by}
        for r in met
        if bool(r.by) != r.pair.should_remind
    ]
    return {"pairs": len(met), "hits": asdict(hits(met)), "false": asdict(false(met)), "wrong": wrong}


def _case(stored: Failure) -> Case:
    given: dict[str, object] = {"command": stored.command} if stored.command else {"file_path": stored.file}
    if stored.command and stored.file:
        given["file_path"] = stored.file
    code = 1 if stored.command else None
    call = ToolCall(
        "failed", stored.tool, "completed" if stored.command else "error", given,
        output=stored.error, error="" if stored.command else stored.error, exit=code,
    )  # fmt: skip
    return Case(Transcript("s", (Message("t", "user", human=True), Message("a", "assistant", calls=(call,)))))


def _call(call: Call) -> ToolCall:
    return ToolCall("later", call.tool, "completed", call.input, output=call.output, exit=call.exit)
