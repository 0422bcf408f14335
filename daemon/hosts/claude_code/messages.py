"""Turns the entries of a conversation into core messages.

It merges the lines of one answer and puts each result to its call. It owns Claude Code's words for why a
model stopped, the effect of an interrupt on the answer before it, plan mode, and the todo list. No I/O. A
result without its call is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast, get_args

from ...core.guards import ABORT_ERROR
from ...core.transcript import Message, Model, Todo, TodoStatus, ToolCall
from ..wire import text_or_empty
from .entries import Entry, Use
from .results import SHELL, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


PLAN: Final = "plan"
MAX_TODOS: Final = 200
MAX_TODO: Final = 1_000
_FINISH: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool-calls",
    "pause_turn": "tool-calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content-filter",
}
_STOPPED: Final = "Request interrupted by user"
_STATUSES: Final = frozenset(get_args(TodoStatus))


@dataclass(slots=True)
class _Answer:
    """The lines of one assistant message and its calls. ``interrupted``: the interrupt's text, if any."""

    entries: list[Entry]
    agent: str
    interrupted: str = ""
    calls: list[tuple[Entry, Use, str]] = field(
        default_factory=list
    )  # with the folder that it ran in, if known


def messages_of(  # noqa: PLR0912 - one branch a kind
    entries: Iterable[Entry],
    is_ours: Callable[[str], bool],
    *,
    directory: str = "",
    known: Iterable[str] = (),
) -> list[Message]:
    """Core messages in order. ``known``: ids that earlier human messages have; they are not used again."""
    entries = list(entries)
    results = {r.id: (e, r) for e in entries for r in e.results}
    found: list[_Answer | Message] = []
    answers: dict[str, _Answer] = {}
    tools: dict[str, str] = {}
    ids, mode, strayed = set(known), "", False
    last: _Answer | None = None  # the newest answer, if it came after the newest message to the agent
    for entry in entries:
        if entry.kind == "answer":
            strayed = strayed or bool(directory and entry.cwd and entry.cwd != directory)
            answer = answers.get(entry.message)
            if answer is None:
                answer = answers[entry.message] = _Answer([], PLAN if mode == PLAN else "")
                found.append(answer)
            answer.entries.append(entry)
            _add_calls(answer, entry, strayed=strayed)
            tools.update((u.id, u.tool) for u in entry.uses)
            last = answer
        elif entry.kind == "interrupt":
            if last is None:
                found.append(_unanswered(entry))
            else:
                last.interrupted = entry.text
        elif entry.kind == "result":
            mode = _mode_after(entry, tools, mode)
            if entry.text:
                found.append(_human(entry, ids, mode))
        elif entry.kind == "boundary":
            found.append(Message(entry.uuid, "user", entry.at, compaction=entry.compaction))
        elif entry.kind == "summary":
            found.append(
                Message(
                    entry.uuid,
                    "assistant",
                    entry.at,
                    entry.text,
                    finish="stop",
                    summary=True,
                    completed=entry.at,
                )
            )
        else:
            mode, last = entry.mode or mode, None
            if entry.kind == "human":
                found.append(_human(entry, ids, mode))
            else:
                order = entry.order if entry.order and is_ours(entry.order) else ""
                found.append(Message(entry.uuid, "user", entry.at, entry.text, order=order))
    return [m if isinstance(m, Message) else _message(m, results) for m in found]


def _add_calls(answer: _Answer, entry: Entry, *, strayed: bool) -> None:
    """Add the calls of ``entry``. The host's shell stays in its folder from call to call. Once it has left
    the project's folder (``strayed``), the first shell call gets the folder that the line names.
    """
    for use in entry.uses:
        first = use.tool == SHELL and not any(u.tool == SHELL for _, u, _ in answer.calls)
        answer.calls.append((entry, use, entry.cwd if first and strayed else ""))


def _human(entry: Entry, ids: set[str], mode: str) -> Message:
    """A person's message. Its id is that of the prompt, as in the hooks; a second one gets its line's id."""
    name = entry.prompt if entry.kind == "human" and entry.prompt and entry.prompt not in ids else entry.uuid
    ids.add(name)
    return Message(name, "user", entry.at, entry.text, human=True, agent=PLAN if mode == PLAN else "")


def _unanswered(entry: Entry) -> Message:
    """Esc before the first word becomes an empty answer with the abort error, as in other hosts."""
    return Message(
        entry.uuid, "assistant", entry.at, error=ABORT_ERROR, error_message=entry.text, completed=entry.at
    )


def _mode_after(entry: Entry, tools: dict[str, str], mode: str) -> str:
    for r in entry.results:
        if not r.failed and (tool := tools.get(r.id)) in {"ExitPlanMode", "EnterPlanMode"}:
            mode = PLAN if tool == "EnterPlanMode" else "default"
    return mode


def _message(answer: _Answer, results: dict[str, tuple[Entry, Result]]) -> Message:
    first, last = answer.entries[0], answer.entries[-1]
    said = "\n\n".join(e.text for e in answer.entries if e.text)
    error = next((e.error for e in reversed(answer.entries) if e.error), "")
    model = next((e.model for e in answer.entries if e.model), "")
    finish = _finish(answer.entries)
    if answer.interrupted:
        error, told, finish = ABORT_ERROR, answer.interrupted, ""
    elif error:
        told, said, finish = said, "", "error"
    else:
        told = ""
    return Message(
        id=last.uuid,
        role="assistant",
        at=first.at,
        text=said,
        agent=answer.agent,
        model=Model("anthropic", model) if model else None,
        finish=finish,
        error=error,
        error_message=told,
        completed=last.at if finish else 0,
        calls=tuple(_call(c, results, stopped=bool(answer.interrupted)) for c in answer.calls),
        tokens=max(e.tokens for e in answer.entries),
        cited=tuple(dict.fromkeys(name for e in answer.entries for name in e.cited)),
    )


def _call(
    made: tuple[Entry, Use, str], results: dict[str, tuple[Entry, Result]], *, stopped: bool
) -> ToolCall:
    e, use, folder = made
    arguments = {**use.input, "workdir": folder} if folder else use.input
    ended, result = results.get(use.id, (None, None))
    if result is None or ended is None:
        error = _STOPPED if stopped else ""
        return ToolCall(use.id, use.tool, "error" if stopped else "running", arguments, error=error)
    status = result.status(use.tool)
    output, error = result.output, result.error
    if status == "error" and not error:
        output, error = "", output
    return ToolCall(
        id=use.id,
        tool=use.tool,
        status=status,
        input=arguments,
        output=output,
        error=error,
        exit=result.exit if use.tool == SHELL else None,
        cut=result.cut,
        started=e.at,
        ended=ended.at,
        agent=result.agent,
        shell=result.shell,
    )


def finished_in(entries: Iterable[Entry]) -> str:
    """The id of the last answer that ends a task, or empty. What a person types after it is a new task."""
    groups: dict[str, list[Entry]] = {}
    stopped: set[str] = set()
    last = ""
    for e in entries:
        if e.kind == "answer":
            groups.setdefault(e.message, []).append(e)
            last = e.message
        elif e.kind == "interrupt":
            stopped.add(last)
        elif e.kind == "note":
            last = ""
    ended = (n for n in reversed(groups) if n not in stopped and _finish(groups[n]) == "stop")
    return next((n for n in ended if not any(e.error for e in groups[n])), "")


def _finish(lines: list[Entry]) -> str:
    """Why the model stopped. Old versions don't write it; then it is guessed from the lines."""
    stop = next((e.stop for e in reversed(lines) if e.stop), "")
    if stop:
        return _FINISH.get(stop, stop)
    return "tool-calls" if any(e.uses for e in lines) else "stop" if any(e.text for e in lines) else ""


def todos_of(messages: Sequence[Message], entries: Iterable[Entry]) -> tuple[Todo, ...]:
    """The todo list after these calls. ``TodoWrite`` writes the whole list, the ``Task…`` tools one entry
    each.
    """
    ids = {r.id: r.task for e in entries for r in e.results if r.task}
    found: dict[str, Todo] = {}
    for call in (c for m in messages for c in m.calls if c.status == "completed"):
        match call.tool:
            case "TodoWrite":
                items = call.input.get("todos")
                listed = [_todo(i) for i in items[:MAX_TODOS]] if isinstance(items, list) else []
                found = {f"w{n}": t for n, t in enumerate(listed) if t is not None}
            case "TaskCreate":
                subject = call.input.get("subject")
                if isinstance(subject, str) and subject and len(found) < MAX_TODOS:
                    found[ids.get(call.id, call.id)] = Todo(subject[:MAX_TODO], "pending")
            case "TaskUpdate":
                _update(found, call)
            case _:
                pass
    return tuple(found.values())


def _todo(item: object) -> Todo | None:
    if not isinstance(item, dict):
        return None
    text, status = item.get("content"), text_or_empty(item.get("status"))
    if not isinstance(text, str) or status not in _STATUSES:
        return None
    return Todo(text[:MAX_TODO], cast("TodoStatus", status))


def _update(found: dict[str, Todo], call: ToolCall) -> None:
    name, subject = call.input.get("taskId"), call.input.get("subject")
    status = text_or_empty(call.input.get("status"))
    old = found.get(str(name)[:40])
    if status == "deleted":
        found.pop(str(name)[:40], None)
    elif old is not None:
        text = subject[:MAX_TODO] if isinstance(subject, str) and subject else old.text
        known = cast("TodoStatus", status) if status in _STATUSES else old.status
        found[str(name)[:40]] = Todo(text, known)
