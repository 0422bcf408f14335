"""Everything that was learned about one project, as one list of records: rules, preferences, points, lessons.

A record says what was learned, where it comes from, what became of it, and how an agent gets it or why none
does. Rules and preferences stand in the project's files, points in its playbook; texts that wait for
confirmation are rows of the database, lessons are episodes. ``settle`` carries out a person's word on one;
nobody is asked here.
"""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ..core.errors import UserError
from ..core.given import folded, known_as
from ..engine.page import wilson
from . import tables
from .lessons.repositories import project_of
from .playbook.points import each, harms
from .playbook.project_playbook import OwnWords, never_again, take_back, vouch
from .revisions import undone
from .rules.journal import due
from .rules.places import AGENTS, vouched_for
from .rules.standing import WORKSHOP, facts
from .texts import refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.settings import Settings
    from ..store.readonly import Reads
    from .lessons.episodes import Episode
    from .rules.learned_rules import LearnedRules, Look
    from .rules.standing import Standing

Json = dict[str, Any]
Kind = Literal["rule", "preference", "point", "lesson"]
State = Literal["in use", "waiting", "dismissed"]
KINDS: Final[tuple[Kind, ...]] = ("rule", "preference", "point", "lesson")
SHORT_ID: Final = 12  # characters of a lesson's id that a person reads and types
AT_START: Final = "given at the start of each session, as far as there is room"
CHOSEN: Final = "given with a task for which a small model chooses it"
NO_MODEL: Final = "no model can be asked which lesson belongs to a task: the rules judge"
NOBODY: Final = "nobody vouches for it: `reflectd learned approve` lets agents have it"


class Record(Struct, frozen=True):
    """One thing that was learned.

    ``id``: what a person types. ``key``: the same for programs (a lesson's whole id, a waiting text's
    number). ``how``: how agents get it; "" when none does, then ``why`` says why not. ``task``: the task that
    a lesson is about. ``where``: the file and line of a rule, the section of a point; ``file``: of a rule.
    ``used``, ``helped``, ``harmed``: sessions. ``open``: nobody said yes or no to it yet. ``others``: the
    keys of further lessons that say the same, each of another task; a word on this one is a word on them.
    """

    id: str
    kind: Kind
    state: State
    text: str
    how: str = ""
    why: str = ""
    origin: str = ""
    where: str = ""
    file: str = ""
    task: str = ""
    problem: str = ""
    proof: str = ""
    used: int = 0
    helped: int = 0
    harmed: int = 0
    at: int = 0
    key: str = ""
    open: bool = False
    others: tuple[str, ...] = ()

    @property
    def seen(self) -> str:
        """The digest of its text, by which a later change sees that it is still the same."""
        return known_as(self.text)

    @property
    def suggested(self) -> bool:
        """Says whether it is a rule that nobody wrote yet: the person said it in several sessions."""
        return self.id.startswith("sig-")

    @property
    def approvable(self) -> bool:
        return self.kind in {"point", "lesson"} and (self.open or self.state != "in use")

    @property
    def use(self) -> str:
        """How often it was used and what became of that, in words; "" where that is not counted."""
        if self.kind in {"rule", "preference"} or (self.kind == "point" and self.key):
            return ""
        if not self.used:
            return "not used yet"
        times = "once" if self.used == 1 else f"{self.used} times"
        return f"used {times}, helped {self.helped}" + (f", harmed {self.harmed}" if self.harmed else "")

    def route(self, *, yes: bool) -> tuple[str, str, Json] | None:
        """The daemon's route that takes a person's word on it: feature, name and body; None where it stands
        in files alone.
        """
        if self.kind == "lesson":
            return "memory", "settle", {"ids": [self.key, *self.others], "yes": yes}
        return ("playbook", "settle", {"id": int(self.key), "yes": yes}) if self.key else None

    def as_json(self) -> Json:
        row: Json = to_builtins(self)
        return row | {"given": bool(self.how), "seen": self.seen}


def why_off(kind: Kind, person: Settings, project: Settings) -> str:
    """Why agents in this project are given nothing of this kind; "" when they are. ``person``: their own
    settings, ``project``: the same, as the project's file tightens them.
    """
    if kind == "rule":
        return ""
    part = {"point": "playbook", "lesson": "memory"}.get(kind, "")
    if part and not getattr(person, part).enabled:
        return "learning is off; `reflectd setup --learning on` switches it on"
    for name in ("enabled", "offer.enabled", *([f"{part}.enabled"] if part else [])):
        if not attrgetter(name)(project):
            return f"{name} is false (`reflectd config` says where)"
    if project.judge.mode == "observe":
        return "judge.mode is observe, which gives agents nothing"
    return ""


class Learned:
    """The records of one project. ``person`` and ``project``: settings, as for ``why_off``."""

    def __init__(self, rules: LearnedRules, person: Settings, project: Settings) -> None:
        self.rules = rules
        self.off = {kind: why_off(kind, person, project) for kind in KINDS}
        self.project = str(rules.journal.project)
        self._own = OwnWords(rules.state_dir, self.project)

    @cached_property
    def look(self) -> Look:
        """The project's rules and preferences as they are now."""
        return self.rules.look()

    def records(self, db: Reads | None) -> list[Record]:
        """All of it, by kind, in the order of ``KINDS``. ``db``: None where there is no database yet. Raises
        ``UserError`` for a playbook or a journal that can't be used, and ``Unavailable``.
        """
        return [
            *self.standing(soft=False),
            *self.suggested(),
            *self.standing(soft=True),
            *self.points(db),
            *self.lessons(db),
        ]

    # --- rules and preferences -----------------------------------------------------------------------------

    def standing(self, *, soft: bool) -> list[Record]:
        """The rules that are active and those that were archived; with ``soft`` the preferences."""
        signals = self.look.journal["signals"]
        vouched = vouched_for(self.rules.journal.state) if soft else {}
        found = []
        for row in self.look.rows:
            if row.soft is not soft:
                continue
            how, why = self._rule_reaches(row, vouched)
            state: State = "in use" if row.active else "dismissed"
            kind: Kind = "preference" if soft else "rule"
            origin = facts(row, signals)
            found.append(Record(row.id, kind, state, row.text, how, why, origin, row.where, row.file))
        return found

    def _rule_reaches(self, row: Standing, vouched: Mapping[str, int]) -> tuple[str, str]:
        """How agents get a rule or a preference, and why none does."""
        if not row.active:
            return "", "you took it back"
        if not row.soft:
            who = "opencode and Codex" if row.file == AGENTS else "Claude Code and opencode"
            return f"{who} read {row.file} themselves", ""
        if row.file == WORKSHOP:
            return "Workshop gives it", ""
        if why := self.off["preference"] or refusal(row.text):
            return "", why
        if self._own.holds(row.text):
            return "", "AGENTS.md or CLAUDE.md says it already"
        if known_as(row.text) not in vouched:
            return "", "nobody here vouches for it: `reflectd trust` lets agents have it"
        return AT_START, ""

    def suggested(self) -> list[Record]:
        """Patterns of several sessions that wait for the person's yes to become a rule."""
        return [
            Record(
                str(s["id"]), "rule", "waiting", str(s["content"]),
                why="it waits for your yes: `reflectd reflect`",
                origin=f"you said it in {s['occurrences']} sessions, severity {s['severity']}",
            )
            for s in due(self.look.journal)
        ]  # fmt: skip

    # --- points --------------------------------------------------------------------------------------------

    def points(self, db: Reads | None) -> list[Record]:
        """The points of the playbook, and the texts that wait for another session or a person."""
        book = self.rules.playbook
        loaded, known = book.read(), book.known()
        if loaded.problem:
            raise UserError(loaded.problem)
        project = self.project
        confirmed = {known_as(t.text): t for t in tables.texts(db, project, "confirmed")} if db else {}
        uses = tables.uses(db, project) if db else {}
        records = []
        for section, p in each(loaded.playbook):
            text, vouched = confirmed.get(known_as(p["text"])), known.is_approved(p["text"])
            counts = vouched or text is not None
            how, why = self.reaches("point", p["text"], vouched=counts, harm=harms(p))
            comes = "you wrote or approved it" if vouched else "nobody here approved it"
            records.append(Record(
                p["name"], "point", "in use" if counts else "waiting", p["text"], how, why,
                _session(text) if text else comes, section, used=uses.get(p["name"], 0),
                helped=p["helpful"], harmed=p["harmful"], at=text.at if text else 0,
            ))  # fmt: skip
        waiting = tables.texts(db, project) if db else ()
        return records + [
            Record(
                f"new-{t.id}", "point", "waiting", t.text, "", refusal(t.text) or NOBODY,
                _session(t), t.section, at=t.at, key=str(t.id),
            )
            for t in waiting
            if not self._own.blocked(t.text)
        ]  # fmt: skip

    def reaches(self, kind: Kind, text: str, *, vouched: bool = True, harm: bool = False) -> tuple[str, str]:
        """How agents get a text of this kind, "" when none does; then why not."""
        nobody = "" if vouched else NOBODY
        if kind == "point":  # a switch is said last: it can be set, a text can't
            why = self._own.objection(text, harm) or nobody or self.off[kind]
        else:
            why = self.off[kind] or refusal(text) or nobody
        return ("" if why else CHOSEN if kind == "lesson" else AT_START), why

    def without_model(self) -> None:
        """There is no model that could choose lessons for a task."""
        self.off["lesson"] = self.off["lesson"] or NO_MODEL

    # --- lessons -------------------------------------------------------------------------------------------

    def episodes(self, db: Reads | None) -> list[Episode]:
        """The project's lessons as they are stored, newest first."""
        from .lessons.store import every

        project = project_of(self.project) if db else ""
        return every(db, project) if db and project else []

    def lessons(self, db: Reads | None) -> list[Record]:
        """The episodes as records. Those of several tasks that say the same are one, that of the newest."""
        groups: dict[tuple[str, ...], list[Record]] = {}
        for r in map(self._lesson, self.episodes(db)):
            groups.setdefault((r.state, r.how, folded(r.text)), []).append(r)
        return [
            replace(group[0], **_sums(group)) if len(group) > 1 else group[0] for group in groups.values()
        ]

    def _lesson(self, e: Episode) -> Record:
        text, counts = " ".join(e.lesson.split()), e.state == "confirmed" or bool(e.proof)
        state: State = "dismissed" if e.state == "dismissed" else "in use" if counts else "waiting"
        how, why = self.reaches("lesson", text, vouched=state == "in use")
        if state == "dismissed":
            why = "you dismissed it, or the verdict behind it was wrong"
        origin = f"session {e.session}" if e.session else "added by hand"
        return Record(
            e.id[:SHORT_ID], "lesson", state, text, how, why, f"{origin}, {e.author}" if e.author else origin,
            task=" ".join(e.query.split()), problem=e.problem, proof=e.proof, used=e.given, helped=e.helped,
            harmed=e.failed, at=e.at, key=e.id, open=e.state == "quarantined",
        )  # fmt: skip


def _sums(group: Sequence[Record]) -> Json:
    """What a record of several lessons has of all of them."""
    others = tuple(r.key for r in group[1:])
    return {
        **{name: sum(getattr(r, name) for r in group) for name in ("used", "helped", "harmed")},
        "origin": f"{group[0].origin}; the same follows from {len(others)} more",
        "proof": next((r.proof for r in group if r.proof), ""),
        "open": all(r.open for r in group),
        "others": others,
    }


def named(records: Iterable[Record], wanted: str) -> Record:
    """The record of this id; a lesson's also by the beginning of its id. Raises ``UserError``."""
    every = list(records)
    found = [r for r in every if wanted and wanted in {r.id, r.key}]
    if not found and len(wanted) >= 4:
        begins, lessons = wanted.lower(), [r for r in every if r.kind == "lesson"]
        found = [r for r in lessons if any(key.startswith(begins) for key in (r.key, *r.others))]
    if len(found) != 1:
        what = "several lessons begin with" if found else "nothing that was learned is called"
        raise UserError(f"{what} {wanted[:80]!r}; `reflectd learned --all` lists everything")
    return found[0]


def _session(text: tables.Text) -> str:
    """Where a text comes from that a session taught."""
    why, by = (f": {text.why}" if text.why else ""), (f", confirmed by {text.proof}" if text.proof else "")
    return f"session {text.session}{why}{by}"


# --- a person's word, and changes of files ------------------------------------------------------------------


def settle(rules: LearnedRules, r: Record, *, yes: bool, by: str = "you") -> None:
    """The part of a person's word on a point that is written into files; ``Record.route`` names the other
    part, which comes first. Raises ``UserError`` when the text was edited since, and ``Unavailable``.
    """
    if r.kind == "lesson" or (r.key and yes):
        return
    if r.suggested:
        rules.dismiss([r.id], by=by)
    elif r.key:
        never_again(rules.journal, r.text)
    elif yes:
        vouch(rules.playbook, r.id, r.text)
    else:
        take_back(rules.playbook, rules.journal, r.id, r.text, by=by)


def changes(rules: LearnedRules) -> list[Json]:
    """The changes of files that can be undone, newest first: ``p…`` of the playbook, ``r…`` of rules and
    preferences.
    """
    found = [
        {
            "change": f"{letter}{r.number}", "at": r.at, "what": r.what, "why": r.why, "by": r.by,
            "file": file or r.file, "undone": r.number in gone,
        }
        for letter, kept, file in (
            ("p", rules.playbook.history(), str(rules.playbook.path)), ("r", rules.changes.all(), "")
        )
        for gone in (undone(kept),)
        for r in kept
    ]  # fmt: skip
    return sorted(found, key=lambda change: -change["at"])


def change_named(name: str) -> tuple[str, int] | None:
    """The letter and the number of a change such as ``p12``; None for what is none."""
    letter, number = name[:1].lower(), name[1:]
    fits = letter in {"p", "r"} and number.isascii() and number.isdecimal() and len(number) <= 9
    return (letter, int(number)) if fits else None


# --- what the verdicts say ----------------------------------------------------------------------------------


def report(db: Reads, project: str) -> Json:
    """The verdicts with and without each point and lesson. ``records``: of each point and lesson that was
    given here ``{"id", "kind", "with", "without"}``, the first verdicts of tasks whose session was given it,
    and of the others since it was first given. A side is ``{"tasks", "complete", "low", "high"}``, with the
    95 % interval of the share. ``shows``: in words.
    """
    return {
        "records": [
            {
                "id": name if kind == "point" else name[:SHORT_ID],
                "kind": kind,
                "with": _side(tasks, complete),
                "without": _side(all_tasks - tasks, all_complete - complete),
            }
            for kind, name, tasks, complete, all_tasks, all_complete in tables.verdicts_with(db, project)
        ],
        "shows": "no cause is shown: the tasks with and without it differ in more than that",
    }


def _side(tasks: int, complete: int) -> Json:
    share = wilson(complete, tasks)
    return {"tasks": tasks, "complete": complete, "low": share.low, "high": share.high}
