"""A person's consent in the engine: told by the host, used once and soon."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from daemon import config
from daemon.core.consent import Question, wish
from daemon.core.errors import BadReply, Rejected, Unavailable
from daemon.learning.rules import feature
from daemon.learning.rules.feature import FRESH_MS, Rules
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.claude_code_sim import ClaudeSim
from tests.support.hosts.opencode_sim import SimDaemon, SimHost

Json = dict[str, Any]
QUESTION = Question("Shall it? (reflectd 0a1b2c3d4e5f)", "Rule", (("Yes", "y"), ("No", "n")))
FORM = QUESTION.form("multiple")


class Site:
    """A daemon with one opencode."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.project = folder / "work"
        self.project.mkdir()
        self.llm = ScriptedLLM()
        self.sim = SimDaemon(folder, self.clock, self.llm, config.from_text(""))
        self.host = SimHost(str(self.project), self.clock)

    async def start(self, mode: Any = "serve") -> None:
        await self.host.connect(await self.sim.start(), mode)
        await self.host.create("ses_a")

    @property
    def feature(self) -> Rules:
        found = self.sim.daemon.engine.features.named("rules")
        assert isinstance(found, Rules)
        return found

    async def asks(self, label: str = "Yes", session: str = "ses_a", call: str = "c1") -> None:
        """The person is asked and answers."""
        await self.host.emit("question.asked", sessionID=session, id="q1")
        known = {"call": call, "questions": [FORM]}
        await self.host.emit(
            "question.replied", sessionID=session, requestID="q1", **known, answers=[[label]]
        )
        await self.sim.settle()

    async def types(self, arguments: str = "learn Use bun", message: str = "m9") -> None:
        """The person types the command."""
        await self.host.emit("command", sessionID="ses_a", messageID=message, arguments=arguments)
        await self.sim.settle()

    async def route(self, name: str, **given: Any) -> Json:
        route = next(r for r in self.feature.routes() if r.name == name)
        return dict(await route.answer(given))

    async def spend(self, digest: str = QUESTION.digest, session: str = "ses_a") -> str:
        label: str = (await self.route("spend", session=session, digest=digest))["label"]
        return label


@pytest.fixture
async def site(tmp_path: Path) -> Any:
    made = Site(tmp_path)
    await made.start()
    yield made
    await made.host.disconnect()
    await made.sim.stop()


async def test_an_answer_counts_once(site: Site) -> None:
    """Two who want it at the same moment: one gets it."""
    await site.asks()
    found = await asyncio.gather(site.spend(), site.spend(), return_exceptions=True)
    assert [f for f in found if f == "Yes"] == ["Yes"]
    assert [type(f) for f in found if f != "Yes"] == [Rejected]
    await site.asks("No", call="c2")  # the same question once more
    with pytest.raises(Rejected, match="used before"):
        await site.spend()


async def test_it_counts_only_soon_and_in_its_session(site: Site) -> None:
    """An hour later the person may not mean it any more; another session was not asked."""
    await site.asks()
    await site.host.create("ses_b")
    with pytest.raises(Rejected, match="told of no answer"):
        await site.spend(session="ses_b")
    site.clock.ms += FRESH_MS + 1
    with pytest.raises(Rejected, match="told of no answer"):
        await site.spend()


async def test_only_digests_are_kept_and_not_for_long(site: Site) -> None:
    """No text of a question or command is stored; what nobody used goes after two days."""
    await site.asks()
    await site.types()
    db = site.sim.daemon.db
    stored = json.dumps(db.read("SELECT * FROM consents", ()))
    assert "Shall it" not in stored
    assert "bun" not in stored
    await db.commit(*site.feature.prune(site.clock.ms + feature.KEEP_MS - 1))
    assert len(db.read("SELECT * FROM consents", ())) == 2
    await db.commit(*site.feature.prune(site.clock.ms + feature.KEEP_MS + 1))
    assert db.read("SELECT * FROM consents", ()) == []


async def test_a_session_that_nobody_sits_before(tmp_path: Path) -> None:
    """`opencode run`; a session that is not known; a host that is gone; a body of another form."""
    site = Site(tmp_path)
    await site.start("run")
    await site.asks()
    with pytest.raises(Rejected, match="nobody sits"):
        await site.spend()
    await site.host.disconnect()
    with pytest.raises(Rejected, match="not connected"):
        await site.route("session", session="ses_a")
    for session in ("ses_x", "", 1):
        with pytest.raises(BadReply):
            await site.route("spend", session=session, digest="d")
    await site.sim.stop()


async def test_the_session_of_an_agent(site: Site) -> None:
    """Its host and folder; that of a sub-agent is none."""
    found = await site.route("session", session="ses_a")
    assert found == {"session": "ses_a", "host": "opencode", "directory": str(site.project)}
    await site.host.create("ses_child", parent="ses_a")
    await site.sim.settle()
    with pytest.raises(BadReply, match="no session"):
        await site.route("session", session="ses_child")


async def test_history_is_read_page_by_page(site: Site) -> None:
    """From the opencode that is open in that folder, on demand only."""
    page = {"sessions": [{"session": {"id": "ses_old"}, "messages": []}], "after": "1:ses_old", "more": False}
    site.host.past = [page]
    assert [o["kind"] for o in site.host.orders if o["kind"] == "history"] == []
    found = await site.route("history", directory=str(site.project), after="")
    assert json.loads(bytes(found["page"])) == page
    (order,) = [o for o in site.host.orders if o["kind"] == "history"]
    assert order["data"] == {"after": "", "limit": 50}
    with pytest.raises(Unavailable, match="no opencode is open"):
        await site.route("history", directory="/elsewhere")


ENTRY = {"n": 2, "type": "correction", "content": "Use bun", "severity": "high", "group": 2, "against": [1]}


@pytest.mark.shows("RULES-02", "I41")
async def test_a_model_is_asked_for_a_typed_reflect_and_not_for_long(site: Site) -> None:
    """Both questions; an hour later, and in a session where nobody typed it, none."""
    read = {"question": "signals", "lines": '{"n": 2, "person": "No, bun"}'}
    compare = {"question": "contradicts", "lines": '{"rule": "Use bun"}'}
    nobody = "nobody typed /reflect in this session just now"
    assert (await site.route("ask", session="ses_a", **read))["why"] == nobody
    await site.types("", "m8")
    site.llm.add({"signals": [ENTRY]}, {"contradicts": [1], "same": [2]})
    found = await site.route("ask", session="ses_a", **read)
    assert (found["reply"]["signals"], found["why"]) == ([ENTRY], "")
    found = await site.route("ask", session="ses_a", **compare)
    assert (found["reply"]["contradicts"], found["reply"]["same"]) == ([1], [2])
    assert [(p.purpose, p.session, p.host) for p in site.llm.prompts] == [
        ("signals", "ses_a", "opencode"),
        ("contradicts", "ses_a", "opencode"),
    ]
    site.clock.ms += FRESH_MS
    assert (await site.route("ask", session="ses_a", **compare))["why"] == nobody


@pytest.mark.shows("I48")
async def test_a_reply_out_of_form_reads_nothing_and_is_kept(site: Site) -> None:
    """It is said why; a body of another form is refused before anybody is asked."""
    await site.types("", "m8")
    site.llm.add("I can't do that.")
    found = await site.route("ask", session="ses_a", question="signals", lines="No, bun")
    assert (found["reply"], "the reply holds no signals object" in found["why"]) == (None, True)
    await site.sim.settle()
    assert site.sim.daemon.db.read("SELECT purpose FROM dead_letters", ()) == [("signals",)]
    for wrong in ({"question": "other", "lines": "x"}, {"question": "signals", "lines": "x" * 100_001}, {}):
        with pytest.raises(BadReply, match="another form"):
            await site.route("ask", session="ses_a", **wrong)
    with pytest.raises(BadReply, match="no session"):
        await site.route("ask", session="ses_x", question="signals", lines="")


@pytest.mark.shows("I9")
async def test_a_bare_reflect_of_our_own_is_no_work(tmp_path: Path) -> None:
    """The `/reflect` that `setup` wrote; another `/reflect`, or one of the project's own, is a task."""
    site = Site(tmp_path)
    await site.sim.start()
    file = tmp_path / "claude" / "projects" / "p"
    file.mkdir(parents=True)
    claude = ClaudeSim(site.sim.daemon, site.clock, site.project, "s1")
    claude.file = file / "s1.jsonl"
    await claude.start()

    def task() -> str:
        s = site.sim.daemon.world.sessions.get("s1")
        return s.task if s is not None else ""

    await claude.hook("UserPromptSubmit", prompt="/reflect learn x", prompt_id="p1")
    await site.sim.settle()
    assert task() == "p1"
    own = tmp_path / "claude" / "commands" / "reflect.md"
    own.parent.mkdir()
    own.write_text("<!-- reflectd:reflect -->\n", "utf-8")
    await claude.hook("UserPromptSubmit", prompt="/reflect learn x", prompt_id="p2")
    await site.sim.settle()
    assert task() == "p1"
    assert site.feature.told("s1", wish("learn", "x").digest, 0)
    theirs = site.project / ".claude" / "commands" / "reflect.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("Think again.\n", "utf-8")
    await claude.hook("UserPromptSubmit", prompt="/reflect learn y", prompt_id="p3")
    await site.sim.settle()
    assert task() == "p3"
    assert not site.feature.told("s1", wish("learn", "y").digest, 0)
    await site.sim.stop()
