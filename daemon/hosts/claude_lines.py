"""One line of a Claude Code transcript as an ``Entry``: which rule it falls under, and what of it is kept.

Owns the format of the lines and the eleven rules that tell a person's messages from all others
(``design/claude-transcripts.md``). Keeps no state and does no I/O. A line that can't be read gives None;
unknown fields and kinds are skipped (I36).
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from daemon.core.errors import BadReply
from daemon.hosts.claude_entries import Entry, Kind, Use
from daemon.hosts.claude_results import own_of, results_of, said_by_person
from daemon.hosts.cuts import TEXT, cut, cut_deep, size_of
from daemon.hosts.wire import decode

TYPE_MARK: Final = b'"type":"'
HEAD: Final = 256  # bytes of a line in which its type is looked for
BULKY: Final = (  # large or many, and never part of the conversation
    b"api-request",
    b"file-history-snapshot",
    b"queue-operation",
    b"last-prompt",
    b'mode"',
    b"permission-mode",
    b"tools-used",
    b"cost-state",
    b"custom-title",
    b"agent-name",
    b"atis-latch",
)
OUR_COMMANDS: Final = "/reflectd:"
ORDER: Final = re.compile(r"\brfl_[0-9a-f]{20}\b")
MAX_BLOCKS: Final = 2_000
_USAGE: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_INTERRUPT: Final = "[Request interrupted by user"
_FEEDBACK: Final = "Stop hook feedback:"
_NOT_TYPED: Final = re.compile(
    r"<(?:task-notification|local-command-caveat|local-command-stdout|local-command-stderr|bash-stdout"
    r"|bash-stderr|bash-input|system-reminder|user-prompt-submit-hook|command-name|tick|channel"
    r"|teammate-message|cross-session-message)\b"
)
_COMMAND: Final = re.compile(r"<command-name>\s{0,9}/?([^<]{1,200})</command-name>")
_ARGUMENTS: Final = re.compile(r"<command-args>([^<]{0,20000})")


class _Message(Struct):
    id: Any = None
    model: Any = None
    content: Any = None
    stop_reason: Any = None
    usage: Any = None


class _Attachment(Struct, rename="camel"):
    type: Any = None
    command_mode: Any = None
    prompt: Any = None
    origin: Any = None
    is_meta: Any = None


class _Line(Struct, rename="camel"):
    """All that any kind of line has; what may be of a wrong type is looked at before it is used."""

    type: Any = None
    uuid: Any = None
    parent: Any = field(name="parentUuid", default=UNSET)
    is_sidechain: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_visible_in_transcript_only: Any = None
    is_api_error_message: Any = None
    message: _Message | None = None
    attachment: _Attachment | None = None
    tool_use_result: Raw | UnsetType = UNSET
    source_tool: Any = field(name="sourceToolAssistantUUID", default=None)
    timestamp: Any = None
    cwd: Any = None
    session_id: Any = None
    prompt_id: Any = None
    permission_mode: Any = None
    prompt_source: Any = None
    origin: Any = None
    user_feedback: Any = None
    tool_denial_kind: Any = None
    subtype: Any = None
    compact_metadata: Any = None
    error: Any = None


_LINES: Final = msgspec.json.Decoder(_Line)


def is_bulky(head: bytes | bytearray) -> bool:
    """Whether the first bytes of a line say that it is one of those nobody needs."""
    at = head.find(TYPE_MARK, 0, HEAD)
    return at >= 0 and head.startswith(BULKY, at + len(TYPE_MARK))


def entry_of(line: bytes) -> Entry | None:
    """The line as an entry, None for what has no place in the conversation (rule 1) or is no JSON."""
    try:
        try:
            wire = _LINES.decode(line)
        except ValueError:
            wire = decode(line, _Line)  # knows what is wrong with JSON in practice
        if wire.is_sidechain is True or not isinstance(wire.uuid, str) or not wire.uuid:
            return None
        return _entry(wire)
    except (BadReply, RecursionError):
        return None


def _entry(wire: _Line) -> Entry:
    match wire.type:
        case "assistant":
            return _answer(wire)
        case "user":
            return _user(wire)
        case "attachment":
            return _attached(wire)
        case "system" if wire.subtype == "compact_boundary":
            trigger = wire.compact_metadata.get("trigger") if isinstance(wire.compact_metadata, dict) else ""
            return _made(wire, "boundary", compaction="auto" if trigger == "auto" else "manual")
        case _:
            return _made(wire, "link")


def _made(wire: _Line, kind: Kind, text: str = "", **more: Any) -> Entry:  # noqa: ANN401 - fields of Entry
    parent = wire.parent
    if kind == "link":
        return Entry(kind=kind, uuid=wire.uuid, parent=_parent(parent), session=_text(wire.session_id)[:200])
    kept = cut(text, TEXT)[0]
    return Entry(
        kind=kind,
        uuid=wire.uuid,
        parent=_parent(parent),
        at=_epoch_ms(wire.timestamp),
        text=kept,
        session=_text(wire.session_id)[:200],
        cwd=_text(wire.cwd)[:4096],
        prompt=_text(wire.prompt_id)[:200],
        mode=_text(wire.permission_mode)[:40],
        size=len(kept) + more.pop("size", 0) + 200,
        **more,
    )


def _parent(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else ""


def _answer(wire: _Line) -> Entry:
    message = wire.message or _Message()
    content = message.content if isinstance(message.content, list) else []
    uses = tuple([_use(b) for b in content[:MAX_BLOCKS] if _is(b, "tool_use")])
    said = text_of(message.content)
    failed = wire.is_api_error_message is True
    model = _text(message.model)
    return _made(
        wire,
        "answer",
        said,
        message=_text(message.id)[:200] or wire.uuid,
        model="" if model.startswith("<") else model[:200],
        stop=_text(message.stop_reason)[:40],
        error=(_text(wire.error)[:100] or "APIError") if failed else "",
        tokens=_tokens(message.usage),
        uses=uses,
        size=sum([size_of(u.input) for u in uses]) if uses else 0,
    )


def _use(block: dict[str, Any]) -> Use:
    given = block.get("input")
    arguments = cut_deep(given) if isinstance(given, dict) else {}
    assert isinstance(arguments, dict)  # noqa: S101 - cut_deep keeps the kind
    path = arguments.get("notebook_path")
    if isinstance(path, str) and "file_path" not in arguments:
        arguments["file_path"] = path
    return Use(_text(block.get("id"))[:200], _text(block.get("name"))[:200] or "unknown", arguments)


def _user(wire: _Line) -> Entry:
    message = wire.message or _Message()
    blocks = message.content if isinstance(message.content, list) else []
    said = text_of(message.content)
    if any(_is(b, "tool_result") for b in blocks):  # rule 3
        own = own_of(wire.tool_use_result)
        results = results_of(blocks[:MAX_BLOCKS], own, _text(wire.tool_denial_kind))
        person = said_by_person(wire.user_feedback, own)
        size = sum(len(r.output) + len(r.error) for r in results)
        return _made(wire, "result", person, results=results, size=size)
    if own_of(wire.tool_use_result) is not None or wire.source_tool:
        return _made(wire, "link")
    if wire.is_compact_summary is True or wire.is_visible_in_transcript_only is True:  # rule 4
        return _made(wire, "summary", said)
    if wire.is_meta is True:  # rule 5
        return _note(wire, said) if said.startswith(_FEEDBACK) else _made(wire, "link")
    origin = _kind(wire.origin)
    if origin and origin != "human":  # rule 6
        return _note(wire, said)
    if said.startswith(_INTERRUPT):  # rule 7
        return _made(wire, "interrupt", said)
    start = said[:200].lstrip()
    if start.startswith("<command-message>"):  # rule 9
        command = _command(said)
        ours = command.startswith(OUR_COMMANDS)
        return _made(wire, "link") if ours or not command else _made(wire, "human", command)
    if not is_typed(said):  # rules 8 and 9
        return _note(wire, said) if start.startswith("<task-notification") else _made(wire, "link")
    if not origin and wire.prompt_source not in {None, "typed", "sdk"}:
        return _made(wire, "link")
    # rule 10: typed, or given to ``-p``, or from a version that does not say
    return _made(wire, "human", said) if said.strip() or blocks else _made(wire, "link")


def _attached(wire: _Line) -> Entry:
    """Rule 2: what a person types while the agent works is no user line."""
    found = wire.attachment
    if found is None or found.type != "queued_command":
        return _made(wire, "link")
    said = found.prompt if isinstance(found.prompt, str) else text_of(found.prompt)
    by_person = _kind(found.origin) in {"", "human"} and found.command_mode in {None, "prompt"}
    if by_person and found.is_meta is not True and is_typed(said):
        return _made(wire, "human", said)
    return _note(wire, said) if ORDER.search(said) else _made(wire, "link")


def _note(wire: _Line, said: str) -> Entry:
    """What nobody typed and the agent was told: perhaps feedback of ours."""
    found = ORDER.findall(said)
    return _made(wire, "note", said, order=found[-1] if found else "")


def is_typed(said: str) -> bool:
    """Whether a prompt's text may be a person's: not the host's own, and no command of ours (I9)."""
    start = said[:200].lstrip()
    return not (_NOT_TYPED.match(start) or start.startswith((OUR_COMMANDS, _FEEDBACK)))


def _command(said: str) -> str:
    name = _COMMAND.search(said[:2_000])
    if name is None:
        return ""
    arguments = _ARGUMENTS.search(said[:30_000])
    return f"/{name[1].strip()} {arguments[1].strip() if arguments else ''}".strip()


def text_of(content: object) -> str:
    """The text blocks of a message's content; thinking and pictures are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    said = [b.get("text") for b in content[:MAX_BLOCKS] if _is(b, "text")]
    return "\n\n".join([s for s in said if isinstance(s, str) and s]) if said else ""


def _is(block: object, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _kind(origin: object) -> str:
    return _text(origin.get("kind")) if isinstance(origin, dict) else ""


def _tokens(usage: object) -> int:
    """All tokens of an answer, read from and written to a cache too."""
    if not isinstance(usage, dict):
        return 0
    total = 0
    for name in _USAGE:
        used = usage.get(name)
        if type(used) is int and 0 < used < 1 << 40:
            total += used
    return total


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _epoch_ms(value: object) -> int:
    if not isinstance(value, str) or len(value) > 40:
        return 0
    try:
        return max(0, int(datetime.fromisoformat(value).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0
