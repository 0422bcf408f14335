"""Texts that reflectd learned by itself: which may never be put in front of an agent.

A learned text is read by an agent as what worked in this project. So it must be one plain sentence of facts:
no address, no command line, no secret, and nothing that tells an agent what it may do. ``refusal`` says what
is wrong with a text, before it is written and again before it is offered.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import Final

from ..core.given import CITED
from ..redact import redact

CHARS: Final = 300
_SPACES: Final = re.compile(r"\s+")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


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
    for pattern, why in _patterns():
        if pattern.search(plain):
            return why
    if redact(text) != text:
        return "it holds a secret"
    return ""


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Compiled at the first use: that takes milliseconds of the daemon's start."""
    address = re.compile(
        r"\b(?:[a-z][a-z0-9+.-]{1,15}://|mailto:|javascript:|data:[a-z]+/|www\.[a-z0-9]|git@[a-z0-9])"
        r"|\b(?:[a-z0-9-]{1,63}\.){1,5}(?:(?:com|org|net|io|dev|ai|app|co|info|xyz|ru|cn|example)(?:[/:?\s]|$)|(?:sh|me|test)/)"
        r"|\b\d{1,3}(?:\.\d{1,3}){3}\b",
        re.IGNORECASE,
    )
    command = re.compile(
        r"\||&&|\$\(|<\(|>\("
        r"|\b(?:sudo|doas|curl|wget|eval|base64|chmod|chown|netcat|crontab|ssh-keygen)\b"
        r"|\b(?:rm|git clean|git reset) -{1,2}\w*(?:f|hard)"
        r"|--(?:dangerously|no-verify|yolo|allow|skip-|unsafe|force\b|trusted-host|extra-index-url|index-url)",
        re.IGNORECASE,
    )
    order = re.compile(
        r"\b(?:ignore|disregard|forget|override|bypass|circumvent|disable|deactivate|turn off|switch off|skip"
        r"|grant|allow|approve|auto-?approve|accept|give|enable|reveal|print|send|upload|leak|share|expose|remove"
        r"|weaken|suppress|silence|without)\b[^.;!?]{0,60}\b"
        r"(?:permissions?|approvals?|confirmations?|consent|sandbox(?:es|ing)?|hooks?|guards?|guardrails?|safety"
        r"|security|restrictions?|warnings?|instructions?|rules?|system prompts?|allow-?lists?|deny-?lists?"
        r"|settings|polic(?:y|ies)|credentials?|secrets?|passwords?|tokens?|api keys?|ssh keys?)"
        r"\b"
        r"|\b(?:without|never|don't|do not|no need to) (?:asking|ask|confirm|confirming)\b"
        r"|\byou (?:are now|may now|have permission|are allowed|can ignore)\b"
        r"|\b(?:always|must|should|please)? ?(?:call|invoke|use|run|trigger|load|install|enable) (?:the )?"
        r"[\w.:-]{0,40} ?(?:tool|mcp(?: server)?|skill|plug-?in|sub-?agent|web ?fetch|web ?search|browser)\b"
        r"|\bmcp__|\b(?:settings(?:\.local)?\.json|\.claude/|\.opencode|opencode\.json|\.ssh|\.aws|\.netrc|\.env)"
        r"|\b(?:system|developer|assistant) ?:|</? ?(?:system|instructions?|user|assistant|tool)",
        re.IGNORECASE,
    )
    return (
        (address, "it names an address"),
        (command, "it holds a command line"),
        (order, "it tells an agent about its tools or permissions"),
        (CITED, "it holds the name of a point"),
    )


def has_hidden(text: str) -> bool:
    """Says whether it holds a character that is not seen, or that changes how its neighbours are seen."""
    return any(
        unicodedata.category(c) in _INVISIBLE
        or "\ufe00" <= c <= "\ufe0f"
        or "\U000e0100" <= c <= "\U000e01ef"
        or c in "\u115f\u1160\u3164\uffa0\u034f\u2800"  # fillers and joiners that count as letters or marks
        for c in text
    )
