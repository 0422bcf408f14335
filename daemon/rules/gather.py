"""What many sessions hold, gathered for the journal: signals with the words that they stand on.

An instruction that is no signal by itself ("use conventional commits") becomes one when it was given in a
second session (FR1). Until then it waits in ``asked``, which its owner keeps outside the project. Everything
that leaves is redacted. Pure.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from ..core.redact import redact_head, redact_tail
from .grammar import asks, bare, dismisses
from .journal import MAX_CONTENT, Seen
from .own import sentences, spoken
from .patterns import QUOTES, shape_of
from .signals import Reading, is_doubtful, read
from .wording import cut

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.transcript import Said
    from .journal import Polarity, Type

HELD: Final = 5_000  # messages for a model
KEPT: Final = 2_000  # characters of each, and of the words before it
ASKED: Final = 20_000  # plain instructions that wait for a second session
QUOTE: Final = 400  # characters
CONTEXT: Final = 240
_SESSIONS: Final = 2  # in which a plain instruction must come up
_MANNER: Final = re.compile(
    r"(?:use|keep|avoid|prefer|follow|stick to|run|ask|be|stay|answer|reply|don't|do not|no) \S"
)
_POINTS: Final = re.compile(
    r"\b(?:it|this|that|these|those|them|above|below|again|next|first|second|last|step|option|now|same|here)\b|\d"
)


@dataclass(frozen=True, slots=True)
class Quote:
    """Where a person said something: for the eyes of that person, in the state folder."""

    text: str
    context: str
    day: str
    session: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One sighting of a signal, with its words."""

    seen: Seen
    quote: Quote


Message = tuple["Said", Reading, str]
"""What was said, what the rules say of it, and the file that it stands in."""


class Held:
    """Messages that a model shall look at, once each. ``known``: digests of those that were counted or
    decided before; they are left to the rules.
    """

    def __init__(self, known: set[str], most: int = HELD) -> None:
        self.messages: list[Message] = []
        self._known = known
        self._most = most

    def take(self, said: Said, reading: Reading, file: str) -> bool:
        """Whether it is held."""
        name = digest(said.message)
        if name in self._known or len(self.messages) >= self._most:
            return False
        self._known.add(name)
        short = replace(said, text=said.text[:KEPT], prior=said.prior[-KEPT:])
        self.messages.append((short, reading, file))
        return True


class Gathering:
    """Takes what was said, one message after the other. ``asked``: plain instructions by their shape, changed
    in place: ``{"content", "seen": [[session, message, day], …]}``. ``held``: where messages go that a model
    shall look at; None when none shall.
    """

    def __init__(self, asked: dict[str, Any] | None = None, held: Held | None = None) -> None:
        self.asked = asked if asked is not None else {}
        self.messages = 0
        self.found: list[Finding] = []
        self._held = held

    def take(self, said: Said, file: str = "") -> None:
        """One more message of a person."""
        self.messages += 1
        reading = read(said)
        worth_a_look = reading.type != "none" or is_doubtful(said, reading)
        if self._held is not None and worth_a_look and self._held.take(said, reading, file):
            return
        self.settle(said, reading, file)

    def settle(self, said: Said, reading: Reading, file: str = "") -> None:
        """Count a message as this reading has it."""
        if reading.type != "none":
            self.found.append(finding(said, reading, file))
        elif (plain := plain_instruction(said)) and (content := redact_head(plain, MAX_CONTENT)):
            self._ask(said, content, file)

    def taken(self) -> list[Finding]:
        """What was found since the last time."""
        found, self.found = self.found, []
        return found

    def _ask(self, said: Said, content: str, file: str) -> None:
        shape = shape_of(content)
        key = " ".join((("not " if shape.negative else "") + " ".join(shape.words), *sorted(shape.against)))
        entry = self.asked.pop(key, None)
        seen: list[list[str]] = list(entry["seen"]) if _is_entry(entry) else []
        sighting = [digest(said.session), digest(said.message), day_of(said.at)]
        if not any(s[1] == sighting[1] for s in seen):
            seen.append(sighting)
        if len({s[0] for s in seen}) >= _SESSIONS:
            for session, message, day in seen:
                counted = Seen("instruction", content, "low", day, session, message)
                self.found.append(Finding(counted, _quote(said, content, file)))
            seen = seen[-_SESSIONS:]
        self.asked[key] = {"content": content, "seen": seen}
        while len(self.asked) > ASKED:
            del self.asked[next(iter(self.asked))]


def finding(said: Said, reading: Reading, file: str = "") -> Finding:
    """A signal as the journal counts it, with its words, redacted."""
    kind, polarity = typed(reading)
    seen = Seen(
        kind,
        redact_head(reading.content, MAX_CONTENT),
        reading.severity,
        day_of(said.at),
        digest(said.session),
        digest(said.message),
        polarity,
    )
    return Finding(seen, _quote(said, reading.content, file))


def typed(reading: Reading) -> tuple[Type, Polarity]:
    """The type and the polarity by which the journal knows a reading."""
    match reading.type:
        case "correction" | "instruction":
            return reading.type, ""
        case "positive" | "negative":
            return "feedback", reading.type
        case "none":
            raise ValueError("it is no signal")


def plain_instruction(said: Said) -> str:
    """An instruction on how to work that says nothing of how long it holds; "" when there is none."""
    own = sentences(said.text)
    if not 1 <= len(own) <= 3:
        return ""
    for sentence in own:
        low = bare(spoken(sentence))
        few = 3 <= len(low.split()) <= 14
        if few and _MANNER.match(low) and not _POINTS.search(low) and not asks(low) and not dismisses(low):
            return cut(sentence)
    return ""


def merge_asked(asked: dict[str, Any], other: dict[str, Any]) -> None:
    """Take over what another scan gathered meanwhile, in place."""
    for key, entry in other.items():
        if not _is_entry(entry):
            continue
        mine = asked.setdefault(key, entry)
        known = {tuple(s) for s in mine["seen"]}
        mine["seen"] += [s for s in entry["seen"] if tuple(s) not in known]


def keep_quotes(kept: Iterable[dict[str, Any]], new: Quote) -> list[dict[str, Any]]:
    """The quotes of a signal with a new one: of different sessions, the newest ones."""
    found = [q for q in kept if isinstance(q, dict) and q.get("session") != new.session]
    found = sorted([*found, asdict(new)], key=lambda q: str(q.get("day")))
    return found[-QUOTES:]


def signal_of(said: Said, reading: Reading, file: str) -> dict[str, Any]:
    """A signal in the form of the requirements, without its id (FR1)."""
    kind, polarity = typed(reading)
    found = finding(said, reading, file)
    return {
        "type": kind,
        **({"polarity": polarity} if polarity else {}),
        "content": found.seen.content,
        "context": found.quote.context,
        "severity": reading.severity,
        "confidence": reading.confidence,
        "timestamp": timestamp(said.at),
        "source_file": file,
        "line": said.line,
        "session": said.session,
    }


def digest(name: str) -> str:
    """The digest by which the journal knows a session or a message."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def day_of(at: int) -> str:
    """The day of an epoch in ms, in UTC; "" when it is not known."""
    return timestamp(at)[:10]


def timestamp(at: int) -> str:
    """An epoch in ms as ISO text, in UTC; "" when it is not known."""
    try:
        return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at > 0 else ""
    except (OverflowError, ValueError, OSError):
        return ""


def _quote(said: Said, content: str, file: str) -> Quote:
    text = " ".join(redact_head(said.text.strip() or content, QUOTE).split())
    context = " ".join(redact_tail(said.prior.strip(), CONTEXT).split())
    return Quote(text, context, day_of(said.at), said.session, file, said.line)


def _is_entry(entry: object) -> bool:
    seen = entry.get("seen") if isinstance(entry, dict) else None
    return isinstance(seen, list) and all(
        isinstance(s, list) and len(s) == 3 and all(isinstance(x, str) for x in s) for s in seen
    )
