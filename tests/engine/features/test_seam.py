"""What a feature costs: one class, a line in ``FEATURES``, a line in ``VERBS``; nothing in the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from daemon.app import FEATURES
from daemon.cli.main import main
from daemon.cli.verbs import VERBS
from daemon.engine.engine import Engine
from daemon.engine.feature import Feature
from daemon.engine.jobs import HOUR_MS
from daemon.store.db import Statement
from tests.support.features.toy import Toy
from tests.support.hosts.world import COMPLETE, INCOMPLETE, World

POINTS = {"heard", "judged", "deciding", "has_context", "context", "status", "prune", "routes"}


class Broken(Feature):
    """Fails at each point of the seam."""

    name = "broken"

    def __getattribute__(self, name: str) -> object:
        if name in POINTS:
            raise RuntimeError("broken")
        return super().__getattribute__(name)


class Made:
    """Keeps the feature that the daemon made."""

    def __init__(self) -> None:
        self.toys: list[Toy] = []

    @property
    def toy(self) -> Toy:
        """The newest: a restart makes another one."""
        return self.toys[-1]

    def __call__(self, parts: Engine) -> Feature:
        self.toys.append(Toy(parts))
        return self.toy


async def story(w: World) -> None:
    """Feedback, then complete; then the next task."""
    w.llm.add(INCOMPLETE, COMPLETE)
    await w.turn()
    await w.goes_on(says="Now it is done.")


async def test_a_feature_hears_is_judged_works_offers_and_answers(tmp_path: Path) -> None:
    """The toy feature lives through a task; the engine has not one line for it."""
    made = Made()
    async with World(tmp_path, features=(*FEATURES, made)).running() as w:
        await story(w)
        toy = made.toy
        assert toy.events > 5
        assert toy.verdicts == ["incomplete sent judged", "complete judged"]
        (task,) = toy.tasks
        assert toy.worked == [f"{task} complete"]
        s = w.sim.daemon.world.sessions.get("ses_a")
        instance = w.sim.daemon.engine.instances.get(w.host.id)
        assert s is not None
        assert instance is not None
        offering = w.sim.daemon.engine.offering
        assert await offering.text(s, "start", instance) == "1 tasks were finished here."
        assert await offering.text(s, "prompt", instance, "and now?") == "", "once a session"
        assert w.sim.daemon.status.status()["features"] == {"toy": {"tasks": 1}}


async def test_its_route_and_its_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Over the real socket: the route is the feature's, and so is what the verb prints."""
    made = Made()
    w = World(tmp_path, features=(*FEATURES, made))
    daemon = w.sim.make()
    ready = asyncio.Event()
    serving = asyncio.create_task(daemon.serve(ready.set))
    await ready.wait()
    made.toy.tasks.append("t")
    verbs = VERBS | {"toy": ("tests.support.features.toy", "the toy's verb")}
    code = await asyncio.to_thread(main, ["toy", "--state-dir", str(daemon.paths.state_dir)], verbs)
    assert (code, capsys.readouterr().out.splitlines()[-1]) == (0, "1 tasks, {'by': 'day'}")
    daemon.stopping.set()
    await serving


@pytest.mark.shows("I42")
async def test_what_a_decision_has_done_is_done_once_whatever_is_killed(tmp_path: Path) -> None:
    """Stored with the verdict, done after a kill -9, and not done again."""
    made = Made()
    async with World(tmp_path, features=(*FEATURES, made)).running() as w:
        await story(w)
        await w.restarts()
        await w.sim.settle()
        assert [done for toy in made.toys for done in toy.worked] == [f"{made.toys[0].tasks[0]} complete"]
        assert w.sim.daemon.db.read("SELECT key, kind FROM jobs WHERE kind != 'retention'") == []


class BadSql(Feature):
    """Wants something stored that the database refuses."""

    name: ClassVar = "badsql"

    def prune(self, now_ms: int) -> Sequence[Statement]:
        return (("DELETE FROM nowhere WHERE at < ?", [(now_ms,)]),)


def unfit(parts: Engine) -> Feature:
    """Can't even be made."""
    raise RuntimeError(f"{len(str(parts))} is too much")


@pytest.mark.shows("I35", "I48")
async def test_a_features_bad_statement_harms_no_other(tmp_path: Path) -> None:
    """One that can't even be made is left out; what one can't delete keeps no other rows."""
    made = Made()
    async with World(tmp_path, features=(unfit, *FEATURES, BadSql, made)).running() as w:
        await story(w)
        assert made.toy.worked == [f"{made.toy.tasks[0]} complete"]
        old = ("INSERT INTO instances (id, seq, updated) VALUES ('old', 1, 1)", [()])
        await w.sim.daemon.db.commit(old)
        for _ in range(2):  # rows are deleted from the second day on
            await w.sim.later(25 * HOUR_MS / 1000)
            await w.sim.settle()
        assert w.sim.daemon.db.read("SELECT 1 FROM instances WHERE id = 'old'") == []
        assert w.sim.daemon.db.read("SELECT count(*) FROM jobs WHERE kind = 'retention'") == [(1,)]
        assert len(made.toy.tasks) == 1, "told once, whatever another one does"


@pytest.mark.shows("I35")
async def test_a_broken_feature_does_no_harm(tmp_path: Path) -> None:
    """What fails in one feature is logged; judging, the other features and the stop go on."""
    made = Made()
    async with World(tmp_path, features=(Broken, *FEATURES, made)).running() as w:
        await story(w)
        assert w.verdict()["state"] == "complete"
        assert len(made.toy.tasks) == 1
        await w.sim.daemon.engine.intake.switch(on=False, session="ses_a")
