"""The current branch of a transcript: the current task, and a little of the time before it.

A transcript is a tree, because a person may go back and continue from an earlier message. Each entry names
its parent, so the branch is the way from the newest entry back to the first one (rule 11 of
``design/claude-transcripts.md``), with the results and the other lines of its answers, which stand beside it.

Of the branch the current task is kept, with up to five requests and the previous task's last answer before
it. Long texts in the older part of a long task are shortened, and its oldest entries are left out. The result
depends only on the lines, not on how many came at once. A branch may be fed only the end of a file;
``opened`` says whether that end includes the task's beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.consent import COMMAND_MARK
from ...core.guards import ABORT_ERROR
from ...core.transcript import Message, Model, Todo, TodoStatus, ToolCall, Transcript
from ..cuts import TEXT, cut, cut_deep
from ..jsonl import HEAD
from ..wire import text_or_empty
from .lines import BARE, SHELL, Entry, Result, Use, entry_of, is_bulky

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
MAX_REQUESTS: Final = 500  # of a task, besides those in its newest lines
MAX_EARLY: Final = 100
MANY: Final = 500  # entries since the last thinning, at least, after which a person's message thins again
_PLACES: Final = frozenset({"link", "expansion", "rest"})  # kinds of which only the place counts
_WORK: Final = frozenset({"human", "note", "answer", "result"})
_ROOT: Final = -1  # there is no parent: the entry begins a conversation
_NOWHERE: Final = -2  # the parent is not known
_NOTHING: Final = {"text": "", "uses": (), "results": (), "size": 0}
_THIN: Final = (150, 150)
_THIN_REQUEST: Final = (1_000, 1_000)


class Bounds(Struct, frozen=True):
    """The kept part of a task. Texts older than the newest ``chars`` are shortened; entries older than the
    newest ``lines`` are left out.
    """

    chars: int = 8 << 20
    lines: int = 20_000


class _View(NamedTuple):
    """The entries of the branch: of the time before the task, and of the task. ``rooted``: none is missing
    before them. ``answers``: the ids of the answers that ended a task.
    """

    context: list[Entry]
    task: list[Entry]
    rooted: bool
    answers: set[str]


class Branch:
    """Feed it the lines or entries in the file's order (a ``Fold``). ``whole``: they begin with the file's
    first line.
    """

    def __init__(self, is_ours: Callable[[str], bool], bounds: Bounds, *, whole: bool) -> None:
        self._is_ours = is_ours
        self._bounds = bounds
        self._whole = whole
        self._entries: list[Entry] = []
        self._places: dict[str, int] = {}
        self._more: dict[str, list[Entry]] = {}  # what a command stands for, by the command's uuid
        self._spoken = False  # a person's message was fed
        self._fresh = [0, 0]  # lines and characters since the last thinning
        self._session = ""
        self.rested = False  # nothing came since the host said that its Stop hooks are over
        self._seen: _View | None = None  # as it is until the next entry

    def take(self, line: bytes) -> None:
        """Take in the next line. One that is no JSON or no part of a conversation is ignored."""
        if line.startswith(b"{") and not is_bulky(line[:HEAD]) and (entry := entry_of(line)) is not None:
            self.feed(entry)

    def feed(self, entry: Entry) -> None:
        """Take in the next entry. One that was fed before is ignored."""
        if entry.uuid in self._places:
            return
        self._session, self._seen = entry.session or self._session, None
        self.rested = entry.kind == "rest" or (self.rested and entry.kind not in _WORK)
        if entry.kind == "expansion" and entry.parent and entry.text.strip():
            self._more.setdefault(entry.parent, []).append(entry)
        human = entry.kind == "human"
        if human and entry.parent is None and self._is_early():
            self._entries.insert(0, entry)
            self._places = {e.uuid: i for i, e in enumerate(self._entries)}
        else:
            self._places[entry.uuid] = len(self._entries)
            self._entries.append(entry)
        self._spoken = self._spoken or human
        self._fresh[0] += 1
        self._fresh[1] += entry.size
        lines, chars = self._fresh
        many = max(MANY, len(self._entries) - lines)  # so a long file is not thinned over and over again
        if lines > self._bounds.lines or chars > self._bounds.chars or (human and lines > many):
            self._thin()

    def _is_early(self) -> bool:
        """Says whether the session's first answers stand before its beginning (rule 12)."""
        first = next((e for e in self._entries if e.kind not in _PLACES), None)
        alone = self._whole and not self._spoken and len(self._entries) < MAX_EARLY
        return alone and first is not None and first.kind == "answer" and bool(first.parent)

    @property
    def opened(self) -> bool:
        """Says whether it has the task's beginning."""
        return self._view().rooted or bool(self._view().context)

    @property
    def enough(self) -> bool:
        """Says whether it has the task's beginning and as many earlier requests as are wanted."""
        earlier = sum(map(_by_person, self._view().context))
        return self._view().rooted or (self.opened and earlier >= EARLIER)

    def transcript(self, directory: str = "") -> Transcript:
        """The branch as it is now. ``directory``: where the session works."""
        view = self._view()
        before = messages_of(view.context, self._is_ours, directory=directory)
        known = [m.id for m in before if m.human]
        task = messages_of(view.task, self._is_ours, directory=directory, known=known)
        messages = (*(_bare(m) for m in before), *task)
        found = Transcript(self._session, messages, directory=directory)
        return replace(found, todos=todos_of(found.work, view.task))

    def _view(self) -> _View:
        if self._seen is None:
            self._seen = self._looked()
        return self._seen

    def _looked(self) -> _View:
        branch, rooted = self._branch()
        since: list[Entry] = []  # the last message of a person
        start, done, answers = 0, "", set[str]()
        for i, entry in enumerate(branch):
            if _by_person(entry) and (ended := finished_in(since)):
                start, done = i, ended
                answers.add(ended)
            if entry.kind == "human":
                since = []
            else:
                since.append(entry)
        before = branch[:start]
        earlier = [e for e in before if _by_person(e)][-EARLIER:]
        context = [*earlier, *(e for e in before if e.message and e.message == done)]
        return _View(context, self._bounded(branch[start:]), rooted, answers)

    def _branch(self) -> tuple[list[Entry], bool]:
        """The entries of the branch in the file's order, and whether it goes back to where it began. Parallel
        calls and their results are no branches of their own.
        """
        at, path = self._before(len(self._entries)), set[int]()
        while at >= 0 and at not in path:
            path.add(at)
            at = self._parent(at)
        kept = [e for i, e in enumerate(self._entries) if i in path and e.kind not in _PLACES]
        messages = {e.message for e in kept if e.kind == "answer"}
        answers = [e for e in self._entries if e.kind == "answer" and e.message in messages]
        calls = {use.id for e in answers for use in e.uses}
        found: list[Entry] = []
        for i, e in enumerate(self._entries):
            beside = e.kind == "result" and any(r.id in calls for r in e.results)
            if e.kind in _PLACES or not (
                i in path or beside or (e.kind == "answer" and e.message in messages)
            ):
                continue
            if e.command and (entry := self._expanded(e)) is not None:
                found.append(entry)
            elif not e.command:
                found.append(e)
        return found, at == _ROOT or self._whole

    def _before(self, at: int) -> int:
        """The last entry of the conversation in the file before ``at``."""
        return next((i for i in range(at - 1, -1, -1) if self._entries[i].kind not in _PLACES), _NOWHERE)

    def _parent(self, at: int) -> int:
        """The entry before this one in the conversation. One that does not say follows the one before it in
        the file, as results do, and as entries do whose parent is not in the whole file.
        """
        entry = self._entries[at]
        if entry.parent is None and entry.kind == "human":
            return _ROOT
        if entry.parent and entry.kind not in {"result", "boundary"}:
            place = self._places.get(entry.parent)
            if place is not None or not self._whole:
                return _NOWHERE if place is None else place
        return self._before(at)

    def _expanded(self, command: Entry) -> Entry | None:
        """A request for the content of a command or a skill, as if the person had typed it (I28). None for a
        `/reflect` that is our command; it may be somebody else's.
        """
        for more in self._more.get(command.uuid, ()):
            text = more.text.strip()
            if text.startswith(COMMAND_MARK) and command.text.split(" ", 1)[0] == BARE:
                return None
            command = replace(command, text=cut(f"{command.text}\n\n{text}", TEXT)[0])
        return command

    def _bounded(self, entries: list[Entry]) -> list[Entry]:
        """The entries within the bounds, counted from the newest; requests stay even outside them."""
        if len(entries) <= self._bounds.lines and sum(e.size for e in entries) <= self._bounds.chars:
            return entries
        kept: list[Entry] = []
        lines = chars = requests = 0
        for entry in reversed(entries):
            person, old = _by_person(entry), lines >= self._bounds.lines
            requests += old and person
            if not old or (person and requests <= MAX_REQUESTS) or entry.kind in {"boundary", "summary"}:
                kept.append(_thinned(entry) if chars > self._bounds.chars else entry)
            lines, chars = lines + 1, chars + entry.size
        return kept[::-1]

    def _thin(self) -> None:
        """Thin the time before the task to a person's words, the answers that ended a task, and the parents
        of the person's messages. Of the oldest entries keep nothing.
        """
        view = self._view()
        shown = {e.uuid: e for e in (*view.context, *view.task)}
        begun = self._places[view.task[0].uuid] if view.task else 0
        oldest = len(self._entries) - self._bounds.lines
        places = {e.parent for e in self._entries if e.kind == "human"}
        kept: dict[str, Entry] = {}
        for i, entry in enumerate(self._entries):
            if entry.uuid in shown:
                kept[entry.uuid] = shown[entry.uuid]
            elif i >= oldest and (entry.kind == "human" or entry.message in view.answers):
                kept[entry.uuid] = _thinned(entry)
            elif i >= oldest and (i >= begun or entry.uuid in places):
                kept[entry.uuid] = replace(entry, kind="link", **_NOTHING)
        self._entries = [self._joined(entry, kept) for entry in kept.values()]
        self._places = {e.uuid: i for i, e in enumerate(self._entries)}
        self._more = {uuid: more for uuid, more in self._more.items() if uuid in kept}
        self._fresh = [0, 0]

    def _joined(self, entry: Entry, kept: Mapping[str, Entry]) -> Entry:
        """The entry, its parent the nearest one that is kept."""
        if not entry.parent or entry.parent in kept:
            return entry
        at = self._parent(self._places[entry.uuid])
        for _ in self._entries:
            if at < 0 or self._entries[at].uuid in kept:
                break
            at = self._parent(at)
        return replace(entry, parent=self._entries[at].uuid) if at >= 0 else entry


def _by_person(entry: Entry) -> bool:
    return entry.kind == "human" or (entry.kind == "result" and bool(entry.text))


def _bare(message: Message) -> Message:
    """The message without its tool calls."""
    return message if not message.calls else replace(message, calls=())


def _thinned(entry: Entry) -> Entry:
    """An old entry with its long texts cut. ``size`` stays the same, so the bounds count it as before."""
    if entry.thin:
        return entry
    return replace(
        entry,
        text=cut(entry.text, _THIN_REQUEST if entry.kind == "human" else _THIN)[0],
        uses=tuple(replace(u, input=cut_deep(u.input, _THIN)) for u in entry.uses),
        results=tuple(
            replace(r, output=cut(r.output, _THIN)[0], error=cut(r.error, _THIN)[0]) for r in entry.results
        ),
        thin=True,
    )


# Entries as core messages: the lines of one answer are one message, and each result goes to its call.


class _Answer(Struct):
    """The lines of one assistant message, and its calls, each with the folder that it ran in, if known.
    ``interrupted``: the interrupt's text, if any.
    """

    agent: str
    entries: list[Entry] = field(default_factory=list)
    calls: list[tuple[Use, str]] = field(default_factory=list)
    interrupted: str = ""

    def add(self, e: Entry, *, strayed: bool) -> None:
        """The host's shell stays in its folder from call to call. Once it has left the project's folder
        (``strayed``), the first shell call gets the folder that the line names.
        """
        self.entries.append(e)
        for use in e.uses:
            first = use.tool == SHELL and not any(u.tool == SHELL for u, _ in self.calls)
            self.calls.append((use, e.cwd if first and strayed else ""))


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
                messages.append(replace(stopped, completed=e.at))
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
                messages.append(replace(summary, completed=e.at))
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


def _call(made: tuple[Use, str], results: dict[str, tuple[Entry, Result]], *, stopped: bool) -> ToolCall:
    use, folder = made
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
        ended=ended.at,
        agent=result.agent,
        shell=result.shell,
    )


def finished_in(entries: Iterable[Entry]) -> str:
    """The id of the last answer that ends a task, or empty. A message that a person types after it is a new
    task.
    """
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
    """The reason why the model stopped. Old versions don't write it; then it is guessed from the lines."""
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
