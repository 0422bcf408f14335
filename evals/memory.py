"""``python -m evals.memory``: does a task get the lessons that belong to it?

A model chooses: ``--dump`` writes the prompts as files, ``--replies`` reads the answers from there
(``evals.replies``). A case is one JSON object on a line: a project with its lessons, and tasks with the ids
of the lessons that they want. Exit code 2 for wrong arguments, cases or files.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from daemon.clock import SystemClock
from daemon.core.errors import UserError
from daemon.core.ports import drive
from daemon.core.question import Question, ask
from daemon.engine.page import Share, wilson
from daemon.learning.lessons.episodes import Episode
from daemon.learning.lessons.questions import SHOWN, Picked, named_by, which_lessons
from evals.replies import Replies, check_dump, make_dump, nonce_of
from evals.report import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

CASES: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "memory" / "lessons.jsonl"
TEMPLATE: Final = Path(__file__).resolve().parents[1] / "prompts" / "lessons.txt"
RULE: Final = f"at most {SHOWN} lessons of a project, each id once, and the wanted ones among them"


class Task(msgspec.Struct, forbid_unknown_fields=True):
    """A task that a person gives. ``wants``: the ids of the lessons that belong to it."""

    text: str
    wants: list[str]


class Lesson(msgspec.Struct, forbid_unknown_fields=True):
    """A lesson. ``task``: what went wrong; "" when nobody knows."""

    id: str
    text: str
    task: str = ""


class Project(msgspec.Struct, forbid_unknown_fields=True):
    """One line of cases."""

    project: str
    lessons: list[Lesson]
    tasks: list[Task]

    @property
    def episodes(self) -> list[Episode]:
        """The lessons as the daemon has them."""
        return [Episode(x.id, self.project, x.task, -1.0, "", x.text, "") for x in self.lessons]

    def question(self, task: Task, nonce: str) -> Question[Picked]:
        """The daemon's question about one of the tasks."""
        return replace(which_lessons(task.text, self.episodes), nonce=nonce)


class Outcome(Struct, frozen=True):
    """What became of a task. ``got``: the ids that the model named. ``why``: why there is no answer."""

    name: str
    task: str
    wants: tuple[str, ...]
    got: tuple[str, ...]
    why: str = ""


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.memory", description=__doc__)
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--dump", type=Path, metavar="DIR", help="ask nobody, write each task's prompt")
    who.add_argument("--replies", type=Path, metavar="DIR", help="measure the replies in a dump")
    parser.add_argument("--cases", type=Path, default=CASES, metavar="FILE", help="projects, one on a line")
    parser.add_argument("--wrong", action="store_true", help="list what went wrong")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    args = parser.parse_args(argv)
    try:
        outcomes = asked(read(args.cases), args.dump or args.replies, dump=args.dump is not None)
    except (UserError, OSError) as e:
        print(f"evals: {e}", file=sys.stderr)
        return 2
    figures, wrong = figures_of(outcomes), [to_builtins(o) for o in outcomes if is_wrong(o)]
    pending = [o.name for o in outcomes if o.why]
    if args.json:
        shown = {
            "figures": {k: to_builtins(v) for k, v in figures.items()},
            "wrong": wrong,
            "pending": pending,
        }
        print(json.dumps(shown, indent=1, ensure_ascii=False))
        return 0
    print(f"{len(outcomes)} tasks{f', {len(pending)} without an answer' if pending else ''}")
    print("\n".join(f"  {name:<48}{counted(share):>28}" for name, share in figures.items()))
    for o in wrong if args.wrong else ():
        print(f"  {o['name']}: wants {o['wants']}, got {o['got']}: {o['task'][:80]}")
    return 0


def read(path: Path) -> list[Project]:
    """The cases. Raises ``UserError`` when one is wrong, or there is none."""
    found: list[Project] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            project = msgspec.json.decode(line, type=Project)
        except msgspec.MsgspecError as e:
            raise UserError(f"{path}, line {number}: {e}") from None
        known = {lesson.id for lesson in project.lessons}
        strange = any(w not in known for t in project.tasks for w in t.wants)
        if strange or not len(known) == len(project.lessons) <= SHOWN:
            raise UserError(f"{path}, line {number}: {RULE}")
        found.append(project)
    if not found:
        raise UserError(f"{path} holds no case")
    return found


def asked(projects: Sequence[Project], folder: Path, *, dump: bool) -> list[Outcome]:
    """Each task with what the replies of the folder say of it."""
    cases = {f"{p:03d}-{t:02d}": (project, task) for p, project in enumerate(projects, 1)
             for t, task in enumerate(project.tasks, 1)}  # fmt: skip
    (make_dump if dump else check_dump)(folder, cases)
    files, texts = Replies(folder, cases, dump=dump), {"lessons": TEMPLATE.read_text("utf-8")}

    async def outcome(name: str, project: Project, task: Task) -> Outcome:
        flow = ask(project.question(task, nonce_of(name)), texts)
        answer = await drive(flow, files.complete, SystemClock(), 60)
        got = tuple(e.id for e in named_by(answer.reply, project.episodes))
        return Outcome(name, task.text, tuple(task.wants), got, answer.why)

    async def all_of() -> list[Outcome]:
        return [await outcome(name, *case) for name, case in cases.items()]

    outcomes = asyncio.run(all_of())
    if files.stale:
        raise UserError(f"{len(files.stale)} replies answer other prompts than these: {min(files.stale)}")
    return outcomes


def figures_of(outcomes: Sequence[Outcome]) -> dict[str, Share]:
    """Of the tasks that were answered."""
    answered = [o for o in outcomes if not o.why]
    hits = [bool({*o.got} & {*o.wants}) for o in answered if o.wants]
    false = [bool(o.got) for o in answered if not o.wants]
    given = [id_ in o.wants for o in answered for id_ in o.got]
    return {
        "tasks that want lessons and got one of theirs": wilson(sum(hits), len(hits)),
        "tasks that want none and got some": wilson(sum(false), len(false)),
        "lessons given that were wanted": wilson(sum(given), len(given)),
    }


def is_wrong(o: Outcome) -> bool:
    """Whether the task got none of its lessons, or one though it wants none."""
    return not o.why and not {*o.got} & {*o.wants} and bool(o.got or o.wants)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
