"""A session's messages as typed values, the same for all hosts.

A **task** is known by the last message that a person typed while the agent was at rest and that it answered;
a **turn** is the last assistant message. The packages in ``hosts`` parse a host's own messages and decide
which of them a person typed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

After = Literal["person", "feedback", "host", "end"]


class Stop(Struct, frozen=True):
    """The moment in a past session at which the agent ended its turn. ``transcript``: as the host would have
    told it then, up to the answer that ended the turn.

    ``after``: the next speaker. ``feedback`` is ours; ``host``: the agent was woken, for example by a
    background task; ``end``: nobody. ``said``: the person's next message, if any.
    """

    transcript: Transcript
    after: After
    said: str = ""


_LOOKS_UP: Final = re.compile(
    r"(?:^|_)(?:read|grep|glob|list|ls|webfetch|websearch|fetch|search|get|find|query|view|show|describe"
    r"|todo\w*|lsp"
    r"|codesearch|question|askuserquestion|skill|invalid|notebookread|toolsearch)(?:_|$)",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"rejected permission|rule which prevents you|doesn't want to proceed|dismissed this question"
    r"|user rejected"
    r"|execution aborted|User aborted|Request interrupted by user|[Pp]ermission .{0,40}denied by the user"
)


def is_denied(call: ToolCall) -> bool:
    """Says whether the person refused or stopped the call, by opencode's or Claude Code's wording."""
    if call.status == "error":
        return bool(_DENIED.search(call.error[:2000]) or _DENIED.search(call.output[:2000]))
    return call.status == "completed" and "User aborted the command" in call.output[-1000:]


def is_refused(call: ToolCall) -> bool:
    """Says whether the person refused or stopped the call; a forbidding rule in the settings is neither."""
    return is_denied(call) and "rule which prevents you" not in call.error[:2000]


def looks_up(tool: str) -> bool:
    """Says whether the tool only reads: an empty result is an answer, not unfinished work."""
    return bool(_LOOKS_UP.search(tool))


ToolStatus = Literal["pending", "running", "completed", "error"]
Compaction = Literal["", "auto", "manual"]
MAX_INNER: Final = 200  # calls of one sub-agent
MAX_AGENTS: Final = 8  # sub-agents of one task whose calls are read
AT_WORK: Final = frozenset({"", "tool-calls"})  # endings of an answer after which the agent goes on
TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]


class Model(Struct, frozen=True):
    """A model as the host names it, e.g. ``anthropic`` / ``claude-sonnet``."""

    provider: str
    model: str


class ToolCall(Struct, frozen=True):
    """One tool call and its result.

    ``input`` holds the call's arguments (plain JSON values). ``output`` may have lost its middle: then
    ``cut`` characters are missing. ``exit`` is a shell command's exit code, None if unknown. ``agent``: the
    host's id of the sub-agent that this call started; ``inner``: that sub-agent's own calls, as far as they
    were read; ``inner_cut`` counts the others. ``shell``: the host's id of the shell that this call
    left in the background.
    """

    id: str
    tool: str
    status: ToolStatus
    input: dict[str, object] = field(default_factory=dict)
    output: str = ""
    error: str = ""
    exit: int | None = None
    cut: int = 0
    ended: int = 0
    agent: str = ""
    inner: tuple[ToolCall, ...] = ()
    inner_cut: int = 0
    shell: str = ""

    @property
    def printed(self) -> str:
        return f"{self.output}\n{self.error}" if self.error else self.output


class Message(Struct, frozen=True):
    """One message. ``at`` is epoch ms.

    ``human``: a person typed it. ``steers``: the host knows that the agent was at work then. ``order``: the
    id of our order that caused it (feedback), else empty. ``finish``: why the model stopped (``stop``,
    ``length``, ``tool-calls`` …), empty while it runs.
    ``error``: the name of the host's error (``MessageAbortedError`` …). ``calls``: in the order they were
    made. ``cost``: what the host says the answer cost in USD, None when it does not know. ``tokens``: input
    and output. ``compaction``: this user message asked for a compaction, and whether the host or the person
    did. ``summary``: this answer is the summary that a compaction made. ``cited``: the names of points that
    the agent cited while it thought; its thoughts themselves are not kept.
    """

    id: str
    role: Literal["user", "assistant"]
    at: int = 0
    text: str = ""
    human: bool = False
    steers: bool = False
    order: str = ""
    agent: str = ""
    model: Model | None = None
    finish: str = ""
    error: str = ""
    error_message: str = ""
    summary: bool = False
    completed: int = 0
    calls: tuple[ToolCall, ...] = ()
    cost: float | None = None
    tokens: int = 0
    compaction: Compaction = ""
    cited: tuple[str, ...] = ()

    @property
    def is_end(self) -> bool:
        """Says whether the answer is finished: a person's next message is another task."""
        return self.finish == "stop" and not (self.error or self.summary)


class Said(Struct, frozen=True):
    """A message of a person, with the agent's last words before it.

    ``refusal``: it was said when they refused a tool call. ``interrupted``: they had stopped the agent just
    before. ``at``: epoch ms. ``message``: the host's id of it. ``line``: its place in the file, from 1 on; 0
    when unknown.
    """

    text: str
    prior: str = ""
    refusal: bool = False
    interrupted: bool = False
    at: int = 0
    session: str = ""
    message: str = ""
    line: int = 0


class Todo(Struct, frozen=True):
    """One entry of the agent's own todo list."""

    text: str
    status: TodoStatus


class Transcript(Struct, frozen=True):
    """A session's messages, oldest first, at least back to the message that opened the task.

    ``busy``: the host says the session works right now. ``parent``: id of the parent session or empty.
    ``begun``: the message that the session knows its task by, empty when unknown. ``unshown``: learned texts
    that were to stand behind a result and do not (``given.without``).
    """

    session: str
    messages: tuple[Message, ...] = ()
    todos: tuple[Todo, ...] = ()
    busy: bool = False
    parent: str = ""
    title: str = ""
    directory: str = ""
    missing: bool = False  # the host no longer knows this session
    readonly: bool = False  # the agent of the task may neither edit nor run commands
    undone: bool = False  # the person took messages back and may still redo them
    begun: str = ""
    unshown: tuple[str, ...] = ()

    def named(self, session: str) -> Transcript:
        """With this id where its messages tell none."""
        return self if self.session else replace(self, session=session)

    @property
    def task(self) -> Message | None:
        """The message that began the task (I28), or None: the last one that a person typed while the agent
        was at rest, and that it answered; else the last one that they typed. The message of ``begun`` stays
        until the agent has answered a later one.
        """
        typed = [i for i, m in enumerate(self.messages) if m.human]
        if not typed:
            return None
        begin = self._beginnings(lambda m: bool(m.error) or m.finish not in AT_WORK, each=True)
        last = begin[-1] if begin else typed[-1]
        known = next((i for i in typed if self.messages[i].id == self.begun), None)
        if known is not None and all(m.role == "user" for m in self.messages[known:last]):
            last = known
        return self.messages[last]

    def _beginnings(self, ends: Callable[[Message], bool], *, each: bool = False) -> list[int]:
        """The places where a person typed after the last answer had ended (``ends``) and the agent answered;
        of several in a row the first one, or ``each``. A message that comes while the agent works, or that a
        prompt of ours or nothing follows, begins no task by itself (I4). The first task has no other
        beginning.
        """
        found, rest = list[int](), True
        answered = [False] * len(self.messages)
        follows = self.busy
        for i in range(len(self.messages) - 1, -1, -1):
            answered[i] = follows
            m = self.messages[i]
            if m.role == "assistant" or m.order:
                follows = not m.order
        for i, m in enumerate(self.messages):
            if m.human:
                if (rest and answered[i] and not m.steers) or not (found or each):
                    found.append(i)
                    rest = each
            elif m.role == "assistant" and not m.summary:
                if ends(m):
                    rest = True
                elif not m.error and m.finish in AT_WORK:
                    rest = False
        return found

    def stale(self, task: str, turn: str) -> str:
        """Why a prompt about this task and turn is out of date; empty when it may leave. An empty ``turn``:
        any turn of the task. A compaction is no work of the agent's.
        """
        said = [m for m in self.messages if not (m.summary or m.compaction)]
        now = next((m for m in reversed(said) if m.role == "assistant"), None)
        begun = replace(self, begun=task).task
        if begun is None or begun.id != task or (now and any(m.human for m in self.since(now.id))):
            return "the person wrote meanwhile"
        if now is None or (turn and now.id != turn):
            return "the agent went on meanwhile"
        if now.error or not now.finish:
            return "the agent was stopped, or works"
        if said[-1] is not now:
            return "the person ran a command, or the agent was told something else"
        return ""

    @property
    def turn(self) -> Message | None:
        """The last assistant message, or None."""
        return next((m for m in reversed(self.messages) if m.role == "assistant"), None)

    def since(self, message_id: str) -> tuple[Message, ...]:
        """The messages after ``message_id``; all of them when that one is not here."""
        for i, m in enumerate(self.messages):
            if m.id == message_id:
                return self.messages[i + 1 :]
        return self.messages

    @property
    def requests(self) -> tuple[Message, ...]:
        """The person's messages of this task, oldest first: the one that they typed after a finished answer,
        and those since then (what they typed while the agent worked, or after Esc).
        """
        begin = self._beginnings(lambda m: m.is_end)
        return tuple(m for m in self.messages[begin[-1] if begin else 0 :] if m.human)

    @property
    def tasks(self) -> tuple[Transcript, ...]:
        """Each task as a transcript of its own, oldest first. A new one begins where the person typed after a
        finished answer, as for ``requests``. Messages before the first are left out; only the last has the
        todos, which are of now.
        """
        starts = self._beginnings(lambda m: m.is_end)
        if not starts:
            return ()
        ends = [*starts[1:], len(self.messages)]
        found = [replace(self, messages=self.messages[a:b]) for a, b in zip(starts, ends, strict=True)]
        return (*(replace(t, todos=()) for t in found[:-1]), *found[-1:])

    @property
    def work(self) -> tuple[Message, ...]:
        """The messages after the first of ``requests``: the work for this task."""
        requests = self.requests
        return self.since(requests[0].id) if requests else self.messages

    @property
    def used(self) -> tuple[float | None, int]:
        """The cost of the agent's work for this task: (USD, tokens). USD is None when no price is known."""
        known = [m.cost for m in self.work if m.cost is not None]
        return (sum(known) if known else None), sum(m.tokens for m in self.work)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(c for m in self.work for c in m.calls)

    @property
    def agents(self) -> tuple[str, ...]:
        """The ids of the sub-agents of ``work``, in order, each once."""
        return tuple(dict.fromkeys(c.agent for c in self.calls if c.agent))

    def with_agents(self, calls: Mapping[str, tuple[ToolCall, ...]], cut: Collection[str] = ()) -> Transcript:
        """With the last calls of its sub-agents, by their ids. ``cut``: those not read in full."""

        def filled(call: ToolCall) -> ToolCall:
            own = calls.get(call.agent, ()) if call.agent else ()
            left = max(int(call.agent in cut), len(own) - MAX_INNER)
            return replace(call, inner=own[-MAX_INNER:], inner_cut=left) if own else call

        if not any(calls.values()):
            return self
        messages = (
            replace(m, calls=tuple(filled(c) for c in m.calls)) if m.calls else m for m in self.messages
        )
        return replace(self, messages=tuple(messages))
