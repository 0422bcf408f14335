"""What a person is asked about rules, and what each answer does: on a terminal and inside a host.

A proposal is all that a question and its answer need. The question follows from it, byte for byte, and is
never stored: whoever changes a stored proposal gets another question, and an answer to the first one does not
fit it. Before a new rule is written a model says what it contradicts, where there is one; that is a new
question. Of the texts only ours are trusted, so all others are shown on one line, with control characters
made visible. Raises ``UserError`` and ``Unavailable``; nothing is changed then.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

from ...core.consent import Question
from ...core.errors import Unavailable, UserError
from ...learning.rules import findings
from ...learning.rules.candidates import for_a_person
from ...learning.rules.journal import RULE_ID, dismiss, is_due, ranked, restore, signal_named
from ...learning.rules.rules_file import chosen
from ...learning.rules.section import PREFERENCES, RULES
from ...learning.rules.standing import WORKSHOP
from ...redact import redact
from ..render import count, short
from ..settings import here, look

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from ...core.settings import Settings
    from ...learning.rules.candidates import Candidate
    from ...learning.rules.journal import Entry, Journal
    from ...learning.rules.learned_rules import Done, LearnedRules, Plan
    from ...learning.rules.questions import Compare
    from ...learning.rules.rules_file import Place
    from ...learning.rules.standing import Standing
    from ...paths import Paths

Kind = Literal["pattern", "learn", "conflict", "near", "unlearn", "undo", "dismiss", "restore"]
Answer = Literal["rule", "soft", "dismiss", "skip", "replace", "both", "reword", "archive", "delete", "do"]
Json = dict[str, Any]
REASON: Final = "no longer applies"
MOST: Final = 8  # proposals of one command inside a host
QUOTES: Final = 2
QUOTE_CHARS: Final = 120
TEXT_CHARS: Final = 500
STANDS: Final = 4
_HEADERS: Final[dict[Kind, str]] = {
    "pattern": "Rule", "learn": "Rule", "conflict": "Conflict", "near": "Rule", "unlearn": "Unlearn",
    "undo": "Undo", "dismiss": "Dismiss", "restore": "Restore",
}  # fmt: skip
_ABOUT: Final = frozenset(
    {"the", "rule", "preference", "about", "concerning", "on", "which", "says", "say", "one"}
)
_WORD: Final = re.compile(r"\w+")  # a search, whose hits the person is asked about


def rules_of(args: argparse.Namespace) -> LearnedRules:
    """The rules of the project that the arguments mean. Raises ``UserError``."""
    return rules_at(*look(args), args.dir)


def rules_at(settings: Settings, where: Paths, folder: str | None) -> LearnedRules:
    """The rules of the project of this folder, of the current one for None. Raises ``UserError``."""
    from ...clock import SystemClock
    from ...learning.rules.learned_rules import LearnedRules

    project = here(where, folder)
    if not project.is_dir():
        raise UserError(f"there is no folder {project}")
    return LearnedRules(project, where.state_dir, SystemClock(), playbook=settings.playbook.path)


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

    def object(self) -> Json:
        """As it is stored."""
        return asdict(self)

    def shown(self) -> Json:
        """For a script: what it is about, the question and the labels that may be chosen."""
        about = {k: v for k, v in self.object().items() if v and k not in {"token", "session", "at"}}
        return {**about, "question": lines(self), "options": list(answers(self))}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one decision. ``changes``: their numbers, newest first. ``ask``: what must be asked
    before anything is done.
    """

    status: str
    told: tuple[str, ...] = ()
    text: str = ""
    rule: str = ""
    file: str = ""
    changes: tuple[int, ...] = ()
    ask: tuple[Proposal, ...] = ()

    def object(self) -> Json:
        """For whoever reads the answer."""
        found = {"status": self.status, "text": self.text, "rule": self.rule, "file": self.file}
        more = {"undo": f"reflectd reflect undo {self.changes[0]}"} if self.changes else {}
        return {k: v for k, v in found.items() if v} | more | ({"told": list(self.told)} if self.told else {})

    def line(self) -> str:
        """For a person."""
        where = f" in {self.file}" if self.file else ""
        name = f" {self.rule}{where}" if self.rule else where
        return f"{self.status[:1].upper()}{self.status[1:]}{name}: {one_line(self.text)}"


def stored(found: object) -> Proposal | None:
    """A proposal as it was stored; None for anything else."""
    import msgspec

    if not isinstance(found, dict) or set(found) != {f.name for f in fields(Proposal)}:
        return None
    try:
        return msgspec.convert(found, Proposal)
    except msgspec.ValidationError:
        return None


# --- what is asked -------------------------------------------------------------------------------------


_NO: Final = ("skip", "nothing is changed")
_SKIP: Final = ("skip", "nothing is written")
_NEVER: Final = "never suggest it again"
_BOTH: Final[dict[str, tuple[Answer, str]]] = {"Keep both (different contexts)": ("both", "both stand")}
_PLAIN: Final[dict[str, dict[str, tuple[Answer, str]]]] = {
    "unlearn": {
        "Archive it": ("archive", "it moves to the archived rules"),
        "Remove it entirely": ("delete", "it is not even archived"),
        "Keep it": _NO,
    },
    "undo": {"Undo it": ("do", "the file becomes what it was"), "Leave it": _NO},
    "dismiss": {"Dismiss": ("do", _NEVER), "Skip for now": _NO},
    "restore": {"Restore": ("do", "suggest it again"), "Leave it": _NO},
    "near": {
        "Update its text": ("reword", "its text is replaced, in its place"),
        **_BOTH,
        "Skip for now": _SKIP,
    },
}


def answers(p: Proposal) -> dict[str, tuple[Answer, str]]:
    """Each label that may be chosen, what it means, and what is said of it."""
    add: dict[str, tuple[Answer, str]] = {}
    if p.target:
        add[f"Add to {PurePosixPath(p.target).name}"] = ("rule", "a rule that always holds")
    add["Add to Workshop"] = ("soft", p.kept)
    match p.kind:
        case "pattern":
            return {**add, "Dismiss": ("dismiss", _NEVER), "Skip for now": ("skip", "ask again next time")}
        case "learn":
            return {**(dict(reversed(add.items())) if p.soft else add), "Don't add it": _SKIP}
        case "conflict":
            names = [s.id for s in p.stands if s.id]
            gone = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} archived"
            found: dict[str, tuple[Answer, str]] = (
                {"Replace existing rule": ("replace", gone)} if names else {}
            )
            kept = "what stands stays, and the new rule is not suggested again"
            found["Keep existing, dismiss new"] = ("dismiss" if p.signals else "skip", kept)
            return {**found, **_BOTH}
        case _:
            return _PLAIN[p.kind]


def question(p: Proposal) -> Question:
    """The question, byte for byte."""
    options = tuple((label, about) for label, (_, about) in answers(p).items())
    return Question("\n".join([*lines(p), f"(reflectd {p.token})"]), _HEADERS[p.kind], options)


def lines(p: Proposal) -> list[str]:
    """What the person reads."""
    text = f'"{cut(p.text, TEXT_CHARS)}"'
    stands = [_stands(s) for s in p.stands[:STANDS]]
    if len(p.stands) > STANDS:
        stands.append(f"and {len(p.stands) - STANDS} more")
    where = p.target or "no file"
    match p.kind:
        case "pattern":
            said = [f'You said: "{cut(t, QUOTE_CHARS)}" ({day})' for day, t in p.quotes[:QUOTES]]
            often = count(p.count, "occurrence")
            return [f"Found pattern: {text} ({often})", *said, f"Make it a rule in {where}?"]
        case "learn":
            kind = f"Keep this preference ({p.kept})" if p.soft else f"Write this rule into {where}"
            return [f"{kind}? {text}"]
        case "conflict":
            goes = p.kept if p.soft else where
            return ["CONFLICT DETECTED", f"New ({goes}): {text}", *(f"Conflicts with: {s}" for s in stands)]
        case "near":
            goes = p.kept if p.soft else where
            return [f"New ({goes}): {text}", f"The same stands in other words: {stands[0]}"]
        case "unlearn":
            return [f"Shall this rule no longer apply? {stands[0]}"]
        case "undo":
            at = f" in {p.target}" if p.target else ""
            return [f"Undo change {p.number} ({cut(p.text, TEXT_CHARS)}){at}?"]
        case "dismiss":
            return ["Shall this never be suggested again?", *stands]
        case "restore":
            return ["Shall this be suggested again?", *stands]


def _stands(s: Stands) -> str:
    name = f"{s.id} in {s.where}" if s.id and s.where else s.id or s.where
    return f'"{cut(s.text, TEXT_CHARS)}" [{cut(name, QUOTE_CHARS)}]'


def one_line(text: object) -> str:
    """A foreign text as one line in which a terminal obeys nothing."""
    return cut(text, TEXT_CHARS)


def cut(text: object, width: int) -> str:
    """``short`` with dots that every terminal has."""
    return short(text, width).replace("\N{HORIZONTAL ELLIPSIS}", "...")


def meant(rows: Sequence[Standing], text: str, *, archived: bool = False) -> list[Standing]:
    """The person's own rules that a text means: the one of that id, else those that have all of its words.

    ``archived``: those too. Raises ``UserError`` when there is none.
    """
    if RULE_ID.fullmatch(text.strip()):
        found = [row for row in rows if row.id == text.strip()]
    else:
        words = _words(text) - _ABOUT
        found = [row for row in rows if words and words <= _words(row.text) and (row.active or archived)]
    mine = [row for row in found if row.note != "another"]
    if found and not mine:
        raise UserError(
            f"{found[0].id} in {found[0].where} is somebody else's: edit the file yourself, if you want that"
        )
    if not mine:
        raise UserError(f"no rule is like {short(text, 80)!r}; `reflectd reflect history` lists all")
    if len(mine) == 1 and not mine[0].active and not archived:
        raise UserError(f"{mine[0].id} is archived already; --delete removes it entirely")
    return mine


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


# --- what is done --------------------------------------------------------------------------------------


class Decisions:
    """Those on the rules of one project. ``place``: the file for rules; None while a person has not said
    which of two (``places``) it is, or where there is none that may be written (``no_place``).
    """

    def __init__(self, rules: LearnedRules, compare: Compare | None = None, host: str = "") -> None:
        """``compare``: a model that says what a text contradicts. ``host``: whose file counts, of two."""
        self.rules = rules
        self._compare = cache(compare) if compare is not None else None  # a question and its answer need it
        self.places: tuple[Place, ...] = ()
        self.place: Place | None = None
        self.no_place = ""
        try:
            self.places = rules.places()
            self.place = chosen(self.places, "", RULES) or (
                chosen(self.places, host, RULES) if host else None
            )
        except UserError as error:
            self.no_place = str(error)

    def refuse_unwritable(self, *, soft: bool) -> None:
        """Raise ``UserError`` where no file could take a new rule or preference: before anything is asked."""
        if not soft and self.no_place:
            raise UserError(self.no_place)
        for place in self.rules.places(soft=soft):
            if soft or self.place is None or self.place == place:
                place.document(PREFERENCES if soft else RULES)

    def base(self) -> Proposal:
        """A proposal without what it is about: where things go."""
        kept = "a preference"
        if self.rules.workshop() is not None:
            kept += ", kept by Workshop"
        else:
            with suppress(UserError):
                kept += f", in {self.rules.places(soft=True)[0].name}"
        return Proposal("", "", 0, "pattern", target=self.place.name if self.place else "", kept=kept)

    def patterns(self) -> list[Proposal]:
        """The patterns to decide on, the most pressing first. Those that nobody could read in a question are
        left out.
        """
        found: list[Proposal] = []
        base, quotes = self.base(), self.rules.journal.state.load("quotes")
        for signal in ranked([s for s in self._journal()["signals"] if is_due(s)]):
            with suppress(UserError):
                self._shown(self.rules.check(str(signal["content"])))
                found.append(_pattern(base, signal, quotes))
        return found

    def unread(self) -> list[Candidate]:
        """The person's words that no model read, which they may word themselves."""
        return for_a_person(findings.unread(self.rules.journal))

    def waits(self, p: Proposal | Candidate) -> bool:
        """Whether it is still to be decided: another review may have been faster."""
        if not isinstance(p, Proposal):
            return any(c.key == p.key for c in findings.unread(self.rules.journal))
        signals = self.rules.journal.read().journal["signals"]
        return any(s["id"] in p.signals and s["status"] == "pending" for s in signals)

    def worded(self, keys: Sequence[str], text: str) -> Proposal | None:
        """Candidates as somebody words them; None for what the person dismissed before."""
        text = self._shown(self.rules.check(text))
        signal = findings.word(self.rules.journal, keys, text, now())
        if signal["status"] == "dismissed":
            return None
        return replace(_pattern(self.base(), signal, self.rules.journal.state.load("quotes")), text=text)

    def wanted(self, verb: str, args: argparse.Namespace) -> list[Proposal] | Outcome:
        """What an action that changes something asks about: one question, or one for each rule that the
        words mean. An outcome where there is nothing to ask.
        """
        match verb:
            case "learn":
                plan = self.rules.plan(self._shown(args.text), soft=args.soft, compare=self._compare)
                if plan.same is not None:
                    return Outcome("there already", text=plan.text, file=plan.same.where)
                return [self._about(plan, (), "learn")]
            case "unlearn":
                rows = meant(self.rules.look().rows, args.text, archived=args.delete)[:MOST]
                found = [(Stands(r.id, one_line(r.text), r.file),) for r in rows]
                return [replace(self.base(), kind="unlearn", stands=stands) for stands in found]
            case "undo":
                change = self.rules.changes.wanted(args.number)
                base, what = self.base(), one_line(change.what)
                return [replace(base, kind="undo", text=what, target=change.file, number=change.number)]
            case "dismiss" | "restore":
                signals = [signal_named(self._journal(), name) for name in args.names]
                stands = tuple(Stands(s["id"], one_line(s["content"]), "") for s in signals)
                return [replace(self.base(), kind=verb, signals=tuple(args.names), stands=stands)]
            case _:
                raise ValueError(verb)

    def _journal(self) -> Journal:
        """The journal. Raises ``UserError`` for one that can't be used."""
        loaded = self.rules.journal.read()
        if loaded.problem:
            raise UserError(f"{loaded.problem}: the next scan begins a new one")
        return loaded.journal

    def done(
        self, p: Proposal, answer: Answer, *, seen: Mapping[str, str] | None = None, why: str = ""
    ) -> Outcome:
        """Do what was answered. ``seen``: how the files looked when the person was asked (None: as
        they are now). ``why``: why a rule is archived.
        """
        match answer:
            case "skip":
                return Outcome("skipped for now", text=p.text)
            case "dismiss":
                return self._dismissed(p.signals, p.text)
            case "rule" | "soft":
                return self._write(p.text, p.signals, soft=answer == "soft", seen=seen)
            case "replace" | "both" | "reword":
                return self._settled(p, answer, seen)
            case "archive" | "delete":
                return self._unlearned(p.stands[0], delete=answer == "delete", why=why or REASON)
            case "do":
                return self._do(p)

    def _write(
        self, text: str, signals: Sequence[str], *, soft: bool, seen: Mapping[str, str] | None
    ) -> Outcome:
        """A new rule or preference; a question instead where something contradicts it."""
        plan = self.rules.plan(self._shown(text), soft=soft, compare=self._compare)
        asks = self._about(plan, signals, "pattern")
        if asks.kind in {"conflict", "near"} and not (plan.same is not None and signals):
            return Outcome("asks", text=plan.text, ask=(asks,))
        return self._written(plan, signals, (), seen)

    def take_back(self, done: Outcome, p: Proposal) -> tuple[str, ...]:
        """Undo a decision of a review; what the person should know of that."""
        if done.status == "dismissed":
            return self.rules.journal.change(lambda journal: restore(journal, p.signals)).told
        return tuple(told for number in done.changes for told in self.rules.undo(number).told)

    def _shown(self, text: str) -> str:
        """The text, if a person can be shown all of it in one line. Raises ``UserError``."""
        said = " ".join(text.split())
        if one_line(said) != said or len(said) > TEXT_CHARS:
            raise UserError("this wording can't be shown as it is in a question: word it shorter and plainer")
        return said

    def _about(self, plan: Plan, signals: Sequence[str], kind: Literal["learn", "pattern"]) -> Proposal:
        """What a person is asked about this text: what contradicts it, or whether they want it."""
        base = replace(self.base(), text=plan.text, soft=plan.soft, signals=tuple(signals))
        if plan.conflicts:
            rows = {row.id for row in plan.replaceable}
            stands = (Stands(s.id if s.id in rows else "", s.text, s.where) for s in plan.conflicts)
            return replace(base, kind="conflict", stands=tuple(map(_lined, stands)))
        if plan.near is not None and plan.same is None:
            stands = (Stands(r.id, r.text, r.file) for r in (plan.near,))
            return replace(base, kind="near", stands=tuple(map(_lined, stands)))
        return replace(base, kind=kind)

    def _settled(self, p: Proposal, answer: Answer, seen: Mapping[str, str] | None) -> Outcome:
        """What the person said to a contradiction, if all that stood in the question still stands."""
        plan = self.rules.plan(p.text, soft=p.soft)
        if p.kind == "near":
            rows = plan.look.rows
            near = next((r for r in rows if _lined(Stands(r.id, r.text, r.file)) == p.stands[0]), None)
            plan, there = replace(plan, near=near), near is not None
        else:
            asked = {(s.text, s.where) for s in p.stands}
            found = [s for s in plan.look.statements if (one_line(s.text), one_line(s.where)) in asked]
            plan, there = replace(plan, conflicts=tuple(found)), len(found) >= len(asked)
        if not there:
            raise UserError("what stands was changed while the person was asked: ask again")
        if answer == "reword" and plan.near is not None:
            mark = (plan.marks if seen is None else seen).get(plan.near.file, "")
            done = self.rules.reword(plan.near.id, plan.text, mark, signals=p.signals)
            return _outcome("reworded", done, plan.text, plan.near.file)
        return self._written(plan, p.signals, plan.replaceable if answer == "replace" else (), seen)

    def _written(
        self,
        plan: Plan,
        signals: Sequence[str],
        replaces: Sequence[Standing],
        seen: Mapping[str, str] | None,
    ) -> Outcome:
        """Write it. Rules of another file that it takes the place of are archived there."""
        place = self.rules.places(soft=True)[0] if plan.soft else self.place
        if place is None:
            raise UserError(self.no_place or "no file for the rules was chosen")
        here = [row.id for row in replaces if row.file == place.name]
        marks = plan.marks if seen is None else seen
        mark = marks.get(place.name, "")
        done = self.rules.learn(plan.text, place, mark, soft=plan.soft, signals=signals, replaces=here)
        told, changes = list(done.told), [done.change.number]
        for row in replaces:
            if row.id in here:
                continue
            try:
                reason = f"replaced by {done.rule['id']}"
                gone = self.rules.unlearn(row.id, marks.get(row.file, ""), reason=reason)
            except (UserError, Unavailable) as error:
                told.append(f"{row.id} stays: {error}")
                continue
            changes.insert(0, gone.change.number)
            told += gone.told
        status = "preference added" if plan.soft else "rule added"
        if done.change.rules[0][0] is not None:
            status = "there already"
        found = _outcome(status, done, plan.text, str(done.rule.get("file", "")))
        return replace(found, told=tuple(told), changes=tuple(changes))

    def _unlearned(self, rule: Stands, *, delete: bool, why: str) -> Outcome:
        """Archive or remove a rule, if it is still what the person saw."""
        row = next((r for r in self.rules.look().rows if r.id == rule.id and r.file == rule.where), None)
        if row is None or one_line(row.text) != rule.text:
            raise UserError(f"{rule.id} was changed while the person was asked: ask again")
        seen = self.rules.marks().get(row.file, "")
        done = self.rules.unlearn(row.id, seen, delete=delete, reason=why)
        return _outcome("removed" if delete else "archived", done, row.text, row.file)

    def _dismissed(self, names: Sequence[str], text: str) -> Outcome:
        if not names:
            return Outcome("not added", text=text)
        book = self.rules.journal
        return Outcome("dismissed", book.change(lambda j: dismiss(j, names, book.day())).told, text)

    def _do(self, p: Proposal) -> Outcome:
        text = "; ".join(f"{s.id} {s.text}" for s in p.stands)
        match p.kind:
            case "undo":
                change = self.rules.changes.wanted(p.number)
                if one_line(change.what) != p.text:
                    raise UserError("the change is not the one that the person was asked about: ask again")
                return _outcome("undone", self.rules.undo(p.number), change.what, change.file)
            case "dismiss":
                return self._dismissed(p.signals, text)
            case _:
                told = self.rules.journal.change(lambda journal: restore(journal, p.signals)).told
                return Outcome("restored", told, text)


def _pattern(base: Proposal, signal: Mapping[str, Any], quotes: Mapping[str, Any]) -> Proposal:
    """A signal of the journal, with what the state folder has of it."""
    kept: list[Entry] = [q for q in quotes.get(str(signal["id"]), ()) if isinstance(q, dict)]
    said = tuple((str(q.get("day", "")), one_line(redact(str(q.get("text", ""))))) for q in kept)
    text, often = redact(" ".join(str(signal["content"]).split())), int(signal["occurrences"])
    return replace(base, text=text, signals=(str(signal["id"]),), count=often, quotes=said)


def _lined(s: Stands) -> Stands:
    return Stands(s.id, one_line(s.text), one_line(s.where))


def _outcome(status: str, done: Done, text: str, file: str) -> Outcome:
    where = "Workshop" if file == WORKSHOP else file
    return Outcome(status, done.told, text, str(done.rule.get("id", "")), where, (done.change.number,))


def now() -> int:
    """Epoch ms."""
    return int(time.time() * 1000)
