"""What a failure hung on, and whether a failed call is that failure again: the same check command, or the
same error. Both are compared whole; nothing like them counts.

``triggers_of`` reads the judged case while its transcript is at hand. ``Triggers.met_by`` reads one tool call
of a later session. Never raises.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from ..core.episodes import Episode, Trigger
from ..core.refusals import is_denied
from ..evidence.calls.prefixes import unwrap
from ..evidence.calls.shell import steps
from ..evidence.calls.tools import SHELL_TOOLS, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..core.evidence import Evidence
    from ..core.transcript import ToolCall, Transcript

MOST: Final = 4  # triggers of one kind; the first ones are nearest to the end of the task
MAX_CALLS: Final = 300  # the last calls of a task that are looked at
TAIL: Final = 8_000  # characters of an output
SHORTEST, LONGEST = 16, 300  # characters of a line that names an error
_SETS_UP: Final = frozenset({"cd", "export", "set"})
_ERROR: Final = re.compile(r"(?:error|exception|fatal)\b", re.IGNORECASE)
"""How programs mark the line with their error, in whatever language they are set to."""


class Case(Protocol):
    """What is read of a judged case: the judge's own has it. Redacted, as everything that is stored."""

    @property
    def evidence(self) -> Evidence:
        """Its rows."""
        ...

    @property
    def transcript(self) -> Transcript | None:
        """What the evidence was computed from; without it only the rows speak."""
        ...


def triggers_of(case: Case) -> tuple[Trigger, ...]:
    """The commands of checks that prove the task unfinished; of calls that failed and were not made good
    later the errors, or the commands where no error was printed. Empty when the failure can't come again.
    """
    found = dict.fromkeys((*_of_rows(case.evidence), *_of_calls(case.transcript)))
    return tuple(t for kind in ("command", "error") for t in [t for t in found if t.kind == kind][:MOST])


def _of_rows(evidence: Evidence) -> Iterator[Trigger]:
    for row in evidence.open:
        yield from (Trigger("command", command) for command in _commands(row.command))


def _of_calls(transcript: Transcript | None) -> Iterator[Trigger]:
    """The last call first."""
    last = transcript.calls[-MAX_CALLS:] if transcript is not None else ()
    good = set[str]()
    for call in reversed([c for one in last for c in (*one.inner, one)]):
        commands = _commands(_script(call))
        if not failed(call):
            good.update(commands)
        elif not commands or not good.issuperset(commands):
            errors = _errors(call)
            yield from (Trigger("error", line) for line in errors)
            if not errors:
                yield from (Trigger("command", command) for command in commands if command not in good)


class Triggers:
    """Episodes by what they hung on."""

    def __init__(self, episodes: Iterable[Episode]) -> None:
        self._by: dict[Trigger, dict[str, Episode]] = {}
        for episode in episodes:
            for trigger in episode.triggers:
                self._by.setdefault(trigger, {})[episode.id] = episode

    def __bool__(self) -> bool:
        return bool(self._by)

    def met_by(self, call: ToolCall) -> tuple[Episode, ...]:
        """The episodes whose failure this call is again, each once. A call that worked is none."""
        if not failed(call):
            return ()
        here = [Trigger("command", c) for c in _commands(_script(call))]
        here += [Trigger("error", line) for line in _errors(call)]
        return tuple({id_: e for trigger in here for id_, e in self._by.get(trigger, {}).items()}.values())


def failed(call: ToolCall) -> bool:
    """Whether the call went wrong by itself: no person refused or stopped it."""
    return (call.status == "error" or call.exit not in {0, None}) and not is_denied(call)


@lru_cache(maxsize=1_024)
def _commands(script: str) -> tuple[str, ...]:
    """The commands of a script without what wraps them (``timeout 60``, ``uv run``) and where they print."""
    words = (unwrap(step.words)[0] for step in steps(script))
    found = dict.fromkeys(shlex.join(w) for w in words if w and w[0] not in _SETS_UP)
    return tuple(c for c in found if len(c) <= LONGEST)


def _script(call: ToolCall) -> str:
    return text_of(call, "command", "cmd") if call.tool.lower() in SHELL_TOOLS else ""


def _errors(call: ToolCall) -> tuple[str, ...]:
    """The lines of the output that name an error and say which, the last ones."""
    lines = (" ".join(line.split()) for line in f"{call.output}\n{call.error}"[-TAIL:].splitlines())
    told = (x for x in lines if SHORTEST <= len(x) < LONGEST and ":" in x and _ERROR.search(x))
    return tuple(dict.fromkeys(told))[-MOST:]
