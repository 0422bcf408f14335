"""What came of a tool call in Claude Code: output, exit code, refusal, and what the person said with it.

The host writes a result twice: as the model saw it (``tool_result``) and as a value of the tool's own
(``toolUseResult``). Both may be of any type. Never raises but ``BadReply``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Raw, Struct, UnsetType

from daemon.hosts.cuts import OUTPUT, cut
from daemon.hosts.wire import decode

if TYPE_CHECKING:
    from daemon.core.transcript import ToolStatus

SHELL: Final = "Bash"
_EXIT: Final = re.compile(r"(?:Error: )?Exit code (\d{1,3})(?:\n|$)")
_SAID: Final = "the user said:\n"
_DENIED: Final = "The user rejected this tool call. "
_TASK_ID: Final = re.compile(r"Task #(\d{1,9})\b")


class Own(Struct, rename="camel"):
    """What tools of interest say of themselves."""

    stdout: Any = None
    stderr: Any = None
    interrupted: Any = None
    background_task_id: Any = None
    return_code_interpretation: Any = None
    answers: Any = None
    questions: Any = None
    task: Any = None


class Result(Struct, frozen=True):
    """``exit`` is a shell's, None where it can't be known; ``task``: the id that a new todo entry got."""

    id: str
    output: str = ""
    error: str = ""
    failed: bool = False
    exit: int | None = None
    cut: int = 0
    task: str = ""

    def status(self, tool: str) -> ToolStatus:
        """A command that ran and ended with another code than 0 is no failed call, as in other hosts."""
        return "error" if self.failed and not (tool == SHELL and self.exit is not None) else "completed"


def own_of(raw: Raw | UnsetType) -> Own | str | None:
    """What the tool says of itself: None where it says nothing, or something that nobody asks for."""
    start = b"" if isinstance(raw, UnsetType) else bytes(memoryview(raw)[:1])
    if start == b"{":
        return decode(cast("Raw", raw), Own)
    return decode(cast("Raw", raw), str) if start == b'"' else None


def results_of(blocks: list[Any], own: Own | str | None, denial: str) -> tuple[Result, ...]:
    """The results in a user line. ``own`` belongs to the only one there is."""
    found = [b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_result"]
    value = own if isinstance(own, Own) and len(found) == 1 else Own()
    return tuple([_result(b, value, denial) for b in found])


def said_by_person(feedback: object, own: Own | str | None) -> str:
    """What a person said where a tool asked: why not, or the answer to a question. Else empty."""
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
            output, missing = cut(shown[code.end() :], OUTPUT)
            return Result(call, output, failed=True, exit=int(code[1]), cut=missing)
        error, missing = cut(shown.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>"), OUTPUT)
        return Result(call, error=_DENIED + error if denial else error, failed=True, cut=missing)
    if isinstance(own.stdout, str):
        streams = [s for s in (own.stdout, own.stderr) if isinstance(s, str) and s]
        shown = "\n".join(streams) or shown
    output, missing = cut(shown, OUTPUT)
    return Result(call, output, exit=_exit(own), cut=missing, task=_task(task, shown))


def _exit(own: Own) -> int | None:
    """0, or 1 for "nothing found" and the like; None while it runs on, or when it was stopped."""
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
