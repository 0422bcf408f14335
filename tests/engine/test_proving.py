"""The engine with the project's own check: real processes, a real repository, a simulated host."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from daemon import config
from daemon.core.errors import Rejected
from daemon.files.prompts import TRUST_FILE, Trust, command_place
from daemon.store import proofs
from daemon.testing import FakeClock, ScriptedLLM
from harness.machine.processes import of_a_check
from tests.support.hosts.opencode_sim import SimDaemon, SimHost, bash, write

COMPLETE = {"complete": True, "severity": "NONE"}
CHECK = "python3 -m unittest -q"
GOOD = "def add(a, b):\n    return a + b\n"
BAD = "def add(a, b):\n    return a - b - 0\n"  # of another size, else the compiled one counts
TEST = """import unittest

from calc import add


class Adding(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 2), 4)
"""


def git(folder: Path, *args: str) -> str:
    """What git prints."""
    names = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *names, "-C", str(folder), *args], check=True, capture_output=True, text=True
    ).stdout


class World:
    """A repository with a test, a daemon that may prove, a host, a judge that believes everything."""

    def __init__(self, folder: Path, text: str) -> None:
        self.clock = FakeClock()
        self.llm = ScriptedLLM()
        self.folder = folder / "work"
        self.folder.mkdir()
        self.state = folder / "state"
        for name, content in {"calc.py": GOOD, "test_calc.py": TEST, ".gitignore": "__pycache__\n"}.items():
            (self.folder / name).write_text(content)
        git(self.folder, "init", "-q")
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-qm", "first")
        settings = config.from_text(text)
        llm = None if settings.judge.provider == "offline" else self.llm
        self.sim = SimDaemon(folder, self.clock, llm, settings=settings)
        self.host = SimHost(str(self.folder), self.clock)

    async def turn(self, *tools: dict[str, Any], session: str = "ses_a", settle: bool = True) -> None:
        """The agent does this, says that all is done, and the judge believes it."""
        self.llm.add(COMPLETE)
        await self.host.create(session)
        await self.host.types(session, "Make add right")
        await self.host.works(session, "All tests pass.", tools=tools)
        if settle:
            await self.settled()

    async def settled(self) -> None:
        """Until nothing is judged or run any more."""
        async with asyncio.timeout(60):
            while self.sim.daemon.engine.schedule.busy():
                await asyncio.sleep(0.02)
        await self.sim.settle()

    def unproved(self, session: str = "ses_a") -> tuple[str, str]:
        """The verdict's state, and why no check was run; "" where the verdict says nothing of one."""
        found = self.verdict(session)
        proof = found["proof"] or {"state": "not_run", "reason": ""}
        assert proof["state"] == "not_run", proof
        return found["state"], proof["reason"]

    def verdict(self, session: str = "ses_a") -> dict[str, Any]:
        """The verdict file."""
        found: dict[str, Any] = json.loads(
            (self.folder / ".reflection" / f"verdict_{session}.json").read_text()
        )
        return found


Make = Callable[[str], Any]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """A world with these settings."""
    worlds: list[World] = []

    async def build(text: str = "[proof]\nenabled = true\n") -> World:
        world = World(tmp_path, text)
        worlds.append(world)
        await world.host.connect(await world.sim.start())
        return world

    yield build
    for world in worlds:
        await world.host.disconnect()
        await world.sim.stop()


async def test_a_wrong_tests_pass_goes_back_with_the_name_of_the_test(make: Make) -> None:
    """The check ran before the last edit; the run after it fails, and the agent is told which test."""
    w = await make()
    (w.folder / "calc.py").write_text(BAD)
    await w.turn(bash(CHECK, 0, "Ran 1 test in 0.0s\n\nOK"), write("calc.py"))
    found = w.verdict()
    assert (found["state"], found["severity"]) == ("incomplete", "HIGH")
    assert found["proof"]["command"] == CHECK
    assert (found["proof"]["exit"], found["proof"]["state"]) == (1, "failed")
    (prompt,) = w.host.prompts
    assert "test_add" in prompt.text
    assert CHECK in prompt.text
    assert not of_a_check(w.folder.parent)


async def test_a_right_one_is_proved(make: Make) -> None:
    """The toast and the verdict say by which command, with which exit code, and how long it took."""
    w = await make()
    await w.turn(write("calc.py"), bash(f"{CHECK} 2>&1 | tail -3", 0, "OK"), write("calc.py"))
    found = w.verdict()
    assert found["state"] == "complete"
    assert found["proof"]["state"] == "passed"
    assert any(t.startswith(f"Task complete, proved by `{CHECK}`, exit 0") for t in w.host.toasts)
    assert not w.host.prompts


ON = "[proof]\nenabled = true\n"
PASSED = bash(CHECK, 0, "Ran 1 test in 0.0s\n\nOK")


def spoil(w: World) -> None:
    """The last edit breaks what the check saw."""
    (w.folder / "calc.py").write_text(BAD)


async def test_off_nothing_is_run_and_nothing_learned(make: Make) -> None:
    """The default."""
    w = await make("")
    spoil(w)
    await w.turn(PASSED, write("calc.py"))
    assert w.verdict()["state"] == "complete"
    assert w.verdict()["proof"] is None
    assert w.sim.daemon.engine.proving.proofs.commands(os.path.realpath(w.folder)) == []


async def test_the_agents_own_run_after_its_last_edit_is_enough(make: Make) -> None:
    """Nothing is run; the check is known from then on."""
    w = await make(ON)
    await w.turn(write("calc.py"), PASSED)
    assert w.verdict()["proof"] is None
    (command,) = w.sim.daemon.engine.proving.proofs.commands(os.path.realpath(w.folder))
    assert command.known.key == (CHECK, "")
    spoil(w)
    await w.turn(write("calc.py"), session="ses_b")  # never ran it: that of the earlier task is run
    assert (w.verdict("ses_b")["state"], w.verdict("ses_b")["proof"]["state"]) == ("incomplete", "failed")


async def test_the_same_files_are_not_checked_twice(make: Make) -> None:
    """The agent changed nothing: the first run counts, and two rounds without progress end it."""
    w = await make(ON)
    spoil(w)
    await w.turn(PASSED, write("calc.py"))
    marker = w.sim.daemon.engine.proving.proofs
    project = os.path.realpath(w.folder)
    assert len(marker.runs(project)) == 1
    for _ in range(3):
        w.llm.add(COMPLETE)
        await w.host.works("ses_a", "It is done.")
        await w.settled()
    assert len(marker.runs(project)) == 1
    assert len(w.host.prompts) <= 3
    assert w.verdict()["state"] == "stopped"


async def test_without_a_model_a_pass_proves_it(make: Make) -> None:
    """No model judges, the rules are quiet; the check speaks."""
    w = await make(f'judge.provider = "offline"\n{ON}')
    await w.turn(PASSED, write("calc.py"))
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("complete", "passed")
    spoil(w)
    await w.turn(write("calc.py"), session="ses_b")
    assert (w.verdict("ses_b")["state"], w.verdict("ses_b")["proof"]["state"]) == ("incomplete", "failed")


async def test_wanted_only_a_run_is_complete_when_it_passes(make: Make) -> None:
    """All that the judge misses is a check after the last edit."""
    w = await make(ON)
    stale = {
        "complete": False, "severity": "MEDIUM", "feedback": "Run the tests again.",
        "missing": [{"item": "tests not run after the last edit", "cites": "E2"}],
    }  # fmt: skip
    w.llm.add(stale)
    await w.host.create("ses_a")
    await w.host.types("ses_a", "Make add right")
    await w.host.works("ses_a", "Done.", tools=(PASSED, write("calc.py")))
    await w.settled()
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("complete", "passed")


async def test_what_failed_before_the_task_is_not_sent_back(make: Make) -> None:
    """By the agent's own run before its first edit, by the names of the tests; the judge, who is asked once
    more, says that the task was not about it.
    """
    w = await make(ON)
    w.llm.add(COMPLETE)
    spoil(w)
    failed = "FAIL: test_add (test_calc.Adding.test_add)\nRan 1 test in 0.0s\n\nFAILED (failures=1)"
    await w.turn(bash(CHECK, 1, failed), write("other.py"))
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("complete", "failed_before")
    assert not w.host.prompts
    assert "fails as it did before the task's first edit: test_add" in w.llm.prompts[-1].text


async def test_the_judge_reads_whether_the_task_was_about_what_failed_before(make: Make) -> None:
    """Asked to mend the test that fails still: it goes back."""
    w = await make(ON)
    spoil(w)
    failed = "FAIL: test_add (test_calc.Adding.test_add)\nRan 1 test in 0.0s\n\nFAILED (failures=1)"
    open_item = {"item": "test_add still fails", "cites": "E3"}
    w.llm.add(
        COMPLETE, {"complete": False, "severity": "HIGH", "feedback": "Mend it.", "missing": [open_item]}
    )
    await w.host.create("ses_a")
    await w.host.types("ses_a", "Mend test_add")
    await w.host.works("ses_a", "Done.", tools=(bash(CHECK, 1, failed), write("other.py")))
    await w.settled()
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("incomplete", "failed_before")
    assert len(w.host.prompts) == 1


async def test_the_commit_before_is_asked_where_nobody_knows(make: Make) -> None:
    """With `proof.before`, in a worktree that is gone afterwards."""
    w = await make(f"{ON}before = true\n")
    spoil(w)
    git(w.folder, "commit", "-qam", "broken before")
    w.llm.add(COMPLETE)
    w.clock.ms = 4_000_000_000_000
    (w.folder / "other.py").write_text("x = 1\n")
    await w.turn(bash(f"{CHECK} | tail -1", 0, ""), write("other.py"))
    assert w.verdict()["proof"]["state"] == "failed_before"
    assert not w.host.prompts
    assert git(w.folder, "worktree", "list").count("\n") == 1
    assert not list((w.state / "proof").iterdir())


async def test_in_a_worktree_nothing_of_the_persons_changes(make: Make) -> None:
    """What the check writes is gone with it."""
    w = await make(f'{ON}where = "worktree"\n')
    (w.folder / "test_calc.py").write_text(f"{TEST}\nopen('calc.py', 'w').write('broken')\n")
    before = git(w.folder, "status", "--porcelain")
    await w.turn(PASSED, write("test_calc.py"))
    assert w.verdict()["proof"]["state"] == "passed"
    assert git(w.folder, "status", "--porcelain") == before
    assert (w.folder / "calc.py").read_text() == GOOD
    assert not list((w.state / "proof").iterdir())


async def test_a_check_that_changes_files_proves_nothing(make: Make) -> None:
    """In the project's folder: no word goes to the agent."""
    w = await make(ON)
    (w.folder / "test_calc.py").write_text(f"{TEST}\nopen('calc.py', 'a').write('# more')\n")
    await w.turn(PASSED, write("test_calc.py"))
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("complete", "changed")
    assert not w.host.prompts


async def test_a_flaky_check_is_told_and_never_sent(make: Make) -> None:
    """It fails, then passes on the one repeat."""
    w = await make(ON)
    again = (
        "import os\nif not os.path.exists('seen'):\n    open('seen', 'w').close()\n    raise SystemExit(1)\n"
    )
    (w.folder / "test_calc.py").write_text(f"{again}{TEST}")
    await w.turn(PASSED, write("test_calc.py"))
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("complete", "flaky")
    assert not w.host.prompts


async def test_tests_that_were_made_weaker_prove_nothing(make: Make) -> None:
    """A skipped test passes; nobody says "proved"."""
    w = await make(ON)
    new = TEST.replace("    def test_add", "    @unittest.skip('later')\n    def test_add")
    (w.folder / "test_calc.py").write_text(new)
    path = str(w.folder / "test_calc.py")
    edit = {"filePath": path, "oldString": "    def test_add", "newString": "    @unittest.skip('later')\n    def test_add"}  # fmt: skip # noqa: E501
    change = {"tool": "edit", "state": {"status": "completed", "input": edit, "output": "ok"}}
    await w.turn(PASSED, change)
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("complete", "tests_changed")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("timeout_s = 5\n", "timed_out"),
        ("minutes_a_day = 0\n", "not_run"),
    ],
)
async def test_its_limits(make: Make, text: str, why: str) -> None:
    """At the limit of time nothing is concluded; over the minutes of the day nothing is run."""
    w = await make(f"{ON}{text}")
    (w.folder / "test_calc.py").write_text("import time\ntime.sleep(600)\n")
    await w.turn(PASSED, write("test_calc.py"))
    found = w.verdict()
    assert found["state"] == "complete"
    assert found["proof"]["state"] == why
    assert not of_a_check(w.folder.parent)


async def test_not_while_another_agent_works_there(make: Make) -> None:
    """Its files change under the check."""
    w = await make(ON)
    spoil(w)
    await w.host.create("ses_b")
    await w.host.types("ses_b", "Something else")
    await w.turn(PASSED, write("calc.py"))
    assert w.unproved() == ("complete", "the agent of ses_b works in this folder")


async def test_observed_it_is_run_and_nothing_is_sent(make: Make) -> None:
    """The verdict has it."""
    w = await make(f'judge.mode = "observe"\n{ON}')
    spoil(w)
    await w.turn(PASSED, write("calc.py"))
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("incomplete", "failed")
    assert not w.host.prompts


async def test_esc_ends_it(make: Make) -> None:
    """The process is gone, and nothing is sent."""
    w = await make(ON)
    (w.folder / "test_calc.py").write_text("import time\nopen('began', 'w').close()\ntime.sleep(600)\n")
    await w.turn(PASSED, write("test_calc.py"), settle=False)
    async with asyncio.timeout(60):
        while not (w.folder / "began").exists():
            await asyncio.sleep(0.02)
    await w.host.escapes("ses_a")
    await w.settled()
    assert not of_a_check(w.folder.parent)
    assert not w.host.prompts
    assert w.verdict()["state"] == "stopped"
    assert not list((w.state / "proof").iterdir())


async def test_the_daemons_end_ends_it(make: Make) -> None:
    """SIGTERM: no process, no worktree is left."""
    w = await make(f'{ON}where = "worktree"\n')
    began = w.folder.parent / "began"
    (w.folder / "test_calc.py").write_text(
        f"import time\nopen({str(began)!r}, 'w').close()\ntime.sleep(600)\n"
    )
    await w.turn(PASSED, write("test_calc.py"), settle=False)
    async with asyncio.timeout(60):
        while not began.exists():
            await asyncio.sleep(0.02)
    await w.host.disconnect()
    await w.sim.stop()
    assert not of_a_check(w.folder.parent)
    assert git(w.folder, "worktree", "list").count("\n") == 1
    assert not list((w.state / "proof").iterdir())


async def test_what_the_person_struck_out_is_not_run(make: Make) -> None:
    """By `reflectd proof forbid`; allowed again, it is."""
    w = await make(ON)
    await w.turn(write("calc.py"), PASSED)
    (route,) = next(f for f in w.sim.daemon.engine.features if f.name == "proof").routes()
    body = {"directory": str(w.folder), "command": CHECK}
    await route.answer({**body, "do": "forbid"})
    spoil(w)
    await w.turn(write("calc.py"), session="ses_b")
    state, why = w.unproved("ses_b")
    assert (state, why[:32]) == ("complete", "no check that may be run covers ")
    await route.answer({**body, "do": "allow"})
    await w.turn(write("calc.py"), session="ses_c")
    assert w.verdict("ses_c")["proof"]["state"] == "failed"


@pytest.mark.parametrize("text", ["curl x | sh", "make deploy", "git push"])
async def test_no_person_can_choose_what_is_never_run(make: Make, text: str) -> None:
    """Refused with the reason."""
    w = await make(ON)
    (route,) = next(f for f in w.sim.daemon.engine.features if f.name == "proof").routes()
    with pytest.raises(Rejected, match="never run"):
        await route.answer({"directory": str(w.folder), "command": text, "do": "use"})


async def test_a_projects_check_counts_only_when_trusted(make: Make) -> None:
    """Exactly this text; until then an agent can't choose what runs unattended by writing a file."""
    w = await make(ON)
    (w.folder / ".reflection").mkdir(exist_ok=True)
    (w.folder / ".reflection" / "config.toml").write_text('proof.command = "sh check.sh"\n')
    (w.folder / "check.sh").write_text("touch ran; exit 1\n")
    await w.turn(write("calc.py"))
    assert w.verdict()["proof"]["state"] == "not_run"
    assert not (w.folder / "ran").exists()
    trust = Trust(w.state / TRUST_FILE, w.clock)
    trust.grant(command_place(w.folder), {"proof.command": "sh check.sh"})
    await w.turn(write("calc.py"), session="ses_b")
    assert w.verdict("ses_b")["proof"]["command"] == "sh check.sh"
    assert (w.folder / "ran").exists()


async def test_a_repeat_that_does_not_end_is_no_second_failure(make: Make) -> None:
    """It failed once; nothing follows. Both runs count for the minutes of the day."""
    w = await make(f"{ON}timeout_s = 5\n")
    again = (
        "import os, time\nif os.path.exists('seen'):\n    time.sleep(600)\n"
        "open('seen', 'w').close()\nraise SystemExit(1)\n"
    )
    (w.folder / "test_calc.py").write_text(f"{again}{TEST}")
    await w.turn(PASSED, write("test_calc.py"))
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("complete", "timed_out")
    assert not w.host.prompts
    read = w.sim.daemon.engine.proving.proofs
    assert read.spent_ms(0) >= 5000
    assert len(read.runs(os.path.realpath(w.folder))) == 1


async def test_files_that_changed_meanwhile_are_checked_when_they_are_still(make: Make) -> None:
    """The run that was spoiled is no run on what is there since."""
    w = await make(ON)
    (w.folder / "test_calc.py").write_text(
        "import os\nif not os.path.exists('seen'):\n"
        "    open('seen', 'w').close()\n    open('calc.py', 'a').write('# by the person\\n')\n" + TEST
    )
    await w.turn(PASSED, write("test_calc.py"))
    assert w.verdict()["proof"]["state"] == "changed"
    await w.turn(write("test_calc.py"), session="ses_b")
    assert w.verdict("ses_b")["proof"]["state"] == "passed"


async def began(w: World, name: str = "began") -> None:
    """Until the check made this file."""
    async with asyncio.timeout(60):
        while not (w.folder / name).exists():
            await asyncio.sleep(0.02)


SLOW = "import os, time\nopen('began', 'w').close()\nwhile not os.path.exists('go'):\n    time.sleep(0.02)\n"


async def test_a_run_that_had_too_little_time_is_made_again_with_more(make: Make) -> None:
    """The same files: with the same limit the first run counts, with a longer one it says nothing."""
    w = await make(f"{ON}timeout_s = 5\n")
    (w.folder / "test_calc.py").write_text(f"import time\ntime.sleep(7)\n{TEST}")
    await w.turn(PASSED, write("test_calc.py"))
    await w.turn(write("test_calc.py"), session="ses_b")
    ran = w.sim.daemon.engine.proving.proofs.runs(os.path.realpath(w.folder))
    assert [e.proof.state for e in ran] == ["timed_out"]
    await w.host.disconnect()
    await w.sim.stop()
    longer = config.from_text(f"{ON}timeout_s = 60\n")
    w.sim = SimDaemon(w.folder.parent, w.clock, w.llm, settings=longer)
    await w.host.connect(await w.sim.start())
    await w.turn(write("test_calc.py"), session="ses_c")
    assert w.verdict("ses_c")["proof"]["state"] == "passed"


async def test_a_check_that_could_not_start_is_tried_again(make: Make) -> None:
    """What it lacked is no file of the project."""
    w = await make(ON)
    program = w.folder.parent / "checker"
    (route,) = next(f for f in w.sim.daemon.engine.features if f.name == "proof").routes()
    await route.answer({"directory": str(w.folder), "command": str(program), "do": "use"})
    await w.turn(write("calc.py"))
    assert w.verdict()["proof"]["state"] == "not_started"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    await w.turn(write("calc.py"), session="ses_b")
    assert w.verdict("ses_b")["proof"]["state"] == "passed"


async def test_not_while_another_agent_works_there_by_another_name(make: Make) -> None:
    """A link to the folder is the folder."""
    w = await make(ON)
    spoil(w)
    link = w.folder.parent / "link"
    link.symlink_to(w.folder)
    other = SimHost(str(link), w.clock, "host-2")
    await other.connect(w.sim.daemon)
    await other.create("ses_b")
    await other.types("ses_b", "Something else")
    await w.turn(PASSED, write("calc.py"))
    assert w.unproved() == ("complete", "the agent of ses_b works in this folder")
    await other.disconnect()


@pytest.fixture
async def waiting(make: Make) -> AsyncIterator[tuple[World, SimHost, Path]]:
    """A check that runs until ``go`` is there, and a turn of another project whose check waits for it."""
    w = await make(ON)
    second = w.folder.parent / "second"
    git(w.folder.parent, "clone", "-q", str(w.folder), str(second))
    (w.folder / "test_calc.py").write_text(SLOW + TEST)
    (second / "calc.py").write_text(BAD)
    other = SimHost(str(second), w.clock, "host-2")
    await other.connect(w.sim.daemon)
    await w.turn(PASSED, write("test_calc.py"), settle=False)
    await began(w)
    w.llm.add(COMPLETE)
    await other.create("ses_b")
    await other.types("ses_b", "Make add right")
    await other.works("ses_b", "All tests pass.", tools=(PASSED, write("calc.py")))
    await asyncio.sleep(0.3)
    yield w, other, second / ".reflection" / "verdict_ses_b.json"
    await other.disconnect()


async def test_two_projects_at_once_take_turns(waiting: tuple[World, SimHost, Path]) -> None:
    """One check at a time; both turns are judged with their own."""
    w, _, verdict = waiting
    assert json.loads(verdict.read_text())["state"] == "judging"
    (w.folder / "go").touch()
    await w.settled()
    found = json.loads(verdict.read_text())
    assert (w.verdict()["proof"]["state"], found["proof"]["state"]) == ("passed", "failed")


async def test_an_agent_that_began_while_the_check_waited_for_its_turn(
    waiting: tuple[World, SimHost, Path],
) -> None:
    """It is looked for once more: nothing is run under it."""
    w, other, verdict = waiting
    await other.create("ses_c")
    await other.types("ses_c", "Something else, here")
    (w.folder / "go").touch()
    await w.settled()
    found = json.loads(verdict.read_text())
    assert (found["state"], found["proof"]["state"]) == ("complete", "not_run")
    assert found["proof"]["reason"] == "the agent of ses_c works in this folder"


async def test_a_deleted_session_ends_its_check(make: Make) -> None:
    """Nobody waits for it any more."""
    w = await make(ON)
    (w.folder / "test_calc.py").write_text(SLOW)
    await w.turn(PASSED, write("test_calc.py"), settle=False)
    await began(w)
    await w.host.emit("session.deleted", sessionID="ses_a", info={"id": "ses_a"})
    await w.settled()
    assert not of_a_check(w.folder.parent)
    assert not list((w.state / "proof").iterdir())


async def test_without_room_in_the_state_folder_nothing_is_run(make: Make) -> None:
    """It could not be written down, so a killed daemon could not end it; the turn is judged without it."""
    w = await make(f'{ON}where = "worktree"\n')
    spoil(w)
    (w.state / "proof").write_text("no folder")
    await w.turn(PASSED, write("calc.py"))
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("complete", "not_run")
    assert git(w.folder, "worktree", "list").count("\n") == 1


async def test_a_folder_that_the_worktree_has_not_is_no_place(make: Make) -> None:
    """An ignored folder is not copied: the check in it is not run elsewhere instead."""
    w = await make(f'{ON}where = "worktree"\n')
    (w.folder / ".gitignore").write_text("__pycache__\nsub\n")
    (w.folder / "sub").mkdir()
    for name in ("calc.py", "test_calc.py"):
        (w.folder / "sub" / name).write_text((w.folder / name).read_text())
    await w.turn(bash(f"cd sub && {CHECK}", 0, "OK"), write("sub/calc.py"))
    assert w.unproved() == ("complete", "there is no folder ./sub where it would run")


async def test_why_no_check_was_run_is_in_the_verdict(make: Make) -> None:
    """Not in the toast: it would come again and again."""
    w = await make(ON)
    await w.turn(write("calc.py"))
    proof = w.verdict()["proof"]
    assert (proof["state"], proof["command"], proof["exit"]) == ("not_run", "", None)
    assert "no check that may be run covers the edits" in proof["reason"]
    assert not any("not proved" in toast for toast in w.host.toasts)


async def test_a_check_that_the_agent_rewrote_proves_nothing(make: Make) -> None:
    """The person chose `make test`; the agent made it pass."""
    w = await make(ON)
    (w.folder / "Makefile").write_text("test:\n\t@true\n")
    (route,) = next(f for f in w.sim.daemon.engine.features if f.name == "proof").routes()
    await route.answer({"directory": str(w.folder), "command": "make test", "do": "use"})
    spoil(w)
    await w.turn(write("calc.py"), write("Makefile"))
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("complete", "tests_changed")


@pytest.mark.parametrize(
    "script", ["input('Go on? ')\n", "print('x', file=open('/dev/full', 'w'), flush=True)\n"]
)
async def test_a_check_that_lacks_a_terminal_or_room_proves_nothing(make: Make, script: str) -> None:
    """It is no failure of the work."""
    w = await make(ON)
    (w.folder / "ask.py").write_text(script)
    (route,) = next(f for f in w.sim.daemon.engine.features if f.name == "proof").routes()
    await route.answer({"directory": str(w.folder), "command": "python3 ask.py", "do": "use"})
    await w.turn(write("calc.py"))
    assert (w.verdict()["state"], w.verdict()["proof"]["state"]) == ("complete", "not_started")
    assert not w.host.prompts


async def test_the_check_chosen_before_is_not_run_any_more(make: Make) -> None:
    """A person's choice takes the place of the one before; one that they struck out stays struck out."""
    w = await make(ON)
    (route,) = next(f for f in w.sim.daemon.engine.features if f.name == "proof").routes()
    for command, do in (("make slow", "use"), ("make old", "use"), ("make old", "forbid"), (CHECK, "use")):
        await route.answer({"directory": str(w.folder), "command": command, "do": do})
    known = w.sim.daemon.engine.proving.proofs.commands(os.path.realpath(w.folder))
    assert {(c.known.command, c.known.source, c.struck) for c in known} == {
        (CHECK, "person", False), ("make old", "person", True),
    }  # fmt: skip


async def test_a_failure_that_can_not_be_repeated_is_no_failure(make: Make) -> None:
    """It is told, stored as no result, and tried again when there is time."""
    w = await make(f"{ON}minutes_a_day = 1\n")
    slow = "import time\ntime.sleep(1)\nraise SystemExit(1)\n"
    (w.folder / "test_calc.py").write_text(slow)
    read = w.sim.daemon.engine.proving.proofs
    at = w.clock.now_ms()
    await w.sim.daemon.engine.world.db.commit(proofs.spent("earlier", at, 54_500))
    await w.turn(PASSED, write("test_calc.py"))
    state, why = w.unproved()
    assert (state, "failed once and could not be run again: proof.minutes_a_day" in why) == ("complete", True)
    (ended,) = read.runs(os.path.realpath(w.folder))
    assert ended.proof.state == "not_run"


async def test_a_branch_that_moved_meanwhile_is_no_reason_for_ever(make: Make) -> None:
    """By whomever: the same files are checked again."""
    w = await make(ON)
    (w.folder / "test_calc.py").write_text(
        "import os, subprocess\nif not os.path.exists('../seen'):\n    open('../seen', 'w').close()\n"
        "    subprocess.run(['git', 'branch', 'theirs'], check=True)\n" + TEST
    )
    await w.turn(PASSED, write("test_calc.py"))
    assert w.verdict()["proof"]["state"] == "changed"
    await w.turn(write("test_calc.py"), session="ses_b")
    assert w.verdict("ses_b")["proof"]["state"] == "passed"
