"""What a Claude Code transcript says of a person's answer or typed command, beside what the hook told.

Of a dialog the file has two lines: the agent's call, and its result with the answers. Newer versions also
write who allowed the call: a person, or a hook that answered in their place. Pure. A line that can't be read
says nothing; lines that contradict each other make no record.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct, UnsetType, field

from ...core.consent import TYPED, Chosen, Shown, chosen_by_text, shown, typed
from ...core.errors import BadReply
from ..wire import decode, text_or_empty
from .hooks import QUESTION
from .lines import REFLECT, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMMAND: Final = re.compile(
    r"\s*<command-message>[^<]*</command-message>\s*<command-name>([^<]{1,200})</command-name>\s*"
    r"(?:<command-args>(.{0,20000}?)</command-args>)?\s*\Z",
    re.DOTALL,
)


class _Message(Struct):
    content: Any = None


class _Line(Struct, rename="camel"):
    type: Any = None
    message: _Message | None = None
    session_id: Any = None
    is_sidechain: Any = None
    is_meta: Any = None
    entrypoint: Any = None
    origin: Any = None
    prompt_id: Any = None
    tool_use_result: Any = field(default=None)
    permission_decision: Any | UnsetType = UNSET


def recorded(lines: Iterable[bytes], session: str, source: str) -> tuple[Chosen, ...]:
    """What the file says: of the answers to the call ``source``, or of the command that is the prompt
    ``source``. () when it says nothing, or not that a person did it.
    """
    asked: list[tuple[Shown, ...]] = []
    found: list[tuple[Chosen, ...]] = []
    mark = source.encode()
    for raw in lines:
        if mark not in raw:
            continue
        try:
            line = decode(raw, _Line)
        except (BadReply, RecursionError):
            continue
        if line.session_id != session or line.is_sidechain is True or _is_program(line):
            continue
        if line.type == "assistant":
            asked += _calls(line, source)
        elif line.type == "user":
            found += _answers(line, source, asked) or _typed(line, source)
    return found[0] if found and all(each == found[0] for each in found) else ()


def _is_program(line: _Line) -> bool:
    return text_or_empty(line.entrypoint).startswith("sdk")


def _blocks(line: _Line, kind: str) -> list[dict[str, Any]]:
    content = line.message.content if line.message is not None else None
    blocks = content if isinstance(content, list) else []
    return [b for b in blocks if isinstance(b, dict) and b.get("type") == kind]


def _calls(line: _Line, source: str) -> list[tuple[Shown, ...]]:
    uses = (b for b in _blocks(line, "tool_use") if b.get("id") == source and b.get("name") == QUESTION)
    inputs = (b["input"] for b in uses if isinstance(b.get("input"), dict))
    return [shown(given.get("questions")) for given in inputs]


def _answers(line: _Line, source: str, asked: list[tuple[Shown, ...]]) -> list[tuple[Chosen, ...]]:
    """The result of the call. One that nobody asked for, or that a person did not give, is an empty one."""
    results = [b for b in _blocks(line, "tool_result") if b.get("tool_use_id") == source]
    if not results:
        return []
    own = line.tool_use_result
    if not isinstance(own, dict) or results[0].get("is_error") is True or not _is_allowed(line):
        return [()]
    answers = chosen_by_text(own.get("questions"), own.get("answers"))
    as_asked = len(asked) == 1 and [q.digest for q in asked[0]] == [a.digest for a in answers]
    return [answers if as_asked else ()]


def _is_allowed(line: _Line) -> bool:
    """Whether a person allowed the call, where the version says who did."""
    decision = line.permission_decision
    if decision is UNSET or decision is None:
        return True
    if not isinstance(decision, dict):
        return False
    return decision.get("decision") == "accept" and text_or_empty(decision.get("source")).startswith("user")


def _typed(line: _Line, source: str) -> list[tuple[Chosen, ...]]:
    if line.prompt_id != source or line.is_meta is True or line.message is None:
        return []
    command = _COMMAND.match(text_of(line.message.content))
    if command is None or command[1].strip() not in REFLECT:
        return []
    kind = line.origin.get("kind") if isinstance(line.origin, dict) else None
    wanted = typed(command[2] or "")
    if kind not in {None, "human"} or wanted is None:
        return [()]
    return [(Chosen(wanted.digest, TYPED),)]
