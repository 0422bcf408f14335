"""What a reflector and a curator may look at, frozen before the question.

The daemon's reflector sees a task in at most ``REFLECTOR_TOKENS`` (``of_task``): how it ended, the person's
words, the agent's last ones, rows, log and changes, and the points that the session was given. The library's
sees all messages and the whole playbook (``of_messages``). A curator sees the reflector's output and the
points, never the session.

What is given here is redacted already: the judge's case is, and ``engine.calls`` redacts every prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from ..core.cuts import head_and_tail, tokens, within
from ..core.llm import Tier
from ..core.transcript import Model
from .citations import texts_of
from .points import SECTION_SLUGS, each
from .texts import line, lines_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ..core.evidence import Act, Evidence, FileChange
    from .points import Playbook, Point

REFLECTOR_TOKENS: Final = 10_000
CURATOR_TOKENS: Final = 4_000
ROW_CHARS: Final = 400
WORDS_CHARS: Final = 4_000  # of one message of the person
POINTS: Final = 0.3  # of the reflector's room at most,
QUARANTINED: Final = 0.1
ENDED: Final = 0.05
WORDS: Final = 0.2
FINAL: Final = 0.1
ROWS: Final = 0.1
LOG: Final = 0.4  # and what these leave; the changes have the rest
ALIKE: Final = 10  # pairs of points that may say the same, in one question
NONE: Final = "(none)"


@dataclass(frozen=True, slots=True)
class Templates:
    """The prompt texts in force; ``files.prompts`` knows which ``{names}`` each must hold."""

    reflector: str
    curator: str
    keypoints: str
    playbook: str

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Templates:
        """The playbook's prompts among all of them."""
        return cls(texts["reflector"], texts["curator"], texts["keypoints"], texts["playbook"])


@dataclass(frozen=True, slots=True)
class Case:
    """One session to learn from. ``nonce`` fences its untrusted text.

    ``points``: the points as text. ``quarantined``: those that wait for confirmation. ``ids``: rows and lines
    of the log that can be cited, ``words``: what the person typed; a confirmation must name one of them.
    ``strict``: the reply must echo the nonce, as in the daemon. ``asked``: a person asked for it, which says
    what it is paid from.
    """

    session: str
    nonce: str
    transcript: str
    points: str
    template: str
    cited: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    waiting: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    model: Model | None = None
    tier: Tier = "fast"
    strict: bool = True
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Curation:
    """What a curator is asked about: a reflector's output as JSON, and the points as text."""

    session: str
    nonce: str
    reflection: str
    points: str
    template: str
    model: Model | None = None
    tier: Tier = "fast"
    strict: bool = True
    asked: bool = False


def of_messages(
    messages: Iterable[object],
    playbook: Playbook,
    cited: Iterable[str],
    *,
    nonce: str,
    template: str,
    tier: Tier = "reflect",
) -> Case:
    """The case of a transcript as the library is given it: nothing is cut, and the reply needs no nonce."""
    said = "\n\n".join(f"{role}: {text}" for role, text in map(_said, messages) if text)
    return Case(
        session="",
        nonce=nonce,
        transcript=said or "(nothing was said)",
        points=lines_of(playbook) or NONE,
        template=template,
        cited=tuple(cited),
        tier=tier,
        strict=False,
    )


def _said(message: object) -> tuple[str, str]:
    """Role and text of a message. Blocks that are no texts (calls, results) are shown as JSON."""
    if not isinstance(message, Mapping):
        return "", ""
    content = message.get("content")
    blocks = content if isinstance(content, list | tuple) else [content]
    shown = (" ".join(texts_of([b] if not isinstance(b, str) else b)) or _json(b) for b in blocks if b)
    return str(message.get("role", "?")), "\n".join(text for text in shown if text)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def of_task(
    *,
    session: str,
    nonce: str,
    template: str,
    requests: Sequence[str],
    final: str,
    evidence: Evidence,
    ended: str,
    given: Sequence[Point],
    cited: Collection[str] = (),
    quarantined: Sequence[Point] = (),
    model: Model | None = None,
    largest: int = REFLECTOR_TOKENS,
    asked: bool = False,
) -> Case:
    """The case of a task that is over, its prompt in at most ``largest`` tokens.

    ``requests``: what the person typed. ``ended``: how it ended, in words (verdict, reward, what was
    missing). ``given``: the points that the session was given; those in ``cited`` are marked.
    """
    room = largest - tokens(template) - tokens(" ".join(cited)) - 10 * _HEADING
    parts, left = dict[str, str](), room
    for name, share, items in (
        ("points", POINTS, [(p["name"] not in cited, _given(p, cited)) for p in given]),
        ("quarantined", QUARANTINED, [(0, line(p)) for p in quarantined]),
        ("How it ended", ENDED, [(0, ended)]),
        ("What the person typed", WORDS, _requests(requests)),
        ("The agent's last words", FINAL, [(0, final)]),
        ("Facts that were computed from the calls", ROWS, _rows(evidence)),
        ("Log: every call in order", LOG, _log(evidence.log)),
        ("Changes by file", 1.0, _changes(evidence.files)),
    ):
        most = left if name == "Changes by file" else min(left, int(room * share))
        parts[name] = _kept(items, most)
        left -= tokens(parts[name]) if parts[name] else 0
    points, waiting = parts.pop("points"), parts.pop("quarantined")
    rows = {row.id for row in evidence.rows}
    return Case(
        session=session,
        nonce=nonce,
        transcript="\n\n".join(f"{name}:\n{text or NONE}" for name, text in parts.items()),
        points=points or NONE,
        template=template,
        cited=tuple(cited),
        quarantined=tuple(waiting.splitlines()),
        waiting=frozenset(p["name"] for p in quarantined),
        ids=frozenset(rows | {act.id for act in evidence.log if act.id}),
        words=tuple(requests),
        model=model,
        asked=asked,
    )


_HEADING: Final = 12  # tokens of a heading and of the line ends around it, more than they are


def _given(point: Point, cited: Collection[str]) -> str:
    return f"(cited) {line(point)}" if point["name"] in cited else line(point)


def _requests(requests: Sequence[str]) -> list[tuple[int, str]]:
    """The messages by number; the first and the last are kept first."""
    found = [f"M{i}: {_indented(head_and_tail(text, WORDS_CHARS))}" for i, text in enumerate(requests, 1)]
    return [(0 if i in {0, len(found) - 1} else 1, text) for i, text in enumerate(found)]


def _rows(evidence: Evidence) -> list[tuple[int, str]]:
    return [
        (
            0 if row.open or row.outcome == "failed" else 1,
            f"{row.id} [{f'{row.kind} {row.outcome}'.strip()}] {head_and_tail(row.text, ROW_CHARS)}",
        )
        for row in evidence.rows
    ]


def _log(log: Sequence[Act]) -> list[tuple[int, str]]:
    return [(act.rank, "\n    ".join((f"{act.id} {act.text}".strip(), *act.said))) for act in log]


def _changes(files: Sequence[FileChange]) -> list[tuple[int, str]]:
    heads = [(0, f"{f.path} ({f.how}, +{f.added} -{f.removed})") for f in files]
    bodies = [(1, "\n".join(f"    {text}" for text in f.lines)) for f in files]
    return [item for pair in zip(heads, bodies, strict=True) for item in pair if item[1]]


def _indented(text: str) -> str:
    """Only the first line starts where ids stand."""
    return "\n  ".join(text.splitlines())


def _kept(items: Sequence[tuple[int, str]], most: int) -> str:
    """The items of the lowest ranks that fit into ``most`` tokens, the later ones of a rank first, in their
    order; and how many were left out. One item that is too long alone is cut.
    """
    if len(items) == 1:
        return within(items[0][1], most) if most > 0 else ""
    note = tokens(_left_out(len(items)))
    order = sorted(range(len(items)), key=lambda i: (items[i][0], -i))
    kept, room = set[int](), most - note
    for i in order:
        cost = tokens(f"{items[i][1]}\n")
        if cost <= room:
            kept.add(i)
            room -= cost
    shown = [text for i, (_, text) in enumerate(items) if i in kept]
    if (gone := len(items) - len(kept)) and most > note:
        shown.append(_left_out(gone))
    return "\n".join(shown)


def _left_out(number: int) -> str:
    return f"({number} left out: no room)"


def curation(
    reflection: Mapping[str, Any],
    playbook: Playbook,
    *,
    nonce: str,
    template: str,
    session: str = "",
    model: Model | None = None,
    tier: Tier = "fast",
    strict: bool = True,
    largest: int = 0,
    alike: Iterable[tuple[str, str]] = (),
    asked: bool = False,
) -> Curation:
    """What a curator is asked about. ``largest``: tokens of its prompt, 0 for no limit; where the points
    don't fit, those that the reflector tagged are kept first, then those that were counted most often.
    ``alike``: names of two points each that may say the same; ``ALIKE`` of them are shown, others in another
    session.
    """
    output = {"analysis": reflection.get("analysis", ""), "bullet_tags": reflection.get("bullet_tags", [])}
    said, points = json.dumps(output, indent=1, ensure_ascii=False, default=str), lines_of(playbook)
    pairs = sorted(alike, key=lambda pair: sha256(f"{session} {pair}".encode()).digest())[:ALIKE]
    if largest:
        room = largest - tokens(template) - 4 * _HEADING - tokens(_alike(pairs))
        said = within(said, room // 2)
        points = _fitted(playbook, output["bullet_tags"], room - tokens(said))
    there = {p["name"] for p in shown(playbook, points)}
    points += _alike([pair for pair in pairs if there.issuperset(pair)])
    return Curation(session, nonce, said, points or NONE, template, model, tier, strict, asked)


def shown(playbook: Playbook, points: str) -> list[Point]:
    """The points whose lines stand in this text."""
    lines = set(points.splitlines())
    return [p for _, p in each(playbook) if line(p) in lines]


def _alike(pairs: Iterable[tuple[str, str]]) -> str:
    """The pairs, below the points; "" without any."""
    listed = "\n".join(f"[{a}] and [{b}]" for a, b in pairs)
    return f"\n\n## These may say the same\n{listed}" if listed else ""


def _fitted(playbook: Playbook, tags: object, most: int) -> str:
    """The points under their headings, in at most ``most`` tokens."""
    tagged = {t.get("name") for t in tags if isinstance(t, Mapping)} if isinstance(tags, list) else set()
    items = [
        (0 if p["name"] in tagged else 1 + max(0, 9 - p.get("helpful", 0) - p.get("harmful", 0)), p, section)
        for section, p in each(playbook)
    ]
    room = most - len(SECTION_SLUGS) * _HEADING
    found = _kept([(rank, f"{line(p)}") for rank, p, _ in items], room)
    shown = set(found.split("\n"))
    blocks = []
    for section in SECTION_SLUGS:
        lines = [text for _, p, of in items if of == section and (text := line(p)) in shown]
        blocks += ["\n".join((f"## {section}", *lines))] if lines else []
    left_out = [text for text in found.split("\n") if text.endswith("left out: no room)") and text[0] == "("]
    return "\n\n".join([*blocks, *left_out])
