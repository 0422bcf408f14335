"""The hosts' tools by name, and their arguments: which run a shell, which keep the agent's own list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.transcript import ToolCall

AGENT_TOOLS: Final = frozenset({"task", "agent"})
SHELL_TOOLS: Final = frozenset({"bash", "shell", "execute", "terminal", "run_command"})
LASTING_SHELL: Final = "Bash"  # Claude Code's shell keeps its folder from call to call
WRITE_TOOLS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "edit write patch multiedit apply_patch applypatch notebookedit str_replace create_file "
        "write_file edit_file"
    ).split()
)
TODO_TOOLS: Final = frozenset({"todowrite", "todo_write", "todoread", "taskcreate", "taskupdate", "tasklist"})
QUESTION_TOOLS: Final = frozenset({"question", "askuserquestion"})


def text_of(call: ToolCall, *keys: str) -> str:
    """The first of these arguments that is a text."""
    return first_text(call.input, *keys)


def first_text(values: Mapping[str, object], *keys: str) -> str:
    """The first of these values that is a text."""
    for key in keys:  # asked many times for each call of a task: a generator would take twice as long
        value = values.get(key)
        if value and isinstance(value, str):
            return value
    return ""


def questions_of(call: ToolCall) -> tuple[str, ...]:
    """What a tool asked the person, where it is one that asks."""
    asked = call.input.get("questions", [call.input])
    if call.tool.lower() not in QUESTION_TOOLS or not isinstance(asked, list):
        return ()
    found = (q.get("question") for q in asked[:10] if isinstance(q, dict))
    return tuple(q for q in found if isinstance(q, str))
