"""``collect`` reads a transcript once and never guesses: a row is ``open`` only where it proves by itself
that something is unfinished. What can be read either way stays a closed row or no row, because a false
"incomplete" is the costly error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from daemon.core.actions import Check, Stash, Write
from daemon.core.checks import Run, Runs, excused
from daemon.core.commands import final_cwd, read_script
from daemon.core.endings import ending
from daemon.core.evidence import Ending, Evidence, Position, Row
from daemon.core.outcomes import judge_check
from daemon.core.refusals import is_denied, looks_up
from daemon.core.writes import is_prose, matters, written_by_tool

if TYPE_CHECKING:
    from daemon.core.actions import Action
    from daemon.core.transcript import Message, ToolCall, Transcript

MAX_REQUEST: Final = 500  # characters
MAX_ROWS: Final = 20  # of one kind
SHELL_TOOLS: Final = frozenset({"bash", "shell", "execute", "terminal", "run_command"})
LASTING_SHELL: Final = "Bash"  # Claude Code's shell keeps its folder from call to call
TODO_TOOLS: Final = frozenset({"todowrite", "todo_write", "taskcreate", "taskupdate"})
_PLAN_ASKED: Final = re.compile(
    r"\b(?:plan|propos\w+|outline|(?:how|what) would you|(?:don't|do not) (?:change|edit|implement|write"
    r"|touch|do)"
    r"|without (?:changing|editing))\b",
    re.IGNORECASE,
)
_ENDINGS: Final[dict[Ending, str]] = {
    "statement": "the final text ends with a statement",
    "question": "the final text asks the person",
    "next_steps": "the final text ends with a list of next steps",
    "announced": "the final text announces an action and stops before it",
    "cut_off": "the final text breaks off",
    "empty": "there is no final text",
}


def collect(transcript: Transcript) -> Evidence:
    """The rows of the current task: what was asked, written, checked, left open, and how the turn ended."""
    requests, work = transcript.requests, transcript.work
    calls = tuple(c for m in work for c in m.calls)
    asked = "\n".join(m.text for m in requests)
    final = next((m for m in reversed(work) if m.role == "assistant"), None)
    found = _read(calls, transcript.directory)
    end = _ending(final, planned=not found.writes and bool(_PLAN_ASKED.search(asked)))
    failures_count = found.last_code >= 0 and not excused(asked, final.text if final else "")
    shown = [run for run in found.runs.current if not found.runs.settled(run)]
    rows = [
        *(Row("", "request", _shorten(m.text, MAX_REQUEST)) for m in requests[-MAX_ROWS:]),
        *_writes(found.writes),
        *(_check(run, found, transcript.directory, counts=failures_count) for run in shown[-MAX_ROWS:]),
        *_todos(transcript, calls),
        *_denied(calls),
        *_tool_errors(calls, asked=end == "question"),
        Row(
            "",
            "ending",
            f"{_ENDINGS[end]}: {_last_line(final)}" if final and final.text.strip() else _ENDINGS[end],
            open=end in {"announced", "cut_off"},
            detail=_last_line(final) if final and end == "announced" else "",
        ),
    ]
    return Evidence(
        rows=tuple(replace(row, id=f"E{i}") for i, row in enumerate(rows, 1)),
        ending=end,
        tool_calls=len(calls),
        writes=len(found.writes),
        code_writes=found.code_writes,
    )


@dataclass(slots=True)
class _Found:
    """What reading the calls in order gathers. ``last_code``: position of the last write, -1 for none."""

    runs: Runs = field(default_factory=Runs)
    writes: list[Write] = field(default_factory=list)
    last_code: int = -1
    code_writes: int = 0


def _read(calls: tuple[ToolCall, ...], directory: str) -> _Found:
    found, at, stashed, lasting = _Found(), 0, False, directory or None
    for call in calls:
        actions: tuple[Action, ...] = ()
        if call.status == "completed" or (call.status == "error" and call.tool == LASTING_SHELL):
            script, workdir = _text(call, "command", "cmd"), _text(call, "workdir", "cwd")
            if call.tool.lower() in SHELL_TOOLS:
                start = workdir or (lasting if call.tool == LASTING_SHELL else directory)
                actions = read_script(script, start)
                lasting = final_cwd(script, start) if call.tool == LASTING_SHELL else lasting
            else:
                actions = written_by_tool(call.tool, call.input)
        checks = [a for a in actions if isinstance(a, Check)]
        for action in actions:
            at += 1
            if isinstance(action, Stash):
                stashed = action.away
            elif stashed:
                continue  # a look at the old state, not at this work
            elif isinstance(action, Check):
                output = f"{call.output}\n{call.error}" if _speaks_for(checks, action) else ""
                outcome = judge_check(action, output, call.exit)
                found.runs.add(Run(at, found.last_code, action, outcome))
            elif matters(action.path, directory):
                found.writes.append(action)
                if not is_prose(action.path):
                    found.last_code, found.code_writes = at, found.code_writes + 1
    return found


def _speaks_for(checks: list[Check], check: Check) -> bool:
    """Whether a summary in the call's output can only be this check's, of all that the call ran."""
    if len(checks) == 1:
        return True
    later = checks[next(i for i, c in enumerate(checks) if c is check) + 1 :]
    return not check.wrap and all(c.tool != check.tool for c in later)


def _writes(writes: list[Write]) -> list[Row]:
    if not writes:
        return []
    paths = list(dict.fromkeys(w.path for w in writes))
    shown = ", ".join(_shorten(p, 120) for p in paths[-10:])
    more = f" and {len(paths) - 10} more" if len(paths) > 10 else ""
    text = f"files written: {shown}{more}; last write: {_shorten(writes[-1].path, 200)} ({writes[-1].by})"
    return [Row("", "write", text, detail=writes[-1].path)]


def _check(run: Run, found: _Found, directory: str, *, counts: bool) -> Row:
    position: Position = "after_last_write" if run.at > found.last_code else "before_last_write"
    if found.last_code < 0:
        position = ""
    result, summary = run.outcome.result, run.outcome.summary
    unanswered = counts and found.runs.unanswered(run)
    command = _command(run.check, directory)
    said = {"passed": "passed", "failed": "failed", "unknown": "ran, its outcome is not visible,"}[result]
    when = {"": "", "after_last_write": " after the last edit", "before_last_write": " before the last edit"}[
        position
    ]
    again = " and was not run again" if unanswered and position == "before_last_write" else ""
    return Row(
        "",
        "check",
        f"{run.check.kind}: `{command}` {said}{when}{again}".rstrip(",")
        + (f": {summary}" if summary else ""),
        outcome=result,
        position=position,
        open=unanswered,
        detail=summary,
        command=command,
        check=run.check.kind,
    )


def _command(check: Check, directory: str) -> str:
    """What to type again, with the folder where it isn't the session's own."""
    command = re.sub(r"\s*(?:2>&1|2>/dev/null)", "", check.text)
    if check.cwd and directory and check.cwd != directory:
        folder = check.cwd.removeprefix(directory.rstrip("/") + "/")
        command = f"cd {folder} && {command}"
    return _shorten(command, 300)


def _todos(transcript: Transcript, calls: tuple[ToolCall, ...]) -> list[Row]:
    """Open entries of the agent's own list, where this task's work touched the list at all."""
    if not any(c.tool.lower() in TODO_TOOLS and c.status == "completed" for c in calls):
        return []
    left = [t for t in transcript.todos if t.status in {"pending", "in_progress"}]
    return [
        Row("", "todo", f"todo, {t.status}: {_shorten(t.text, 200)}", open=True, detail=_shorten(t.text, 200))
        for t in left[:MAX_ROWS]
    ]


def _denied(calls: tuple[ToolCall, ...]) -> list[Row]:
    """What the person refused or stopped, where the same tool had no success after it."""
    found: list[Row] = []
    succeeded: set[str] = set()
    for call in reversed(calls):
        if is_denied(call):
            if call.tool not in succeeded and len(found) < MAX_ROWS:
                found.append(Row("", "denied", f"the person refused or stopped {call.tool}{_target(call)}"))
        elif call.status == "completed":
            succeeded.add(call.tool)
    return found[::-1]


def _tool_errors(calls: tuple[ToolCall, ...], *, asked: bool) -> list[Row]:
    """The errors that the work ended with. Look-ups don't count, nor does one the person was asked about."""
    found: list[Row] = []
    for call in reversed(calls):
        if call.tool.lower() in TODO_TOOLS and call.status == "completed":
            continue
        if call.status != "error" or len(found) >= MAX_ROWS:
            break
        if not is_denied(call) and not looks_up(call.tool) and call.tool != LASTING_SHELL:
            error = _shorten(call.error or call.output, 200)
            text = f"{call.tool}{_target(call)} failed and nothing came after it: {error}"
            found.append(Row("", "tool_error", text, open=not asked, detail=f"{call.tool}{_target(call)}"))
    return found[::-1]


def _ending(final: Message | None, *, planned: bool) -> Ending:
    if final is None:
        return "empty"
    found = ending(final.text, final.finish)
    if found not in {"announced", "cut_off"} or final.finish in {"length", "max_tokens"}:
        return found
    # With calls in the same message the text may stand before them; a plan speaks of what would be done.
    harmless = final.calls or (found == "announced" and (planned or final.agent == "plan"))
    return "statement" if harmless else found


def _text(call: ToolCall, *keys: str) -> str:
    return next((v for k in keys if isinstance(v := call.input.get(k), str) and v), "")


def _target(call: ToolCall) -> str:
    target = _text(call, "filePath", "file_path", "path", "command", "url", "description")
    return f" ({_shorten(target, 120)})" if target else ""


def _last_line(final: Message) -> str:
    lines = final.text[-2000:].strip().rsplit("\n", 1)
    return _shorten(lines[-1].strip()[-200:], 200)


def _shorten(text: str, limit: int) -> str:
    text = " ".join(text[: limit * 4].split()) if limit < MAX_REQUEST else text.strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"
