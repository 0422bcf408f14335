"""The memory in the engine: a task that ended badly is reflected on once, and its episode is stored."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import Unavailable
from daemon.learning.lessons import feature
from daemon.learning.lessons.episodes import Episode
from daemon.learning.lessons.repositories import project_of
from daemon.testing import FakeClock
from tests.learning.lessons.rows import hexed
from tests.learning.lessons.site import BAD, FAILED, TASK, Site
from tests.learning.lessons.test_shared import Person
from tests.learning.site import COMPLETE
from tests.support.hosts.claude_code_sim import ClaudeSim, bash, write
from tests.support.machine.held import Held
from tests.support.machine.postgres import Postgres

PROBLEM = "The agent said it was done while the tests failed."
LESSON = "The parser's tests need the fixture file in tests/data; run them before the work counts as done."
SAID = f"Problem: {PROBLEM}\nLesson: {LESSON}"
ON = "[memory]\nenabled = true\n[judge]\nmax_attempts = 1\n[offer]\nenabled = false\n"
AT_PROMPT = "[memory]\nenabled = true\nprompt_ms = 5000\n[judge]\nmax_attempts = 1\n"


@pytest.mark.shows("AC-2.6.1", "AC-2.6.2", "AC-2.6.3", "SUBTASK-2.1", "SUBTASK-2.2")
async def test_a_bad_task_becomes_one_episode(site: Site) -> None:
    """Judged below 0.3, asked once when the task is over, stored with problem, lesson and what the failure
    hung on.
    """
    c = await site.fails("s1")
    assert site.purposes() == [], "not while the task goes on"
    await site.closes(c, SAID)
    assert site.purposes() == ["haiku_reflexion"]
    (e,) = await site.episodes()
    assert (e.query, e.problem, e.lesson, e.reward) == (TASK, PROBLEM, LESSON, -0.6)
    assert e.reflection == SAID
    assert e.proof, "a failed check of its own case"
    assert e.project == str(site.project)
    assert e.triggers == ("pytest -q tests/parser",)
    status = site.memory.status()
    assert (status["episodes"]["quarantined"], status["stored"], status["waiting"]) == (1, 1, 0)


@pytest.mark.shows("SUBTASK-4.2")
async def test_a_fair_task_is_left_alone(site: Site) -> None:
    """Test case 2: a reward of 0.3 is evaluated and logged, and nothing is asked or stored."""
    c = ClaudeSim(site.sim.daemon, site.clock, site.project, "s1")
    await c.start()
    site.llm.add({"complete": True, "severity": "MEDIUM"})
    await c.types(TASK)
    await c.works("Done, with a rough edge.", tools=(write("a.py"), bash("pytest -q", 0, "5 passed")))
    await site.sim.settle()
    await site.closes(c)
    assert site.purposes() == []
    assert await site.episodes() == []


async def test_off_unless_switched_on(tmp_path: Path) -> None:
    """Part 0: without ``memory.enabled`` nothing waits, nothing is asked, and the status is silent."""
    site = Site(tmp_path, "[judge]\nmax_attempts = 1\n")
    await site.start()
    c = await site.fails("s1")
    await site.closes(c)
    assert (site.purposes(), site.memory.status(), await site.episodes()) == ([], {}, [])
    assert "memory.reflect" not in site.sim.daemon.engine.jobs.waiting()
    await site.sim.stop()


async def test_a_session_that_ends_is_reflected_on_at_once(site: Site) -> None:
    """The person read the verdict, and quit."""
    c = await site.fails("s1")
    site.llm.add(SAID)
    await c.hook("SessionEnd", reason="other")
    await site.sim.settle()
    await site.looks()
    assert site.purposes() == ["haiku_reflexion"]
    assert [e.session for e in await site.episodes()] == ["s1"]


async def test_two_a_session_and_one_a_task(site: Site) -> None:
    """Each task has one reflexion, and a session at most two."""
    c = await site.fails("s1")
    for _ in range(2):
        await site.closes(c, SAID, then=TASK)
        site.llm.add(BAD)
        await c.works("All done.", tools=FAILED)
        await site.sim.settle()
    await site.closes(c)
    assert site.purposes() == ["haiku_reflexion"] * 2
    assert len(await site.episodes()) == 2
    assert site.memory.status()["skipped"] == 1


@pytest.mark.shows("AC-2.6.4", "SUBTASK-4.3")
async def test_a_lesson_with_proof_is_shown_here_and_nowhere_else(site: Site, tmp_path: Path) -> None:
    """Part 0: in the same repository, its worktrees included; not in another project."""
    await site.closes(await site.fails("s1"), SAID)
    give, project = site.give, str(site.project)
    found = await give.for_task(project, "Make the parser's tests pass")
    assert [e.lesson for e in found] == [LESSON]
    other = tmp_path / "other"
    other.mkdir()
    assert await give.for_task(project_of(str(other)), "Make the parser's tests pass") == []


async def test_an_opinion_waits_for_a_person(site: Site) -> None:
    """Quarantine: without a row that proves the failure the lesson is kept apart until a person says yes; a
    no dismisses it.
    """
    task, tools = "Make the parser simpler", (write("src/parser.py"),)
    await site.closes(await site.fails("s1", task, tools), SAID)
    (e,) = await site.episodes()
    ask = route(site)
    assert (e.proof, e.state) == ("", "quarantined")
    assert site.memory.status()["unproven"] == 1
    project = str(site.project)
    assert await site.give.for_task(project, task) == []
    assert (await ask("settle", ids=[e.id], yes=True))["changed"] == 1
    assert [e.id for e in await site.give.for_task(project, task)] == [e.id]
    await ask("settle", ids=[e.id], yes=False)
    assert await site.give.for_task(project, task) == []


async def test_another_session_confirms_by_a_row(site: Site) -> None:
    """What failed at the same command in two sessions, with a failed check in the second, is confirmed."""
    await site.closes(await site.fails("s1"), SAID)
    (first,) = await site.episodes()
    await site.closes(await site.fails("s2", "Make the parser faster"), SAID)
    states = {e.session: e.state for e in await site.episodes()}
    assert first.state == "quarantined"
    assert states == {"s1": "confirmed", "s2": "quarantined"}


@pytest.mark.slow("a PostgreSQL is started")
@pytest.mark.shows("I51")
async def test_what_others_wrote_reaches_no_agent_without_a_yes(postgres: Postgres, tmp_path: Path) -> None:
    """A shared store: another's row with a proof, of the same repository and the same command, comes with the
    session; no agent is given it, and no failure of one's own confirms it. The person's yes does. What one
    learns oneself goes there. A server that is gone is a fault.
    """
    url_file = tmp_path / "url"
    url_file.write_text(postgres.new_database())
    url_file.chmod(0o600)
    site = Site(tmp_path, f"{ON}[store]\nurl_file = '{url_file}'\n")
    git = site.project / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text('[remote "origin"]\n\turl = git@host:acme/parser.git\n')
    await site.start()
    another = Person(tmp_path, "another", url_file.read_text())
    await another.learns(1, query=TASK, triggers=("pytest -q tests/parser",), session="x", cites=())
    await another.sync()
    c = await site.fails("s1")
    await site.looks()
    give, project = site.give, str(git)
    assert [(e.session, e.state) for e in await site.episodes()] == [("x", "quarantined")], "a person sees it"
    assert await give.for_task(project, TASK) == []
    await site.closes(c, SAID)
    states = {e.session: (e.state, e.vouched) for e in await site.episodes()}
    assert states == {"x": ("quarantined", False), "s1": ("quarantined", True)}
    assert [e.session for e in await give.for_task(project, TASK)] == ["s1"]
    assert {e.session for e in await another.sync()} == {"x", "s1"}
    await route(site)("settle", ids=[hexed(1)], yes=True)
    assert {e.session for e in await give.for_task(project, TASK)} == {"s1", "x"}
    url_file.unlink()
    await site.session("s2")
    await site.looks()
    assert "url_file" in site.sim.daemon.world.health.faults["shared lessons"]
    another.db.close()
    await site.sim.stop()


async def test_a_dispute_withdraws_the_lesson(site: Site) -> None:
    """A person says that the verdict was wrong: its lesson is dismissed, and what waits of it is dropped."""
    c = await site.fails("s1")
    await site.closes(c, SAID, then=TASK)
    site.llm.add(BAD)
    await c.works("All done.", tools=FAILED)
    await site.sim.settle()
    assert site.memory.status()["waiting"] == 1
    assert (await route(site)("withdraw", session="s1"))["withdrawn"] == 1
    assert [e.state for e in await site.episodes()] == ["dismissed"]
    assert site.memory.status()["waiting"] == 0
    assert await site.give.for_task(str(site.project), TASK) == []


async def test_the_store_of_episodes_is_gone_for_a_while(site: Site) -> None:
    """The daemon goes on: no second question to the model, and the episode is stored
    when the store is back.
    """
    path = site.sim.daemon.paths.database
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE episode_memory RENAME TO elsewhere")
    c = await site.fails("s1")
    await site.closes(c, SAID)
    assert site.memory.status()["waiting"] == 1
    with pytest.raises(Unavailable):
        await site.give.for_task(str(site.project), TASK)
    site.llm.add(COMPLETE)
    await c.works("Nothing is in this folder.")
    await site.sim.settle()
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE elsewhere RENAME TO episode_memory")
    await site.looks(3_700)
    assert len(await site.episodes()) == 1
    assert site.purposes() == ["haiku_reflexion"]


@pytest.mark.shows("SUBTASK-4.5")
async def test_nobody_answers(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Degraded: after five calls the lesson waits, said once in the requirements' words; judging goes on, and
    the next session has it drawn.
    """
    down = [Unavailable("anthropic: overloaded", "overloaded") for _ in range(5)]
    c = await site.fails("s1")
    await site.closes(c, *down)
    assert site.purposes() == ["haiku_reflexion"] * 5
    assert site.memory.status()["fallback_mode_active"] is True
    said = capsys.readouterr().out
    assert said.count("fallback_mode_active=True") == 1
    assert "reason=haiku_api_unavailable" in said
    rows = site.sim.daemon.db.read("SELECT retry_count, success FROM api_retry_log ORDER BY id")
    assert rows == [(n, 0) for n in range(5)]
    site.clock.advance(61)  # the provider is left alone for a minute
    site.llm.add(SAID)
    c2 = ClaudeSim(site.sim.daemon, site.clock, site.project, "s2")
    await c2.start()
    await site.looks()
    assert len(await site.episodes()) == 1
    assert site.memory.status()["fallback_mode_active"] is False


@pytest.mark.parametrize("site", [AT_PROMPT], indirect=True)
async def test_whether_a_lesson_helped_is_counted_once(site: Site) -> None:
    """Part 5: the first verdict after a lesson was given counts for it, the next ones don't."""
    await site.closes(await site.fails("s1"), SAID)
    (found,) = await site.episodes()
    c = ClaudeSim(site.sim.daemon, site.clock, site.project, "s2")
    await c.start()
    site.llm.add({"lessons": [1]})
    await c.types("Make the parser's tests pass")
    await site.sim.settle()
    for verdict in (COMPLETE, BAD):
        site.clock.advance(1)
        site.llm.add(verdict)
        await c.works("All done.", tools=(write("a.py"), bash("pytest tests/parser", 0, "5 passed")))
        await site.sim.settle()
    (after,) = await site.memory.store.get([found.id])
    assert (after.given, after.helped, after.failed) == (1, 1, 0)


def route(site: Site) -> Any:
    """What a client of the daemon asks."""
    routes = {r.name: r for r in site.memory.routes()}

    async def ask(name: str, **body: Any) -> Any:
        return await routes[name].answer(body)

    return ask


STEPS = (
    "UPDATE jobs SET due = ?, tries",  # the answer
    "INSERT INTO episode_memory",  # the episode
    "DELETE FROM jobs WHERE id",  # it is done
)


@pytest.mark.shows("I42")
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.slow("engines are killed and started again")
async def test_kill_between_any_two_steps_loses_and_doubles_nothing(
    tmp_path: Path, step: str, stored: bool
) -> None:
    """Wherever the daemon dies, there is one episode, and the model is asked again at most once."""
    site = Site(tmp_path, ON)
    await site.start()
    c = await site.fails("s1")
    await c.types("What is in this folder?")
    await site.sim.settle()
    site.llm.add(SAID, SAID)
    held = Held(site.sim.daemon, step, stored=stored)
    site.clock.advance(2)
    site.sim.daemon.engine.jobs.wake()
    await asyncio.wait_for(held.reached.wait(), 60)
    await site.sim.kill()
    await site.sim.start()
    await site.looks(3_700)
    assert [e.lesson for e in await site.episodes()] == [LESSON]
    assert site.purposes().count("haiku_reflexion") <= 2
    assert "memory.reflect" not in site.sim.daemon.engine.jobs.waiting()
    await site.sim.stop()


@pytest.mark.shows("I44")
async def test_what_waits_for_seven_days_lapses(tmp_path: Path) -> None:
    """Without money nothing is asked; a failure that waits too long goes, and is counted."""
    site = Site(tmp_path, ON)
    await site.start(earned=0)
    await site.closes(await site.fails("s1"))
    status = site.memory.status()
    assert (status["waiting"], status["over_limit"], site.purposes()) == (1, True, [])
    assert status["fallback_mode_active"] is False, "that is no failure of the model"
    now = site.clock.now_ms() + 7 * 86_400_000 + 1
    for statement in site.memory.prune(now):
        await site.sim.daemon.db.commit(statement)
    status = site.memory.status()
    assert (status["waiting"], status["lapsed"]) == (0, 1)
    await site.sim.stop()


@pytest.mark.shows("I46")
async def test_no_secret_is_kept_or_sent(site: Site) -> None:
    """Neither what waits, nor the question, nor the episode holds a secret of the task."""
    secret = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    tools = (bash(f"GITHUB_TOKEN={secret} pytest -q tests/parser", 1, f"ParserError: {secret}\n1 failed"),)
    c = await site.fails("s1", f"{TASK}, with {secret}", tools)
    (waits,) = site.sim.daemon.db.read("SELECT body FROM jobs WHERE kind = 'memory.reflect'")
    assert secret.encode() not in waits[0]
    await site.closes(c, f"{SAID} The token was {secret}.")
    assert all(secret not in p.text for p in site.llm.prompts)
    (stored,) = await site.episodes()
    assert secret not in repr(stored)


def plain_episode(i: int) -> Episode:
    lesson = f"Check the file number {i} before the work counts as done."
    return Episode(f"{i:032x}", "/w", f"Task number {i}", -0.6, "", lesson, lesson, at=FakeClock().ms + i)


@pytest.mark.parametrize("site", [f"{ON}[embed]\nprovider = 'none'\n"], indirect=True, ids=["words"])
async def test_what_failed_again_and_what_is_too_much_goes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contradicted twice is dismissed, and beyond the cap of a project the least useful go."""
    monkeypatch.setattr(feature, "PER_PROJECT", 10)
    store = site.memory.store
    for i in range(15):
        await store.add(plain_episode(i))
    for _ in range(2):
        await store.count([f"{14:032x}"], 1, "failed")
    await site.looks(61)
    left = {e.id: e.state for e in await store.page(None)}
    assert left[f"{14:032x}"] == "dismissed"
    assert len([s for s in left.values() if s == "quarantined"]) == 10
