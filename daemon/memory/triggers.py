"""What a failure hung on, and whether an agent is at it again: a command, a file, a tool, an error.

``triggers_of`` reads the judged case while its transcript is at hand. ``matching`` reads one tool call of a
later session: its arguments, and its error when it has failed. Both look at structure, never at wording. A
reminder at the wrong place is noise, so in doubt nothing matches. Never raises.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from ..core.episodes import Episode, Trigger
from ..core.refusals import is_denied, looks_up
from ..evidence.calls.tools import AGENT_TOOLS, QUESTION_TOOLS, SHELL_TOOLS, TODO_TOOLS, WRITE_TOOLS, text_of
from ..evidence.calls.writes import matters, written_by_tool
from .commands import Command, below, commands_of
from .faults import fault_of, faults_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.episodes import TriggerKind
    from ..core.evidence import Evidence
    from ..core.transcript import ToolCall, Transcript

MOST: Final = 4  # triggers of one kind; the first ones are nearest to the end of the task
MAX_TEXT: Final = 400
MAX_CALLS: Final = 300  # the last calls of a task that are looked at
_PLAIN: Final = re.compile(r"[A-Za-z0-9_@.+-][A-Za-z0-9_@.+/:-]*")  # the same in JSON
_PLAIN_PARTS: Final = re.compile(r"[A-Za-z0-9_@.+-]+")
_OWN: Final = SHELL_TOOLS | WRITE_TOOLS | TODO_TOOLS | QUESTION_TOOLS | AGENT_TOOLS


class Case(Protocol):
    """What is read of a judged case: the judge's own has it. Redacted, as everything that is stored."""

    @property
    def evidence(self) -> Evidence:
        """The rows and the changed files."""
        ...

    @property
    def transcript(self) -> Transcript | None:
        """What the evidence was computed from; without it only the rows speak."""
        ...


@dataclass(frozen=True, slots=True)
class Match:
    """A stored episode whose failure the call comes back to, and by what."""

    episode: Episode
    trigger: Trigger


def triggers_of(case: Case) -> tuple[Trigger, ...]:
    """What the case's failure hung on: what proves that the task is unfinished, and the calls that failed and
    were not made good. Empty when it hung on nothing that could come again.
    """
    found: dict[Trigger, None] = {}
    root = case.transcript.directory if case.transcript is not None else ""
    for trigger in (*_of_rows(case, root), *_of_calls(case, root)):
        if 0 < len(trigger.text) <= MAX_TEXT:
            found.setdefault(trigger)
    kept = dict[str, int]()
    most = list[Trigger]()
    for trigger in found:
        kept[trigger.kind] = kept.get(trigger.kind, 0) + 1
        if kept[trigger.kind] <= MOST:
            most.append(trigger)
    return tuple(most)


def matching(call: ToolCall, episodes: Iterable[Episode], root: str = "") -> tuple[Match, ...]:
    """The episodes whose failure ``call`` comes back to, each once, in order. See ``Index.matching``."""
    return Index(episodes).matching(call, root)


def words_of(episodes: Iterable[Episode]) -> tuple[str, ...]:
    """One word for each trigger, which stands in the JSON of every call that meets it; each once. A call
    without any of them meets none.
    """
    return tuple(dict.fromkeys(w for e in episodes for t in e.triggers if (w := _word(t))))


class Index:
    """Episodes by what they hung on. Making one takes longer than all questions to it."""

    def __init__(self, episodes: Iterable[Episode]) -> None:
        self.episodes = tuple(episodes)
        self._by: dict[tuple[str, str], list[tuple[int, Trigger, Command | None]]] = {}
        for place, episode in enumerate(self.episodes):
            for trigger in episode.triggers:
                command = next(iter(commands_of(trigger.text)), None) if trigger.kind == "command" else None
                key = _key(trigger, command)
                self._by.setdefault((trigger.kind, key), []).append((place, trigger, command))

    def matching(self, call: ToolCall, root: str = "") -> tuple[Match, ...]:
        """The episodes whose failure ``call`` comes back to, each once, in their order.

        ``call``: as a host tells of it, before or after it ran; its error counts only when it failed.
        ``root``: the project's folder, so that paths can be compared.
        """
        found: dict[int, Trigger] = {}
        for place, trigger in self._met(call, root):
            found.setdefault(place, trigger)
        return tuple(Match(self.episodes[place], found[place]) for place in sorted(found))

    def _met(self, call: ToolCall, root: str) -> Iterator[tuple[int, Trigger]]:
        for made in _commands(call, root):
            for place, trigger, stored in self._by.get(("command", made.program), ()):
                if stored is not None and made.is_like(stored):
                    yield place, trigger
        for kind, name in [("tool", call.tool), *(("file", f) for f in _written(call, root))]:
            yield from ((place, trigger) for place, trigger, _ in self._by.get((kind, name), ()))
        for fault in faults_in(f"{call.output}\n{call.error}") if failed(call) else ():
            for place, trigger, _ in self._by.get(("error", fault.name), ()):
                if fault.is_like(fault_of(trigger.text)):
                    yield place, trigger


def _key(trigger: Trigger, command: Command | None) -> str:
    """What a call must have in common with a trigger to be compared with it."""
    match trigger.kind:
        case "command":
            return command.program if command is not None else ""
        case "error":
            return fault_of(trigger.text).name
        case "file" | "tool":
            return trigger.text


def _word(trigger: Trigger) -> str:
    match trigger.kind:
        case "command":
            command = next(iter(commands_of(trigger.text)), None)
            if command is None:
                return ""
            told = [o.partition("::")[0] for o in command.operands]
            return max(filter(_PLAIN.fullmatch, told), key=len, default=command.program)
        case "file":
            return max(_PLAIN_PARTS.findall(trigger.text.rsplit("/", 1)[-1]), key=len, default="")
        case "error":
            return fault_of(trigger.text).name
        case "tool":
            return trigger.text


def failed(call: ToolCall) -> bool:
    """Whether the call went wrong by itself: no person refused or stopped it."""
    return (call.status == "error" or call.exit not in {0, None}) and not is_denied(call)


# --- what a call does -----------------------------------------------------------------------------


def _commands(call: ToolCall, root: str) -> tuple[Command, ...]:
    if call.tool.lower() not in SHELL_TOOLS:
        return ()
    folder = text_of(call, "workdir", "cwd")
    return commands_of(text_of(call, "command", "cmd"), root, below(folder, root) if folder else "")


def _written(call: ToolCall, root: str) -> Iterator[str]:
    """The files of the project that an edit tool is told to change."""
    for write in written_by_tool(call.tool, call.input):
        path = posixpath.normpath(write.path)
        inside = below(path, root) if path.startswith("/") else path
        if inside and not inside.startswith("..") and write.path != "a file":
            yield inside


# --- what a case hung on --------------------------------------------------------------------------


def _of_rows(case: Case, root: str) -> Iterator[Trigger]:
    """What the rows name that prove by themselves that something is unfinished."""
    changed = [f.path for f in case.evidence.files]
    for row in case.evidence.open:
        if row.command:
            yield from _named("command", (c.text for c in commands_of(row.command, root)))
        said = f"{row.text}\n{row.detail}"
        if row.kind in {"tests_changed", "unmet", "leak", "tool_error", "check"}:
            yield from _named("file", _inside((p for p in changed if _names(said, p)), root))


def _names(said: str, path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return len(name) >= 4 and name in said


def _inside(paths: Iterable[str], root: str) -> Iterator[str]:
    for path in paths:
        inside = below(path, root) if path.startswith("/") else posixpath.normpath(path)
        if inside and matters(path, root):
            yield inside


def _of_calls(case: Case, root: str) -> Iterator[Trigger]:
    """The calls that failed and that none after them made good, the last one first."""
    if case.transcript is None:
        return
    calls = [c for one in case.transcript.calls[-MAX_CALLS:] for c in (*one.inner, one)]
    good_commands, good_files, good_tools = set[Command](), set[str](), set[str]()
    for call in reversed(calls):
        name = call.tool.lower()
        commands = _commands(call, root)
        if name in SHELL_TOOLS:
            if not failed(call):
                good_commands.update(commands if call.exit == 0 else ())
            elif left := _left(commands, good_commands):
                yield from _named("command", (c.text for c in left[-2:]))
                yield from _named("error", (f.text for f in faults_in(f"{call.output}\n{call.error}")))
        elif name in WRITE_TOOLS:
            files = tuple(_written(call, root))
            if call.status == "completed":
                good_files.update(files)
            elif failed(call):
                yield from _named("file", (f for f in files if f not in good_files))
        elif name not in _OWN and not looks_up(call.tool):
            if call.status == "completed":
                good_tools.add(call.tool)
            elif failed(call) and call.tool not in good_tools:
                yield from _named("tool", [call.tool])
                yield from _named("error", (f.text for f in faults_in(f"{call.output}\n{call.error}")))


def _left(commands: Sequence[Command], good: set[Command]) -> list[Command]:
    """Those that did not work later."""
    return [c for c in commands if not any(g.is_like(c) for g in good)]


def _named(kind: TriggerKind, texts: Iterable[str]) -> Iterator[Trigger]:
    return (Trigger(kind, text) for text in texts if text)
