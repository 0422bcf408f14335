"""What is put before a person inside a host: a proposal, and the question that it makes.

The question follows from the proposal alone, and is never stored. So whoever changes a stored proposal gets
another question, and an answer to the first one does not fit it. Pure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from ...core.consent import Question
from ..render import count
from . import screens
from .screens import TEXT_CHARS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = Literal["pattern", "learn", "conflict", "near", "unlearn", "undo", "dismiss", "restore"]
Answer = Literal["rule", "soft", "dismiss", "skip", "replace", "both", "reword", "archive", "delete", "do"]
KINDS: Final = frozenset(get_args(Kind))
QUOTES: Final = 2
QUOTE_CHARS: Final = 120
STANDS: Final = 4
_HEADERS: Final[dict[Kind, str]] = {
    "pattern": "Rule",
    "learn": "Rule",
    "conflict": "Conflict",
    "near": "Rule",
    "unlearn": "Unlearn",
    "undo": "Undo",
    "dismiss": "Dismiss",
    "restore": "Restore",
}
_KEYS: Final[dict[str, Answer]] = {
    "a": "rule", "w": "soft", "d": "dismiss", "s": "skip", "r": "replace", "b": "both", "t": "reword",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stands:
    """Something that stands already, and that the question is about. ``id``: "" for a line without one."""

    id: str
    text: str
    where: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a person is asked about. ``at``: when, in epoch ms. ``text``: the rule, or the change to undo.
    ``target``: the file that a rule would go to, "" for none; ``kept``: where a preference would. ``soft``: a
    preference is meant. ``signals``: ids, in ``dismiss`` and ``restore`` those that it is about.
    ``number``: of the change.
    """

    token: str
    session: str
    at: int
    kind: Kind
    text: str = ""
    target: str = ""
    kept: str = ""
    soft: bool = False
    signals: tuple[str, ...] = ()
    count: int = 0
    quotes: tuple[tuple[str, str], ...] = ()
    stands: tuple[Stands, ...] = ()
    number: int = 0

    def object(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)


def stored(found: object) -> Proposal | None:
    """A proposal as it was stored; None for anything else."""
    if not isinstance(found, dict) or set(found) != {f.name for f in fields(Proposal)}:
        return None
    try:
        made = Proposal(**found)
        texts = (made.token, made.session, made.text, made.target, made.kept, *made.signals)
        numbers = (made.at, made.count, made.number)
        if made.kind not in KINDS or not all(isinstance(t, str) for t in texts):
            return None
        if not all(type(n) is int for n in numbers) or not isinstance(made.soft, bool):
            return None
        quotes = tuple((str(day), str(text)) for day, text in made.quotes)
        stands = tuple(Stands(each["id"], each["text"], each["where"]) for each in made.object()["stands"])
    except (TypeError, ValueError, KeyError):
        return None
    return replace(made, signals=tuple(made.signals), quotes=quotes, stands=stands)


def answers(p: Proposal) -> dict[str, tuple[Answer, str]]:
    """Each label that may be chosen, what it means, and what is said of it."""
    names = [s.id for s in p.stands if s.id]
    match p.kind:
        case "pattern":
            return _of(screens.choices(PurePosixPath(p.target).name, p.kept, undo=False), "awds")
        case "learn":
            found = _of(
                screens.choices(PurePosixPath(p.target).name, p.kept, undo=False), "wa" if p.soft else "aw"
            )
            return {**found, "Don't add it": ("skip", "nothing is written")}
        case "conflict":
            found = _of(screens.conflict_choices(names), "rdb")
            if p.signals:
                return found
            return {k: ("skip" if a == "dismiss" else a, about) for k, (a, about) in found.items()}
        case "near":
            return {**_of(screens.near_choices(), "tb"), "Skip for now": ("skip", "nothing is written")}
        case "unlearn":
            return {
                "Archive it": ("archive", "it moves to the archived rules"),
                "Remove it entirely": ("delete", "it is not even archived"),
                "Keep it": ("skip", "nothing is changed"),
            }
        case "undo":
            return {
                "Undo it": ("do", "the file becomes what it was"),
                "Leave it": ("skip", "nothing is changed"),
            }
        case "dismiss":
            return {
                "Dismiss": ("do", "never suggest it again"),
                "Skip for now": ("skip", "nothing is changed"),
            }
        case "restore":
            return {"Restore": ("do", "suggest it again"), "Leave it": ("skip", "nothing is changed")}


def _of(found: Sequence[screens.Choice], keys: str) -> dict[str, tuple[Answer, str]]:
    """Those of the terminal's choices that these keys stand for, in that order."""
    known = {choice.key: choice for choice in found}
    chosen = [known[key] for key in keys if key in known]
    return {c.label: (_KEYS[c.key], c.note or _NOTES[c.key]) for c in chosen}


_NOTES: Final[Mapping[str, str]] = {
    "d": "what stands stays, and the new rule is not suggested again",
    "b": "both stand",
    "t": "its text is replaced, in its place",
}


def question(p: Proposal) -> Question:
    """The question, byte for byte."""
    lines = [*_lines(p), f"(reflectd {p.token})"]
    options = tuple((label, about) for label, (_, about) in answers(p).items())
    return Question("\n".join(lines), _HEADERS[p.kind], options)


def _lines(p: Proposal) -> list[str]:
    text = f'"{screens.cut(p.text, TEXT_CHARS)}"'
    stands = [_stands(s) for s in p.stands[:STANDS]]
    if len(p.stands) > STANDS:
        stands.append(f"and {len(p.stands) - STANDS} more")
    where = p.target or "no file"
    match p.kind:
        case "pattern":
            said = [f'You said: "{screens.cut(t, QUOTE_CHARS)}" ({day})' for day, t in p.quotes[:QUOTES]]
            often = count(p.count, "occurrence")
            return [f"Found pattern: {text} ({often})", *said, f"Make it a rule in {where}?"]
        case "learn":
            kind = f"Keep this preference ({p.kept})" if p.soft else f"Write this rule into {where}"
            return [f"{kind}? {text}"]
        case "conflict":
            goes = p.kept if p.soft else where
            return ["CONFLICT DETECTED", f"New ({goes}): {text}", *(f"Conflicts with: {s}" for s in stands)]
        case "near":
            return [
                f"New ({p.kept if p.soft else where}): {text}",
                f"The same stands in other words: {stands[0]}",
            ]
        case "unlearn":
            return [f"Shall this rule no longer apply? {stands[0]}"]
        case "undo":
            at = f" in {p.target}" if p.target else ""
            return [f"Undo change {p.number} ({screens.cut(p.text, TEXT_CHARS)}){at}?"]
        case "dismiss":
            return ["Shall this never be suggested again?", *stands]
        case "restore":
            return ["Shall this be suggested again?", *stands]


def _stands(s: Stands) -> str:
    name = f"{s.id} in {s.where}" if s.id and s.where else s.id or s.where
    return f'"{screens.cut(s.text, TEXT_CHARS)}" [{screens.cut(name, QUOTE_CHARS)}]'
