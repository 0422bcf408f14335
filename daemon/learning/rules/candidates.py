"""Texts that a person typed, kept until a model or the person reads them. Pure.

Nothing here reads words. The seed's keywords (TR3), a refused tool call, Esc, and the same text in a second
session only decide which texts a person is shown first; a model is given all of them. Texts are kept by their
words, so the same words in five sessions are one candidate with five sightings. The outcome of a text is kept
with it: the same words later count in its signal, and nobody is asked again. All text is redacted.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from ...core.given import folded
from ...core.guards import ABORT_ERROR
from ...core.transcript import Said
from ...redact import redact_head, redact_tail
from .journal import Sighting, digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

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
KEPT: Final = 5_000  # texts; those that wait without a reason go first, the oldest first
DECIDED: Final = 100_000  # texts that teach nothing, of which only the key is kept
NOTHING: Final = "none"  # what became of a text that teaches nothing
SEEN: Final = 50  # sightings of one text
SHORTEST: Final = 12  # characters of a text that counts as repeated: "continue" says nothing
QUOTE: Final = 400  # characters
CONTEXT: Final = 240
QUOTES: Final = 3  # of a signal
_BEFORE: Final = 6_000  # characters of the agent's words
_FEEDBACK: Final = "rejected permission to use this specific tool call with the following feedback: "
_ACTS: Final = ("command", "filePath", "file_path", "path", "url", "pattern")


class Candidate(Struct, frozen=True):
    """A text that a person typed. ``why``: the reasons to look at it first; ``prior``: the agent's words.
    ``became``: the id of its signal, or ``NOTHING``; "" while nobody read it.
    """

    key: str
    text: str
    prior: str = ""
    why: tuple[str, ...] = ()
    seen: tuple[Sighting, ...] = ()
    became: str = ""

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
        return {name: value for name, value in asdict(self).items() if value and name != "key"}

    def with_seen(self, more: Iterable[Sighting]) -> Candidate:
        """With these sightings too: each message counts once, also where a fork of its session has it."""
        known = {s.message: s for s in self.seen}
        for sighting in more:
            known.setdefault(sighting.message, sighting)
        return replace(self, seen=tuple(known.values())[:SEEN])

    def quote(self) -> Json:
        """The words on one line, with the end of the agent's, for that person's eyes only."""
        text, context = " ".join(self.text.split())[:QUOTE], " ".join(self.prior.split())[-CONTEXT:]
        at = max(self.seen, key=lambda s: s.day)
        where = {"day": at.day, "session": at.session, "file": at.file, "line": at.line}
        return {"text": text, "context": context, **where}


def stored(entries: Mapping[str, Any], signals: Collection[str] = ()) -> dict[str, Candidate]:
    """Stored candidates by key, of the known form. One whose signal is none of these waits again."""
    kept: dict[str, Candidate] = {}
    for key, entry in entries.items():
        try:
            candidate = msgspec.convert({"text": "", **entry, "key": key}, Candidate)
        except (TypeError, msgspec.ValidationError):
            continue
        if candidate.became != NOTHING and candidate.became not in signals:
            candidate = replace(candidate, became="")
        if candidate.seen or candidate.became:
            kept[key] = candidate
    return kept


def merged(more: Mapping[str, Candidate], known: Mapping[str, Candidate]) -> dict[str, Candidate]:
    """``known`` with the sightings of both: two scans at once lose nothing. At most ``KEPT`` with a text."""
    found = dict(known)
    for key, candidate in more.items():
        old = found.get(key, candidate)
        found[key] = old if old.became == NOTHING else old.with_seen(candidate.seen)
    texts = [c for c in found.values() if c.became != NOTHING]
    texts.sort(key=lambda c: (bool(c.became or c.reasons), c.day))
    nothing = [c for c in found.values() if c.became == NOTHING]
    for candidate in (*texts[: max(0, len(texts) - KEPT)], *nothing[: max(0, len(nothing) - DECIDED)]):
        del found[candidate.key]
    return found


def quotes_of(candidates: Iterable[Candidate], signal: str) -> list[Json]:
    """Quotes of a signal: of different sessions, the newest ones, oldest first."""
    found: dict[str, Json] = {}
    quotes = [c.quote() for c in candidates if c.became == signal]
    for quote in sorted(quotes, key=lambda q: str(q["day"]), reverse=True):
        found.setdefault(quote["session"], quote)
    return list(found.values())[:QUOTES][::-1]


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
