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
from daemon.core.session import Session
from daemon.learning import tables
from daemon.learning.playbook.questions import Stretch
from tests.learning.playbook.site import ADD, NO_CHANGE, NOTHING, TEXT, ByPurpose, Site, confirm

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

    async def adds(self, session: str, **more: Any) -> Json:
        body = {
            "directory": str(self.site.project),
            "host": HOST,
            "stretch": msgspec.to_builtins(stretch(session, str(self.site.project))),
        }
        found: Json = await self._routes["add"](body | more)
        return found

    async def looks_back(self, session: str, *says: Json | str | Exception) -> str:
        """The session is added, and looked back on when that is its turn."""
        self.site.llm.add(*says)
        state = (await self.adds(session))["state"]
        await self.site.looks()
        return str(state)


@pytest.fixture
async def past(tmp_path: Path) -> AsyncIterator[Past]:
    site = Site(tmp_path)
    await site.start(earned=0)
    yield Past(site)
    await site.sim.stop()


@pytest.mark.shows("LEARN-17")
async def test_past_sessions_are_taken_in_their_order(past: Past) -> None:
    """One that waits for a model keeps the later ones waiting; nothing that was answered is asked again. A
    day's worth of hours later all are done, each once, and what nobody could do in thirty days is given up.
    """
    site, failing = past.site, [Unavailable("no", "server")] * 3
    site.llm.add(NOTHING, *failing)
    assert [(await past.adds(s))["state"] for s in ("p1", "p2", "p1")] == ["waits", "waits", "skipped"]
    await site.looks()
    assert site.purposes() == ["asked.reflect", *["asked.curate"] * 3]
    site.llm.add(ADD, confirm(cites="E1"), NO_CHANGE)
    await site.looks(3_700)
    await site.looks()
    assert [p["text"] for p in site.points().values()] == [TEXT]
    assert site.purposes()[4:] == ["asked.curate", "asked.reflect", "asked.curate"]
    assert (await past.plan("p1", "p2"))["skipped"] == dict.fromkeys(("p1", "p2"), "looked back on already")
    rows = site.sim.daemon.db.read("SELECT DISTINCT account FROM ledger WHERE session != 'x'")
    assert rows == [("asked",)]
    assert await past.looks_back("p3", *failing) == "waits"
    await site.looks(31 * 86_400)
    assert site.jobs() == []


async def test_a_person_stops_those_that_wait(past: Past) -> None:
    """They cost nothing any more, and may be asked for again."""
    await past.looks_back("p1", *[Unavailable("no", "server")] * 3)
    await past.adds("p2")
    assert (await past._routes["stop"]({"directory": str(past.site.project)}))["stopped"] == 2
    assert past.site.jobs() == []
    assert await past.looks_back("p1", NOTHING, NO_CHANGE) == "waits"
    assert past.site.purposes()[-2:] == ["asked.reflect", "asked.curate"]


class Priced(ByPurpose):
    """A model with a price: 0.02 USD a call."""

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        return "anthropic", "claude-haiku-4-5"

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        found = await super().complete(prompt, deadline_s)
        return replace(found, usage=replace(found.usage, cost=0.02))


@pytest.mark.shows("LEARN-18")
async def test_the_cap_of_a_session_costs_only_that_session(tmp_path: Path) -> None:
    """Its calls are paid from the account; a session whose own cap forbids it is passed over."""
    site = Site(tmp_path)
    site.sim.provider = site.llm = Priced(**{"asked.reflect": NOTHING, "asked.curate": ADD})
    await site.start(earned=0)
    past = Past(site)
    plan = await past.plan("p1", "p2")
    assert 0.01 < plan["usd"] < 0.2
    assert plan["models"] == [{"host": HOST, "provider": "scripted", "model": "claude-haiku-4-5"}]
    await past.looks_back("p1")
    assert site.sim.daemon.world.ledger.spent("", 0, "asked").today == 0.04
    await site.sim.stop()
    (tmp_path / "tight").mkdir()
    tight = Site(tmp_path / "tight", "[playbook]\nenabled = true\n[spend]\ncents_per_session = 1\n")
    tight.sim.provider = tight.llm = site.llm
    await tight.start(earned=0)
    await Past(tight).looks_back("p3")
    assert tight.jobs() == [], "another session may fit"
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
    found = await past.adds("open")
    assert (found["state"], found["why"]) == ("skipped", "it is still open")
    assert site.purposes() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"stretch": {}},
        {"host": "emacs"},
        {"stretch": msgspec.to_builtins(stretch("", "/x"))},
        {"stretch": msgspec.to_builtins(stretch("s" * 201, "/x"))},
    ],
)
async def test_a_body_of_another_form_is_refused(past: Past, wrong: Json) -> None:
    """And nothing is asked or stored; a plan neither, nor for a folder that is no project."""
    with pytest.raises(BadReply):
        await past.adds("p1", **wrong)
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
