"""Reads a Codex rollout: the file to which Codex appends each line of a session.

A file that is not there yet gives an empty transcript; a file that can't be read raises ``Unavailable``.
Reading blocks: call it in a thread.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ...core.guards import ABORT_ERROR
from ...core.transcript import Message, Todo, ToolCall, Transcript
from .. import past
from ..cuts import cut, cut_deep, size_of
from ..jsonl import HEAD, HEAD_OF_FILE, Follower, end_of, opened
from .lines import Entry, entry_of, is_bulky, result_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.transcript import TodoStatus

WINDOW: Final = 1 << 20
CONTEXT: Final = 16 << 20
KEPT_CHARS: Final = 8 << 20  # of calls, from the newest; what is older is shortened
KEPT_MESSAGES: Final = 20_000
EARLIER: Final = 5  # requests before the task
LAST_LINES: Final = 1 << 18  # bytes in which the beginning of a turn is looked for
STARTED: Final = b'"task_started"'
PATCHED: Final = "Success. Updated the following files:"
STOPPED: Final = "the person stopped it"
_COMPARED: Final = 200
_THIN: Final = (150, 150)
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_STATUSES: Final[dict[str, TodoStatus]] = {
    "pending": "pending", "in_progress": "in_progress", "completed": "completed",
}  # fmt: skip


class _Answer(Struct):
    """The assistant's words and calls from one request to the model. ``ended``: the model had no more to say
    in it. ``calls``: by their ids, in order.
    """

    id: str
    at: int
    texts: list[str] = field(default_factory=list)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    ended: int = 0
    error: str = ""
    why: str = ""
    stopped: bool = False
    tokens: int = 0

    def message(self, agents: dict[str, bool]) -> Message:
        finish = "" if not self.ended else "error" if self.error and not self.stopped else "stop"
        if self.stopped:
            finish = ""
        elif not self.ended and self.calls:
            finish = "tool-calls"
        runs = {agent for agent, over in agents.items() if not over}
        calls = tuple(replace(c, status="running") if c.agent in runs else c for c in self.calls.values())
        if self.error:
            why = self.why or STOPPED
            calls = tuple(
                replace(c, status="error", error=why) if c.status == "running" and not c.shell else c
                for c in calls
            )
        return Message(
            self.id,
            "assistant",
            self.at,
            "\n\n".join(self.texts),
            finish=finish,
            error=self.error,
            error_message=self.why,
            completed=self.ended,
            calls=calls,
            tokens=self.tokens,
        )


class Fold:
    """The conversation so far: feed it the entries in the file's order. ``whole``: they begin with the file's
    first line. ``every``: the tasks before the current one are kept too. ``opened``: the current task's
    beginning was fed.
    """

    def __init__(self, is_ours: Callable[[str], bool], *, whole: bool, every: bool = False) -> None:
        self._is_ours, self._every = is_ours, every
        self._messages: list[Message | _Answer] = []
        self._answer: _Answer | None = None
        self._calls: dict[str, _Answer] = {}
        self._agents: dict[str, bool] = {}  # sub-agents, and whether each has ended
        self._turn, self._named = "", set[str]()
        self._todos: tuple[Todo, ...] = ()
        self._fresh = 0
        self.session = self.directory = self.parent = ""
        self.opened = whole

    @property
    def enough(self) -> bool:
        """Says whether it has the task's beginning and as many earlier requests as are wanted."""
        return self.opened and sum(isinstance(m, Message) and m.human for m in self._messages) > EARLIER

    def take(self, line: bytes) -> None:
        """The next line of the file."""
        if (name := result_of(line)) in self._calls and self._calls[name].calls[name].ended:
            return  # an item had it whole
        entry = entry_of(line) if line.startswith(b"{") else None
        if entry is not None:
            self.feed(entry)

    def feed(self, e: Entry) -> None:  # noqa: C901, PLR0912 - one branch a kind
        """Take in the next entry."""
        match e.kind:
            case "meta":
                if not self.session:
                    self.session, self.directory, self.parent = e.id, e.cwd, e.parent
            case "begin":
                self._turn, self._answer = e.turn, None
            case "human":
                self._person(e)
            case "note":
                self._close(e.at)
                order = e.order if e.order and self._is_ours(e.order) else ""
                self._messages.append(Message(e.id, "user", e.at, e.text, order=order))
            case "answer":
                if self._answer is None or self._answer.calls or self._answer.ended:
                    self._begin(e)
                assert self._answer is not None  # noqa: S101 - just begun
                self._answer.id = e.id
                self._answer.texts += [e.text] if e.text else []
            case "call":
                self._call(e)
            case "output":
                self._output(e)
            case "item":
                self._item(e)
            case "tokens":
                if self._answer is not None:
                    self._answer.tokens += e.tokens
                    if self._answer.calls:
                        self._answer = None  # the model is asked again when they have run
                    else:
                        self._answer.ended = self._answer.ended or e.at
            case "end":
                self._end(e)
            case "compacted":
                self._answer = None
                self._messages.append(Message(f"{e.id}-asked", "user", e.at, compaction="auto"))
                summary = Message(
                    e.id, "assistant", e.at, e.text, finish="stop", summary=True, completed=e.at
                )
                self._messages.append(summary)
            case "back":
                self._take_back(e.count)
        if self._fresh > KEPT_CHARS or len(self._messages) > 2 * KEPT_MESSAGES:
            self._thin()

    def _begin(self, e: Entry) -> None:
        self._answer = _Answer(e.id, e.at)
        self._messages.append(self._answer)

    def _close(self, at: int) -> None:
        """The line after an answer without calls shows that the model had ended it."""
        if self._answer is not None and not self._answer.calls:
            self._answer.ended = self._answer.ended or at
        self._answer = None

    def _person(self, e: Entry) -> None:
        """A person's message; a sub-agent's file has none. The first one of a turn is known by the turn's id,
        as in the hooks.
        """
        self._close(e.at)
        name = e.turn or self._turn
        name = e.id if not name or name in self._named else name
        self._named.add(name)
        last = next((m for m in reversed(self._messages) if isinstance(m, _Answer)), None)
        if last is not None and last.ended and not last.error:
            self._context(last)
        self._messages.append(Message(name, "user", e.at, e.text, human=not self.parent))

    def _context(self, answer: _Answer) -> None:
        """A new task begins: of those before it a few requests and the last answer are kept."""
        self.opened = True
        if self._every:
            return
        requests = [m for m in self._messages if isinstance(m, Message) and m.human][-EARLIER:]
        self._messages = [*requests, replace(answer.message({}), calls=())]
        self._calls, self._todos, self._fresh = {}, (), 0

    def _call(self, e: Entry) -> None:
        if self._answer is None or self._answer.ended:
            self._begin(e)
        assert self._answer is not None  # noqa: S101 - just begun
        self._answer.calls[e.id] = ToolCall(e.id, e.tool, "running", e.input)
        self._calls[e.id] = self._answer
        self._fresh += size_of(e.input)
        if e.tool == "update_plan":
            self._todos = todos_of(e.input) or self._todos

    def _change(self, name: str, **changes: object) -> None:
        answer = self._calls.get(name)
        if answer is not None:
            answer.calls[name] = replace(answer.calls[name], **changes)

    def _output(self, e: Entry) -> None:
        """The output that the model was shown. An item of the call has it whole, and counts more."""
        answer = self._calls.get(e.id)
        if answer is None:
            return
        call = answer.calls[e.id]
        self._fresh += len(e.text)
        if e.agent:
            self._agents.setdefault(e.agent, False)
        if call.ended:
            return
        if call.tool == "apply_patch" and not e.text.startswith(PATCHED):
            self._change(e.id, status="error", error=e.text, ended=e.at)
            return
        self._change(
            e.id,
            status="running" if e.shell else "completed",
            output=e.text,
            cut=e.cut,
            exit=e.exit,
            shell=e.shell,
            agent=e.agent or call.agent,
            ended=0 if e.shell else e.at,
        )

    def _item(self, e: Entry) -> None:
        if e.tool == "subagent_notification":
            self._agents[e.id] = True
        elif e.agent:
            self._agents.setdefault(e.agent, False)
            self._change(e.id, agent=e.agent)
        elif e.tool == "bash":
            given = {"input": e.input} if e.id not in self._calls or not self._command(e.id) else {}
            self._change(
                e.id, status="completed", output=e.text, cut=e.cut, exit=e.exit, ended=e.at, shell="", **given
            )
        elif e.tool == "apply_patch":
            failed = e.status in {"failed", "declined"}
            self._change(
                e.id,
                tool="apply_patch",
                input=e.input,
                status="error" if failed else "completed",
                output="" if failed else e.text,
                error=e.text if failed else "",
                exit=None,
                ended=e.at,
            )
        else:
            self._change(e.id, status="error", error=e.text, ended=e.at)

    def _command(self, name: str) -> object:
        return self._calls[name].calls[name].input.get("command")

    def _end(self, e: Entry) -> None:
        """The turn is over: finished, failed, or ended by the person."""
        last = self._messages[-1] if self._messages else None
        answer, self._answer = last if isinstance(last, _Answer) else None, None
        if e.status == "stop":
            if answer is not None and not answer.calls:
                answer.ended = answer.ended or e.at
            return
        if answer is None:
            answer = _Answer(f"{e.status}-{e.turn or e.at}", e.at)
            self._messages.append(answer)
        answer.stopped = e.status != "error"
        answer.ended = e.at
        answer.error = "HostError" if e.status == "error" else ABORT_ERROR
        answer.why = e.text or ("" if e.status == "error" else STOPPED)

    def _take_back(self, turns: int) -> None:
        """The person took their last turns back."""
        places = [
            n for n, m in enumerate(self._messages) if isinstance(m, Message) and m.role == "user" and m.human
        ]
        if turns > len(places):
            self._messages, self.opened = [], False
        elif turns:
            del self._messages[places[-turns] :]
        self._answer = None

    def _thin(self) -> None:
        chars, first = 0, max(0, len(self._messages) - KEPT_MESSAGES)
        kept: list[Message | _Answer] = []
        for n, m in enumerate(reversed(self._messages)):
            at = len(self._messages) - 1 - n
            if at < first and not (isinstance(m, Message) and m.human):
                continue
            if isinstance(m, _Answer):
                if chars > KEPT_CHARS:
                    m.calls = {name: _thinned(call) for name, call in m.calls.items()}
                chars += sum(size_of(c.input) + len(c.output) for c in m.calls.values())
            kept.append(m)
        self._messages, self._fresh = kept[::-1], 0

    def transcript(self) -> Transcript:
        """The conversation as a transcript."""
        messages = tuple(m.message(self._agents) if isinstance(m, _Answer) else m for m in self._messages)
        return Transcript(
            self.session, messages, todos=self._todos, parent=self.parent, directory=self.directory
        )

    def expect(self, said: str, at: int) -> bool:
        """Says whether it ends with the answer that ends with ``said``; then that answer is finished."""
        last = self._messages[-1] if self._messages else None
        if not isinstance(last, _Answer) or (last.calls and not last.ended):
            return False
        found = ("\n\n".join(last.texts) or last.why).rstrip().endswith(said.rstrip()[-_COMPARED:])
        if found and said and not last.ended:
            last.ended = at
        return found


def _thinned(call: ToolCall) -> ToolCall:
    return replace(call, input=cut_deep(call.input, _THIN), output=cut(call.output, _THIN)[0])


def todos_of(given: dict[str, object]) -> tuple[Todo, ...]:
    """The agent's own plan, as its tool gets it."""
    plan = given.get("plan")
    steps = [step for step in plan[:200] if isinstance(step, dict)] if isinstance(plan, list) else []
    found = ((step.get("step"), _STATUSES.get(str(step.get("status")))) for step in steps)
    return tuple(Todo(text[:1_000], status) for text, status in found if isinstance(text, str) and status)


class RolloutReader:
    """Reads one session's file (``jsonl.Follower``). ``is_ours`` says whether an order id is one of ours.
    ``found``: whether the last ``read`` found the final text that it was told to expect. ``window``: as of
    ``Follower``.
    """

    def __init__(self, path: str | Path, *, is_ours: Callable[[str], bool], window: int = WINDOW) -> None:
        self.path = Path(path)
        self.found = False
        self.rested = True  # nothing is written before an answer to a hook leaves
        self._head: Entry | None = None

        def make(whole: bool) -> Fold:
            fold = Fold(is_ours, whole=whole)
            if not whole and self._head is not None:
                fold.feed(self._head)
            return fold

        self._file = Follower(make, is_bulky, window, CONTEXT)

    def read(self, expect: str = "", *, closed: bool = False) -> Transcript:
        """The task and its work so far. ``expect``: the final text by the Stop hook. ``closed``: see
        ``Follower``. Raises ``Unavailable``.
        """
        transcript = Transcript(name_of(self.path))
        with opened(self.path) as fd:
            if fd >= 0:
                self._head = self._head or head_of(os.pread(fd, HEAD_OF_FILE, 0))
                fold = self._file.read(fd, closed=closed)
                self.found = fold.expect(expect, int(os.fstat(fd).st_mtime * 1000))
                transcript = fold.transcript().named(name_of(self.path))
        return transcript


def transcript_of(data: bytes, name: str) -> Transcript:
    """The transcript in ``data``, a whole file. Its last line needs no line end."""
    return _fold_of(data).transcript().named(name_of(Path(name)))


def _fold_of(data: bytes, *, every: bool = False) -> Fold:
    fold = Fold(lambda _: True, whole=True, every=every)
    for line in data.split(b"\n"):
        fold.take(line)
    return fold


class _Mark(msgspec.Struct):
    """The beginning of a rollout's first line."""

    timestamp: str
    type: str
    payload: msgspec.Raw


def is_rollout(data: bytes) -> bool:
    """Says whether ``data``, the beginning of a file or more, is a rollout."""
    try:
        found = msgspec.json.decode(data[:HEAD_OF_FILE].split(b"\n", 1)[0], type=_Mark)
    except (ValueError, RecursionError):
        return False
    return found.type in {"session_meta", "response_item", "event_msg"}


def head_of(data: bytes) -> Entry | None:
    """The first lines' facts on the session: its id, its folder, and whether it is a sub-agent's."""
    entries = (entry_of(line) for line in data.split(b"\n", 5)[:5] if line.startswith(b"{"))
    return next((entry for entry in entries if entry is not None and entry.kind == "meta"), None)


def begun_by(path: Path, turn: str) -> str:
    """The trigger of the turn (``exec``, ``user``), by the file's last lines; "" when they do not say. Raises
    ``Unavailable``.
    """
    lines = (line for line in reversed(end_of(path, LAST_LINES).split(b"\n")) if STARTED in line[:HEAD])
    begins = (entry_of(line) for line in lines)
    return next((e.status for e in begins if e is not None and e.kind == "begin" and e.turn == turn), "")


def name_of(path: Path) -> str:
    """The session's id, which ends the file's name."""
    found = _ID.findall(path.stem)
    return found[-1] if found else path.stem


def with_sub_agents(transcript: Transcript, path: Path) -> Transcript:
    """The transcript with the calls of its last sub-agents, each of which has a rollout of its own beside
    that of the session.
    """

    def calls(data: bytes) -> tuple[ToolCall, ...]:
        return tuple(c for m in _fold_of(data, every=True).transcript().messages for c in m.calls)

    return past.with_sub_agents(transcript, lambda agent: rollout_of(path, agent), calls)


def rollout_of(path: Path, session: str) -> Path | None:
    """The file of another session of the same Codex."""
    if not _ID.fullmatch(session):
        return None
    pattern = f"rollout-*-{session}.jsonl"
    near = next(path.parent.glob(pattern), None)
    return near or next(path.parents[3].glob(f"*/*/*/{pattern}"), None) if len(path.parents) > 3 else near
