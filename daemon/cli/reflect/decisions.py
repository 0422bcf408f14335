"""The questions about rules, and the effect of each answer: the same on a terminal and inside a host.

A proposal is all that a question and its answer need. The question follows from it, byte for byte, and is
never stored: a stored proposal that somebody changes makes another question, and an answer to the first one
does not fit it. Before a new rule is written a model says what it contradicts, where there is one; that is a
new question. Of the texts only ours are trusted, so all others are shown on one line, with control characters
made visible. Raises ``UserError`` and ``Unavailable``; nothing is changed then.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ...core.consent import Question
from ...core.errors import UserError
from ...learning.rules.candidates import quotes_of
from ...learning.rules.journal import RULE_ID, due, same
from ...learning.rules.standing import WORKSHOP
from ...redact import redact
from ..render import count, short
from ..settings import here, look

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from ...core.settings import Settings
    from ...learning.rules.candidates import Candidate
    from ...learning.rules.learned_rules import Done, LearnedRules
    from ...learning.rules.places import Place
    from ...learning.rules.standing import Standing
    from ...paths import Paths
    from .reading import Model

Kind = Literal["pattern", "learn", "same", "conflict", "near", "unlearn"]
Answer = Literal["rule", "soft", "dismiss", "skip", "replace", "both", "reword", "archive", "delete"]
Json = dict[str, Any]
REASON: Final = "no longer applies"
MOST: Final = 8  # proposals of one command inside a host
QUOTES: Final = 2
QUOTE_CHARS: Final = 120
TEXT_CHARS: Final = 500
STANDS: Final = 4
_HEADERS: Final[dict[Kind, str]] = {"conflict": "Conflict", "unlearn": "Unlearn"}
_ABOUT: Final = frozenset(
    {"the", "rule", "preference", "about", "concerning", "on", "which", "says", "say", "one"}
)
_WORD: Final = re.compile(r"\w+")  # a search, whose hits the person is asked about


def rules_of(args: argparse.Namespace) -> LearnedRules:
    return rules_at(*look(args), args.dir)


def rules_at(settings: Settings, where: Paths, folder: str | None) -> LearnedRules:
    """The rules of the project of this folder, of the current one for None. Raises ``UserError``."""
    from ...clock import SystemClock
    from ...learning.rules.learned_rules import LearnedRules

    project = here(where, folder)
    if not project.is_dir():
        raise UserError(f"there is no folder {project}")
    return LearnedRules(project, where.state_dir, SystemClock(), playbook=settings.playbook.path)


class Stands(Struct, frozen=True):
    """Something that stands already. ``id``: "" for a line that an answer does not change."""

    id: str
    text: str
    where: str


class Proposal(Struct, frozen=True):
    """A change that a person is asked about. ``at``: when, in epoch ms. ``text``: the rule. ``target``: the
    file that it would go to, "" for none; ``kept``: where a preference would. ``soft``: a preference is
    meant. ``signals``: ids.
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

    def shown(self) -> Json:
        """For a script: the proposal, the question and the labels that may be chosen."""
        about = {k: v for k, v in to_builtins(self).items() if v and k not in {"token", "session", "at"}}
        return {**about, "question": lines(self), "options": list(answers(self))}


def stored(found: object) -> Proposal | None:
    """A proposal as it was stored; None for anything else."""
    try:
        return msgspec.convert(found, Proposal)
    except msgspec.ValidationError:
        return None


class Outcome(Struct, frozen=True):
    """The end of one decision. ``change``: its number, 0 when no rule was changed. ``ask``: a question that
    comes before anything is done.
    """

    status: str
    text: str = ""
    told: Sequence[str] = ()
    rule: str = ""
    file: str = ""
    change: int = 0
    ask: Proposal | None = None

    def object(self) -> Json:
        undo = f"reflectd learned undo r{self.change}" if self.change else ""
        found = {"status": self.status, "text": self.text, "rule": self.rule, "file": self.file, "undo": undo}
        return {key: value for key, value in {**found, "told": list(self.told)}.items() if value}

    def line(self) -> str:
        where = f" in {self.file}" if self.file else ""
        name = f" {self.rule}{where}" if self.rule else where
        return f"{self.status[:1].upper()}{self.status[1:]}{name}: {one_line(self.text)}"


# --- the questions -------------------------------------------------------------------------------------


_NO: Final = ("skip", "nothing is changed")
_SKIP: Final = ("skip", "nothing is written")
_BOTH: Final[dict[str, tuple[Answer, str]]] = {"Keep both (different contexts)": ("both", "both stand")}
_PLAIN: Final[dict[str, dict[str, tuple[Answer, str]]]] = {
    "unlearn": {
        "Archive it": ("archive", "it moves to the archived rules"),
        "Remove it entirely": ("delete", "it is not even archived"),
        "Keep it": _NO,
    },
    "near": {
        "Update its text": ("reword", "its text is replaced, in its place"),
        **_BOTH,
        "Skip for now": _SKIP,
    },
}


def answers(p: Proposal) -> dict[str, tuple[Answer, str]]:
    """Each label that may be chosen, its answer, and the words that explain it."""
    add: dict[str, tuple[Answer, str]] = {}
    if p.target:
        add[f"Add to {PurePosixPath(p.target).name}"] = ("rule", "a rule that always holds")
    add["Add to Workshop"] = ("soft", p.kept)
    match p.kind:
        case "pattern":
            add["Dismiss"] = ("dismiss", "never suggest it again")
            return {**add, "Skip for now": ("skip", "ask again next time")}
        case "learn" | "same":
            return {**(dict(reversed(add.items())) if p.soft else add), "Don't add it": _SKIP}
        case "conflict":
            names = [s.id for s in p.stands if s.id]
            gone = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} archived"
            new: dict[str, tuple[Answer, str]] = {"Replace existing rule": ("replace", gone)} if names else {}
            kept = "what stands stays, and the new rule is not suggested again"
            new["Keep existing, dismiss new"] = ("dismiss" if p.signals else "skip", kept)
            return {**new, **_BOTH}
        case _:
            return _PLAIN[p.kind]


def question(p: Proposal) -> Question:
    options = tuple((label, about) for label, (_, about) in answers(p).items())
    return Question("\n".join([*lines(p), f"(reflectd {p.token})"]), _HEADERS.get(p.kind, "Rule"), options)


def lines(p: Proposal) -> list[str]:
    text, where = f'"{cut(p.text, TEXT_CHARS)}"', p.target or "no file"
    stands = [_shown(s) for s in p.stands[:STANDS]]
    if len(p.stands) > STANDS:
        stands.append(f"and {len(p.stands) - STANDS} more")
    new = f"New ({p.kept if p.soft else where}): {text}"
    match p.kind:
        case "pattern":
            said = [f'You said: "{cut(t, QUOTE_CHARS)}" ({day})' for day, t in p.quotes[:QUOTES]]
            often = count(p.count, "occurrence")
            return [f"Found pattern: {text} ({often})", *said, f"Make it a rule in {where}?"]
        case "learn" | "same":
            kind = f"Keep this preference ({p.kept})" if p.soft else f"Write this rule into {where}"
            return [f"{kind}? {text}"]
        case "conflict":
            return ["CONFLICT DETECTED", new, *(f"Conflicts with: {s}" for s in stands)]
        case "near":
            return [new, f"The same stands in other words: {stands[0]}"]
        case "unlearn":
            return [f"Shall this rule no longer apply? {stands[0]}"]


def _shown(s: Stands) -> str:
    name = f"{s.id} in {s.where}" if s.id and s.where else s.id or s.where
    return f'"{cut(s.text, TEXT_CHARS)}" [{cut(name, QUOTE_CHARS)}]'


def one_line(text: object) -> str:
    """A foreign text as one line in which a terminal obeys nothing."""
    return cut(text, TEXT_CHARS)


def cut(text: object, width: int) -> str:
    """``short`` with dots that every terminal has."""
    return short(text, width).replace("\N{HORIZONTAL ELLIPSIS}", "...")


def _stands(s: Standing, *, changes: bool = True) -> Stands:
    """``changes``: an answer may change it."""
    return Stands(s.id if changes else "", one_line(s.text), one_line(s.where))


def meant(rows: Sequence[Standing], text: str, *, archived: bool = False) -> Standing:
    """The person's own rule that a text means: the one of that id, else the one that has all of its words.

    ``archived``: those too. Raises ``UserError`` when there is none, and when there are several.
    """
    if RULE_ID.fullmatch(text.strip()):
        found = [row for row in rows if row.id == text.strip()]
    else:
        words = _words(text) - _ABOUT
        found = [row for row in rows if words and words <= _words(row.text) and (row.active or archived)]
    mine = [row for row in found if row.mine]
    if found and not mine:
        raise UserError(
            f"{found[0].id} in {found[0].where} is somebody else's: edit the file yourself, if you want that"
        )
    if not mine:
        raise UserError(f"no rule is like {short(text, 80)!r}; `reflectd reflect history` lists all")
    if len(mine) > 1:
        several = "; ".join(f'{row.id} "{short(row.text, 80)}"' for row in mine[:MOST])
        raise UserError(f"that means several rules, name one by its id: {several}")
    if not mine[0].active and not archived:
        raise UserError(f"{mine[0].id} is archived already; --delete removes it entirely")
    return mine[0]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _host_here(rules: LearnedRules) -> str:
    """On a terminal: a connected agent that reads AGENTS.md, if none is connected that reads CLAUDE.md."""
    from ...learning.rules.places import READ_AGENTS
    from ..setup.agents import HOST

    connected = {name for name, host in HOST.items() if host.loads(rules.env, rules.project)}
    return min(connected, default="") if connected <= READ_AGENTS else ""


# --- the decisions -------------------------------------------------------------------------------------


class Decisions:
    """Those on the rules of one project. ``place``: the file for rules; None where there is none that may be
    written (``no_place``).
    """

    def __init__(self, rules: LearnedRules, model: Model | None = None, host: str = "") -> None:
        """``model``: says what a text contradicts. ``host``: whose file counts, of two."""
        self.rules = rules
        # a question and its answer need it
        self._compare = cache(model.compare) if model is not None else None
        self.place: Place | None = None
        self.no_place = ""
        try:
            self.place = rules.place(host=host or _host_here(rules))
        except UserError as error:
            self.no_place = str(error)

    def base(self) -> Proposal:
        """A proposal that only says where things go."""
        kept = "a preference"
        if self.rules.workshop() is not None:
            kept += ", kept by Workshop"
        else:
            with suppress(UserError):
                kept += f", in {self.rules.place(soft=True).name}"
        return Proposal("", "", 0, "pattern", target=self.place.name if self.place else "", kept=kept)

    def patterns(self) -> list[Proposal]:
        """The patterns that can be shown in a question, the most pressing first."""
        found: list[Proposal] = []
        journal, base = self.rules.journal.read().journal, self.base()
        messages = self.rules.journal.messages(journal).values()
        for signal in due(journal):
            with suppress(UserError):
                self._readable(str(signal["content"]))
                found.append(_pattern(base, signal, messages))
        return found

    def waits(self, p: Proposal) -> bool:
        """Says whether a pattern is still to be decided: another review may have been faster."""
        signals = self.rules.journal.read().journal["signals"]
        return any(s["id"] in p.signals and s["status"] == "pending" for s in signals)

    def worded(self, keys: Sequence[str], text: str) -> Proposal | None:
        """Messages as somebody words them; None for a rule that the person dismissed before."""
        text = self._readable(text)
        book = self.rules.journal
        signal = book.word(keys, text)
        if signal["status"] == "dismissed":
            return None
        messages = book.messages(book.read().journal).values()
        return replace(_pattern(self.base(), signal, messages), text=text)

    def wanted(self, verb: str, args: argparse.Namespace) -> Proposal:
        """The question of a changing action; of the kind "same" for a rule that stands already."""
        match verb:
            case "learn":
                self._place(soft=args.soft).document()  # before anything is asked
                return self._about(args.text, "learn", soft=args.soft)
            case "unlearn":
                row = meant(self.rules.look().rows, args.text, archived=args.delete)
                return replace(self.base(), kind="unlearn", stands=(_stands(row),))
            case _:
                raise ValueError(verb)

    def decide(self, p: Proposal, answer: Answer, *, why: str = "") -> Outcome:
        """Do what was answered, if all that the question named still stands. ``why``: why a rule is archived.
        Where something contradicts a new rule, that is asked about first.
        """
        if p.kind in {"conflict", "near", "unlearn"} and answer not in {"skip", "dismiss"}:
            self._refuse_changed(p)
        match answer:
            case "skip":
                return Outcome("skipped for now", p.text)
            case "dismiss":
                return _outcome("dismissed", self.rules.dismiss(p.signals), p.text)
            case "rule" | "soft":
                made = self._about(p.text, "learn", soft=answer == "soft", signals=p.signals)
                if made.kind in {"conflict", "near"}:
                    return Outcome("asks", made.text, ask=made)
                return self._learn(made)
            case "replace":
                return self._learn(p, [s.id for s in p.stands if s.id])
            case "both":
                return self._learn(p)
            case "reword":
                done = self.rules.reword(p.stands[0].id, p.text, signals=p.signals)
                return _outcome("reworded", done, p.text)
            case "archive" | "delete":
                name, text = p.stands[0].id, p.stands[0].text
                done = self.rules.unlearn(name, delete=answer == "delete", reason=why or REASON)
                return _outcome("removed" if answer == "delete" else "archived", done, text)

    def _about(self, text: str, kind: Kind, *, soft: bool, signals: Sequence[str] = ()) -> Proposal:
        """The question about a text: what contradicts it, or whether the person wants it."""
        text = self._readable(text, soft=soft)
        base = replace(self.base(), kind=kind, text=text, soft=soft, signals=tuple(signals))
        statements = self.rules.look().statements
        if twin := next((s for s in statements if same(s.text, text)), None):
            return replace(base, kind="same", stands=(_stands(twin),))
        if self._compare is None or not statements:
            return base
        found, file = self._compare(text, tuple(s.text for s in statements)), self._place(soft=soft).name
        conflicts = [statements[at] for at in found.contradicts]
        near = [s for s in (statements[at] for at in found.same) if s.mine and s.rule and s.soft == soft]
        if conflicts:
            stands = tuple(_stands(s, changes=s.mine and s.file == file) for s in conflicts)
            return replace(base, kind="conflict", stands=stands)
        return replace(base, kind="near", stands=(_stands(near[0]),)) if near else base

    def _place(self, *, soft: bool) -> Place:
        """The file for a new rule or preference. Raises ``UserError`` where there is none."""
        if self.place is None and not soft:
            raise UserError(self.no_place)
        return self.rules.place(soft=True) if soft or self.place is None else self.place

    def _readable(self, text: str, *, soft: bool = False) -> str:
        """The text, if it can be learned and shown whole in one line. Raises ``UserError``."""
        text = self.rules.check(text, soft=soft)
        if one_line(text) != text:
            raise UserError("this wording can't be shown as it is in a question: word it shorter and plainer")
        return text

    def _refuse_changed(self, p: Proposal) -> None:
        look = self.rules.look()
        there = {(one_line(s.text), one_line(s.where)) for s in (*look.rows, *look.statements)}
        if {(s.text, s.where) for s in p.stands} - there:
            raise UserError("what stands was changed while the person was asked: ask again")

    def _learn(self, p: Proposal, replaces: Sequence[str] = ()) -> Outcome:
        place = self._place(soft=p.soft)
        done = self.rules.learn(p.text, place, soft=p.soft, signals=p.signals, replaces=replaces)
        is_new = done.change.rules[0][0] is None
        status = "there already" if not is_new else "preference added" if p.soft else "rule added"
        return _outcome(status, done, p.text)


def _pattern(base: Proposal, signal: Mapping[str, Any], messages: Iterable[Candidate]) -> Proposal:
    """A signal of the journal, with what the person said."""
    kept = quotes_of(messages, str(signal["id"]))
    said = tuple((str(q["day"]), one_line(redact(str(q["text"])))) for q in kept)
    text, often = redact(" ".join(str(signal["content"]).split())), int(signal["occurrences"])
    return replace(base, text=text, signals=(str(signal["id"]),), count=often, quotes=said)


def _outcome(status: str, done: Done, text: str) -> Outcome:
    file = str(done.rule.get("file", ""))
    where = "Workshop" if file == WORKSHOP else file
    return Outcome(status, text, done.told, str(done.rule.get("id", "")), where, done.change.number)


def now() -> int:
    return int(time.time() * 1000)
