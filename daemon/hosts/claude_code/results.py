"""The result of a tool call in Claude Code: output, exit code, refusal, and what the person said with it.

Claude Code writes each result twice: as the model saw it (``tool_result``), and in the tool's own form
(``toolUseResult``). Both may be of any type. Raises ``BadReply`` and nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Raw, Struct, UnsetType

from ..cuts import OUTPUT, cut, cut_output
from ..wire import decode, text_or_empty

if TYPE_CHECKING:
    from ...core.transcript import ToolStatus

SHELL: Final = "Bash"
_EXIT: Final = re.compile(r"(?:Error: )?Exit code (\d{1,3})(?:\n|$)")
_SAID: Final = "the user said:\n"
DENIED: Final = "The user rejected this tool call. "
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


def own_of(raw: Raw | UnsetType) -> Own | str | None:
    """The tool's own result; None where there is none, or one of a type that is not read here."""
    start = b"" if isinstance(raw, UnsetType) else bytes(memoryview(raw)[:1])
    if start == b"{":
        return decode(cast("Raw", raw), Own)
    return decode(cast("Raw", raw), str) if start == b'"' else None


def results_of(blocks: list[Any], own: Own | str | None, denial: str) -> tuple[Result, ...]:
    """The results in a user line. ``own`` is used only when the line has one result."""
    found = [b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_result"]
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
    call = block.get("tool_use_id")
    call = call[:200] if isinstance(call, str) else ""
    shown = _shown(block.get("content"))
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


def _shown(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    said = (b.get("text") for b in content[:200] if isinstance(b, dict) and b.get("type") == "text")
    return "\n".join(s for s in said if isinstance(s, str))
