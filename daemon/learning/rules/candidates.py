"""Texts that a person typed, kept until a model or the person reads them. Pure.

Nothing here reads words. The seed's keywords (TR3), a refused tool call, Esc, and the same text in a second
session only decide which texts a person is shown first; a model is given all of them. Texts are kept by their
words, so the same words in five sessions are one candidate with five sightings. All text is redacted.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.given import folded
from ...core.guards import ABORT_ERROR
from ...core.transcript import Said
from ...redact import redact_head, redact_tail
from .journal import Reading, Sighting, digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...core.transcript import Message, ToolCall, Transcript

Json = dict[str, Any]
KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "correction": ("no,", "don't", "stop", "instead", "actually", "wrong", "not that"),
    "instruction": ("always", "never", "make sure", "remember to", "from now on"),
    "positive": ("perfect", "great", "exactly", "good", "yes"),
    "negative": ("broke", "failed", "error", "wrong", "bad"),
}
"""The keywords that the requirements name (TR3). Each makes a message a candidate, none makes it a signal."""
_KEYWORD: Final = {  # TR3 names these words; a hit only decides what a person looks at first
    kind: re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words))
    for kind, words in KEYWORDS.items()
}
FOR_A_PERSON: Final = frozenset({"refused", "interrupted", "repeated", "correction", "instruction"})
LONGEST: Final = 2_000  # characters of a message; a longer one is a task or was pasted
HEAD: Final = 600  # of a message that are kept and looked at: people react first
PRIOR: Final = 300  # of the agent's last words before it
KEPT: Final = 5_000  # texts; those without a reason to look go first, the oldest first
SEEN: Final = 50  # sightings of one text
SHORTEST: Final = 12  # characters of a text that counts as repeated: "continue" says nothing
QUOTE: Final = 400  # characters
CONTEXT: Final = 240
QUOTES: Final = 3  # of a signal
_BEFORE: Final = 6_000  # characters of the agent's words
_FEEDBACK: Final = "rejected permission to use this specific tool call with the following feedback: "
_ACTS: Final = ("command", "filePath", "file_path", "path", "url", "pattern")


class Candidate(Struct, frozen=True):
    """A text that a person typed. ``why``: the reasons to look at it first; ``prior``: the agent's words."""

    key: str
    text: str
    prior: str = ""
    why: tuple[str, ...] = ()
    seen: tuple[Sighting, ...] = ()

    @property
    def sessions(self) -> int:
        """The number of sessions in which it was said."""
        return len({s.session for s in self.seen})

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons for which a person should look at it."""
        again = self.sessions > 1 and len(self.text) >= SHORTEST
        return (*self.why, *(["repeated"] if again else []))

    @property
    def day(self) -> str:
        """The day on which it was said last."""
        return max((s.day for s in self.seen), default="")

    def object(self) -> Json:
        """As it is stored, under its key."""
        return {"text": self.text, "prior": self.prior, "why": list(self.why), "seen": list(self.seen)}

    def with_seen(self, more: Iterable[Sighting]) -> Candidate:
        """With these sightings too: each message counts once, also where a fork of its session has it."""
        known = {s.message: s for s in self.seen}
        for sighting in more:
            known.setdefault(sighting.message, sighting)
        return replace(self, seen=tuple(known.values())[:SEEN])

    def quote(self, at: Sighting) -> Json:
        """The person's words on one line, with the end of the agent's: for the eyes of that person, in the
        state folder.
        """
        text, context = " ".join(self.text.split())[:QUOTE], " ".join(self.prior.split())[-CONTEXT:]
        where = {"day": at.day, "session": at.session, "file": at.file, "line": at.line}
        return {"text": text, "context": context, **where}


class Finding(NamedTuple):
    """A candidate and how it was read."""

    candidate: Candidate
    reading: Reading


def stored(entries: Mapping[str, Any]) -> dict[str, Candidate]:
    """Candidates as they were stored, by their keys; entries of another form are left out."""
    kept: dict[str, Candidate] = {}
    for key, entry in entries.items():
        try:
            candidate = msgspec.convert({**entry, "key": key}, Candidate)
        except (TypeError, msgspec.ValidationError):
            continue
        if candidate.seen:
            kept[key] = candidate
    return kept


def merged(mine: Mapping[str, Candidate], other: Mapping[str, Candidate]) -> dict[str, Candidate]:
    """Both, with the sightings of both: two scans at once lose nothing. At most ``KEPT``."""
    found = dict(other)
    for key, candidate in mine.items():
        known = found.get(key)
        found[key] = candidate if known is None else known.with_seen(candidate.seen)
    least = sorted(found.values(), key=lambda c: (bool(c.reasons), c.day)) if len(found) > KEPT else []
    for candidate in least[: len(found) - KEPT]:
        del found[candidate.key]
    return found


def pressing(candidates: Iterable[Candidate]) -> list[Candidate]:
    """First those with a reason to look at them, then those of more sessions, then newer ones."""
    newest = sorted(candidates, key=lambda c: c.day, reverse=True)
    return sorted(newest, key=lambda c: (not FOR_A_PERSON & set(c.reasons), -c.sessions, -len(c.reasons)))


def for_a_person(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that a person is shown where no model reads them."""
    return [c for c in pressing(candidates) if FOR_A_PERSON & set(c.reasons)]


def for_a_model(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that a model is given: all but texts that open a task and have no reason to be looked at."""
    return [c for c in pressing(candidates) if c.prior or c.reasons]


class Gathering:
    """Takes what was said, one message after the other. ``kept``: candidates by key. ``decided``: the fate of
    texts that were read before, by key: the id of a signal, or "none"; ``nothing`` has the new ones of these.
    ``signals``: those of the journal.
    """

    def __init__(
        self,
        kept: Mapping[str, Candidate] | None = None,
        decided: Mapping[str, Any] | None = None,
        signals: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        self.kept = dict(kept or {})
        self.nothing: dict[str, str] = {}
        self.messages = 0
        self.found: list[Finding] = []
        self._decided = dict(decided or {})
        self._signals = {s["id"]: s for s in signals}

    def take(self, said: Said, file: str = "") -> None:
        """One more message of a person."""
        self.messages += 1
        candidate = candidate_of(said, file)
        if candidate is None:
            return
        before = self._decided.get(candidate.key)
        if signal := self._signals.get(before):  # a text that was read before, said once more
            kind = signal.get("polarity") or signal["type"]
            self.found.append(Finding(candidate, Reading(kind, signal["content"], signal["severity"])))
        elif before != "none" and candidate.key not in self.nothing:
            known = self.kept.get(candidate.key)
            self.kept[candidate.key] = candidate if known is None else known.with_seen(candidate.seen)
            if len(self.kept) > 2 * KEPT:
                self.kept = merged({}, self.kept)

    def settle(self, candidate: Candidate, reading: Reading) -> None:
        """Count a candidate as what it was read as."""
        self.kept.pop(candidate.key, None)
        if reading.type == "none":
            self.nothing[candidate.key] = "none"
        else:
            self.found.append(Finding(candidate, reading))


def candidate_of(said: Said, file: str = "") -> Candidate | None:
    """A message as a candidate; None for one that says too much or nothing, and for a command."""
    text = said.text.strip()
    if not text or len(text) > LONGEST or text.startswith("/"):
        return None
    head = redact_head(text, HEAD)
    sighting = Sighting(said.session, digest(said.message), timestamp(said.at)[:10], file, said.line)
    why = [name for name, is_so in (("refused", said.refusal), ("interrupted", said.interrupted)) if is_so]
    low = head.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").casefold()
    why += [kind for kind, pattern in _KEYWORD.items() if pattern.search(low)]
    prior = redact_tail(said.prior.strip(), PRIOR)
    return Candidate(digest(folded(head) or head), head, prior, tuple(why), (sighting,))


def keep_quotes(kept: object, new: Json) -> list[Json]:
    """The quotes of a signal with a new one: of different sessions, the newest ones."""
    quotes = [q for q in kept if isinstance(q, dict)] if isinstance(kept, list) else []
    quotes = [q for q in quotes if q.get("session") != new["session"]]
    return sorted([*quotes, new], key=lambda q: str(q.get("day")))[-QUOTES:]


def timestamp(at: int) -> str:
    """An epoch in ms as ISO text, in UTC; "" when it is not known."""
    try:
        return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at > 0 else ""
    except (OverflowError, ValueError, OSError):
        return ""


# --- a session that is read as a whole -----------------------------------------------------------------


def said_in(transcript: Transcript) -> list[Said]:
    """Everything that a person said in it, oldest first: messages, and why tool calls were refused. The hosts
    decided which messages a person typed when the transcript was made.
    """
    found: list[Said] = []
    before: list[Message] = []
    for m in transcript.messages:
        if m.human:
            found.append(_said(transcript, m, m.text, before))
            before = []
            continue
        if m.role == "assistant" and not m.summary:
            before.append(m)
            for call in m.calls:
                if _FEEDBACK in call.error[:300]:
                    words = call.error.partition(_FEEDBACK)[2]
                    found.append(_said(transcript, m, words, before, call))
    return [said for said in found if said.text.strip()]


def _said(
    transcript: Transcript, m: Message, text: str, before: Sequence[Message], refused: ToolCall | None = None
) -> Said:
    parts = [b.text.strip() for b in before if b.text.strip()]
    if refused is not None:
        acts = (v for name in _ACTS if isinstance(v := refused.input.get(name), str))
        parts += [f"{refused.tool}: {value[:300]}" for value in acts]
    return Said(
        text,
        "\n\n".join(parts)[-_BEFORE:],
        refusal=refused is not None,
        interrupted=refused is None and bool(before) and before[-1].error == ABORT_ERROR,
        at=refused.ended if refused is not None else m.at,
        session=transcript.session,
        message=f"{m.id}/{refused.id}" if refused is not None else m.id,
    )
