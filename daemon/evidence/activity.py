"""The activity log: every tool call of the task in order, one line each, with what decides of its output.

A judge that reads it knows what happened: no line means that it did not happen. So nothing is left out
without a line that counts it. The log shows what the calls say, and judges nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.evidence import Act
from ..core.refusals import is_denied, looks_up
from . import outputs
from .calls.actions import Check, Deed
from .calls.failures import was_stopped
from .calls.shell import steps
from .calls.tools import AGENT_TOOLS, SHELL_TOOLS, TODO_TOOLS, WRITE_TOOLS, questions_of, text_of
from .calls.work import Work
from .calls.writes import written_by_tool
from .outputs import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..core.transcript import Message, ToolCall, Transcript
    from .calls.actions import Action

MAX_CALLS: Final = 500  # the last calls of a task that get a line; those before are counted
MAX_COMMAND: Final = 260  # characters
MAX_INNER: Final = 30  # calls of one sub-agent that get a line
MAX_NAMES: Final = 8
AFTER_EDIT: Final = "(after this line: after the last edit of code)"
_GIT_DEEDS: Final = frozenset({"commit", "push", "pr", "issue", "ci"})
_READ_NAMES: Final = frozenset({"read", "grep", "glob", "list", "ls", "notebookread", "toolsearch", "lsp"})
_ARGUMENTS: Final = (
    "filePath", "file_path", "path", "notebook_path", "pattern", "url", "query", "name", "id", "description",
    "prompt", "skill",
)  # fmt: skip
_SHOWS: Final = re.compile(  # prints files or lists them: its output is content, not a result
    r"\s*(?:cd [^;&|\n]{1,200}&& *)?(?:cat|head|tail|less|sed -n|grep|rg|ag|ls"
    r"|find(?![^\n]{0,300} -(?:exec|ok|delete))|fd|tree|wc|git (?:show|diff|log|blame|grep|ls-files)"
    r"|jq|awk|file|stat|which|pwd|echo|env|printenv|type)\b"
)


def activity(transcript: Transcript, work: Work) -> tuple[Act, ...]:
    """The log of the current task. ``work`` is what ``calls.reading`` read from the same calls."""
    acts: list[Act] = []
    reads: list[tuple[int, ToolCall]] = []
    messages = transcript.work
    calls = [c for m in messages for c in m.calls]
    number, skip = 0, max(0, len(calls) - MAX_CALLS)
    looks = _Looks(work, transcript.directory.rstrip("/") + "/", _telling(calls[skip:]))
    for message in messages:
        if message.role == "user":
            _collapse(reads, acts)
            acts += _mark(message)
        for call in message.calls:
            number += 1
            if number <= skip:
                continue
            if _only_reads(call):
                reads.append((number, call))
            else:
                _collapse(reads, acts)
                acts.append(_act(f"A{number}", call, looks))
                if work.last_code_call == f"A{number}":
                    acts.append(Act("", AFTER_EDIT, rank=0, calls=0))
    _collapse(reads, acts)
    if skip:
        early = Counter(c.tool for c in calls[:skip]).most_common(MAX_NAMES)
        counts = ", ".join(f"{n} {one_line(tool, 40)}" for tool, n in early)
        acts.insert(0, Act("", f"({skip} calls before these have no line: {counts})", rank=0, calls=0))
    return tuple(acts)


@dataclass(frozen=True, slots=True)
class _Looks:
    """What the lines are made with. ``root``: the session's folder; ``telling``: the ids of the calls whose
    output may tell of a failure.
    """

    work: Work
    root: str
    telling: frozenset[str]


def _telling(calls: Sequence[ToolCall]) -> frozenset[str]:
    every = [c for call in calls for c in (*call.inner, call) if c.tool.lower() in SHELL_TOOLS]
    found = outputs.with_marks([f"{c.output}\n{c.error}" for c in every])
    return frozenset(every[i].id for i in found)


def _mark(message: Message) -> Iterator[Act]:
    if message.human:
        yield Act("", "(here the person typed)", rank=1, calls=0)
    elif message.order:
        yield Act("", "(here reflectd sent the agent back to work)", rank=1, calls=0)


def _only_reads(call: ToolCall) -> bool:
    """A look that worked: it changed nothing, and its output is content."""
    return call.status == "completed" and call.tool.lower() in _READ_NAMES


def _collapse(reads: list[tuple[int, ToolCall]], acts: list[Act]) -> None:
    if not reads:
        return
    names = [one_line(text_of(c, *_ARGUMENTS).rsplit("/", 1)[-1], 60) for _, c in reads]
    shown = [n for n in dict.fromkeys(names) if n]
    more = f" and {len(shown) - MAX_NAMES} more" if len(shown) > MAX_NAMES else ""
    tools = " and ".join(dict.fromkeys([c.tool.lower() for _, c in reads]))
    first, last = reads[0][0], reads[-1][0]
    name = f"A{first}" if first == last else f"A{first}-A{last}"
    text = f"{tools}: {', '.join(shown[:MAX_NAMES])}{more}" if shown else tools
    count = "" if len(reads) == 1 else f"{len(reads)} looks, "
    acts.append(Act(name, count + text, rank=3, calls=len(reads)))
    reads.clear()


def _act(number: str, call: ToolCall, looks: _Looks) -> Act:
    tool = call.tool.lower()
    actions = looks.work.actions.get(number, ())
    if tool in SHELL_TOOLS:
        return _shell(number, call, actions, looks)
    if tool in AGENT_TOOLS:
        return _agent(number, call, looks)
    name = tool if tool in WRITE_TOOLS or tool in TODO_TOOLS else one_line(call.tool, 60)
    if tool in WRITE_TOOLS:
        paths = ", ".join(
            one_line(w.path.removeprefix(looks.root), 120)
            for w in written_by_tool(call.tool, call.input)[:MAX_NAMES]
        )
        return Act(number, f"{name} {paths} → {_outcome(call)}", rank=1 if call.status == "error" else 2)
    if tool in TODO_TOOLS:
        return Act(number, f"{name} → {_outcome(call)}", rank=3)
    if asked := questions_of(call):
        said = [line for _, line in outputs.last_lines(clean(call.output), 2)]
        return Act(number, f"{name} {one_line(' / '.join(asked), 300)} → {_outcome(call)}", _quoted(said), 1)
    target = one_line(text_of(call, *_ARGUMENTS) or _any_text(call), 160)
    said = [line for _, line in outputs.last_lines(clean(call.output), 0 if looks_up(tool) else 2)]
    rank = 1 if call.status == "error" else 3 if looks_up(tool) else 2
    return Act(number, f"{name} {target} → {_outcome(call)}", _quoted(said), rank)


def _shell(number: str, call: ToolCall, actions: Sequence[Action], looks: _Looks) -> Act:
    script = text_of(call, "command", "cmd").removeprefix(f"cd {looks.root[:-1]} && ")
    checks = [a for a in actions if isinstance(a, Check)]
    deeds = [a for a in actions if isinstance(a, Deed)]
    shows = bool(_SHOWS.match(script)) and not actions
    text = clean(f"{call.output}\n{call.error}" if call.error else call.output)
    failures, more = outputs.failure_lines(text, strong_only=shows) if call.id in looks.telling else ([], 0)
    git = outputs.git_lines(text) if any(d.kind in _GIT_DEEDS for d in deeds) else []
    harmless = call.exit == 0 and not actions
    last = outputs.last_lines(text, int(bool(call.exit)) if shows else 1 if harmless else 3 if checks else 2)
    lines = [line for _, line in sorted({*failures, *git, *last})]
    said = list(_quoted(lines))
    if more:
        said.append(f"({more} more lines tell of failures)")
    if call.cut:
        said.append(f"({call.cut} characters of this output were not kept)")
    failed = call.exit not in {0, None} or call.status == "error" or bool(failures and not shows)
    rank = 0 if failed and not shows else 1 if checks or git else 2 if not shows else 3
    return Act(number, f"{call.tool.lower()} `{_command(script)}` → {_outcome(call)}", tuple(said), rank)


def _agent(number: str, call: ToolCall, looks: _Looks) -> Act:
    """A sub-agent: its task, what it ran and wrote, its last words."""
    kind = one_line(text_of(call, "subagent_type", "agent", "subagent"), 40)
    task = one_line(text_of(call, "description", "prompt"), 160)
    said: list[str] = []
    for i, inner in enumerate(call.inner, 1):
        if _only_reads(inner):
            continue
        if len(said) >= MAX_INNER:
            said.append(f"({len(call.inner) - i + 1} more calls of the sub-agent)")
            break
        act = _act(f"{number}.{i}", inner, looks)
        said.append(f"{act.id} {act.text}")
        said += act.said[:3]
        if looks.work.last_code_call == act.id:
            said.append(AFTER_EDIT)
    if call.inner_cut:
        said.append(f"({call.inner_cut} more calls of the sub-agent were not read)")
    if not call.inner and not call.inner_cut:
        said.append("(what the sub-agent did is not known)")
    words = one_line(clean(call.output)[-1_200:], 500)
    if words:
        said.append(f"its last words: {words}")
    return Act(number, f"sub-agent {kind}: {task} → {_outcome(call)}", tuple(said), rank=1)


def _outcome(call: ToolCall) -> str:
    if is_denied(call):
        return "the person refused or stopped it"
    if call.status in {"pending", "running"}:
        return "still running"
    if was_stopped(call):
        return "stopped before its end (timeout or killed)"
    if call.exit is not None:
        return f"exit {call.exit}"
    if call.status == "error":
        return f"failed: {one_line(call.error or call.output, 160)}"
    return "exit code not known" if call.tool.lower() in SHELL_TOOLS else "done"


def _command(script: str) -> str:
    """The script as one line, here-documents counted instead of shown (the changes show them)."""
    if "<<" in script:
        for step in steps(script):
            if step.body:
                script = script.replace(step.body, f"({step.body.count(chr(10))} lines)", 1)
    return one_line(script.replace("`", "'"), MAX_COMMAND)


def _any_text(call: ToolCall) -> str:
    return next((v for v in call.input.values() if isinstance(v, str) and v.strip()), "")


def _quoted(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"| {line}" for raw in lines if (line := one_line(raw)))
