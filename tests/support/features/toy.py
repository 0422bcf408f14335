"""A whole feature in one file: what it costs to hang something on the engine (CONTRIBUTING.md).

It counts the tasks that were judged complete. It hears events, sees verdicts, works in the background, offers
a context, answers a route, has a page, and has a verb.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from daemon.client import request
from daemon.core.errors import Rejected
from daemon.core.offers import Moment, Offer
from daemon.core.session import Session
from daemon.core.verdict import Verdict
from daemon.engine.engine import Engine
from daemon.engine.feature import Feature, Heard, Page, Route
from daemon.judge.case import Case
from daemon.paths import Paths, find_socket, resolve
from daemon.store.db import Statement
from daemon.store.jobs import Job


class Toy(Feature):
    """Counts."""

    name: ClassVar = "toy"
    job_kinds: ClassVar = frozenset({"toy.count"})

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self.events, self.verdicts = 0, list[str]()
        self.tasks: list[str] = []
        self.worked: list[str] = []
        self.praised: list[str] = []

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        self.events += 1

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:
        self.verdicts.append(f"{verdict.state}{' sent' if sent else ''}{' judged' if case else ''}")

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:
        if not verdict.complete:
            return ()
        self.tasks.append(verdict.task)
        return (self.parts.jobs.statement("toy.count", verdict.task, {"why": verdict.state}, lane="toy"),)

    async def work(self, job: Job) -> None:
        self.worked.append(f"{job.key} {job.body['why']}")

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        return (Offer("toy", "point", f"{len(self.tasks)} tasks were finished here."),)

    def routes(self) -> Sequence[Route]:
        return (Route("GET", "tasks", self._answer), Route("POST", "praise", self._praise))

    def pages(self) -> Sequence[Page]:
        return (Page("toys", "Toys", self._read),)

    async def _answer(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"tasks": self.tasks, "asked": dict(query)}

    async def _praise(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if body["who"] == "nobody":
            raise Rejected("nobody is praised")
        self.praised.append(str(body["who"]))
        return {"praised": len(self.praised)}

    async def _read(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        praise = {"label": "Praise", "route": "praise", "body": {"who": "<b>me</b>"}, "key": "p"}
        cells = ["<i>task</i>", 3, None, {"at": 1_700_000_000_000}, {"share": 0.8, "low": 0.6, "high": 0.9}]
        link = {"text": "a session", "session": "ses/1 x", "round": 2}
        row = {"cells": [*cells, link], "actions": [praise]}
        columns = ["Task", "Count", "None", "When", "Right", "Session"]
        praised = {"title": "Praised", "text": ", ".join(self.praised), "rows": []}
        more = {"before": query.get("before", "") + "a&b"}
        return {"sections": [{"title": "Tasks", "columns": columns, "rows": [row], "more": more}, praised]}

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
