"""The branch of a transcript that counts: the current task, and a little of what came before it.

A transcript is a tree, because a person may go back and continue from an earlier message. Each entry names
its parent. An answer or a prompt whose parent is not the newest entry begins a new branch, and the entries
after that parent are dropped (rule 11 of ``design/claude-transcripts.md``).

A branch keeps the entries of the current task. Of the time before it keeps up to five requests and the answer
that ended the previous task. To limit memory, long texts in the older part of a long task are shortened, and
its oldest entries are left out. The result depends only on the lines, not on how many came at once. A branch
may be fed only the end of a file; ``opened`` says whether that end includes the task's beginning.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, cast, get_args

from msgspec.structs import replace

from ...core.consent import COMMAND_MARK
from ...core.guards import ABORT_ERROR
from ...core.transcript import Message, Model, Todo, TodoStatus, ToolCall, Transcript
from ..cuts import TEXT, cut, cut_deep
from ..wire import text_or_empty
from .lines import BARE, SHELL, Entry, Result, Use

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
EARLIER: Final = 5
MAX_OPENINGS: Final = 50
MAX_EARLY: Final = 100
MAX_SEEN: Final = 1 << 17
MAX_REQUESTS: Final = 500  # of a task, besides those in its newest lines
# Where an entry's parent stands: the number of an entry of this task, or one of these
_ROOT: Final = 0  # there is no parent: the entry begins a conversation
_BASE: Final = -1  # the entry before this task's first one
_NOWHERE: Final = -2  # the parent is not known
_NEXT: Final = -3  # the newest entry
_THIN: Final = (150, 150)
_THIN_REQUEST: Final = (1_000, 1_000)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a task is kept. Texts older than the newest ``chars`` are shortened; entries older than the
    newest ``lines`` are left out.
    """

    chars: int = 8 << 20
    lines: int = 20_000


class Branch:
    """Feed it the entries in the file's order. ``whole``: they begin with the file's first line. ``every``:
    the tasks before the current one are kept too, within the same bounds.
    """

    def __init__(
        self, is_ours: Callable[[str], bool], bounds: Bounds, *, whole: bool, every: bool = False
    ) -> None:
        self._every = every
        self._is_ours = is_ours
        self._bounds = bounds
        self._whole = whole
        self._entries: list[Entry] = []
        self._numbers: list[int] = []
        self._places: dict[str, int] = {}
        self._context: tuple[Message, ...] = ()
        self._openings: dict[str, tuple[tuple[Message, ...], bool]] = {}
        self._seen: set[int] = set()
        self._count = 0
        self._size = 0
        self._fresh = [0, 0]  # lines and characters since the last thinning
        self._early: list[Entry] = []
        self._held: list[Entry] = []  # a command that may be ours, and what stands between it and its text
        self._rooted = whole
        self.opened = whole
        self.session = ""

    def is_enough(self) -> bool:
        """Whether it has the task's beginning and as many earlier requests as are wanted."""
        return self.opened and (self._rooted or sum(m.human for m in self._context) >= EARLIER)

    def feed(self, entry: Entry) -> None:
        """Take in the next entry. One that was fed before is ignored."""
        name = hash(entry.uuid)
        if name in self._seen:
            return
        if len(self._seen) >= MAX_SEEN:
            self._seen.clear()
        self._seen.add(name)
        self.session = entry.session or self.session
        if self._is_early(entry):
            self._early.append(entry)
            return
        if self._early and entry.kind not in {"link", "expansion"} and entry.parent is not None:
            self._take_early()  # their parent is in none of the lines that are read
        self._take(entry)
        if self._early and entry.uuid == self._early[0].parent:
            self._take_early()

    def _is_early(self, entry: Entry) -> bool:
        """Whether it stands before its parent. 2.1.197 writes a session's first answer before the lines with
        which the session begins, when the model was faster than the file.
        """
        if self._early:
            return len(self._early) < MAX_EARLY and any(e.uuid == entry.parent for e in self._early)
        nothing = self._whole and not (self._entries or self._context or self._places)
        return nothing and entry.kind == "answer" and bool(entry.parent)

    def _take_early(self) -> None:
        early, self._early = self._early, []
        for entry in early:
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        """Take in an entry. `/reflect` may be our command or somebody else's; the text that follows tells."""
        if not self._held and not (entry.command and entry.text.split(" ", 1)[0] == BARE):
            self._put(entry)
            return
        self._held.append(entry)
        if len(self._held) == 1 or (entry.kind == "link" and len(self._held) < MAX_EARLY):
            return
        (command, *rest), self._held = self._held, []
        ours = entry.kind == "expansion" and entry.text.lstrip().startswith(COMMAND_MARK)
        self._put(replace(command, kind="link") if ours and entry.parent == command.uuid else command)
        for each in rest:
            self._take(each)

    def _put(self, entry: Entry) -> None:
        place = self._place(entry)
        if entry.kind == "expansion":
            self._expand(entry)
        if entry.kind in {"link", "expansion"}:
            if place != _NOWHERE:
                self._places[entry.uuid] = self._tip() if place == _NEXT else place
            return
        if entry.kind not in {"result", "boundary"}:
            if place == _NOWHERE:
                self._forget()
            else:
                self._rewind(entry, place)
        if entry.kind == "human" or (entry.kind == "result" and entry.text):
            self._human(entry)
        self._count += 1
        self._entries.append(entry)
        self._numbers.append(self._count)
        self._places[entry.uuid] = self._count
        self._size += entry.size
        self._fresh[0] += 1
        self._fresh[1] += entry.size
        if self._fresh[0] > self._bounds.lines or self._fresh[1] > self._bounds.chars:
            self._thin()

    def _tip(self) -> int:
        return self._numbers[-1] if self._numbers else _BASE if self._context else _ROOT

    def _place(self, entry: Entry) -> int:
        """Where the entry's parent stands. An entry that does not say follows the one before it."""
        if entry.parent == "":
            return _NEXT
        if entry.parent is None:
            if entry.kind in {"link", "expansion"} and not (self._entries or self._context):
                return _ROOT if self._whole else _NOWHERE
            return _ROOT if entry.kind == "human" else _NEXT
        place = self._places.get(entry.parent, _NOWHERE)
        return _BASE if place == _NOWHERE and entry.parent in self._openings else place

    def _forget(self) -> None:
        """The parent is not known. Unless the whole file was fed, drop all that came before."""
        if not self._whole and (self._entries or self._context):
            self._reset((), rooted=False)
            self.opened = False

    def _reset(self, context: tuple[Message, ...], *, rooted: bool) -> None:
        self._context, self._rooted = context, rooted
        self._entries, self._numbers = [], []
        self._size, self._fresh = 0, [0, 0]

    def _rewind(self, entry: Entry, place: int) -> None:
        """Drop what follows the parent of ``entry``. Parallel calls and their results begin no branch."""
        if place == _NEXT:
            return
        if place == _ROOT:
            self._reset((), rooted=True)
            self.opened = True
        elif place == _BASE:
            context, rooted = self._openings.get(entry.parent or "", (self._context, self._rooted))
            if context is not self._context or self._others(entry, 0):
                self._reset(context, rooted=rooted)
        else:
            at = bisect_left(self._numbers, place)
            is_here = at < len(self._numbers) and self._numbers[at] == place
            if is_here and self._others(entry, at + 1):
                del self._entries[at + 1 :], self._numbers[at + 1 :]
                self._size = sum(x.size for x in self._entries)

    def _others(self, entry: Entry, at: int) -> bool:
        """Whether an entry from ``at`` on is neither a result nor another line of the same answer."""
        return any(
            x.kind != "result" and not (x.kind == "answer" == entry.kind and x.message == entry.message)
            for x in islice(self._entries, at, None)
        )

    def _human(self, entry: Entry) -> None:
        """A person's message: after a finished answer it opens a new task, and the old task is dropped."""
        since = list(takewhile(lambda x: x.kind != "human", reversed(self._entries)))[::-1]
        answer = "" if self._every else finished_in(since)
        if not answer:
            return
        said = [x for x in self._entries if x.kind == "human" or (x.text and x.results)]
        (done,) = messages_of([x for x in since if x.message == answer], self._is_ours)
        known = [m.id for m in self._context if m.human]
        requests = messages_of(said, self._is_ours, known=known)
        earlier = [m for m in (*self._context, *requests) if m.human]
        context = (*earlier[-EARLIER:], _bare(done))
        self._reset(context, rooted=self._rooted)
        self._places.clear()
        self.opened = True
        if entry.parent:
            self._openings.pop(entry.parent, None)
            self._openings[entry.parent] = (self._context, self._rooted)
            while len(self._openings) > MAX_OPENINGS:
                del self._openings[next(iter(self._openings))]

    def _expand(self, entry: Entry) -> None:
        """What a command or a skill stands for is asked for as if the person had typed it (I28)."""
        last = self._entries[-1] if self._entries else None
        if last is not None and last.command and entry.parent == last.uuid and entry.text.strip():
            text = cut(f"{last.text}\n\n{entry.text.strip()}", TEXT)[0]
            more = len(text) - len(last.text)
            self._entries[-1] = replace(last, text=text, size=last.size + more)
            self._size += more

    def _messages(self, directory: str = "") -> list[Message]:
        known = [m.id for m in self._context if m.human]
        return messages_of([*self._kept(), *self._early], self._is_ours, directory=directory, known=known)

    def _kept(self) -> list[Entry]:
        """The entries within the bounds, counted from the newest; requests stay even outside them."""
        if len(self._entries) <= self._bounds.lines and self._size <= self._bounds.chars:
            return self._entries
        kept: list[Entry] = []
        lines = chars = requests = 0
        for entry in reversed(self._entries):
            person = entry.kind == "human" or bool(entry.text and entry.results)
            old = lines >= self._bounds.lines
            requests += old and person
            if not old or (person and requests <= MAX_REQUESTS) or entry.kind in {"boundary", "summary"}:
                kept.append(_thinned(entry) if chars > self._bounds.chars else entry)
            lines, chars = lines + 1, chars + entry.size
        return kept[::-1]

    def _thin(self) -> None:
        kept = self._kept()
        numbers = dict(zip((e.uuid for e in self._entries), self._numbers, strict=True))
        self._entries, self._numbers = kept, [numbers[e.uuid] for e in kept]
        self._size, self._fresh = sum(e.size for e in kept), [0, 0]
        floor = self._numbers[-self._bounds.lines :][0]
        self._places = {u: n for u, n in self._places.items() if n >= floor or n <= _ROOT}

    def transcript(self, directory: str) -> Transcript:
        """The branch as a transcript. ``directory``: where the session works."""
        messages = (*self._context, *self._messages(directory))
        found = Transcript(self.session, messages, directory=directory)
        return with_fields(found, todos=todos_of(found.work, self._entries))


def _bare(message: Message) -> Message:
    """The message without its tool calls."""
    return message if not message.calls else with_fields(message, calls=())


def _thinned(entry: Entry) -> Entry:
    """An old entry with its long texts cut. ``size`` stays the same, so the bounds count it as before."""
    if entry.thin:
        return entry
    return replace(
        entry,
        text=cut(entry.text, _THIN_REQUEST if entry.kind == "human" else _THIN)[0],
        uses=tuple(replace(u, input=_thin_input(u.input)) for u in entry.uses),
        results=tuple(
            replace(r, output=cut(r.output, _THIN)[0], error=cut(r.error, _THIN)[0]) for r in entry.results
        ),
        thin=True,
    )


def _thin_input(given: dict[str, object]) -> dict[str, object]:
    found = cut_deep(given, _THIN)
    return found if isinstance(found, dict) else {}


# Entries as core messages: the lines of one answer are one message, and each result goes to its call.


@dataclass(slots=True)
class _Answer:
    """The lines of one assistant message, and its calls, each with the folder that it ran in, if known.
    ``interrupted``: the interrupt's text, if any.
    """

    agent: str
    entries: list[Entry] = field(default_factory=list)
    calls: list[tuple[Entry, Use, str]] = field(default_factory=list)
    interrupted: str = ""

    def add(self, e: Entry, *, strayed: bool) -> None:
        """The host's shell stays in its folder from call to call. Once it has left the project's folder
        (``strayed``), the first shell call gets the folder that the line names.
        """
        self.entries.append(e)
        for use in e.uses:
            first = use.tool == SHELL and not any(u.tool == SHELL for _, u, _ in self.calls)
            self.calls.append((e, use, e.cwd if first and strayed else ""))


def messages_of(  # noqa: C901, PLR0912 - one branch a kind
    entries: Iterable[Entry],
    is_ours: Callable[[str], bool],
    *,
    directory: str = "",
    known: Iterable[str] = (),
) -> list[Message]:
    """Core messages in order. ``known``: ids that earlier human messages have; they are not used again. A
    result without its call is left out.
    """
    entries = list(entries)
    results = {r.id: (e, r) for e in entries for r in e.results}
    messages: list[_Answer | Message] = []
    answers: dict[str, _Answer] = {}
    tools: dict[str, str] = {}
    ids, mode, strayed = set(known), "", False
    last: _Answer | None = None  # the newest answer, if it came after the newest message to the agent
    for e in entries:
        match e.kind:
            case "answer":
                if e.message not in answers:
                    answers[e.message] = _Answer(PLAN if mode == PLAN else "")
                    messages.append(answers[e.message])
                last = answers[e.message]
                strayed = strayed or bool(directory and e.cwd and e.cwd != directory)
                last.add(e, strayed=strayed)
                tools.update((use.id, use.tool) for use in e.uses)
            case "interrupt" if last is not None:
                last.interrupted = e.text
            case "interrupt":  # Esc before the first word is an empty answer, as in other hosts
                stopped = Message(e.uuid, "assistant", e.at, error=ABORT_ERROR, error_message=e.text)
                messages.append(with_fields(stopped, completed=e.at))
            case "result":
                for r in e.results:
                    if not r.failed and (tool := tools.get(r.id)) in {"ExitPlanMode", "EnterPlanMode"}:
                        mode = PLAN if tool == "EnterPlanMode" else "default"
                if e.text:
                    messages.append(_human(e, ids, mode))
            case "boundary":
                messages.append(Message(e.uuid, "user", e.at, compaction=e.compaction))
            case "summary":
                summary = Message(e.uuid, "assistant", e.at, e.text, finish="stop", summary=True)
                messages.append(with_fields(summary, completed=e.at))
            case kind:
                mode, last = e.mode or mode, None
                if kind == "human":
                    messages.append(_human(e, ids, mode))
                else:
                    order = e.order if e.order and is_ours(e.order) else ""
                    messages.append(Message(e.uuid, "user", e.at, e.text, order=order))
    return [m if isinstance(m, Message) else _message(m, results) for m in messages]


def _human(entry: Entry, ids: set[str], mode: str) -> Message:
    """A person's message. Its id is that of the prompt, as in the hooks; a second one gets its line's id."""
    name = entry.prompt if entry.kind == "human" and entry.prompt and entry.prompt not in ids else entry.uuid
    ids.add(name)
    return Message(name, "user", entry.at, entry.text, human=True, agent=PLAN if mode == PLAN else "")


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
    todos: dict[str, Todo] = {}
    for call in (c for m in messages for c in m.calls if c.status == "completed"):
        given, name = call.input, str(call.input.get("taskId"))[:40]
        subject, status = text_or_empty(given.get("subject")), text_or_empty(given.get("status"))
        old = todos.get(name)
        if call.tool == "TodoWrite":
            items = given.get("todos")
            items = items[:MAX_TODOS] if isinstance(items, list) else []
            todos = {f"w{n}": todo for n, item in enumerate(items) if (todo := _todo(item)) is not None}
        elif call.tool == "TaskCreate" and subject and len(todos) < MAX_TODOS:
            todos[ids.get(call.id, call.id)] = Todo(subject[:MAX_TODO], "pending")
        elif call.tool == "TaskUpdate" and status == "deleted":
            todos.pop(name, None)
        elif call.tool == "TaskUpdate" and old is not None:
            state = cast("TodoStatus", status) if status in _STATUSES else old.status
            todos[name] = Todo(subject[:MAX_TODO] or old.text, state)
    return tuple(todos.values())


def _todo(item: object) -> Todo | None:
    if not isinstance(item, dict):
        return None
    text, status = item.get("content"), text_or_empty(item.get("status"))
    if not isinstance(text, str) or status not in _STATUSES:
        return None
    return Todo(text[:MAX_TODO], cast("TodoStatus", status))
