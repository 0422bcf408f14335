"""Where a lesson is shown: in which projects, and only while what it cites is there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daemon.config import PROJECT_FILE
from daemon.core.episodes import Episode, Vector
from daemon.engine.projects import TTL_MS
from daemon.memory.lessons import SHOWN
from tests.engine.lessons import FIRST, GIVEN, LESSON, NONE, ON, TASK, Site
from tests.store.episodes import vector

EVERYWHERE = f'{ON}scope = "all"\n'


@pytest.fixture
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """With the settings of the test."""
    found = Site(tmp_path, getattr(request, "param", ON))
    await found.start()
    yield found
    await found.sim.stop()


def another(site: Site, text: str = "") -> Path:
    """A second project, with settings of its own."""
    found = site.project.parent / "another"
    (found / PROJECT_FILE).parent.mkdir(parents=True)
    (found / PROJECT_FILE).write_text(text)
    return found


@pytest.mark.parametrize("site", [EVERYWHERE], indirect=True)
async def test_a_confirmed_lesson_is_shown_in_all_projects_where_the_person_says_so(site: Site) -> None:
    """`memory.scope = "all"`: in another project too; one that waits for a yes stays where it was learned."""
    await site.knows()
    other = another(site)
    there = await site.session("s1", other)
    assert await site.asked(there, TASK, FIRST) == GIVEN
    here = await site.session("s2")
    assert await site.asked(here, TASK, FIRST) == GIVEN
    (found,) = await site.memory.store.page(None)
    await site.memory.store.settle([found.episode.id], "quarantined")
    assert await site.asked(await site.session("s3", other), TASK) == ""


@pytest.mark.parametrize("text", ["", '[memory]\nscope = "all"\n'], ids=["default", "project's file"])
async def test_a_project_s_file_opens_no_other_project(site: Site, text: str) -> None:
    """By default a lesson stays in its project, and the file of a project, which comes with a clone, has no
    say: neither the one that asks nor the one that is asked about.
    """
    await site.knows()
    other = another(site, text)
    (site.project / PROJECT_FILE).parent.mkdir(exist_ok=True)
    (site.project / PROJECT_FILE).write_text(text)
    there = await site.session("s1", other)
    assert await site.asked(there, TASK) == ""
    assert site.sim.daemon.world.project(str(other)).memory.scope == "project"
    assert await site.asked(await site.session("s2"), TASK, FIRST) == GIVEN


async def test_a_lesson_whose_file_is_gone_is_not_shown(site: Site) -> None:
    """With real files, at once; when the file is back, so is the lesson."""
    cited = site.project / "tests" / "data" / "fixture.json"
    cited.parent.mkdir(parents=True)
    cited.write_text("{}")
    await site.knows(cites=("tests/data/fixture.json",))
    for n in range(2):
        cited.write_text("{}")
        c = await site.session(f"there-{n}")
        assert await site.asked(c, TASK, FIRST) == GIVEN
        cited.unlink()
        c = await site.session(f"gone-{n}")
        assert await site.asked(c, TASK) == ""


async def test_a_lesson_whose_command_is_gone_is_not_shown(site: Site) -> None:
    """A target of the Makefile that was renamed."""
    makefile = site.project / "Makefile"
    makefile.write_text("all:\n\ttrue\n\nfixture:\n\ttrue\n")
    await site.knows(cites=("make fixture",))
    assert await site.asked(await site.session("s1"), TASK, FIRST) == GIVEN
    makefile.write_text("all:\n\ttrue\n\nfixtures:\n\ttrue\n")
    assert await site.asked(await site.session("s2"), TASK) == ""


@pytest.mark.parametrize("site", [EVERYWHERE], indirect=True)
async def test_what_a_lesson_cites_must_be_there_where_it_is_shown(site: Site) -> None:
    """A lesson of another project that is about a file which this one lacks says nothing here."""
    (site.project / "gen.py").write_text("")
    await site.knows(cites=("gen.py",))
    other = another(site)
    assert await site.asked(await site.session("s1", other), TASK) == ""
    (other / "gen.py").write_text("")
    assert LESSON in await site.asked(await site.session("s2", other), TASK, FIRST)


async def test_a_project_s_file_may_switch_lessons_off(site: Site) -> None:
    """It can only take away: no lesson is given there, and no model is asked."""
    await site.knows()
    c = await site.session("s1")
    (site.project / PROJECT_FILE).parent.mkdir(exist_ok=True)
    (site.project / PROJECT_FILE).write_text("[memory]\nat_prompt = false\n")
    site.clock.advance(TTL_MS / 1000)
    c = await site.session("s2")
    assert await site.asked(c, TASK) == ""
    assert site.questions() == []


@pytest.mark.parametrize("by", ["meaning", "words"])
async def test_of_many_lessons_the_nearest_are_shown(
    site: Site, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to forty: by the cosine, and without vectors by the words in common; of fewer all are, whatever they
    say.
    """
    memory = site.memory
    for n in range(3 * SHOWN):
        near = n % 3 == 0
        query = f"Fix the parser, part {n}" if near else f"Write letter {n}"
        e = Episode(f"{n:032x}", str(site.project), query, -0.5, "", f"Lesson {n}.", "", "confirmed", at=n)
        await memory.store.add(e, vector(n / 10 if near else 90 + n / 10) if by == "meaning" else None)

    async def of(texts: list[str]) -> list[Vector]:
        return [vector(0) for _ in texts] if by == "meaning" else []

    monkeypatch.setattr(memory._vectors._embedder, "get", None)  # a model would know these texts
    memory._vectors.of = of  # type: ignore[method-assign,assignment]
    await site.asked(await site.session(), "Fix the parser so that its fixture tests pass", NONE)
    (prompt,) = site.questions()
    rows = [line for line in prompt.text.splitlines() if line.startswith('{"n":')]
    assert len(rows) == SHOWN
    assert all("Fix the parser" in row for row in rows)
