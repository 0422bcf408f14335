"""Past sessions in the engine: looked back on as judged ones are, on an account of their own, never twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from daemon import app
from daemon.core.errors import BadReply, Rejected, Unavailable
from daemon.core.evidence import Act, Evidence, Row
from daemon.core.llm import Prompt, Reply
from daemon.core.offers import Offer, compose
from daemon.core.session import Session
from daemon.learning import tables
from daemon.learning.playbook.questions import Stretch
from daemon.store import injections
from tests.learning.playbook.site import ADD, NO_CHANGE, NOTHING, TEXT, ByPurpose, Site, confirm, tags
from tests.support.machine.held import Held

Json = dict[str, Any]
HOST = "claude-code"


def stretch(session: str, directory: str) -> Stretch:
    """What a past session did."""
    rows = (Row("E1", "check", "`pytest -q` passed", "passed", "after_last_write"),)
    log = tuple(Act(f"A{i}", f"ran step {i}") for i in range(1, 4))
    return Stretch(
        session=session,
        directory=directory,
        task="task",
        turns=("turn",),
        requests=("Do it",),
        ended="nobody judged it at the time",
        final="Done.",
        evidence=Evidence(rows, tool_calls=3, log=log),
        cited=(),
        lowest=None,
        model=None,
    )


class Past:
    """What the command does with a daemon that learns."""

    def __init__(self, site: Site) -> None:
        self.site = site

    @property
    def _routes(self) -> Mapping[str, Any]:
        features = self.site.sim.daemon.engine.features
        return {r.name: r.answer for name, r in features.routes() if name == "bootstrap"}

    async def plan(self, *sessions: str, host: str = HOST, **more: Any) -> Json:
        sizes = [{"session": s, "host": host, "tokens": 6_000} for s in sessions]
        body = {"directory": str(self.site.project), "hosts": [host], "sessions": sizes}
        found: Json = await self._routes["plan"](body | more)
        return found

    async def looks_back(self, session: str, *says: Json | str | Exception, **more: Any) -> Json:
        self.site.llm.add(*says)
        body = {
            "directory": str(self.site.project),
            "host": HOST,
            "stretch": msgspec.to_builtins(stretch(session, str(self.site.project))),
        }
        found: Json = await self._routes["look"](body | more)
        return found


@pytest.fixture
async def past(tmp_path: Path) -> AsyncIterator[Past]:
    site = Site(tmp_path)
    await site.start(earned=0)
    yield Past(site)
    await site.sim.stop()


async def test_past_sessions_are_looked_back_on_as_judged_ones_are(past: Past) -> None:
    """One teaches, another one confirms; nothing was earned by judging. The ledger has the calls on their own
    account. The same session again is done, also one that was judged. Live learning goes on from there.
    """
    site = past.site
    found = await past.looks_back("p1", NOTHING, ADD)
    assert (found["state"], [t["text"] for t in found["new"]]) == ("learned", [TEXT])
    assert site.points() == {}
    assert (await past.looks_back("p1"))["state"] == "done"
    found = await past.looks_back("p2", confirm(cites="E1"), NO_CHANGE)
    assert [t["text"] for t in found["confirmed"]] == [TEXT]
    assert site.points()["ctx-001"]["text"] == TEXT
    assert site.purposes() == ["asked.reflect", "asked.curate"] * 2
    rows = site.sim.daemon.db.read("SELECT account, count(*) FROM ledger WHERE session != 'x' GROUP BY 1")
    assert rows == [("asked", 4)]
    await site.sim.stop()
    await site.start()
    assert TEXT in await site.session("s1", NOTHING, NO_CHANGE)
    plan = await past.plan("p1", "s1", "p3", "p4", limit=1)
    assert plan["skipped"] == {"p1": "looked back on already", "s1": "looked back on already"}
    assert (plan["left"], plan["calls"], plan["usd"]) == (2, 2, None)
    assert 10_000 < plan["tokens_in"] < 14_000


STEPS = (
    "INSERT OR IGNORE INTO jobs",  # it begins
    "UPDATE jobs SET due = ?, tries",  # the reflector's answer
    "INSERT INTO learned_writes",  # what follows from both answers
    "DELETE FROM jobs WHERE id",  # the file is written
)


@pytest.mark.shows("I42", "LEARN-17")
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("step", STEPS)
async def test_kill_between_any_two_steps_of_a_past_session(tmp_path: Path, step: str, stored: bool) -> None:
    """Wherever the daemon dies, the command that comes again finds each session counted once."""
    site = Site(tmp_path)
    await site.start(earned=0)
    site.vouched("Views convert dates.")
    site.sim.provider = site.llm = ByPurpose(
        **{
            "asked.reflect": {**tags("helpful", "oth-001"), "confirmed": confirm(cites="E1")["confirmed"]},
            "asked.curate": ADD,
        }
    )
    await site.sim.stop()
    await site.start(earned=0)
    offer = Offer("o", "point", "[oth-001] x", directory=str(site.project), name="oth-001")
    for session in ("p1", "p2"):
        await site.sim.daemon.db.commit(
            injections.give(session, "start", site.clock.ms, compose([offer], 100))
        )
    past = Past(site)
    await past.looks_back("p1")
    held = Held(site.sim.daemon, step, stored=stored)
    task = asyncio.create_task(past.looks_back("p2"))
    await asyncio.wait_for(held.reached.wait(), 60)
    await site.sim.kill()
    await asyncio.gather(task, return_exceptions=True)
    asked = len(site.llm.prompts)
    await site.sim.start()
    again = await past.looks_back("p2")
    assert again["state"] in {"learned", "done"}
    left = {STEPS[0]: 2, STEPS[1]: 2 - stored, STEPS[2]: 1 - stored, STEPS[3]: 0}
    assert len(site.llm.prompts) - asked == left[step], "what was paid for is kept"
    await site.looks(5)
    assert {n: (p["text"], p["helpful"]) for n, p in site.points().items()} == {
        "oth-001": ("Views convert dates.", 2),
        "ctx-001": (TEXT, 0),
    }
    db = site.sim.daemon.db
    assert db.read("SELECT state, count(*) FROM learned GROUP BY state") == [("confirmed", 1)]
    assert db.read("SELECT count(*) FROM learned_tags") == [(2,)]
    assert site.jobs() == []
    assert len([r for r in site.book.history() if r.by == "reflectd"]) == 2
    await site.sim.stop()


@pytest.mark.shows("I42")
async def test_what_was_decided_before_a_kill_is_written_without_the_command(past: Past) -> None:
    """Both answers were paid for; whether the person comes again or not, the playbook has the text."""
    site = past.site
    await past.looks_back("p1", NOTHING, ADD)
    held = Held(site.sim.daemon, "INSERT INTO learned_writes", stored=True)
    task = asyncio.create_task(past.looks_back("p2", confirm(cites="E1"), NO_CHANGE))
    await asyncio.wait_for(held.reached.wait(), 60)
    await site.sim.kill()
    await asyncio.gather(task, return_exceptions=True)
    assert site.points() == {}
    await site.sim.start()
    await site.looks(2)
    assert [p["text"] for p in site.points().values()] == [TEXT]
    assert site.purposes() == ["asked.reflect", "asked.curate"] * 2


async def test_what_nobody_goes_on_with_is_given_up(past: Past) -> None:
    """The reflector's answer waits for the command, costs nothing meanwhile, and goes after thirty days."""
    site = past.site
    found = await past.looks_back("p1", NOTHING, *[Unavailable("no", "server")] * 3)
    assert found["state"] == "silent"
    jobs = "SELECT kind, key FROM jobs WHERE kind != 'retention'"
    db = site.sim.daemon.db
    await site.looks(29 * 86_400)
    assert db.read(jobs) == [("playbook.learn", "past p1")]
    await site.looks(2 * 86_400)
    assert db.read(jobs) == []
    assert site.purposes() == ["asked.reflect", *["asked.curate"] * 3]


class Priced(ByPurpose):
    """A model with a price: 0.02 USD a call."""

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        return "anthropic", "claude-haiku-4-5"

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        found = await super().complete(prompt, deadline_s)
        return replace(found, usage=replace(found.usage, cost=0.02))


@pytest.mark.shows("LEARN-18")
async def test_the_cap_of_a_session_costs_only_that_session(tmp_path: Path) -> None:
    """What is told is what the ledger has; a session whose own cap forbids it is passed over."""
    site = Site(tmp_path)
    site.sim.provider = site.llm = Priced(**{"asked.reflect": NOTHING, "asked.curate": ADD})
    await site.start(earned=0)
    past = Past(site)
    plan = await past.plan("p1", "p2")
    assert 0.01 < plan["usd"] < 0.2
    assert plan["models"] == [{"host": HOST, "provider": "scripted", "model": "claude-haiku-4-5"}]
    assert (await past.looks_back("p1", since=plan["now"]))["spent"] == {"usd": 0.04, "tokens": 0}
    await site.sim.stop()
    (tmp_path / "tight").mkdir()
    tight = Site(tmp_path / "tight", "[playbook]\nenabled = true\n[spend]\ncents_per_session = 1\n")
    tight.sim.provider = tight.llm = site.llm
    await tight.start(earned=0)
    found = await Past(tight).looks_back("p3")
    assert (found["state"], found["limit"]) == ("silent", "asked_limit"), "another session may fit"
    await tight.sim.stop()


async def test_who_is_left_out(past: Past) -> None:
    """Sessions that are open, wait to be looked back on, are switched off, or are a judge's."""
    site = past.site
    sessions = site.sim.daemon.world.sessions
    project = str(site.project)
    await site.opens("open")
    for s in (
        Session(id="off", directory=project, off=True),
        Session(id="judge", directory=project, judge=True),
        Session(id="child", directory=project, parent="open"),
    ):
        sessions.put(s)
    await site.sim.daemon.db.commit(tables.keep_case("waits", "t", project, site.clock.ms, b"{}"))
    plan = await past.plan("open", "off", "judge", "child", "waits", "fine")
    assert {k: v.split(" ")[0] for k, v in plan["skipped"].items()} == {
        "open": "it",
        "off": "switched",
        "judge": "a",
        "child": "a",
        "waits": "it",
    }
    found = await past.looks_back("open")
    assert (found["state"], found["why"]) == ("skipped", "it is still open")
    assert site.purposes() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"stretch": {}},
        {"host": "emacs"},
        {"since": "now"},
        {"stretch": msgspec.to_builtins(stretch("", "/x"))},
        {"stretch": msgspec.to_builtins(stretch("s" * 201, "/x"))},
    ],
)
async def test_a_body_of_another_form_is_refused(past: Past, wrong: Json) -> None:
    """And nothing is asked or stored; a plan neither, nor for a folder that is no project."""
    with pytest.raises(BadReply):
        await past.looks_back("p1", **wrong)
    assert past.site.jobs() == []
    with pytest.raises(BadReply):
        await past.plan(host="emacs")
    with pytest.raises(BadReply):
        await past.plan(sessions=[{"session": str(i), "host": HOST, "tokens": 1} for i in range(10_001)])
    with pytest.raises(Rejected, match="is no project"):
        await past.plan(directory="/")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "reflectd config set playbook.enabled true"),
        ("[playbook]\nenabled = true\n[spend]\ncents_per_day = 0\n", "spend.cents_per_day is 0"),
        ("[playbook]\nenabled = true\n[judge]\nprovider = 'offline'\n", "no model can be asked"),
        ("of the project", "switches the playbook off for this project"),
        ("off", "reflectd is off in this project"),
    ],
)
async def test_what_forbids_it_is_said(tmp_path: Path, text: str, why: str) -> None:
    """Learning that is off, no money, the rules, the project's own settings, `reflectd off`."""
    site = Site(tmp_path, text if "\n" in text or not text else "[playbook]\nenabled = true\n")
    site.sim.provider = None if "offline" in text else site.llm
    await site.start()
    if text == "of the project":
        site.book.path.parent.mkdir()
        (site.project / ".reflection" / "config.toml").write_text("[playbook]\nenabled = false\n")
    if text == "off":
        await site.sim.daemon.engine.intake.switch(on=False, directory=str(site.project))
    with pytest.raises(Rejected, match=why):
        await Past(site).plan()
    await site.sim.stop()


async def test_whoever_goes_away_ends_the_call(past: Past) -> None:
    """The model is not asked any longer, the cancelled call is in the ledger, and the playbook is free for
    others; live learning waits for its turn meanwhile.
    """
    site = past.site
    site.llm.hold = asyncio.Event()
    task = asyncio.create_task(past.looks_back("p1", NOTHING))
    while not site.llm.prompts:
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await site.sim.settle()
    rows = site.sim.daemon.db.read(
        "SELECT outcome, input + output > 3000 FROM ledger WHERE account = 'asked'"
    )
    assert rows == [("cancelled", 1)]
    site.llm.hold = None
    assert (await past.looks_back("p1", NOTHING, NO_CHANGE))["state"] == "learned"


@pytest.mark.shows("I43")
async def test_a_playbook_that_cannot_be_read_stops_it(past: Past) -> None:
    """Nothing is asked, and the file stays as it is."""
    site = past.site
    site.file.parent.mkdir()
    site.file.write_text("{half")
    with pytest.raises(Unavailable, match=r"playbook\.json"):
        await past.looks_back("p1")
    assert site.file.read_text() == "{half"
    assert site.purposes() == []


async def test_a_daemon_does_not_leave_while_a_command_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking back on many sessions takes longer than the time after which a daemon without hosts ends."""
    monkeypatch.setattr(app, "TICK_S", 0.005)
    site = Site(tmp_path, "")
    await site.start()
    daemon = site.sim.daemon
    daemon.idle_exit_s = 60.0

    async def idle(seconds: float) -> bool:
        site.clock.advance(seconds)
        await asyncio.sleep(0.1)
        return daemon.stopping.is_set()

    with daemon.engine.intake.command():
        assert not await idle(300)
    assert not await idle(30), "it was just answered"
    assert await idle(61)
    await site.sim.stop()
