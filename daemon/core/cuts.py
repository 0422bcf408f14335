"""Cuts long texts, tool calls and transcripts, so that no text stops the daemon.

``re`` can't be stopped and holds Python's lock for as long as one match takes. The package's patterns need
linear time (``tests/test_patterns.py``), so a bound on each text bounds every match, and a bound on all texts
bounds the reading. Whole lines are cut, before secrets are redacted, because half a secret may not be
recognised.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace

from ..redact import redact_head
from .transcript import Message, ToolCall, Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence


TEXT: Final = 32_768  # characters of one text; hosts send half of it
FRESH: Final = 2 << 20  # characters of the newest calls that are read in full
OLD_INPUT: Final = 1_200  # characters of one argument of the calls before them
OLD_OUTPUT: Final = 400
MAX_CALLS: Final = 10_000  # of a transcript, without those of sub-agents
MARK: Final = 60  # characters that the line may have that counts what is missing


def bounded(transcript: Transcript) -> Transcript:
    """The transcript with all texts of at most ``TEXT`` characters, and with shorter ones in old calls.

    The newest ``MAX_CALLS`` calls stay, so edits and commands are still known. One call stands for all
    others. ``bounded(bounded(t)) == bounded(t)``.
    """
    left, room = FRESH, MAX_CALLS
    found: list[Message] = []
    for i in range(len(transcript.messages) - 1, -1, -1):
        message = transcript.messages[i]
        kept: list[ToolCall] = []
        for call in reversed(message.calls[-room:] if room > 0 else ()):
            kept.append(_call(call, TEXT, TEXT) if left > 0 else _call(call, OLD_INPUT, OLD_OUTPUT))
            left -= _size(call)
        if 0 <= room < len(message.calls):
            older = (c for m in transcript.messages[:i] for c in m.calls)
            gone = [*older, *message.calls[: len(message.calls) - room]]
            kept.append(_unread(sum(c.inner_cut or 1 for c in gone)))
            room = 0
        room -= len(message.calls)
        text = whole_lines(message.text, TEXT, " ")  # a request may be one line
        error = whole_lines(message.error_message, TEXT)
        calls = tuple(reversed(kept))
        if (text, error) != (message.text, message.error_message) or not _same(calls, message.calls):
            message = replace(message, text=text, error_message=error, calls=calls)
        found.append(message)
    todos = tuple(replace(t, text=whole_lines(t.text, TEXT)) for t in transcript.todos)
    return replace(transcript, title=transcript.title[:TEXT], messages=tuple(reversed(found)), todos=todos)


def _same(calls: Sequence[ToolCall], others: Sequence[ToolCall]) -> bool:
    return len(calls) == len(others) and all(map(is_, calls, others))


def whole_lines(text: str, limit: int, end: str = "\n") -> str:
    """``text``, or the whole lines at its head and its tail that fit into ``limit`` characters, a third of
    them at the head, and a line between that counts what is missing. ``end``: what ends a line.
    """
    if len(text) <= limit + MARK:
        return text
    head = text.rfind(end, 0, limit // 3) + 1
    after = text.find(end, len(text) - (limit - limit // 3))
    tail = after + 1 if after >= 0 else len(text)
    return f"{text[:head]}[... {tail - head} characters cut ...]\n{text[tail:]}"


def _unread(count: int) -> ToolCall:
    """A call that stands for unread calls. No rule then claims that work was not done."""
    told: dict[str, object] = {"description": f"{count} calls that were not read"}
    return ToolCall("unread", "task", "completed", told, inner_cut=count)


def _call(call: ToolCall, given: int, printed: int) -> ToolCall:
    if not call.inner and _size(call) <= min(given, printed):
        return call
    output = whole_lines(call.output, printed)
    return replace(
        call,
        input=cast("dict[str, object]", cut_texts(call.input, lambda text: whole_lines(text, given))),
        output=output,
        error=whole_lines(call.error, printed),
        cut=call.cut + (len(call.output) - len(output) if output is not call.output else 0),
        inner=tuple(_call(c, given, printed) for c in call.inner),
    )


def _size(call: ToolCall) -> int:
    """About the characters of the call and of the calls inside it."""
    own = len(call.output) + len(call.error) + _length(call.input, 0)
    return own + sum(_size(c) for c in call.inner)


def _length(value: object, depth: int) -> int:
    if isinstance(value, str):
        return len(value)
    if depth > MAX_DEPTH:
        return TEXT  # nested more deeply than the kept levels
    if isinstance(value, dict):
        return sum(len(k) + _length(v, depth + 1) for k, v in value.items())
    return sum(_length(v, depth + 1) for v in value) if isinstance(value, list) else 8


MAX_DEPTH: Final = 6  # of nested JSON that is kept
MAX_ITEMS: Final = 200  # of one list or object
BYTES_PER_TOKEN: Final = 3.5  # of UTF-8; models differ, and code has shorter tokens than prose


def cut_texts(value: object, cut: Callable[[str], str], depth: int = 0) -> object:
    """The JSON value with every text cut, keys too, and None for values that are nested too deeply."""
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


def fit(items: Sequence[tuple[int, str]], room: int) -> set[int]:
    """Places of the items (rank, text) that fit into ``room`` tokens: low ranks first, then later ones."""
    chosen = set[int]()
    for i in sorted(range(len(items)), key=lambda i: (items[i][0], -i)):
        if (cost := tokens(f"{items[i][1]}\n")) <= room:
            chosen.add(i)
            room -= cost
    return chosen


def within(text: str, most: int) -> str:
    """``text``, or its head and tail, in at most ``most`` tokens."""
    chars = int(most * BYTES_PER_TOKEN)
    short = head_and_tail(text, chars)
    while chars > 0 and (size := tokens(short)) > most:
        chars = min(chars * most // size, chars - 1)
        short = head_and_tail(text, chars) if chars > 0 else ""
    return short


def argument_in_short(call: ToolCall, limit: int, names: Collection[str] = ()) -> str:
    """The call's first text argument of ``names`` (best first) or any, in one line without secrets."""
    for name in names or call.input:
        value = call.input.get(name)
        if isinstance(value, str) and value.strip():
            return redact_head(" ".join(redact_head(value, 4 * limit).split()), limit)
    return ""
