"""The activity log: every tool call of the task in order, one line each, with the first, the last and the
decisive lines of its output.

A missing line means that a call did not happen, so each gap has a line that counts it. The log shows calls,
and judges nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..core.evidence import FAILED, Act
from ..core.transcript import is_denied, looks_up
from . import outputs
from .actions import (
    AGENT_TOOLS,
    SHELL_TOOLS,
    TODO_TOOLS,
    WRITE_TOOLS,
    Action,
    Check,
    Deed,
    questions_of,
    text_of,
)
from .edits import written_by_tool
from .outputs import clean, one_line
from .shell import steps
from .work import Work, was_stopped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..core.transcript import Message, ToolCall, Transcript

MAX_CALLS: Final = 500  # the last calls of a task that get a line; those before are counted
MAX_COMMAND: Final = 500  # characters
MAX_INNER: Final = 30  # calls of one sub-agent that get a line
INNER_RAW: Final = 3  # the last of them, with what they printed
FIRST_LINES: Final = 6  # of an output,
LAST_LINES: Final = 12  # and
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
    """The log of the current task. ``work``: of the same calls (``collect.read``)."""
    acts: list[Act] = []
    reads: list[tuple[int, ToolCall]] = []
    messages = transcript.work
    calls = [c for m in messages for c in m.calls]
    number, skip = 0, max(0, len(calls) - MAX_CALLS)
    edited = int(work.last_code_call.partition(".")[0].removeprefix("A") or 0)
    looks = _Looks(work, work.actions, transcript.directory.rstrip("/") + "/", _telling(calls[skip:]))
    for message in messages:
        if message.role == "user":
            _collapse(reads, acts)
            acts += _mark(message)
        for call in message.calls:
            number += 1
            if number <= skip:
                continue
            if _only_reads(call) and not (edited and number > edited):
                reads.append((number, call))
            else:
                _collapse(reads, acts)
                acts.append(_act(f"A{number}", call, looks))
                if work.last_code_call == f"A{number}":
                    acts.append(Act("", AFTER_EDIT, rank=0, calls=0))
    _collapse(reads, acts)
    if edited:  # a call after the last edit of code shows whether the work holds
        acts = [replace(a, verifies=True, rank=min(a.rank, 1)) if _number(a) > edited else a for a in acts]
    if skip:
        early = Counter(c.tool for c in calls[:skip]).most_common(MAX_NAMES)
        counts = ", ".join(f"{n} {one_line(tool, 40)}" for tool, n in early)
        acts.insert(0, Act("", f"({skip} calls before these have no line: {counts})", rank=0, calls=0))
    return tuple(acts)


class _Looks(Struct, frozen=True):
    """The inputs of all lines. ``root``: the session's folder; ``telling``: the ids of calls whose output may
    tell of a failure.
    """

    work: Work
    actions: Mapping[str, tuple[Action, ...]]
    root: str
    telling: frozenset[str]


def _number(act: Act) -> int:
    return int(act.id[1:].partition("-")[0].partition(".")[0] or 0)


def _telling(calls: Sequence[ToolCall]) -> frozenset[str]:
    every = [c for call in calls for c in (*call.inner, call) if c.tool.lower() in SHELL_TOOLS]
    found = outputs.with_marks([c.printed for c in every])
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
    actions = looks.actions.get(number, ())
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
        text = f"{name} {one_line(' / '.join(asked), 300)} → {_outcome(call)}"
        return Act(number, text, _quoted(said), rank=1)
    target = one_line(text_of(call, *_ARGUMENTS) or text_of(call, *call.input), 160)
    text = clean(call.output)
    said = [line for _, line in outputs.last_lines(text, 0 if looks_up(tool) else 2)]
    rank = 1 if call.status == "error" else 3 if looks_up(tool) else 2
    return Act(number, f"{name} {target} → {_outcome(call)}", _quoted(said), _raw(text), rank)


def _shell(number: str, call: ToolCall, actions: Sequence[Action], looks: _Looks) -> Act:
    script = text_of(call, "command", "cmd").removeprefix(f"cd {looks.root[:-1]} && ")
    checks = [a for a in actions if isinstance(a, Check)]
    deeds = [a for a in actions if isinstance(a, Deed)]
    shows = bool(_SHOWS.match(script)) and not actions
    text = clean(call.printed)
    failures, more = outputs.failure_lines(text, strong_only=shows) if call.id in looks.telling else ([], 0)
    git = outputs.git_lines(text) if any(d.kind in _GIT_DEEDS for d in deeds) else []
    harmless = call.exit == 0 and not actions
    last = outputs.last_lines(text, int(bool(call.exit)) if shows else 1 if harmless else 3 if checks else 2)
    lines = [line for _, line in sorted({*failures, *git, *last})]
    notes = [f"({more} more lines tell of failures)"] if more else []
    if call.cut:
        notes.append(f"({call.cut} characters of this output were not kept)")
    said = (*_quoted(lines), *notes)
    raw = (*_raw(text, [*failures, *git]), *notes)
    failed = call.exit not in {0, None} or call.status == "error" or bool(failures and not shows)
    rank = FAILED if failed and not shows else 1 if checks or git else 2 if not shows else 3
    shown = () if raw == said else raw
    return Act(number, f"{call.tool.lower()} `{_command(script)}` → {_outcome(call)}", said, shown, rank)


def _agent(number: str, call: ToolCall, looks: _Looks) -> Act:
    """A sub-agent: its task, its commands and writes, its last words."""
    kind = one_line(text_of(call, "subagent_type", "agent", "subagent"), 40)
    task = one_line(text_of(call, "description", "prompt"), 160)
    said: list[str] = []
    raw: list[str] = []
    own = [(i, inner) for i, inner in enumerate(call.inner, 1) if not _only_reads(inner)]
    if early := len(own[:-MAX_INNER]):
        said.append(f"({early} calls of the sub-agent before these have no line)")
    raw += said
    for at, (i, inner) in enumerate(own[-MAX_INNER:], 1):
        act = _act(f"{number}.{i}", inner, looks)
        last = at > min(len(own), MAX_INNER) - INNER_RAW
        said += [f"{act.id} {act.text}", *act.said[:3]]
        raw += [f"{act.id} {act.text}", *(act.raw if last and act.raw else act.said[:3])]
        if looks.work.last_code_call == act.id:
            said.append(AFTER_EDIT)
            raw.append(AFTER_EDIT)
    notes = [f"({call.inner_cut} more calls of the sub-agent were not read)"] if call.inner_cut else []
    if not call.inner and not call.inner_cut:
        notes.append("(what the sub-agent did is not known)")
    words = clean(call.output).strip()
    said += [*notes, f"its last words: {one_line(words[-1_200:], 500)}"] if words else notes
    raw += [*notes, f"its last words: {one_line(words[-3_000:], 1_500)}"] if words else notes
    return Act(number, f"sub-agent {kind}: {task} → {_outcome(call)}", tuple(said), tuple(raw), rank=1)


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


def _raw(text: str, picked: Sequence[tuple[int, str]] = ()) -> tuple[str, ...]:
    """The first and the last lines of an output as printed, the ``picked`` ones between them, and the size of
    each gap.
    """
    return tuple(
        line if gap else f"| {line}" for line, gap in outputs.ends(text, FIRST_LINES, LAST_LINES, picked)
    )


def _quoted(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"| {line}" for raw in lines if (line := one_line(raw)))
