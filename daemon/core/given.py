"""Learned texts that agents were given: finds their cites, and takes the texts out of a transcript."""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from .transcript import Message, ToolCall, Transcript

CITED: Final = re.compile(r"\[((?:pat|mis|pref|ctx|oth)-\d+|kpt_\d+)\]")
"""A point's name in a text (REQ-REFL-001)."""


_SPACES: Final = re.compile(r"\s+")


def cited_ids(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the points that these texts cite, each once, in order."""
    return tuple(dict.fromkeys(name for text in texts for name in CITED.findall(text)))


def without(transcript: Transcript, given: Mapping[str, Collection[str]]) -> Transcript:
    """The transcript without the texts that we gave behind results, by the id of the call that asked ("" for
    the prompt): our own words prove nothing. Each is taken out once, at its last place in the first result
    that has it: that call's, or a later one's, where the answer came late or the call failed. Equal words of
    people and agents stay. ``unshown``: texts that stand behind no result, so no agent has read them.
    """
    if not given:
        return transcript
    waiting = dict(given)
    typed = set(waiting.pop("", ()))
    left = set(typed)

    def taken_out(c: ToolCall) -> ToolCall:
        output = c.output
        left.update(waiting.pop(c.id, ()))
        for text in sorted(left, key=len, reverse=True):
            if text.strip() and text in output:
                before, _, after = output.rpartition(text)
                output = before + after
                left.discard(text)
        return c if output == c.output else replace(c, output=output)

    def read(messages: Iterable[Message]) -> list[Message]:
        return [replace(m, calls=tuple(map(taken_out, m.calls))) if m.calls else m for m in messages]

    messages = read(transcript.messages)
    if left - typed:  # of two calls at once the other one may have it
        messages = read(messages)
    return replace(transcript, messages=tuple(messages), unshown=tuple(sorted(left - typed)))


def known_as(text: str) -> str:
    """The digest by which the state folder knows a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def folded(text: str) -> str:
    """The text for comparison: without case, outer punctuation and repeated blanks."""
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip(" .,;:!-*\"'`")
