"""Reads one line of a Claude Code transcript as an ``Entry``.

Owns the format of the lines and the rules that tell a person's messages from all others; they are numbered as
in ``design/claude-transcripts.md``. Keeps no state and does no I/O. A line that can't be read gives None.
Unknown fields are skipped, and of lines of an unknown kind only their place is kept (I36).
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from ...core.errors import BadReply
from ...core.given import cited_ids
from ...core.transcript import Compaction
from ..cuts import OUTPUT, TEXT, cut, cut_deep, cut_output, size_of
from ..jsonl import HEAD
from ..wire import decode, text_or_empty

if TYPE_CHECKING:
    from ...core.transcript import ToolStatus

SHELL: Final = "Bash"
DENIED: Final = "The user rejected this tool call. "
Kind = Literal["human", "note", "answer", "result", "boundary", "summary", "interrupt", "expansion", "link"]


class Use(Struct, frozen=True):  # structs, because a file may have 100,000 lines
    """A tool call as the model wrote it."""

    id: str
    tool: str
    input: dict[str, object]


class Result(Struct, frozen=True):
    """One result. ``exit``: a shell command's exit code, None if unknown. ``task``: the id of a new todo
    entry. ``agent``: the id of the sub-agent that the call started. ``shell``: that of the shell that it
    left in the background.
    """

    id: str
    output: str = ""
    error: str = ""
    failed: bool = False
    exit: int | None = None
    cut: int = 0
    task: str = ""
    agent: str = ""
    shell: str = ""

    def status(self, tool: str) -> ToolStatus:
        """The call's status. As in other hosts, a command that ran and ended with an exit code is no failed
        call.
        """
        return "error" if self.failed and not (tool == SHELL and self.exit is not None) else "completed"


class Entry(Struct, frozen=True, kw_only=True):
    """What is kept of one line.

    Of a ``link`` only its place in the conversation is kept. An ``expansion`` is what a command stands for;
    it becomes part of the ``command`` before it. ``parent``: the ``uuid`` of the entry before it, None for
    the first of a conversation, empty where the line does not say. ``prompt``: the id of the prompt that it
    belongs to. ``mode``: Claude Code's permission mode. ``text`` of a ``result``: what the person said with
    it. ``size``: how many characters are kept. ``thin``: its long texts were cut.
    """

    kind: Kind
    uuid: str
    parent: str | None = ""
    at: int = 0
    text: str = ""
    session: str = ""
    cwd: str = ""
    prompt: str = ""
    mode: str = ""
    message: str = ""  # the id of an answer, which may have several lines
    model: str = ""
    stop: str = ""
    error: str = ""
    tokens: int = 0
    uses: tuple[Use, ...] = ()
    results: tuple[Result, ...] = ()
    order: str = ""
    cited: tuple[str, ...] = ()  # names of points in what the agent thought
    compaction: Compaction = ""
    command: bool = False
    size: int = 0
    thin: bool = False


TYPE_MARK: Final = b'"type":"'
BULKY: Final = (  # types of lines that are long or many and never part of the conversation
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
BARE: Final = "/reflect"
REFLECT: Final = (BARE, f"{OUR_COMMANDS}reflect")
"""The names of our command: that of `setup`, which somebody else's may have too, and the plugin's."""
ORDER: Final = re.compile(r"\brfl_[0-9a-f]{20}\b")
MAX_BLOCKS: Final = 2_000
MAX_CITED: Final = 100
_USAGE: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_INTERRUPT: Final = "[Request interrupted by user"
_ENDED: Final = "A Stop hook of the person's ended the turn (continue: false)"
_FEEDBACK: Final = "Stop hook feedback:"
_NOT_TYPED: Final = re.compile(
    r"<(task-notification|local-command-caveat|local-command-stdout|local-command-stderr|bash-stdout"
    r"|bash-stderr|bash-input|system-reminder|user-prompt-submit-hook|command-name|tick|channel"
    r"|teammate-message|cross-session-message)\b"
)
_LOCAL: Final = frozenset({  # what a person runs or is shown beside the conversation
    "local-command-caveat", "local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr",
    "bash-input", "command-name",
})  # fmt: skip
_TOLD: Final = ("<task-notification", "<bash-input")  # the agent reads it and may answer
_COMMAND: Final = re.compile(r"<command-name>\s{0,9}/?([^<]{1,200})</command-name>")
_ATTACHED: Final = ("image", "document")
_NO_GOAL: Final = frozenset({"", "clear", "status", "stop", "off", "cancel", "reset", "none"})
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
    """The fields of all kinds of lines. A field of type ``Any`` is checked before it is used."""

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
    prevented_continuation: Any = None
    error: Any = None


_LINES: Final = msgspec.json.Decoder(_Line)


def is_bulky(head: bytes | bytearray) -> bool:
    """Whether a line is of a type in ``BULKY``, by its first bytes."""
    at = head.find(TYPE_MARK, 0, HEAD)
    return at >= 0 and head.startswith(BULKY, at + len(TYPE_MARK))


def entry_of(line: bytes, *, agent: bool = False) -> Entry | None:
    """The line as an entry; None if it is no JSON or has no place in the conversation (rule 1).

    ``agent``: the file is a sub-agent's own, whose lines stand beside every conversation.
    """
    try:
        try:
            wire = _LINES.decode(line)
        except ValueError:
            wire = decode(line, _Line)  # mends half characters
        if (wire.is_sidechain is True and not agent) or not isinstance(wire.uuid, str) or not wire.uuid:
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
        case "system" if wire.subtype == "stop_hook_summary" and wire.prevented_continuation is True:
            return _made(wire, "interrupt", _ENDED)
        case _:
            return _made(wire, "link")


def _made(wire: _Line, kind: Kind, text: str = "", **more: Any) -> Entry:  # noqa: ANN401 - fields of Entry
    parent = wire.parent
    if kind == "link":
        return Entry(
            kind=kind, uuid=wire.uuid, parent=_parent(parent), session=text_or_empty(wire.session_id)[:200]
        )
    kept = cut(text, TEXT)[0]
    return Entry(
        kind=kind,
        uuid=wire.uuid,
        parent=_parent(parent),
        at=_epoch_ms(wire.timestamp),
        text=kept,
        session=text_or_empty(wire.session_id)[:200],
        cwd=text_or_empty(wire.cwd)[:4096],
        prompt=text_or_empty(wire.prompt_id)[:200],
        mode=text_or_empty(wire.permission_mode)[:40],
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
    model = text_or_empty(message.model)
    return _made(
        wire,
        "answer",
        said,
        message=text_or_empty(message.id)[:200] or wire.uuid,
        model="" if model.startswith("<") else model[:200],
        stop=text_or_empty(message.stop_reason)[:40],
        error=(text_or_empty(wire.error)[:100] or "APIError") if failed else "",
        tokens=_tokens(message.usage),
        uses=uses,
        cited=_cited(content),
        size=sum([size_of(u.input) for u in uses]) if uses else 0,
    )


def _cited(content: list[Any]) -> tuple[str, ...]:
    """The names of the points that the agent cited while it thought. Nothing else is kept of that."""
    thoughts = [b.get("thinking") for b in content[:MAX_BLOCKS] if _is(b, "thinking")]
    return cited_ids(t for t in thoughts if isinstance(t, str))[:MAX_CITED] if thoughts else ()


def _use(block: dict[str, Any]) -> Use:
    given = block.get("input")
    arguments = cut_deep(given) if isinstance(given, dict) else {}
    assert isinstance(arguments, dict)  # noqa: S101 - cut_deep keeps the kind
    path = arguments.get("notebook_path")
    if isinstance(path, str) and "file_path" not in arguments:
        arguments["file_path"] = path
    return Use(
        text_or_empty(block.get("id"))[:200], text_or_empty(block.get("name"))[:200] or "unknown", arguments
    )


def _user(wire: _Line) -> Entry:
    message = wire.message or _Message()
    blocks = message.content if isinstance(message.content, list) else []
    said = text_of(message.content)
    if any(_is(b, "tool_result") for b in blocks):  # rule 3
        own = own_of(wire.tool_use_result)
        results = results_of(blocks[:MAX_BLOCKS], own, text_or_empty(wire.tool_denial_kind))
        person = said_by_person(wire.user_feedback, own)
        size = sum(len(r.output) + len(r.error) for r in results)
        return _made(wire, "result", person, results=results, size=size)
    if own_of(wire.tool_use_result) is not None or wire.source_tool:
        return _made(wire, "link")
    if wire.is_compact_summary is True or wire.is_visible_in_transcript_only is True:  # rule 4
        return _made(wire, "summary", said)
    if wire.is_meta is True:  # rule 5
        return _note(wire, said) if said.startswith(_FEEDBACK) else _made(wire, "expansion", said)
    origin = _kind(wire.origin)
    if origin and origin != "human":  # rule 6
        return _note(wire, said)
    by_person = origin == "human" and wire.prompt_source == "typed"
    if said.startswith(_INTERRUPT) and not by_person:  # rule 7
        return _made(wire, "interrupt", said)
    start = said[:200].lstrip()
    if start.startswith("<command-message>") and (command := _command(said)):  # rule 9
        ours = command.startswith(OUR_COMMANDS)
        return _made(wire, "link") if ours else _made(wire, "human", command, command=True)
    if start.startswith("<command-name>") and (goal := _goal(said)):
        return _made(wire, "human", goal)
    if not is_typed(said, by_person=by_person):  # rules 8 and 9
        return _note(wire, said) if start.startswith(_TOLD) else _made(wire, "link")
    if not origin and wire.prompt_source not in (None, "typed", "sdk"):  # not a set: it may be a list
        return _made(wire, "link")
    # rule 10: typed, or given to ``claude -p``, or written by a version that does not say
    said = said if said.strip() else _attachments(blocks)
    return _made(wire, "human", said) if said else _made(wire, "link")


def _attached(wire: _Line) -> Entry:
    """Rule 2: what a person types while the agent works comes as an attachment, not as a user line."""
    found = wire.attachment
    if found is None or found.type != "queued_command":
        return _made(wire, "link")
    said = found.prompt if isinstance(found.prompt, str) else text_of(found.prompt)
    by_person = _kind(found.origin) in {"", "human"} and found.command_mode in (None, "prompt")
    known = _kind(found.origin) == "human"
    if by_person and found.is_meta is not True and is_typed(said, by_person=known):
        return _made(wire, "human", said)
    return _note(wire, said) if ORDER.search(said) else _made(wire, "link")


def _note(wire: _Line, said: str) -> Entry:
    """A text that the agent was told and nobody typed, perhaps our feedback."""
    found = ORDER.findall(said)
    return _made(wire, "note", said, order=found[-1] if found else "")


def is_typed(said: str, *, by_person: bool = False) -> bool:
    """Whether a person may have typed this text: it is neither the host's own nor a command of ours (I9).

    The host's own are whole elements (all but a notification's), so "`<channel>` in feed.xml lacks a title"
    is a person's. ``by_person``: the host says that a person submitted it; then only what belongs to a local
    command is not theirs.
    """
    start = said[:200].lstrip()
    if start.startswith(OUR_COMMANDS):
        return False
    found = _NOT_TYPED.match(start)
    if found is None:
        return by_person or not start.startswith(_FEEDBACK)
    if by_person and found[1] not in _LOCAL:
        return True
    return found[1] != "task-notification" and f"</{found[1]}>" not in said


def _attachments(blocks: list[Any]) -> str:
    """In words what a person sent without a word; empty when there is nothing."""
    kinds = Counter(kind for kind in _ATTACHED for b in blocks[:MAX_BLOCKS] if _is(b, kind))
    found = ", ".join(f"{n} {kind}" + ("s" if n > 1 else "") for kind, n in kinds.items())
    return f"(attached without a word: {found}, which are not shown here)" if found else ""


def _goal(said: str) -> str:
    """The built-in `/goal CONDITION`, which sends the agent to work; empty for any other local command."""
    command = _command(said)
    name, _, condition = command.partition(" ")
    return command if name == "/goal" and condition.casefold() not in _NO_GOAL else ""


def _command(said: str) -> str:
    name = _COMMAND.search(said[:2_000])
    if name is None:
        return ""
    arguments = _ARGUMENTS.search(said[:30_000])
    return f"/{name[1].strip()} {arguments[1].strip() if arguments else ''}".strip()


def text_of(content: object, between: str = "\n\n") -> str:
    """The text of a message's content, without thinking and pictures."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    said = [b.get("text") for b in content[:MAX_BLOCKS] if _is(b, "text")]
    return between.join([s for s in said if isinstance(s, str) and s]) if said else ""


def _is(block: object, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _kind(origin: object) -> str:
    return text_or_empty(origin.get("kind")) if isinstance(origin, dict) else ""


def _tokens(usage: object) -> int:
    """All tokens of an answer, with those read from and written to a cache."""
    if not isinstance(usage, dict):
        return 0
    total = 0
    for name in _USAGE:
        used = usage.get(name)
        if type(used) is int and 0 < used < 1 << 40:
            total += used
    return total


def _epoch_ms(value: object) -> int:
    if not isinstance(value, str) or len(value) > 40:
        return 0
    try:
        return max(0, int(datetime.fromisoformat(value).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0


# The result of a tool call. It comes twice: as the model saw it (``tool_result``), and in the tool's own form
# (``toolUseResult``). Both may be of any type.

_EXIT: Final = re.compile(r"(?:Error: )?Exit code (\d{1,3})(?:\n|$)")
_SAID: Final = "the user said:\n"
_RULED: Final = "There is a rule which prevents you from this call. "
_BY_PERSON: Final = frozenset({"user-rejected", "interrupted", "cancelled"})
# versions that say only in words why a call was not made
_REFUSED: Final = re.compile(
    r"The user doesn't want to |Claude requested permissions? to .{1,300} but you haven't granted it yet"
    r"|The agent proposed a plan that was rejected by the user|\[Request interrupted by user"
)
_FORBIDDEN: Final = re.compile(r"Permission to use .{1,300} has been denied")
_TASK_ID: Final = re.compile(r"Task #(\d{1,9})\b")


class Own(Struct, rename="camel"):
    """Those fields of the tools' own results that are read here."""

    stdout: Any = None
    stderr: Any = None
    interrupted: Any = None
    background_task_id: Any = None
    return_code_interpretation: Any = None
    answers: Any = None
    questions: Any = None
    task: Any = None
    agent_id: Any = None


def own_of(raw: Raw | UnsetType) -> Own | str | None:
    """The tool's own result; None where there is none, or one of a type that is not read here."""
    start = b"" if isinstance(raw, UnsetType) else bytes(memoryview(raw)[:1])
    if start == b"{":
        return decode(cast("Raw", raw), Own)
    return decode(cast("Raw", raw), str) if start == b'"' else None


def results_of(blocks: list[Any], own: Own | str | None, denial: str) -> tuple[Result, ...]:
    """The results in a user line. ``own`` is used only when the line has one result."""
    found = [b for b in blocks if _is(b, "tool_result")]
    value = own if isinstance(own, Own) and len(found) == 1 else Own()
    return tuple([_result(b, value, denial) for b in found])


def said_by_person(feedback: object, own: Own | str | None) -> str:
    """The person's words when a tool asked: why they refused, or their answer to a question. Else empty."""
    if isinstance(feedback, str) and feedback.strip():
        return feedback.strip()
    if isinstance(own, str):
        return own.split(_SAID, 1)[1].strip() if _SAID in own else ""
    if own is not None and own.questions and isinstance(own.answers, dict):
        return "\n".join([a for a in own.answers.values() if isinstance(a, str)][:20])
    return ""


def _result(block: dict[str, Any], own: Own, denial: str) -> Result:
    call = text_or_empty(block.get("tool_use_id"))[:200]
    shown = text_of(block.get("content"), "\n")
    task = own.task.get("id") if isinstance(own.task, dict) else None
    if block.get("is_error") is True:
        code = _EXIT.match(shown[:40])
        if code is not None and not denial:
            output, missing = cut_output(shown[code.end() :])
            return Result(call, output, failed=True, exit=int(code[1]), cut=missing)
        error, missing = cut(shown.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>"), OUTPUT)
        return Result(call, error=_refusal(error, denial) + error, failed=True, cut=missing)
    if isinstance(own.stdout, str):
        streams = [s for s in (own.stdout, own.stderr) if isinstance(s, str) and s]
        shown = "\n".join(streams) or shown
    output, missing = cut_output(shown)
    return Result(
        call,
        output,
        exit=_exit(own),
        cut=missing,
        task=_task(task, shown),
        agent=text_or_empty(own.agent_id)[:200],
        shell=text_or_empty(own.background_task_id)[:200],
    )


def _refusal(error: str, denial: str) -> str:
    """The words that stand before the error of a call that was not made: who did not allow it. Else empty."""
    if denial in _BY_PERSON or (not denial and _REFUSED.match(error[:2_000])):
        return DENIED
    return _RULED if denial or _FORBIDDEN.match(error[:2_000]) else ""


def _exit(own: Own) -> int | None:
    """The exit code of a shell call that did not fail: 1 for "nothing found" and the like, else 0. None while
    it runs in the background, or when it was stopped.
    """
    if not isinstance(own.stdout, str) or own.interrupted is True or own.background_task_id:
        return None
    return 1 if own.return_code_interpretation else 0


def _task(value: object, shown: str) -> str:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)[:40]
    found = _TASK_ID.match(shown[:200])
    return found[1] if found else ""
