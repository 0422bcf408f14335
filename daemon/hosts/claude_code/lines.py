"""Reads one line of a Claude Code transcript as an ``Entry``.

Owns the format of the lines and the rules that tell a person's messages from all others; they are numbered as
in ``design/claude-transcripts.md``. Keeps no state and does no I/O. A line that can't be read gives None.
Unknown fields are skipped, and of lines of an unknown kind only their place is kept (I36).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from ...core.errors import BadReply
from ...core.given import cited_ids
from ...core.transcript import Compaction
from ..cuts import OUTPUT, TEXT, cut, cut_deep, cut_output, size_of
from ..hook import order_in
from ..jsonl import HEAD
from ..wire import decode_most, epoch_ms

if TYPE_CHECKING:
    from ...core.transcript import ToolStatus

SHELL: Final = "Bash"
DENIED: Final = "The user rejected this tool call. "
Kind = Literal[
    "human", "note", "answer", "result", "boundary", "summary", "interrupt", "expansion", "link", "rest"
]


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
    """The kept part of one line.

    Of a ``link`` only its place in the conversation is kept. A ``rest`` is one that the host writes when
    every Stop hook that it waits for is over. An ``expansion`` is the content of a command; it becomes part
    of the ``command`` before it. ``parent``: the ``uuid`` of the entry before it, None for the first of a
    conversation, empty where the line does not say. ``prompt``: the id of the prompt that it belongs to.
    ``mode``: Claude Code's permission mode. ``text`` of a ``result``: the person's words with it.
    ``size``: the number of kept characters. ``thin``: its long texts were cut.
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
MAX_BLOCKS: Final = 2_000
MAX_CITED: Final = 100
_USAGE: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_INTERRUPT: Final = "[Request interrupted by user"
_AT_REST: Final = frozenset({"stop_hook_summary", "turn_duration"})
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


class Block(Struct):
    """One block of a message: text, thinking, a call (``tool_use``), or a result (``tool_result``)."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] = field(default_factory=dict)
    call: str = field(name="tool_use_id", default="")
    content: str | list[Block] | None = None
    is_error: bool | None = None


Content = str | list[Block] | None


class _Message(Struct):
    id: str = ""
    model: str | None = None
    content: Content = None
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None


class _Origin(Struct):
    kind: str = ""


class _Attachment(Struct, rename="camel"):
    type: str = ""
    command_mode: str | None = None
    prompt: Content = None
    origin: _Origin | None = None
    is_meta: bool | None = None


class _Compact(Struct):
    trigger: str = ""


class Own(Struct, rename="camel"):
    """The fields of the tools' own results that are read here."""

    stdout: str | None = None
    stderr: str | None = None
    interrupted: bool | None = None
    background_task_id: str | None = None
    return_code_interpretation: Any = None
    answers: dict[str, Any] | None = None
    questions: Any = None
    task: Any = None
    agent_id: str | None = None


class _Line(Struct, rename="camel"):
    """The fields of all kinds of lines."""

    uuid: str = ""
    type: str = ""
    parent: str | UnsetType | None = field(name="parentUuid", default=UNSET)
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    is_api_error_message: bool | None = None
    message: _Message | None = None
    attachment: _Attachment | None = None
    own: Own | str | list[Any] | None = field(name="toolUseResult", default=None)
    source_tool: Any = field(name="sourceToolAssistantUUID", default=None)
    timestamp: str | None = None
    cwd: str | None = None
    session_id: str | None = None
    prompt_id: str | None = None
    permission_mode: str | None = None
    prompt_source: str | None = None
    origin: _Origin | None = None
    user_feedback: str | None = None
    tool_denial_kind: str | None = None
    subtype: str | None = None
    compact_metadata: _Compact | None = None
    prevented_continuation: bool | None = None
    error: str | None = None


_LINES: Final = msgspec.json.Decoder(_Line)


def is_bulky(head: bytes | bytearray) -> bool:
    """Says whether a line is of a type in ``BULKY``, by its first bytes."""
    at = head.find(TYPE_MARK, 0, HEAD)
    return at >= 0 and head.startswith(BULKY, at + len(TYPE_MARK))


def entry_of(line: bytes, *, agent: bool = False) -> Entry | None:
    """The line as an entry; None if it is no JSON or has no place in the conversation (rule 1). A value of
    another type is left out.

    ``agent``: the file is a sub-agent's own, whose lines stand beside every conversation.
    """
    try:
        wire = _LINES.decode(line)
    except (ValueError, RecursionError):
        try:
            wire = decode_most(line, _Line, lambda _why: None)
        except (BadReply, RecursionError):
            return None
    return None if not wire.uuid or (wire.is_sidechain and not agent) else _entry(wire)


def _entry(wire: _Line) -> Entry:
    match wire.type:
        case "assistant":
            return _answer(wire, wire.message or _Message())
        case "user":
            return _user(wire, wire.message or _Message())
        case "attachment":
            return _attached(wire, wire.attachment or _Attachment())
        case "system" if wire.subtype == "compact_boundary":
            auto = wire.compact_metadata is not None and wire.compact_metadata.trigger == "auto"
            return _made(wire, "boundary", compaction="auto" if auto else "manual")
        case "system" if wire.subtype == "stop_hook_summary" and wire.prevented_continuation:
            return _made(wire, "interrupt", _ENDED)
        case "system" if wire.subtype in _AT_REST:
            return _made(wire, "rest")
        case _:
            return _made(wire, "link")


def _made(wire: _Line, kind: Kind, text: str = "", **more: Any) -> Entry:  # noqa: ANN401 - fields of Entry
    parent = "" if isinstance(wire.parent, UnsetType) else wire.parent
    session = (wire.session_id or "")[:200]
    if kind in {"link", "rest"}:
        return Entry(kind=kind, uuid=wire.uuid, parent=parent, session=session)
    kept = cut(text, TEXT)[0]
    return Entry(
        kind=kind,
        uuid=wire.uuid,
        parent=parent,
        at=epoch_ms(wire.timestamp),
        text=kept,
        session=session,
        cwd=(wire.cwd or "")[:4096],
        prompt=(wire.prompt_id or "")[:200],
        mode=(wire.permission_mode or "")[:40],
        size=len(kept) + more.pop("size", 0) + 200,
        **more,
    )


def _answer(wire: _Line, message: _Message) -> Entry:
    blocks = blocks_of(message.content)
    uses = tuple([_use(b) for b in blocks if b.type == "tool_use"])
    thoughts = [b.thinking for b in blocks if b.type == "thinking"]
    model = message.model or ""
    return _made(
        wire,
        "answer",
        text_of(message.content),
        message=message.id[:200] or wire.uuid,
        model="" if model.startswith("<") else model[:200],
        stop=(message.stop_reason or "")[:40],
        error=((wire.error or "")[:100] or "APIError") if wire.is_api_error_message else "",
        tokens=_tokens(message.usage or {}),
        uses=uses,
        cited=cited_ids(thoughts)[:MAX_CITED] if thoughts else (),
        size=sum([size_of(u.input) for u in uses]) if uses else 0,
    )


def _use(block: Block) -> Use:
    arguments = cut_deep(block.input)
    path = arguments.get("notebook_path")
    if isinstance(path, str) and "file_path" not in arguments:
        arguments["file_path"] = path
    return Use(block.id[:200], block.name[:200] or "unknown", arguments)


def _user(wire: _Line, message: _Message) -> Entry:
    blocks, said = blocks_of(message.content), text_of(message.content)
    own = None if isinstance(wire.own, list) else wire.own
    if found := [b for b in blocks if b.type == "tool_result"]:  # rule 3
        alone = own if isinstance(own, Own) and len(found) == 1 else Own()
        results = tuple([_result(b, alone, wire.tool_denial_kind or "") for b in found])
        size = sum(len(r.output) + len(r.error) for r in results)
        return _made(wire, "result", said_by_person(wire.user_feedback, own), results=results, size=size)
    if own is not None or wire.source_tool:
        return _made(wire, "link")
    if wire.is_compact_summary or wire.is_visible_in_transcript_only:  # rule 4
        return _made(wire, "summary", said)
    if wire.is_meta:  # rule 5
        return _note(wire, said) if said.startswith(_FEEDBACK) else _made(wire, "expansion", said)
    origin = wire.origin.kind if wire.origin else ""
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
    if not origin and wire.prompt_source not in {None, "typed", "sdk"}:
        return _made(wire, "link")
    # rule 10: typed, or given to ``claude -p``, or written by a version that does not say
    said = said if said.strip() else _attachments(blocks)
    return _made(wire, "human", said) if said else _made(wire, "link")


def _attached(wire: _Line, found: _Attachment) -> Entry:
    """Rule 2: a message typed while the agent works comes as an attachment, not as a user line."""
    if found.type != "queued_command":
        return _made(wire, "link")
    said, origin = text_of(found.prompt), found.origin.kind if found.origin else ""
    by_person = origin in {"", "human"} and found.command_mode in {None, "prompt"}
    if by_person and not found.is_meta and is_typed(said, by_person=origin == "human"):
        return _made(wire, "human", said)
    return _note(wire, said) if order_in(said) else _made(wire, "link")


def _note(wire: _Line, said: str) -> Entry:
    """A text for the agent that nobody typed, perhaps our feedback."""
    return _made(wire, "note", said, order=order_in(said))


def is_typed(said: str, *, by_person: bool = False) -> bool:
    """Says whether a person may have typed this text: it is neither the host's own nor a command of ours
    (I9).

    The host's own are whole elements (all but a notification's), so "`<channel>` in feed.xml lacks a title"
    is a person's. ``by_person``: the host says that a person submitted it; then only texts of a local command
    are not theirs.
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


def _attachments(blocks: list[Block]) -> str:
    """Names the attachments of a message without words; empty when there are none."""
    kinds = Counter(b.type for b in blocks if b.type in _ATTACHED)
    found = ", ".join(
        f"{n} {kind}" + ("s" if n > 1 else "") for kind, n in sorted(kinds.items(), reverse=True)
    )
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


def blocks_of(content: Content) -> list[Block]:
    """The blocks of a message's content."""
    return content[:MAX_BLOCKS] if isinstance(content, list) else []


def text_of(content: Content, between: str = "\n\n") -> str:
    """The text of a message's content, without thinking and pictures."""
    if isinstance(content, str):
        return content
    return between.join([b.text for b in blocks_of(content) if b.type == "text" and b.text])


def _tokens(usage: dict[str, Any]) -> int:
    """All tokens of an answer, with those read from and written to a cache."""
    used = [usage.get(name) for name in _USAGE]
    return sum([n for n in used if type(n) is int and 0 < n < 1 << 40])


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


def said_by_person(feedback: str | None, own: Own | str | None) -> str:
    """The person's words when a tool asked: why they refused, or their answer to a question. Else empty."""
    if feedback and feedback.strip():
        return feedback.strip()
    if isinstance(own, str):
        return own.split(_SAID, 1)[1].strip() if _SAID in own else ""
    if own is not None and own.questions:
        return "\n".join([a for a in (own.answers or {}).values() if isinstance(a, str)][:20])
    return ""


def _result(block: Block, own: Own, denial: str) -> Result:
    call, shown = block.call[:200], text_of(block.content, "\n")
    if block.is_error:
        code = _EXIT.match(shown[:40])
        if code is not None and not denial:
            output, missing = cut_output(shown[code.end() :])
            return Result(call, output, failed=True, exit=int(code[1]), cut=missing)
        error, missing = cut(shown.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>"), OUTPUT)
        return Result(call, error=_refusal(error, denial) + error, failed=True, cut=missing)
    if own.stdout is not None:
        shown = "\n".join(s for s in (own.stdout, own.stderr) if s) or shown
    output, missing = cut_output(shown)
    return Result(
        call,
        output,
        exit=_exit(own),
        cut=missing,
        task=_task(own.task.get("id") if isinstance(own.task, dict) else None, shown),
        agent=(own.agent_id or "")[:200],
        shell=(own.background_task_id or "")[:200],
    )


def _refusal(error: str, denial: str) -> str:
    """The words before the error of a call that was not made: they say who did not allow it. Else empty."""
    if denial in _BY_PERSON or (not denial and _REFUSED.match(error[:2_000])):
        return DENIED
    return _RULED if denial or _FORBIDDEN.match(error[:2_000]) else ""


def _exit(own: Own) -> int | None:
    """The exit code of a shell call that did not fail: 1 for "nothing found" and the like, else 0. None while
    it runs in the background, or when it was stopped.
    """
    if own.stdout is None or own.interrupted or own.background_task_id:
        return None
    return 1 if own.return_code_interpretation else 0


def _task(value: object, shown: str) -> str:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)[:40]
    found = _TASK_ID.match(shown[:200])
    return found[1] if found else ""
