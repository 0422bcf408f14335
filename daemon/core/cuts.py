"""Long texts and tool calls made short, for a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..redact import redact_head

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .transcript import ToolCall


MAX_DEPTH: Final = 6  # of nested JSON that is kept
MAX_ITEMS: Final = 200  # of one list or object
BYTES_PER_TOKEN: Final = 3.5  # of UTF-8; models differ, and code has shorter tokens than prose


def cut_texts(value: object, cut: Callable[[str], str], depth: int = 0) -> object:
    """The JSON value with every text in it cut, keys too, and None for all that is nested too deeply."""
    if isinstance(value, str):
        return cut(value)
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, list):
        return [cut_texts(item, cut, depth + 1) for item in value[:MAX_ITEMS]]
    if isinstance(value, dict):
        few = list(value.items())[:MAX_ITEMS]
        return {cut(str(k)): cut_texts(v, cut, depth + 1) for k, v in few}
    return value


def head_and_tail(text: str, limit: int) -> str:
    """``text``, or its head and tail: together at most ``limit`` characters, and a mark between them."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]} […] {text[len(text) - half :]}"


def tokens(text: str) -> int:
    """About how many tokens a model counts in ``text``."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return int(size / BYTES_PER_TOKEN) + 1


def within(text: str, most: int) -> str:
    """``text``, or its head and tail, in at most ``most`` tokens."""
    chars = int(most * BYTES_PER_TOKEN)
    short = head_and_tail(text, chars)
    while chars > 0 and (size := tokens(short)) > most:
        chars = min(chars * most // size, chars - 1)
        short = head_and_tail(text, chars) if chars > 0 else ""
    return short


def argument_in_short(call: ToolCall, limit: int, names: Collection[str] = ()) -> str:
    """The call's first text argument, in one line and without secrets; empty if it has none.

    ``names``: the arguments that may be told, best first; without them, any.
    """
    for name in names or call.input:
        value = call.input.get(name)
        if isinstance(value, str) and value.strip():
            return redact_head(" ".join(redact_head(value, 4 * limit).split()), limit)
    return ""
