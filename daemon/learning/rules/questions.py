"""Two questions of `/reflect` to a small model: what a person teaches, and what a new rule contradicts.

One call reads a batch of messages: the reply has type, wording, severity, group and contradictions of each.
One call compares a new rule with the statements that stand. A message that a reply leaves out, or an entry of
another form, stays unread; a statement that it does not name contradicts nothing. Sent texts are redacted and
cut. Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from ...core.question import Question
from ...redact import redact_head, redact_tail
from .candidates import HEAD, PRIOR
from .journal import MAX_CONTENT, Kind, Reading, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .candidates import Candidate

T = TypeVar("T")
_TEACHES: Final = frozenset({"correction", "instruction"})
BATCH: Final = 20  # messages of one call
STANDS: Final = 100  # statements that they are compared with
STANDS_TEXT: Final = 200  # characters of each
READ_TOKENS: Final = 1_800  # of an answer about a batch
MOST: Final = 200  # statements that a new rule is compared with
TEXT: Final = 300  # characters of each
COMPARE_TOKENS: Final = 400


class Stands(Struct, frozen=True):
    """A statement that stands. ``rule``: the id of a rule of the person's; "" for what they said before."""

    text: str
    rule: str = ""


class Compared(NamedTuple):
    """The places of the statements that a new rule contradicts, and of those that say the same."""

    contradicts: tuple[int, ...] = ()
    same: tuple[int, ...] = ()


class Signal(msgspec.Struct, kw_only=True):
    """A message in a reply. ``group``: the number of the statement or earlier message that asks for the same.
    ``against``: numbers of statements.
    """

    n: int
    type: Kind
    content: str
    severity: Severity = "medium"
    group: int = 0
    against: list[int] = []


class Signals(msgspec.Struct, kw_only=True):
    """The reply to the question about messages."""

    nonce: str = ""
    signals: list[Signal]


class Contradicts(msgspec.Struct, kw_only=True):
    """The reply to the question about a rule: numbers of statements."""

    nonce: str = ""
    contradicts: list[int]
    same: list[int] = []


def batches(items: Sequence[T]) -> list[Sequence[T]]:
    """As many as one call takes at a time."""
    return [items[at : at + BATCH] for at in range(0, len(items), BATCH)]


def to_read(said: Sequence[Candidate], stands: Sequence[Stands]) -> Question[Signals]:
    """The question about a batch. Statements and messages have one count."""
    known = [{"n": n, "stands": redact_head(s.text, STANDS_TEXT)} for n, s in enumerate(stands[:STANDS], 1)]
    return about_messages(_lines([*known, *(_shown(n, c) for n, c in enumerate(said, len(known) + 1))]))


def to_compare(rule: str, statements: Sequence[str]) -> Question[Contradicts]:
    """The question about a new rule."""
    lines: list[object] = [{"rule": redact_head(rule, TEXT)}]
    lines += [{"n": n, "statement": redact_head(text, TEXT)} for n, text in enumerate(statements[:MOST], 1)]
    return about_a_rule(_lines(lines))


def about_messages(lines: str) -> Question[Signals]:
    """The first question with these lines."""
    return Question("signals", {"messages": lines}, Signals, parts=True, max_tokens=READ_TOKENS)


def about_a_rule(lines: str) -> Question[Contradicts]:
    """The second one."""
    return Question("contradicts", {"statements": lines}, Contradicts, parts=True, max_tokens=COMPARE_TOKENS)


def readings(reply: Signals | None, stands: Sequence[Stands], many: int) -> dict[int, Reading]:
    """The readings by the message's place. The wording of a group counts for all of its messages."""
    stands, found = stands[:STANDS], dict[int, Reading]()
    entries = {entry.n - len(stands) - 1: entry for entry in reply.signals} if reply else {}
    for at in sorted(entries.keys() & set(range(many))):
        entry = entries[at]
        text = redact_head(" ".join(entry.content.split()), MAX_CONTENT)
        if entry.type in _TEACHES:
            first = found.get(entry.group - len(stands) - 1)
            if 0 < entry.group <= len(stands):
                text = stands[entry.group - 1].text
            elif first is not None and first.type in _TEACHES:
                text = first.content
            if not text:
                continue
        against = {stands[n - 1].rule for n in entry.against if 0 < n <= len(stands)} - {""}
        found[at] = Reading(entry.type, text, entry.severity, tuple(sorted(against)))
    return found


def compared(reply: Contradicts | None, statements: Sequence[str]) -> Compared:
    """The places that a reply names; a number that stands for no statement is left out."""
    numbers = (reply.contradicts, reply.same) if reply else ()
    many = min(len(statements), MOST)
    return Compared(*(tuple(sorted({n - 1 for n in some if 1 <= n <= many})) for some in numbers))


def _lines(items: Sequence[object]) -> str:
    return "\n".join(json.dumps(item, ensure_ascii=False) for item in items)


def _shown(n: int, said: Candidate) -> dict[str, object]:
    before = redact_tail(said.prior, PRIOR)
    return {"n": n, **({"agent": before} if before else {}), "person": redact_head(said.text.strip(), HEAD)}
