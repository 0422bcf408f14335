"""A whole feature in one file: what it costs to hang something on the engine (CONTRIBUTING.md).

It counts a project's closed tasks. It hears events, sees verdicts, works in the background, offers a context,
answers a route, and has a verb.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from daemon.client import request
from daemon.core.compose import Moment, Offer
from daemon.core.events import SessionEvent
from daemon.core.session import Session
from daemon.core.task import ClosedTask
from daemon.core.verdict import Verdict
from daemon.engine.features.feature import Feature, Parts, Route
from daemon.judge.case import Case
from daemon.paths import Paths, find_socket, resolve
from daemon.store.db import Statement
from daemon.store.jobs import Job


class Toy(Feature):
    """Counts."""

    name: ClassVar = "toy"
    job_kinds: ClassVar = frozenset({"toy.count"})

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.events, self.verdicts = 0, list[str]()
        self.tasks: list[ClosedTask] = []
        self.worked: list[str] = []

    def heard(self, before: Session | None, after: Session, event: SessionEvent) -> None:
        self.events += 1

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:
        self.verdicts.append(f"{verdict.state}{' sent' if sent else ''}{' judged' if case else ''}")

    def closed(self, task: ClosedTask) -> Sequence[Statement]:
        self.tasks.append(task)
        self.parts.jobs.wake()
        return (self.parts.jobs.statement("toy.count", task.task, {"why": task.why}, lane="toy"),)

    async def work(self, job: Job) -> None:
        self.worked.append(f"{job.key} {job.body['why']}")

    def offers(self, s: Session, moment: Moment) -> Sequence[Offer]:
        return (Offer("toy", "point", f"{len(self.tasks)} tasks were finished here."),)

    def routes(self) -> Sequence[Route]:
        return (Route("GET", "tasks", self._answer),)

    async def _answer(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"tasks": [t.task for t in self.tasks], "asked": dict(query)}

    def status(self) -> Mapping[str, Any]:
        return {"tasks": len(self.tasks)}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`reflectd toy`: the verb."""
    parser = verbs.add_parser("toy", help="how many tasks were finished")
    parser.add_argument("--state-dir", required=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    where: Paths = resolve({"HOME": args.state_dir, "REFLECTD_STATE_DIR": args.state_dir})
    found = request(find_socket(where), "GET", "/v1/features/toy/tasks?by=day")
    print(f"{len(found['tasks'])} tasks, {found['asked']}")
    return 0
