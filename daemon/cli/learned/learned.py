"""``reflectd learned``: everything that was learned about a project, in one list. ``playbook`` and ``memory``
are the same list, with points or lessons alone.

Lists, reports and exports change nothing. They read files and the database, and need no daemon.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from msgspec import Struct

from ... import config
from ...client import request
from ...core.errors import Unavailable, UserError
from ...core.settings import Settings
from ...learning.playbook.points import SECTION_SLUGS
from ...learning.records import KINDS, NOBODY, Learned, Record, named, report
from ...learning.rules.learned_rules import LearnedRules
from ...paths import Paths, find_socket
from ..reflect.decisions import rules_at
from ..render import Paint, clock, place, plain, print_json, short
from ..settings import add_action, database, later, look, running
from ..setup.learning import is_by_rules
from ..terminal import show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    Run = Callable[[argparse.Namespace], int]

Json = dict[str, Any]
HEADINGS: Final = {
    "rule": "rules: what you want",
    "preference": "preferences: what you like",
    "point": "points: what works here",
    "lesson": "lessons: what to do differently next time",
}
UNCHOSEN: Final = (
    "the newest task got no lesson: choosing one would have cost more than spend.learning_percent"
)
EPILOG: Final = """examples:
  reflectd learned                  what agents are given, what waits, what they are not given
  reflectd learned add "The tests hang without redis"
  reflectd learned add --kind lesson --task "Migrate the database" "Stop the workers."
  reflectd learned approve new-12   agents may be given it from now on
  reflectd learned undo p12         take a change of a file back

`reflectd playbook` is the same list with points alone (`export` prints a
playbook.json, `import` takes one in any form), `reflectd memory` with lessons
alone."""
VERBS: Final = {"learned": "", "playbook": "point", "memory": "lesson"}
"""Verb → the kind that is meant where none is named, "" for all."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    for verb, kind in VERBS.items():
        parser = verbs.add_parser(verb, epilog=EPILOG, bare="list")
        _actions(parser.add_subparsers(dest="what", metavar="WHAT"), kind)


def _actions(what: argparse._SubParsersAction[argparse.ArgumentParser], kind: str) -> None:
    def action(name: str, text: str, run: Run, usual: str = kind) -> argparse.ArgumentParser:
        parser = add_action(what, name, text, run)
        parser.add_argument("--kind", choices=KINDS, default=usual, help=f"of this kind ({usual or 'any'})")
        return parser

    def change(name: str, text: str, function: str, usual: str = kind) -> argparse.ArgumentParser:
        return action(name, text, later(__package__, "changes", function), usual)

    one = action("list", "all of it, by kind; what the bare verb does", listed)
    one.add_argument("--all", action="store_true", help="what was taken back and archived too")
    one = action("show", "one of them: where it comes from, and what became of it", shown)
    one.add_argument("id", metavar="ID", help="its id, such as pat-003; a lesson's may be shortened")
    action("report", "what the verdicts were with each point and lesson, and without", reported)
    action("export", "print it as JSON, one on each line", export)
    one = change("add", "add one in your own words", "add", kind or "point")
    one.add_argument("text", metavar="TEXT", help="one thought, in a sentence or two")
    one.add_argument("--section", choices=SECTION_SLUGS.values(), default="oth", help="of a point")
    one.add_argument("--task", default="", metavar="TASK", help="of a lesson: the task, as you would give it")
    one = change("approve", "let agents be given what waits: these, or all of it", "approve")
    one.add_argument("ids", nargs="*", metavar="ID", help="points, new ones (new-12) and lessons")
    one = change("forget", "no agent is given it any more, and it is not learned again", "forget")
    one.add_argument("ids", nargs="+", metavar="ID", help="rules, preferences, points, new ones, lessons")
    one = change("undo", "take a change of a file back; without one the changes are listed", "undo")
    text = "such as p12 (playbook) or r3 (rules)"
    one.add_argument("change", nargs="?", default="", metavar="CHANGE", help=text)
    one = change("import", "take over exported points and lessons; they wait for your word", "take")
    text = "what `export` wrote, a playbook.json in any form; - for stdin"
    one.add_argument("file", metavar="FILE", help=text)


# --- the project that is asked about ------------------------------------------------------------------------


class About(Struct, frozen=True):
    """The project that the arguments mean. ``kind``: the one that is shown, "" for all."""

    settings: Settings
    where: Paths
    rules: LearnedRules
    learned: Learned
    kind: str

    @classmethod
    def of(cls, args: argparse.Namespace) -> About:
        settings, where = look(args)
        rules = rules_at(settings, where, args.dir)
        project, _ = config.load_project(settings, rules.project)
        return cls(settings, where, rules, Learned(rules, settings, project), getattr(args, "kind", ""))

    @property
    def name(self) -> str:
        return place(self.rules.project)

    def get(self, route: str, **query: object) -> Json:
        """The daemon's answer; the route begins with the feature. Raises ``Unavailable``."""
        asked = urlencode({"directory": str(self.rules.project), **query})
        return request(find_socket(self.where), "GET", f"/v1/features/{route}?{asked}")

    def post(self, route: str, body: Json) -> Json:
        return request(find_socket(self.where), "POST", f"/v1/features/{route}", body)

    def ask_for_model(self) -> None:
        """Ask the daemon whether there is a model that chooses lessons; without a daemon nothing is given."""
        with suppress(Unavailable):
            if not self.get("memory/stats")["chooses"]:
                self.learned.without_model()

    def over_limit(self) -> set[str]:
        """The features whose last question would have cost too much, as far as a daemon knows."""
        features = running(self.where).get("features", {})
        return {name for name, told in features.items() if told.get("over_limit")}

    def listing(self) -> list[Record]:
        if self.kind in {"", "lesson"}:
            self.ask_for_model()
        with database(self.where) as db:
            return [r for r in self.learned.records(db) if self.kind in {"", r.kind}]

    def those(self, wanted: Iterable[str]) -> list[Record]:
        """The records of these ids, each once. Raises ``UserError``."""
        records = self.listing()
        return [named(records, one) for one in dict.fromkeys(wanted)]


# --- what they show -----------------------------------------------------------------------------------------


def listed(args: argparse.Namespace) -> int:
    """All of it: what agents are given, what waits, and what no agent is given."""
    about = About.of(args)
    found = about.listing()
    problems = about.learned.look.problems
    wanted = found if args.all else [r for r in found if r.state != "dismissed"]
    if args.json:
        print_json({
            "project": about.learned.project,
            "records": [r.as_json() for r in wanted],
            "problems": list(problems),
        })  # fmt: skip
        return 0
    paint = Paint()
    lines = paint.row("", paint(f"learned about {about.name}", "bold"), "  ")
    lines += lines_of(wanted, paint)
    hidden = len(found) - len(wanted)
    if not wanted:
        lines += paint.row("  ", _nothing(about, hidden))
    if any(r.kind == "lesson" and r.state == "in use" for r in wanted) and "lessons" in about.over_limit():
        lines += ["", *paint.row("  ", UNCHOSEN)]
    if hidden:
        lines += ["", paint(f"{hidden} taken back or archived: --all shows them", "dim")]
    for problem in problems:
        lines += ["", *paint.row("  ", plain(problem))]
    show(lines)
    return 0


def _nothing(about: About, hidden: int) -> str:
    """That nothing is there, and how something comes."""
    what = f"no {about.kind}s" if about.kind else "nothing"
    if hidden:
        return f"{what} in use"
    learns = about.settings.memory.enabled if about.kind == "lesson" else about.settings.playbook.enabled
    if learns or (about.kind == "" and about.settings.memory.enabled):
        comes = "a session is looked back on when it is over, or after an hour of silence"
        if is_by_rules(about.settings, os.environ):
            comes = "only the fixed rules judge here, and they can't learn: `reflectd setup` names a model"
        elif about.over_limit():
            comes = "looking back waits: it costs at most spend.learning_percent of what judging cost"
            comes += ", so a first lesson comes after about three bad sessions"
    else:
        comes = "`reflectd setup --learning on` lets it learn"
    return f"{what} yet: {comes}; `reflectd learned add TEXT` adds something"


def lines_of(records: list[Record], paint: Paint) -> list[str]:
    """The texts in use by kind, then those that wait, those given to no agent, and those that are gone."""
    groups: list[tuple[str, list[Record]]] = [
        (HEADINGS[kind], [r for r in records if r.kind == kind and r.state == "in use" and r.how])
        for kind in KINDS
    ]
    groups += [
        (
            "waiting for your word: `reflectd learned approve ID`, or forget",
            [r for r in records if r.state == "waiting"],
        ),
        ("given to no agent", [r for r in records if r.state == "in use" and not r.how]),
        ("taken back", [r for r in records if r.state == "dismissed"]),
    ]
    lines = list[str]()
    for heading, part in groups:
        lines += ["", paint(heading, "bold")] if part else []
        common = {r.how for r in part}
        if len(common) == 1 and (one := common.pop()):
            lines += paint.row("  ", paint(f"{one}:", "dim"))
            common = {one}
        for r in part:
            lines += line_of(r, paint, wide=max(len(o.id) for o in part), how=len(common) != 1)
    return lines


def line_of(r: Record, paint: Paint, *, wide: int = 0, how: bool = True) -> list[str]:
    """A record for a person: its text; below it its use, why no agent gets it, and where it is from."""
    label = f"  {short(r.id, 16):<{min(wide, 16)}}  "
    task = f'"{short(r.task, 100)}" → ' if r.task else ""
    why = "" if r.why == NOBODY else r.why
    place = r.where if r.kind in {"rule", "preference"} else ""
    facts = [r.use, (r.how if how else "") or why, place, r.origin]
    lines = paint.row(label, task + short(plain(r.text), 400))
    return lines + paint.row(" " * len(label), paint("; ".join(short(f, 200) for f in facts if f), "dim"))


def shown(args: argparse.Namespace) -> int:
    about = About.of(args)
    [r] = about.those([args.id])
    if args.json:
        print_json(r.as_json())
        return 0
    paint = Paint()
    proven = "in use: its own session proves it; nobody said yes or no yet"
    state = {
        "in use": proven if r.open else "in use",
        "waiting": "waiting for your word",
        "dismissed": "taken back",
    }[r.state]
    given = [r.how] if r.how else [f"not given it: {r.why}"]
    times = [clock(r.at)] if r.at else []
    rows: list[tuple[str, Iterable[str]]] = [
        (r.kind, [r.id if len(r.key) != 32 else r.key]), ("task", [r.task]), ("problem", [r.problem]),
        ("text", [plain(r.text)]), ("state", [state]), ("agents", given), ("use", [r.use]),
        ("proof", [r.proof]), ("where", [r.where]), ("from", [", ".join(filter(None, [r.origin, *times]))]),
    ]  # fmt: skip
    lines = [
        line for name, of in rows for text in of if text for line in paint.row(f"{name:<10}  ", plain(text))
    ]
    show(lines)
    return 0


def reported(args: argparse.Namespace) -> int:
    about = About.of(args)
    with database(about.where) as db:
        if db is None:
            raise Unavailable("nothing was judged on this machine yet")
        found = report(db, about.learned.project)
    records = [r for r in found["records"] if about.kind in {"", r["kind"]}]
    if args.json:
        print_json({"project": about.learned.project, **found, "records": records})
        return 0
    paint = Paint()
    lines = paint.row("", paint(f"tasks complete at their first verdict in {about.name}", "bold"), "  ")
    for r in records:
        lines += paint.row(
            f"  {short(r['id'], 16):<12}  ", f"with it {_side(r['with'])}, without {_side(r['without'])}"
        )
    if not records:
        lines.append("  no session was given a point or a lesson yet")
    else:
        lines += paint.row("  ", found["shows"])
    print("\n".join(lines))
    return 0


def _side(side: Json) -> str:
    if not side["tasks"]:
        return "none"
    return f"{side['complete']} of {side['tasks']} ({100 * side['low']:.0f} to {100 * side['high']:.0f} %)"


def export(args: argparse.Namespace) -> int:
    """Print what was learned, a line of JSON each, with ``--json`` one object; of points the playbook."""
    about = About.of(args)
    if about.kind == "point":
        found = about.rules.playbook.read()
        if found.problem:
            raise UserError(found.problem)
        text = f"{json.dumps(found.playbook, indent=2)}\n"
    else:
        with database(about.where) as db:
            lessons = {e.id: e.as_json() for e in about.learned.episodes(db)}
        lines = [
            {**r.as_json(), **lessons.get(key, {}), "kind": r.kind}
            for r in about.listing()
            for key in (r.key, *r.others)
        ]
        if args.json:
            print_json({"project": about.learned.project, "records": lines})
            return 0
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
    sys.stdout.write(text)  # ASCII
    return 0
