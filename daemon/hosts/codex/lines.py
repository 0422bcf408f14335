"""Reads one line of a Codex rollout as an ``Entry`` (`design/codex.md`).

Owns the format of the lines, and tells a person's words from all others: by the provenance that Codex writes
beside each text, and where an older version writes none, by the tags of Codex's own texts. Keeps no state and
does no I/O. A line that can't be read, or that is no part of the conversation, gives None.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ...core.errors import BadReply
from ..cuts import TEXT, cut, cut_deep, cut_output
from ..hook import order_in
from ..wire import MAX_NUMBER, decode, epoch_ms, name_or_empty, record, text_or_empty

Kind = Literal[
    "meta", "begin", "human", "note", "answer", "call", "output", "item", "tokens", "end", "compacted", "back"
]
_TYPE: Final = b'"type":"'
BULKY: Final = tuple(
    _TYPE + name
    for name in (
        b"world_state", b"turn_context", b"token_usage_record", b"inter_agent_communication",
        b'response_item","payload":{"type":"reasoning"',
    )
)  # fmt: skip
"""How lines begin that are long or many and never part of the conversation."""
_RESULT: Final = re.compile(
    rb'\{"timestamp":"[^"]*",(?:"ordinal":\d+,)?"type":"response_item","payload":'
    rb'\{"type":"(?:function|custom_tool)_call_output",(?:"id":"[^"]*",)?"call_id":"([^"\\]*)"'
)
_OWN: Final = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|turn_aborted|hook_prompt|subagent_notification"
    r"|skill|user_shell_command|model_switch|permissions instructions|INSTRUCTIONS)\b"
    r"|# AGENTS\.md instructions for )"
)
_EXITED: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,5})$", re.MULTILINE)
_RUNNING: Final = re.compile(r"^Process running with session ID (\d{1,12})$", re.MULTILINE)
_HEAD_END: Final = "\nOutput:\n"
_SHELLS: Final = frozenset({"exec_command", "shell", "shell_command", "container.exec", "local_shell_call"})
_MOST: Final = 2_000  # parts of a message, paths of a patch
_PATCH: Final = 65_536  # characters of a patch that are kept


class Entry(Struct, frozen=True, kw_only=True):
    """The kept part of one line.

    ``id``: of a message, a call or an item. ``turn``: Codex's turn. ``text``: of a message, an output or an
    error. ``tool`` and ``input``: of a call, in the words that evidence knows. ``exit``: of a shell command.
    ``shell``: the id of a process that runs on. ``agent``: the session of the sub-agent that a call started.
    ``status``: the end of an item or a turn. ``tokens``: in and out. ``count``: turns that were taken back.
    """

    kind: Kind
    at: int = 0
    id: str = ""
    turn: str = ""
    text: str = ""
    tool: str = ""
    input: dict[str, object] = field(default_factory=dict)
    exit: int | None = None
    shell: str = ""
    agent: str = ""
    status: str = ""
    cut: int = 0
    tokens: int = 0
    count: int = 0
    order: str = ""
    cwd: str = ""
    parent: str = ""


class _Meta(Struct):
    turn_id: Any = None
    kinds: Any = field(name="content_item_kinds", default=None)
    about: Any = field(name="content_item_metadata", default=None)


class _Payload(Struct):
    """The fields of all kinds of payloads. A field of type ``Any`` is checked before it is used."""

    type: Any = None
    id: Any = None
    role: Any = None
    content: Any = None
    name: Any = None
    namespace: Any = None
    arguments: Any = None
    input: Any = None
    action: Any = None
    call_id: Any = None
    output: Any = None
    turn_id: Any = None
    item: Any = None
    reason: Any = None
    error: Any = None
    info: Any = None
    num_turns: Any = None
    cwd: Any = None
    message: Any = None
    parent_thread_id: Any = None
    thread_source: Any = None
    source: Any = None
    attribution: Any = field(name="turn_attribution", default=None)
    meta: _Meta | None = field(name="internal_chat_message_metadata_passthrough", default=None)


class _Line(Struct):
    timestamp: Any = None
    type: Any = None
    payload: _Payload | None = None


_LINES: Final = msgspec.json.Decoder(_Line)


def is_bulky(head: bytes | bytearray) -> bool:
    """Says whether a line begins as those in ``BULKY``, after its time."""
    at = head.find(_TYPE)
    return at >= 0 and head.startswith(BULKY, at)


def result_of(line: bytes) -> str:
    """The call whose result the line is, by its first bytes; "" for another line, or if they do not tell."""
    found = _RESULT.match(line)
    return found[1].decode("utf-8", "replace") if found else ""


def entry_of(line: bytes) -> Entry | None:
    """The line as an entry; None if it is no JSON or no part of the conversation."""
    try:
        try:
            wire = _LINES.decode(line)
        except ValueError:
            wire = decode(line, _Line)  # mends half characters
        return _entry(wire, wire.payload or _Payload())
    except (BadReply, RecursionError, TypeError):
        return None


def _entry(wire: _Line, found: _Payload) -> Entry | None:
    at, turn = epoch_ms(wire.timestamp), name_or_empty(found.turn_id)
    match wire.type, found.type:
        case "session_meta", _:
            return _session(found, at)
        case "compacted", _:
            text = cut(text_or_empty(found.message), TEXT)[0]
            return Entry(kind="compacted", at=at, id=f"compacted-{at}", text=text)
        case "response_item", "message":
            return _message(found, at)
        case "response_item", "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call":
            return _call(found, at)
        case "response_item", "function_call_output" | "custom_tool_call_output":
            return _output(found, at)
        case "event_msg", "task_started":
            trigger = name_or_empty(record(found.attribution).get("turn_trigger"))
            return Entry(kind="begin", at=at, turn=turn, status=trigger)
        case "event_msg", "item_completed":
            return _item(found, at)
        case "event_msg", "token_count":
            return _tokens(found, at)
        case "event_msg", "task_complete":
            why = cut(text_or_empty(record(found.error).get("message")), TEXT)[0]
            return Entry(kind="end", at=at, turn=turn, status="error" if why else "stop", text=why)
        case "event_msg", "turn_aborted":
            return Entry(kind="end", at=at, turn=turn, status=name_or_empty(found.reason) or "interrupted")
        case "event_msg", "thread_rolled_back":
            count = found.num_turns if isinstance(found.num_turns, int) else 0
            return Entry(kind="back", at=at, count=max(0, count))
    return None


def _session(found: _Payload, at: int) -> Entry:
    parent = name_or_empty(found.parent_thread_id)
    if not parent and (found.thread_source == "subagent" or isinstance(found.source, dict)):
        parent = "unknown"
    source = found.source[:40] if isinstance(found.source, str) else "subagent"
    folder = text_or_empty(found.cwd)[:4096]
    return Entry(kind="meta", at=at, id=name_or_empty(found.id), cwd=folder, parent=parent, status=source)


def _message(found: _Payload, at: int) -> Entry | None:
    parts = found.content[:_MOST] if isinstance(found.content, list) else []
    meta = found.meta or _Meta()
    name, turn = name_or_empty(found.id), name_or_empty(meta.turn_id)
    said = "\n".join(_text(part) for part in parts)
    if found.role == "assistant":
        return Entry(kind="answer", at=at, id=name or f"answer-{at}", turn=turn, text=cut(said, TEXT)[0])
    if found.role != "user":  # a developer's: what hooks and Codex itself add for the model
        return None
    person = _typed(parts, meta, said)
    order = order_in(said)
    if person and not order:
        return Entry(kind="human", at=at, id=name or f"message-{at}", turn=turn, text=cut(person, TEXT)[0])
    if order or said.lstrip().startswith("<hook_prompt"):
        text = cut(said, TEXT)[0]
        return Entry(kind="note", at=at, id=name or f"note-{at}", turn=turn, text=text, order=order)
    agent = _notified(said)
    if not agent:
        return None
    return Entry(kind="item", at=at, id=agent, tool="subagent_notification", status="completed")


def _typed(parts: list[Any], meta: _Meta, said: str) -> str:
    """The typed text of a message, and its attachments in words; "" when nothing was typed."""
    if not isinstance(meta.kinds, list):  # a version that says of no text where it comes from
        return "" if _OWN.match(said[:200]) else said.strip()
    about = meta.about if isinstance(meta.about, list) else []
    mine = [
        part
        for n, part in enumerate(parts)
        if n < len(meta.kinds) and str(meta.kinds[n]).startswith("user.") and _is_person(about, n)
    ]
    words = "\n".join(text for part in mine if (text := _text(part)).strip())
    images = sum(1 for part in parts if isinstance(part, dict) and part.get("type") == "input_image")
    attached = f"(attached without a word: {images} image{'s' * (images > 1)}, which are not shown here)"
    return words or (attached if images else "")


def _is_person(about: list[Any], n: int) -> bool:
    """Says whether the text's provenance is a person; where none is told, its kind counts."""
    if n >= len(about) or not isinstance(about[n], dict):
        return True
    return record(about[n].get("provenance")).get("type") in (None, "user")


def _notified(said: str) -> str:
    """The sub-agent that Codex says has ended."""
    start = said.lstrip()
    if not start.startswith("<subagent_notification>"):
        return ""
    told = _loaded(start.removeprefix("<subagent_notification>").rpartition("<")[0])
    return name_or_empty(told.get("agent_path"))


def _call(found: _Payload, at: int) -> Entry | None:
    name, given = text_or_empty(found.name)[:200], _arguments(found)
    space = text_or_empty(found.namespace)[:200]
    call = Entry(
        kind="call", tool="unknown", at=at, id=name_or_empty(found.call_id) or name_or_empty(found.id)
    )
    if not call.id:  # nothing can be said of its result
        return None
    if found.type == "local_shell_call" or name in _SHELLS:
        return replace(call, tool="bash", input=_command(given))
    if name == "apply_patch":
        patch = found.input if isinstance(found.input, str) else text_or_empty(given.get("input"))
        return replace(call, tool="apply_patch", input={"patchText": cut(patch, (_PATCH, _PATCH))[0]})
    if name == "spawn_agent":
        asked = {"prompt": given.get("message"), "subagent_type": given.get("agent_type")}
        return replace(
            call, tool="agent", input=cut_deep({k: v for k, v in asked.items() if isinstance(v, str)})
        )
    if name == "request_user_input":
        return replace(call, tool="question", input=cut_deep(given))
    if found.type == "web_search_call":
        return replace(call, tool="websearch", input=cut_deep(record(found.action)))
    tool = f"{space}__{name}" if space and not space.startswith("multi_agent") else name
    return replace(call, tool=tool or "unknown", input=cut_deep(given))


def _arguments(found: _Payload) -> dict[str, Any]:
    return record(found.action) or record(found.arguments) or _loaded(found.arguments)


def _command(given: dict[str, Any]) -> dict[str, object]:
    """A shell call's arguments: the command as a person would type it, and the folder."""
    found = given.get("cmd", given.get("command"))
    if isinstance(found, list):
        found = script_of([str(word) for word in found[:_MOST]])
    folder = given.get("workdir") or given.get("working_directory")
    command: dict[str, object] = {"command": cut(text_or_empty(found), TEXT)[0]}
    return {**command, "workdir": folder[:4096]} if isinstance(folder, str) and folder else command


def script_of(words: list[str]) -> str:
    """The script of ``bash -lc SCRIPT``; any other command joined by blanks."""
    shell = (
        len(words) == 3 and words[0].rsplit("/", 1)[-1] in {"bash", "sh", "zsh"} and words[1] in {"-lc", "-c"}
    )
    return words[2] if shell else " ".join(words)


def _output(found: _Payload, at: int) -> Entry:
    """The part of a call's result that the model was shown, without Codex's own lines before it."""
    said = found.output if isinstance(found.output, str) else ""
    if isinstance(found.output, list):
        said = "\n".join(_text(part) for part in found.output[:_MOST])
    code: int | None = None
    if said.startswith('{"') and (told := _structured(said)):
        said, code = told
    head, mark, rest = said.partition(_HEAD_END)
    shell = ""
    if mark and len(head) < 400:
        exited, running = _EXITED.search(f"{head}\n"), _RUNNING.search(head)
        code, shell = (int(exited[1]) if exited else code), (running[1] if running else "")
        said = rest
        inner, more, rest = said.partition(_HEAD_END)
        if more and inner.startswith("Exit code: "):  # a patch by the shell
            code, said = int((_EXITED.search(inner) or [0, 0])[1]), rest
    kept, left = cut_output(said)
    agent = name_or_empty(_loaded(kept).get("agent_id")) if kept.startswith('{"agent_id"') else ""
    name = name_or_empty(found.call_id)
    return Entry(kind="output", at=at, id=name, text=kept, cut=left, exit=code, shell=shell, agent=agent)


def _structured(said: str) -> tuple[str, int | None] | None:
    """The output and the exit code in the form of older versions."""
    told = _loaded(said)
    if not isinstance(told.get("output"), str):
        return None
    code = record(told.get("metadata")).get("exit_code")
    return told["output"], code if isinstance(code, int) else None


def _item(found: _Payload, at: int) -> Entry | None:
    """An item that Codex kept whole: a command with its exit code, a patch with its files, an error."""
    item = record(found.item)
    name, status, kind = (
        name_or_empty(item.get("id")),
        text_or_empty(item.get("status"))[:40],
        item.get("type"),
    )
    made = Entry(kind="item", at=at, id=name, turn=name_or_empty(found.turn_id), status=status)
    given: dict[str, object]
    match kind:
        case "CommandExecution":
            words = item.get("command")
            script = script_of([str(w) for w in words[:_MOST]]) if isinstance(words, list) else ""
            given = {"command": cut(script, TEXT)[0]}
            folder = text_or_empty(item.get("cwd")).removeprefix("file://")
            code = item.get("exit_code")
            said, left = cut_output(text_or_empty(item.get("aggregated_output")))
            given = {**given, "workdir": folder[:4096]} if folder else given
            exit_code = code if isinstance(code, int) and code >= 0 else None
            return replace(made, tool="bash", input=given, text=said, cut=left, exit=exit_code)
        case "FileChange":
            said = "\n".join(filter(None, map(text_or_empty, (item.get("stdout"), item.get("stderr")))))
            given = {"patchText": _patch(record(item.get("changes")))}
            return replace(made, tool="apply_patch", input=given, text=said[:2_000])
        case "McpToolCall":
            error = item.get("error")
            why = text_or_empty(record(error).get("message", error))
            return replace(made, text=cut_output(why)[0], status="failed" if why else status) if why else None
        case "CollabAgentToolCall":
            to = item.get("receiver_thread_ids")
            agent = (
                name_or_empty(to[0])
                if item.get("tool") == "spawn_agent" and isinstance(to, list) and to
                else ""
            )
            return replace(made, agent=agent) if agent else None
    return None


def _patch(changes: dict[str, Any]) -> str:
    """The files of a patch in the form in which models write patches."""
    lines: list[str] = []
    for path, change in list(changes.items())[:_MOST]:
        about = record(change)
        match about.get("type"):
            case "add":
                lines.append(f"*** Add File: {path}")
                lines += [f"+{line}" for line in text_or_empty(about.get("content")).splitlines()]
            case "delete":
                lines.append(f"*** Delete File: {path}")
            case _:
                moved = about.get("move_path")
                lines.append(f"*** Update File: {path}")
                lines += [f"*** Move to: {moved}"] if isinstance(moved, str) else []
                lines += text_or_empty(about.get("unified_diff")).splitlines()
    return cut("\n".join(["*** Begin Patch", *lines, "*** End Patch"]), (_PATCH, _PATCH))[0]


def _tokens(found: _Payload, at: int) -> Entry | None:
    total = record(record(found.info).get("last_token_usage")).get("total_tokens")
    if not isinstance(total, int) or not 0 < total < MAX_NUMBER:
        return None
    return Entry(kind="tokens", at=at, tokens=total)


def _text(part: object) -> str:
    return text_or_empty(record(part).get("text"))


def _loaded(said: object) -> dict[str, Any]:
    """The object in a text, an empty one where it is none."""
    try:
        return record(json.loads(text_or_empty(said)))
    except (ValueError, RecursionError):
        return {}
