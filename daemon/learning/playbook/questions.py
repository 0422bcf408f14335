"""The work of a session, and the questions to a model about it and its playbook. Pure.

A stretch is what a session did from one look back to the next. A judged turn is a stretch of one turn
(``of_case``), and waits as such in the store. Turns of one task hold each other: a later case of a task shows
all that the earlier one showed. So ``joined`` takes the last turn of each task, and several tasks become one
stretch.

* ``Reflection``: what was the playbook worth in this session? (REQ-REFL-003, REQ-REFL-004)
* ``Curation``: what is to be changed in the playbook? It sees the reflection, never the session.
* ``Extraction``: new points and ratings in one, for the library.

Each is one call. Of an answer what is missing is empty, and list items of another form are left out: a part
of it is worth something here (REQ-REFL-008).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ...core.cuts import fit, head_and_tail, tokens, within
from ...core.evidence import Act, Evidence, FileChange, Row
from ...core.question import as_quoted
from ...core.transcript import Model
from .points import SECTION_SLUGS, Tag, copy, drop, each, line, lines_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ...core.verdict import FinalState, Verdict
    from ...judge.case import Case
    from .points import Playbook, Point

LOW: Final = 0.3
CALLS: Final = 3
MISSING_SHOWN: Final = 5
LEARNED_FROM: Final[frozenset[FinalState]] = frozenset({"complete", "incomplete", "awaiting_user"})
_encode: Final = msgspec.json.Encoder().encode
MAX_TOKENS: Final = 3_000  # of an answer
REFLECTOR_TOKENS: Final = 10_000
CURATOR_TOKENS: Final = 4_000
ROW_CHARS: Final = 400
WORDS_CHARS: Final = 4_000  # of one message of the person
CITES_CHARS: Final = 300
QUOTE_WORDS: Final = 5
HEADING: Final = 12  # tokens of a heading and of the line ends around it, more than they are
NONE: Final = "(none)"


class Stretch(Struct, frozen=True):
    """Judged turns as one. ``task``: of the last turn. ``ended``: the verdicts in words. ``cited``: the names
    of points in all that the agent wrote. ``lowest``: the lowest reward, None where there is none. Ids of
    rows and lines of the log name their task where there are several: ``T2.E3``.
    """

    session: str
    directory: str
    task: str
    turns: tuple[str, ...]
    requests: tuple[str, ...]
    ended: str
    final: str
    evidence: Evidence
    cited: tuple[str, ...] = ()
    lowest: float | None = None
    model: Model | None = None

    @property
    def teaches(self) -> bool:
        """Says whether it is worth a question: something was cited, it went badly, or some work was done."""
        low = self.lowest is not None and self.lowest < LOW
        return bool(self.cited) or low or self.evidence.tool_calls >= CALLS


def of_case(case: Case, directory: str, verdict: Verdict) -> Stretch:
    return Stretch(
        session=case.session,
        directory=directory,
        task=case.task,
        turns=(case.turn,),
        requests=case.requests,
        ended=ended(verdict, case.rounds),
        final=case.final,
        evidence=case.evidence,
        cited=case.cited,
        lowest=verdict.reward,
        model=case.model,
    )


def ended(verdict: Verdict, rounds: Iterable[str]) -> str:
    """How a turn ended, in words. ``rounds``: the feedback before."""
    words = [f"{verdict.state}, severity {verdict.severity}"]
    words += [f"reward {verdict.reward:g}"] if verdict.reward is not None else []
    words += [f"open: {m.text}" for m in verdict.missing[:MISSING_SHOWN]]
    return "; ".join([*words, *(f"feedback before: {text}" for text in rounds)])


def ranked_rows(evidence: Evidence) -> list[tuple[int, str]]:
    """The rows as lines, those that decide first: 0, others 2."""
    return [
        (
            0 if row.open or row.outcome == "failed" else 2,
            f"{row.id} [{f'{row.kind} {row.outcome}'.strip()}] {head_and_tail(row.text, ROW_CHARS)}",
        )
        for row in evidence.rows
    ]


def head_of(file: FileChange) -> str:
    return f"{file.path} ({file.how}, +{file.added} -{file.removed})"


def joined(turns: Iterable[Stretch]) -> Stretch | None:
    """These turns of one session, oldest first, as one stretch; None when there is none."""
    every = list(turns)
    if not every:
        return None
    tasks = list({turn.task: turn for turn in every}.values())  # the last one of each task
    many = len(tasks) > 1
    return replace(
        every[-1],
        turns=tuple(name for turn in every for name in turn.turns),
        requests=tuple(text for turn in tasks for text in turn.requests),
        ended="\n".join(f"T{i}: {turn.ended}" if many else turn.ended for i, turn in enumerate(tasks, 1)),
        evidence=_together(turn.evidence for turn in tasks) if many else every[-1].evidence,
        cited=tuple(dict.fromkeys(name for turn in every for name in turn.cited)),
        lowest=min((turn.lowest for turn in every if turn.lowest is not None), default=None),
    )


def _together(parts: Iterable[Evidence]) -> Evidence:
    """The evidence of several tasks, each with ids of its own."""
    rows, log, files, calls, writes = list[Row](), list[Act](), list[FileChange](), 0, 0
    for i, e in enumerate(parts, 1):
        rows += [replace(r, id=f"T{i}.{r.id}") for r in e.rows]
        log += [replace(a, id=f"T{i}.{a.id}" if a.id else "") for a in e.log]
        files += e.files
        calls, writes = calls + e.tool_calls, writes + e.writes
    return Evidence(tuple(rows), tool_calls=calls, writes=writes, log=tuple(log), files=tuple(files))


# --- the answers -------------------------------------------------------------------------------------------


class Cites(Struct):
    name: str
    cites: str


class Reflection(Struct):
    """``bullet_tags``: of points that the session was given. ``confirmed``: of texts that wait."""

    nonce: str = ""
    analysis: str = ""
    bullet_tags: list[Tag] = field(default_factory=list)
    confirmed: list[Cites] = field(default_factory=list)


class Wanted(Struct, omit_defaults=True):
    """An operation as a curator writes it (``changes``)."""

    type: Literal["ADD", "UPDATE", "MERGE", "DELETE"]
    section: str | None = None
    text: str | None = None
    target_id: str | None = None
    source_ids: list[str] | None = None
    merged_text: str | None = None
    reason: str | None = None


class Curation(Struct):
    """``operations``: at most ten count."""

    nonce: str = ""
    reasoning: str = ""
    operations: list[Wanted] = field(default_factory=list)


class Rating(Struct):
    """The proof in a session about a point."""

    name: str
    rating: Literal["helpful", "harmful", "neutral"]


class Extraction(Struct):
    """``new_key_points``: texts. ``evaluations``: of points that are there."""

    nonce: str = ""
    new_key_points: list[str] = field(default_factory=list)
    evaluations: list[Rating] = field(default_factory=list)


# --- what the reflector of the daemon sees -----------------------------------------------------------------


def of_stretch(
    template: str,
    stretch: Stretch,
    given: Sequence[Point] = (),
    cited: Collection[str] = (),
    waiting: Sequence[Point] = (),
) -> dict[str, str]:
    """The slots of the reflector's template, the prompt in at most ``REFLECTOR_TOKENS``. ``given``: the
    points that the session was given; those in ``cited`` are marked. ``waiting``: those that it may confirm.
    """
    room = REFLECTOR_TOKENS - tokens(template) - tokens(" ".join(cited)) - 10 * HEADING
    evidence = stretch.evidence
    blocks, left = dict[str, str](), room
    # the share of the room at most; the changes have what is left
    for name, share, items in (
        ("points", 0.3, [(p["name"] not in cited, _marked(p, cited)) for p in given]),
        ("waiting", 0.1, [(0, line(p)) for p in waiting]),
        ("How it ended", 0.05, [(0, stretch.ended)]),
        ("What the person typed", 0.2, _requests(stretch.requests)),
        ("The agent's last words", 0.1, [(0, stretch.final)]),
        ("Facts that were computed from the calls", 0.1, ranked_rows(evidence)),
        (
            "Log: every call in order",
            0.4,
            [(a.rank, "\n    ".join((f"{a.id} {a.text}".strip(), *a.said))) for a in evidence.log],
        ),
        ("Changes by file", 1.0, _changes(evidence.files)),
    ):
        blocks[name] = fitting(items, left if share == 1.0 else min(left, int(room * share)))
        left -= tokens(blocks[name]) if blocks[name] else 0
    points, quarantined = blocks.pop("points"), blocks.pop("waiting")
    return {
        "playbook": points or NONE,
        "quarantined": quarantined or NONE,
        "cited_ids": ", ".join(f"[{name}]" for name in cited) or NONE,
        "transcript": "\n\n".join(f"{name}:\n{text or NONE}" for name, text in blocks.items()),
    }


def _marked(point: Point, cited: Collection[str]) -> str:
    return f"(cited) {line(point)}" if point["name"] in cited else line(point)


def _requests(requests: Sequence[str]) -> list[tuple[int, str]]:
    """The messages by number, further lines indented; the first and the last are kept first."""
    shown = ("\n  ".join(head_and_tail(text, WORDS_CHARS).splitlines()) for text in requests)
    last = len(requests) - 1
    return [(0 if i in {0, last} else 1, f"M{i + 1}: {text}") for i, text in enumerate(shown)]


def _changes(files: Iterable[FileChange]) -> Iterator[tuple[int, str]]:
    """The head of each file, before the lines of any."""
    for f in files:
        yield 0, head_of(f)
        if f.lines:
            yield 1, "\n".join(f"    {text}" for text in f.lines)


def fitting(ranked: Iterable[tuple[int, str]], most: int) -> str:
    """The items of the lowest ranks that fit into ``most`` tokens, the later ones of a rank first, in their
    order; and how many were left out. One item that is too long alone is cut.
    """
    items = list(ranked)
    if len(items) == 1:
        return within(items[0][1], most) if most > 0 else ""
    room = most - tokens(_left_out(len(items)))
    chosen = fit(items, room)
    shown = [text for i, (_, text) in enumerate(items) if i in chosen]
    if len(chosen) < len(items) and room > 0:
        shown.append(_left_out(len(items) - len(chosen)))
    return "\n".join(shown)


def _left_out(number: int) -> str:
    return f"({number} left out: no room)"


def confirmations(
    reflection: Reflection, waiting: Collection[str], stretch: Stretch
) -> list[tuple[str, str]]:
    """(name, what it cites) of each text that waits and that is confirmed with something that code finds in
    the stretch: a row, a line of the log, or five words of the person.
    """
    ids = {row.id for row in stretch.evidence.rows} | {act.id for act in stretch.evidence.log if act.id}
    said = [as_quoted(text) for text in stretch.requests]
    proven = dict[str, str]()
    for item in reflection.confirmed:
        quote = as_quoted(item.cites)
        quoted = len(quote.split()) >= QUOTE_WORDS and any(quote in text for text in said)
        if item.name in waiting and (quoted or item.cites.strip(" []().") in ids):
            proven.setdefault(item.name, item.cites[:CITES_CHARS])
    return list(proven.items())


# --- what the curator sees ---------------------------------------------------------------------------------


def reflection_of(output: Mapping[str, Any]) -> str:
    """A reflector's output as the curator reads it."""
    shown = {"analysis": output.get("analysis", ""), "bullet_tags": output.get("bullet_tags", [])}
    return json.dumps(shown, indent=1, ensure_ascii=False, default=str)


def within_curator(template: str, reflection: Reflection, playbook: Playbook) -> tuple[str, Playbook]:
    """As much of both as fits into ``CURATOR_TOKENS``: of the points those first that the reflector tagged,
    then those that were counted most often.
    """
    room = CURATOR_TOKENS - tokens(template) - (4 + len(SECTION_SLUGS)) * HEADING
    said, part = within(reflection_of(msgspec.to_builtins(reflection)), room // 2), copy(playbook)
    tagged = {tag.name for tag in reflection.bullet_tags}
    points = [p for _, p in each(part)]
    items = [(_rank(p) if p["name"] not in tagged else 0, line(p)) for p in points]
    chosen = fit(items, room - tokens(said))
    drop(part, [p for i, p in enumerate(points) if i not in chosen])
    return said, part


def _rank(point: Point) -> int:
    return 1 + max(0, 9 - int(point["helpful"] + point["harmful"]))


def of_points(reflection: str, shown: Playbook, left_out: int = 0) -> dict[str, str]:
    """The slots of the curator's template. ``left_out``: the number of points that it does not see."""
    blocks = (lines_of(shown) or NONE, _left_out(left_out) if left_out else "")
    return {"reflector_output": reflection, "playbook": "\n\n".join(filter(None, blocks))}


# --- JSON in prose, for the library: in the daemon a reply must echo its nonce, because prose may hold an ---
# --- object that was only quoted ----------------------------------------------------------------------------

_TOKEN: Final = re.compile(r'\\.|["{}]', re.DOTALL)
_FENCE: Final = "```"


def extract_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The first JSON value that one of these finds, in this order and in linear time; None when none does
    (REQ-REFL-008).

    1. a fence with the tag ``json``; 2. a fence without a tag; 3. from a ``{`` to the ``}`` that closes it;
    4. the whole text.
    """
    for candidates in (_fenced(text, tagged=True), _fenced(text, tagged=False), _balanced(text), (text,)):
        for candidate in candidates:
            try:
                value = json.loads(candidate.strip())
            except (ValueError, RecursionError):
                continue
            if value is not None:
                return value
    return None


def _fenced(text: str, *, tagged: bool) -> Iterator[str]:
    """The texts between fences, one after the other: those that open with ``json``, or the others."""
    pieces = text.split(_FENCE)
    for piece in pieces[1:-1:2]:
        if piece[:4].lower() == "json":
            if tagged:
                yield piece[4:]
        elif not tagged:
            yield piece


def _balanced(text: str) -> Iterator[str]:
    """Each outermost part in braces. Braces in quoted texts don't count."""
    depth, start, quoted = 0, 0, False
    for token in _TOKEN.finditer(text):
        kind = token[0]
        if depth and kind == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif kind == "{":
            if not depth:
                start = token.start()
            depth += 1
        elif kind == "}" and depth:
            depth -= 1
            if not depth:
                yield text[start : token.end()]
