"""The live conversation of a transcript: the task that is being worked on, and a little of what went before.

Follows ``parentUuid``: an answer or a prompt whose parent lies further back drops what was said since (rule
11). Keeps the entries of the current task and, as finished messages, up to five earlier requests and the
answer that ended the previous task. Memory is bounded: of a long task the older part is thinned.

What it holds depends on the lines alone, not on how they were fed. It may be shown the end of a file only;
``opened`` says whether that reaches back to where the task began.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from dataclasses import replace as with_fields
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from daemon.core.transcript import Transcript
from daemon.hosts.claude_messages import finished_in, messages_of, todos_of
from daemon.hosts.cuts import cut, cut_deep

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon.core.transcript import Message
    from daemon.hosts.claude_entries import Entry

EARLIER: Final = 5
MAX_OPENINGS: Final = 50
MAX_SEEN: Final = 1 << 17
MAX_REQUESTS: Final = 500  # of a task, besides those in its newest lines
_ROOT: Final = 0  # places of lines: before everything, before the task, or the number of the line
_BASE: Final = -1
_NOWHERE: Final = -2
_NEXT: Final = -3  # after whatever came last
_THIN: Final = (150, 150)
_THIN_REQUEST: Final = (1_000, 1_000)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a task is kept whole: its newest ``chars`` and ``lines``. What is older is thinned, then
    left out.
    """

    chars: int = 8 << 20
    lines: int = 20_000


class Path:
    """Feed it entries in the order of the file. ``whole``: from the file's first line on."""

    def __init__(self, is_ours: Callable[[str], bool], bounds: Bounds, *, whole: bool) -> None:
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
        self._rooted = whole
        self.opened = whole
        self.session = ""

    def is_enough(self) -> bool:
        """Whether the task's beginning and all the earlier requests that are wanted are here."""
        return self.opened and (self._rooted or sum(m.human for m in self._context) >= EARLIER)

    def feed(self, e: Entry) -> None:
        """The next line."""
        name = hash(e.uuid)
        if name in self._seen:
            return
        if len(self._seen) >= MAX_SEEN:
            self._seen.clear()
        self._seen.add(name)
        self.session = e.session or self.session
        place = self._place(e)
        if e.kind == "link":
            if place != _NOWHERE:
                self._places[e.uuid] = self._tip() if place == _NEXT else place
            return
        if e.kind not in {"result", "boundary"}:
            if place == _NOWHERE:
                self._forget()
            else:
                self._rewind(e, place)
        if e.kind == "human" or (e.kind == "result" and e.text):
            self._human(e)
        self._count += 1
        self._entries.append(e)
        self._numbers.append(self._count)
        self._places[e.uuid] = self._count
        self._size += e.size
        self._fresh[0] += 1
        self._fresh[1] += e.size
        if self._fresh[0] > self._bounds.lines or self._fresh[1] > self._bounds.chars:
            self._thin()

    def _tip(self) -> int:
        return self._numbers[-1] if self._numbers else _BASE if self._context else _ROOT

    def _place(self, e: Entry) -> int:
        """Where the entry's parent stands. A line that names none follows the one before it."""
        if e.parent == "":
            return _NEXT
        if e.parent is None:
            if e.kind == "link" and not (self._entries or self._context):
                return _ROOT if self._whole else _NOWHERE
            return _ROOT if e.kind == "human" else _NEXT
        place = self._places.get(e.parent, _NOWHERE)
        return _BASE if place == _NOWHERE and e.parent in self._openings else place

    def _forget(self) -> None:
        """The parent was never seen: all before is doubtful, unless the whole file was read."""
        if not self._whole and (self._entries or self._context):
            self._reset((), rooted=False)
            self.opened = False

    def _reset(self, context: tuple[Message, ...], *, rooted: bool) -> None:
        self._context, self._rooted = context, rooted
        self._entries, self._numbers = [], []
        self._size, self._fresh = 0, [0, 0]

    def _rewind(self, e: Entry, place: int) -> None:
        """Drop the branch that ``e`` does not follow. Parallel calls and their results are no branch."""
        if place == _NEXT:
            return
        if place == _ROOT:
            self._reset((), rooted=True)
            self.opened = True
        elif place == _BASE:
            context, rooted = self._openings.get(e.parent or "", (self._context, self._rooted))
            if context is not self._context or self._others(e, 0):
                self._reset(context, rooted=rooted)
        else:
            at = bisect_left(self._numbers, place)
            on_path = at < len(self._numbers) and self._numbers[at] == place
            if on_path and self._others(e, at + 1):
                del self._entries[at + 1 :], self._numbers[at + 1 :]
                self._size = sum(x.size for x in self._entries)

    def _others(self, e: Entry, at: int) -> bool:
        """Whether anything but results, and lines of the same answer, comes at ``at`` or later."""
        return any(
            x.kind != "result" and not (x.kind == "answer" == e.kind and x.message == e.message)
            for x in islice(self._entries, at, None)
        )

    def _human(self, e: Entry) -> None:
        """A person's message: after a finished answer it opens a new task, and the old one is let go."""
        since = list(takewhile(lambda x: x.kind != "human", reversed(self._entries)))[::-1]
        answer = finished_in(since)
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
        if e.parent:
            self._openings.pop(e.parent, None)
            self._openings[e.parent] = (self._context, self._rooted)
            while len(self._openings) > MAX_OPENINGS:
                del self._openings[next(iter(self._openings))]

    def _messages(self, directory: str = "") -> list[Message]:
        known = [m.id for m in self._context if m.human]
        return messages_of(self._kept(), self._is_ours, directory=directory, known=known)

    def _kept(self) -> list[Entry]:
        """The entries within the bounds, counted from the newest; requests always stay."""
        if len(self._entries) <= self._bounds.lines and self._size <= self._bounds.chars:
            return self._entries
        kept: list[Entry] = []
        lines = chars = requests = 0
        for e in reversed(self._entries):
            person = e.kind == "human" or bool(e.text and e.results)
            old = lines >= self._bounds.lines
            requests += old and person
            if not old or (person and requests <= MAX_REQUESTS) or e.kind in {"boundary", "summary"}:
                kept.append(_thinned(e) if chars > self._bounds.chars else e)
            lines, chars = lines + 1, chars + e.size
        return kept[::-1]

    def _thin(self) -> None:
        kept = self._kept()
        numbers = dict(zip((e.uuid for e in self._entries), self._numbers, strict=True))
        self._entries, self._numbers = kept, [numbers[e.uuid] for e in kept]
        self._size, self._fresh = sum(e.size for e in kept), [0, 0]
        floor = self._numbers[-self._bounds.lines :][0]
        self._places = {u: n for u, n in self._places.items() if n >= floor or n <= _ROOT}

    def transcript(self, directory: str) -> Transcript:
        """What is to be judged now."""
        messages = (*self._context, *self._messages(directory))
        found = Transcript(self.session, messages, directory=directory)
        return with_fields(found, todos=todos_of(found.work, self._entries))


def _bare(m: Message) -> Message:
    """Of an earlier message only what was said."""
    return m if not m.calls else with_fields(m, calls=())


def _thinned(e: Entry) -> Entry:
    """Long texts of an old entry made short. ``size`` stays what it was, so that the count stays the same."""
    if e.thin:
        return e
    return replace(
        e,
        text=cut(e.text, _THIN_REQUEST if e.kind == "human" else _THIN)[0],
        uses=tuple(replace(u, input=_thin_input(u.input)) for u in e.uses),
        results=tuple(
            replace(r, output=cut(r.output, _THIN)[0], error=cut(r.error, _THIN)[0]) for r in e.results
        ),
        thin=True,
    )


def _thin_input(given: dict[str, object]) -> dict[str, object]:
    found = cut_deep(given, _THIN)
    return found if isinstance(found, dict) else {}
