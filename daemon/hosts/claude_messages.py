"""The entries of a conversation as core messages: lines of one answer merged, results put to their calls.

Pure. Owns Claude Code's words for why a model stopped, what an interrupt does to the answer before it, plan
mode, and the todo list. What does not fit together (a result without its call) is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast, get_args

from daemon.core.guards import ABORT_ERROR
from daemon.core.transcript import Message, Model, Todo, TodoStatus, ToolCall
from daemon.hosts.claude_entries import Entry, Use
from daemon.hosts.claude_results import SHELL, Result

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
    """The lines of one assistant message, and what came of its calls."""

    entries: list[Entry]
    agent: str
    interrupted: str = ""
    calls: list[tuple[Entry, Use, str]] = field(default_factory=list)  # with the folder it ran in


def messages_of(  # noqa: PLR0912 - one branch a kind
    entries: Iterable[Entry],
    is_ours: Callable[[str], bool],
    *,
    directory: str = "",
    known: Iterable[str] = (),
) -> list[Message]:
    """Core messages in order. ``known``: ids of human messages before these, which keep theirs."""
    entries = list(entries)
    results = {r.id: (e, r) for e in entries for r in e.results}
    found: list[_Answer | Message] = []
    answers: dict[str, _Answer] = {}
    tools: dict[str, str] = {}
    ids, mode, strayed = set(known), "", False
    last: _Answer | None = None  # the answer since the last message to the agent
    for e in entries:
        if e.kind == "answer":
            strayed = strayed or bool(directory and e.cwd and e.cwd != directory)
            answer = answers.get(e.message)
            if answer is None:
                answer = answers[e.message] = _Answer([], PLAN if mode == PLAN else "")
                found.append(answer)
            answer.entries.append(e)
            _add_calls(answer, e, strayed=strayed)
            tools.update((u.id, u.tool) for u in e.uses)
            last = answer
        elif e.kind == "interrupt":
            if last is None:
                found.append(_unanswered(e))
            else:
                last.interrupted = e.text
        elif e.kind == "result":
            mode = _mode_after(e, tools, mode)
            if e.text:
                found.append(_human(e, ids, mode))
        elif e.kind == "boundary":
            found.append(Message(e.uuid, "user", e.at, compaction=e.compaction))
        elif e.kind == "summary":
            found.append(
                Message(e.uuid, "assistant", e.at, e.text, finish="stop", summary=True, completed=e.at)
            )
        else:
            mode, last = e.mode or mode, None
            if e.kind == "human":
                found.append(_human(e, ids, mode))
            else:
                order = e.order if e.order and is_ours(e.order) else ""
                found.append(Message(e.uuid, "user", e.at, e.text, order=order))
    return [m if isinstance(m, Message) else _message(m, results) for m in found]


def _add_calls(answer: _Answer, e: Entry, *, strayed: bool) -> None:
    """The host's shell keeps its folder from call to call; where it left the project, the line knows."""
    for use in e.uses:
        first = use.tool == SHELL and not any(u.tool == SHELL for _, u, _ in answer.calls)
        answer.calls.append((e, use, e.cwd if first and strayed else ""))


def _human(e: Entry, ids: set[str], mode: str) -> Message:
    """Named by its prompt, as the hooks name it; a second message of that prompt by its line."""
    name = e.prompt if e.kind == "human" and e.prompt and e.prompt not in ids else e.uuid
    ids.add(name)
    return Message(name, "user", e.at, e.text, human=True, agent=PLAN if mode == PLAN else "")


def _unanswered(e: Entry) -> Message:
    """Esc before the first word: an empty answer that carries the abort, as other hosts have it."""
    return Message(e.uuid, "assistant", e.at, error=ABORT_ERROR, error_message=e.text, completed=e.at)


def _mode_after(e: Entry, tools: dict[str, str], mode: str) -> str:
    for r in e.results:
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
    )


def finished_in(entries: Iterable[Entry]) -> str:
    """The last answer that ends a task, by its name, or empty: what a person types after it is a new task."""
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
    """Why the model stopped. Old versions write a line before they know."""
    stop = next((e.stop for e in reversed(lines) if e.stop), "")
    if stop:
        return _FINISH.get(stop, stop)
    return "tool-calls" if any(e.uses for e in lines) else "stop" if any(e.text for e in lines) else ""


def todos_of(messages: Sequence[Message], entries: Iterable[Entry]) -> tuple[Todo, ...]:
    """The list as these calls left it: ``TodoWrite`` writes all of it, the ``Task…`` tools one entry each."""
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
    text, status = item.get("content"), item.get("status")
    if not isinstance(text, str) or status not in _STATUSES:
        return None
    return Todo(text[:MAX_TODO], cast("TodoStatus", status))


def _update(found: dict[str, Todo], call: ToolCall) -> None:
    name, status, subject = (call.input.get(k) for k in ("taskId", "status", "subject"))
    old = found.get(str(name)[:40])
    if status == "deleted":
        found.pop(str(name)[:40], None)
    elif old is not None:
        text = subject[:MAX_TODO] if isinstance(subject, str) and subject else old.text
        known = cast("TodoStatus", status) if status in _STATUSES else old.status
        found[str(name)[:40]] = Todo(text, known)
