"""The memory kept in order: another model for embeddings, lessons that failed again, too many of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon import config
from daemon.learning.lessons import jobs
from daemon.learning.lessons.episodes import Episode
from daemon.learning.lessons.feature import Memory
from daemon.testing import FakeClock, ScriptedLLM
from harness.models.api_servers import Embeds, llm_server
from tests.support.hosts.opencode_sim import SimDaemon

DAY_S = 86_400


def episode(i: int, project: str = "/w") -> Episode:
    lesson = f"Check the file number {i} before the work counts as done."
    return Episode(f"{i:032x}", project, f"Task number {i}", -0.6, "", lesson, lesson, at=FakeClock().ms + i)


def settings(url: str, model: str) -> config.Settings:
    embed = f"[embed]\nprovider = 'openai'\nbase_url = '{url}'\nmodel = '{model}'\n"
    return config.from_text(f"[memory]\nenabled = true\n{embed}")


def memory(sim: SimDaemon) -> Memory:
    found = sim.daemon.engine.features.named("memory")
    assert isinstance(found, Memory)
    return found


async def test_another_model_makes_all_vectors_anew(tmp_path: Path) -> None:
    """In the background after a start, with nothing asked of it; vectors of two models are never compared."""
    async with llm_server() as server:
        server.script(*[Embeds() for _ in range(6)])
        clock = FakeClock()
        for model in ("one", "two"):
            sim = SimDaemon(tmp_path, clock, ScriptedLLM(), settings(server.url, model))
            await sim.start()
            if model == "one":
                for i in range(3):
                    await memory(sim).store.add(episode(i))
            await sim.later(61)
            rows = sim.daemon.db.read("SELECT model, count(*) FROM episode_vectors GROUP BY model")
            assert [count for _, count in rows] == [3]
            assert model in rows[0][0]
            await sim.stop()
            clock.advance(DAY_S)


async def test_what_failed_again_and_what_is_too_much_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part 5: contradicted twice is dismissed, and beyond ``PER_PROJECT`` the least useful go."""
    monkeypatch.setattr(jobs, "PER_PROJECT", 10)
    sim = SimDaemon(
        tmp_path,
        FakeClock(),
        ScriptedLLM(),
        config.from_text("[memory]\nenabled = true\n[embed]\nprovider = 'none'\n"),
    )
    await sim.start()
    store = memory(sim).store
    for i in range(15):
        await store.add(episode(i))
    for session in ("s1", "s2"):
        await store.count([f"{14:032x}"], session, 1, "failed")
    await sim.later(61)
    left = {e.id: e.state for e in await store.page(None)}
    assert left[f"{14:032x}"] == "dismissed"
    assert len([s for s in left.values() if s == "quarantined"]) == 10
    await sim.stop()
