"""The page Quality: what it shows of labels, disputes, back-tests and verdicts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from daemon import config
from daemon.core.verdict import Verdict
from daemon.files.cases import CaseFolder
from daemon.store import verdicts
from daemon.store.backtests import Backtests, Label
from daemon.testing import FakeClock, ScriptedLLM
from harness.machine.sandbox import REPO
from tests.support.hosts.opencode_sim import SimDaemon

Json = dict[str, Any]
WEEK_MS = 7 * 86_400_000


class Site:
    """A daemon with one project."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.project = folder / "work"
        self.project.mkdir()
        self.sim = SimDaemon(folder, self.clock, ScriptedLLM(), config.from_text(""))

    @property
    def state(self) -> Path:
        return self.sim.daemon.paths.state_dir

    async def page(self, name: str) -> dict[str, Json]:
        """The sections by their titles."""
        page = self.sim.daemon.engine.features.named(name)
        assert page is not None
        read = await page.pages()[0].read({})
        return {s["title"]: s for s in json.loads(json.dumps(read))["sections"]}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A daemon of its own."""
    found = Site(tmp_path)
    await found.sim.start()
    yield found
    await found.sim.stop()


def of(session: str) -> Json:
    """A cell that leads to this session."""
    return {"text": session, "session": session, "round": 0}


def labelled(site: Site, number: int, judged: str, expect: str, at: int) -> None:
    """A case that a person labelled."""
    case = json.loads((REPO / ".reflection" / "samples" / "case.json").read_text())
    case["case"] |= {"session": f"ses_{number}", "at": at}
    case["verdict"]["state"] = judged
    folder = CaseFolder(site.state)
    source = site.project / f"ses_{number}_{at}.json"
    source.write_text(json.dumps(case))
    folder.label(folder.save(source), expect, "the tests never ran")


async def test_agreement_and_disputes_come_from_the_labels(site: Site) -> None:
    """Per class with Wilson's interval; relabelling counts."""
    now = site.clock.ms
    for number in range(3):
        labelled(site, number, "complete", "complete", now - number)
    labelled(site, 3, "complete", "incomplete", now - 3)
    labelled(site, 4, "incomplete", "incomplete", now - 2 * WEEK_MS)
    found = await site.page("quality")
    rows = {r["cells"][0]: r["cells"][1:] for r in found["Agreement with your labels"]["rows"]}
    assert rows["complete"][0] == 4
    assert rows["complete"][1] == pytest.approx({"share": 0.75, "low": 0.30, "high": 0.954}, abs=0.01)
    assert rows["incomplete"][3] == pytest.approx({"share": 0.5, "low": 0.0945, "high": 0.9055}, abs=0.01)
    assert rows["awaiting user"] == [0, None, 0, None]
    assert rows["all"][1]["share"] == pytest.approx(0.8)
    (dispute,) = found["Disputes"]["rows"]
    assert dispute["cells"][1] == "ses_3", "it was never judged here, so it has no page"
    judged_here = Verdict("ses_3", "t", "a", "complete", now)
    await site.sim.daemon.db.commit(verdicts.add(judged_here, str(site.project)))
    (dispute,) = (await site.page("quality"))["Disputes"]["rows"]
    assert dispute["cells"][1] == of("ses_3")
    assert dispute["cells"][3:6] == ["complete", "incomplete", "the tests never ran"]
    folder = CaseFolder(site.state)
    folder.label(folder.find(f"ses_3_{now - 3}"), "complete", "")
    assert (await site.page("quality"))["Disputes"]["rows"] == []


async def test_what_was_said_of_a_back_test_is_shown(site: Site) -> None:
    """Of each judge the share that was right, without the answers that are none; no back-test, no file."""
    assert (await site.page("quality"))["Back-test"]["rows"] == []
    assert not (site.state / "backtest.jsonl").exists()
    kept = Backtests(site.state)
    for number, answer in enumerate(("right", "right", "right", "complete", "unknown")):
        kept.add(Label("offline", f"mark{number}", answer))
    kept.add(Label("anthropic", "mark0", "right"))
    other, rules = (r["cells"] for r in (await site.page("quality"))["Back-test"]["rows"])
    assert (rules[0], rules[1], rules[3]) == ("offline", 4, 1)
    assert rules[2] == pytest.approx({"share": 0.75, "low": 0.30, "high": 0.954}, abs=0.01)
    assert (other[0], other[1]) == ("anthropic", 1)


async def test_a_back_test_that_cannot_be_read_is_told(site: Site) -> None:
    """Bad input: the page says what is wrong, and shows all the rest."""
    (site.state / "backtest.jsonl").mkdir()
    found = await site.page("quality")
    assert "backtest.jsonl" in found["Back-test"]["text"]
    assert found["Agreement with your labels"]["rows"][-1]["cells"][0] == "all"


async def test_states_are_counted_by_week(site: Site) -> None:
    """A week begins on Monday; the newest stands first."""
    now = site.clock.ms
    for number, (state, at) in enumerate((("complete", now), ("unscored", now), ("complete", now - WEEK_MS))):
        verdict = Verdict(f"ses_{number}", "t", "m", state, at)  # type: ignore[arg-type]
        await site.sim.daemon.db.commit(verdicts.add(verdict, str(site.project)))
    section = (await site.page("quality"))["States by week"]
    at = {name: section["columns"].index(name) for name in ("complete", "unscored", "all")}
    assert [[r["cells"][at[n]] for n in at] for r in section["rows"]] == [[1, 1, 2], [1, 0, 1]]


async def test_a_quality_page_of_nothing_is_empty(site: Site) -> None:
    """No verdict, no case, no fault."""
    found = await site.page("quality")
    assert found["States by week"]["rows"] == found["Disputes"]["rows"] == []
    assert found["Agreement with your labels"]["rows"][-1]["cells"] == ["all", 0, None, None, None]
