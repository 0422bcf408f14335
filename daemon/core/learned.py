"""Texts that reflectd learned by itself: where each comes from, and which may never be put in front of an
agent.

A learned text is read by an agent as what worked in this project. So it must be one plain sentence of facts:
no address, no command line, no secret, and nothing that tells an agent what it may do. ``refusal`` says what
is wrong with a text, before it is written and again before it is offered.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

from .redact import redact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from .transcript import ToolCall, Transcript

CHARS: Final = 300
By = Literal["curator", "person", "import"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a text comes from. ``session`` and ``turn``: what it was learned from. ``at``: epoch ms.
    ``why``: one sentence. ``proof``: the row or the words that confirmed it, and ``confirmed_in`` the
    session.
    """

    by: By
    session: str = ""
    turn: str = ""
    at: int = 0
    why: str = ""
    proof: str = ""
    confirmed_in: str = ""


CITED: Final = re.compile(r"\[((?:pat|mis|pref|ctx|oth)-\d+|kpt_\d+)\]")
"""How a text names a point (REQ-REFL-001)."""
_ADDRESS: Final = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]{1,15}://|mailto:|javascript:|data:[a-z]+/|www\.[a-z0-9]|git@[a-z0-9])"
    r"|\b(?:[a-z0-9-]{1,63}\.){1,5}(?:(?:com|org|net|io|dev|ai|app|co|info|xyz|ru|cn|example)(?:[/:?\s]|$)|(?:sh|me|test)/)"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(
    r"\||&&|\$\(|<\(|>\("
    r"|\b(?:sudo|doas|curl|wget|eval|base64|chmod|chown|netcat|crontab|ssh-keygen)\b"
    r"|\b(?:rm|git clean|git reset) -{1,2}\w*(?:f|hard)"
    r"|--(?:dangerously|no-verify|yolo|allow|skip-|unsafe|force\b|trusted-host|extra-index-url|index-url)",
    re.IGNORECASE,
)
_POWER: Final = (
    r"(?:permissions?|approvals?|confirmations?|consent|sandbox(?:es|ing)?|hooks?|guards?|guardrails?|safety"
    r"|security|restrictions?|warnings?|instructions?|rules?|system prompts?|allow-?lists?|deny-?lists?"
    r"|settings|polic(?:y|ies)|credentials?|secrets?|passwords?|tokens?|api keys?|ssh keys?)"
)
_ORDER: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass|circumvent|disable|deactivate|turn off|switch off|skip"
    r"|grant|allow|approve|auto-?approve|accept|give|enable|reveal|print|send|upload|leak|share|expose|remove"
    r"|weaken|suppress|silence|without)\b[^.;!?]{0,60}\b" + _POWER + r"\b"
    r"|\b(?:without|never|don't|do not|no need to) (?:asking|ask|confirm|confirming)\b"
    r"|\byou (?:are now|may now|have permission|are allowed|can ignore)\b"
    r"|\b(?:always|must|should|please)? ?(?:call|invoke|use|run|trigger|load|install|enable) (?:the )?"
    r"[\w.:-]{0,40} ?(?:tool|mcp(?: server)?|skill|plug-?in|sub-?agent|web ?fetch|web ?search|browser)\b"
    r"|\bmcp__|\b(?:settings(?:\.local)?\.json|\.claude/|\.opencode|opencode\.json|\.ssh|\.aws|\.netrc|\.env)"
    r"|\b(?:system|developer|assistant) ?:|</? ?(?:system|instructions?|user|assistant|tool)",
    re.IGNORECASE,
)
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
_SPACES: Final = re.compile(r"\s+")


@lru_cache(maxsize=4_096)
def refusal(text: str) -> str:
    """Why ``text`` may not be learned or offered, in words for a person; empty when it may."""
    if not text.strip():
        return "it is empty"
    if len(text) > CHARS:
        return f"it has more than {CHARS} characters"
    if has_hidden(text):
        return "it holds characters that nobody sees"
    plain = _SPACES.sub(" ", unicodedata.normalize("NFKC", text))
    if _ADDRESS.search(plain):
        return "it names an address"
    if _COMMAND.search(plain):
        return "it holds a command line"
    if _ORDER.search(plain):
        return "it tells an agent about its tools or permissions"
    if CITED.search(plain):
        return "it holds the name of a point"
    if redact(text) != text:
        return "it holds a secret"
    return ""


def has_hidden(text: str) -> bool:
    """Whether it holds a character that is not seen, or that changes how its neighbours are seen."""
    return any(_hidden(c) for c in text)


def _hidden(c: str) -> bool:
    """A character that is not seen, or that changes how its neighbours are seen."""
    return (
        unicodedata.category(c) in _INVISIBLE
        or "\ufe00" <= c <= "\ufe0f"
        or "\U000e0100" <= c <= "\U000e01ef"
        or c in "\u115f\u1160\u3164\uffa0\u034f\u2800"  # fillers and joiners that count as letters or marks
    )


def cited_ids(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the points that these texts cite, each once, in order."""
    return tuple(dict.fromkeys(name for text in texts for name in CITED.findall(text)))


def without(transcript: Transcript, given: Mapping[str, Collection[str]]) -> Transcript:
    """The transcript without the texts that were given behind results of calls, by the call's id: what we
    said ourselves proves nothing. Each is taken out once, where it stands last, of the result of that call,
    or of the next one: a host that has no place behind a call that failed puts it there. What people and
    agents wrote stays, also where it is word for word the same.
    """
    if not given:
        return transcript
    left: set[str] = set()

    def call(c: ToolCall) -> ToolCall:
        nonlocal left
        output = c.output
        mine = left | set(given.get(c.id, ()))
        for text in sorted(mine, key=len, reverse=True):
            if text.strip() and text in output:
                before, _, after = output.rpartition(text)
                output = before + after
                mine.discard(text)
        left = mine if c.id in given else set()
        return c if output == c.output else replace(c, output=output)

    messages = (replace(m, calls=tuple(map(call, m.calls))) if m.calls else m for m in transcript.messages)
    return replace(transcript, messages=tuple(messages))


def known_as(text: str) -> str:
    """The digest by which the state folder knows a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def folded(text: str) -> str:
    """The text as it is compared: without case, punctuation at its ends, and runs of blanks."""
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip(" .,;:!-*\"'`")
