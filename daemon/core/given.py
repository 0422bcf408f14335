"""Texts that agents were given: found where an answer cites them, and taken out of a transcript again."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from .transcript import ToolCall, Transcript

CITED: Final = re.compile(r"\[((?:pat|mis|pref|ctx|oth)-\d+|kpt_\d+)\]")
"""How a text names a point (REQ-REFL-001)."""


_SPACES: Final = re.compile(r"\s+")


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
