"""The same verdicts as live judging: recorded sessions are played to a real daemon, and back-tested."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.cli.judge.judge import templates_of
from daemon.cli.judge.past import Judging
from daemon.cli.judge.sessions import files_of
from daemon.config import load
from daemon.paths import resolve
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, sandbox
from tests.support.hosts.claude_code_story import Story
from tests.support.hosts.played import PlayedClaude, play_export

Json = dict[str, Any]
RECORDED = sorted((REPO / "tests" / "data" / "claude").glob("*.jsonl"))
EXPORT = REPO / "tests" / "data" / "exports" / "opencode_1.18.json"
FIELDS = ("turn", "state", "severity", "feedback", "missing", "next_actions", "reason")


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One daemon for the file; each session is its own."""
    with sandbox() as box, Daemon(box) as daemon:
        yield daemon


def again(path: Path) -> list[Json]:
    """The verdicts of a back-test of one file."""
    env = {"HOME": str(path.parent)}
    judging = Judging(load(env, path.parent / "none.toml"), templates_of(resolve(env)))
    found = [judged.decision.verdict for file in files_of(env, str(path)) for judged in judging.each(file)]
    return [
        {
            "turn": v.turn,
            "state": v.state,
            "severity": str(v.severity),
            "feedback": v.feedback,
            "missing": [{"item": m.text, "cites": m.cites} for m in v.missing],
            "next_actions": list(v.next_actions),
            "reason": v.reason,
        }
        for v in found
    ]


def told(verdicts: list[Json]) -> list[Json]:
    """The live verdicts in the same form."""
    return [{name: v[name] for name in FIELDS} for v in verdicts]


def told_and_again(daemon: Daemon, data: bytes, name: str) -> tuple[list[Json], list[Json]]:
    """Live verdicts and those of the back-test, of one transcript."""
    path = daemon.box.root / "claude" / name
    played = PlayedClaude(daemon, data.splitlines(), path)
    return told(played.play()), again(path)


@pytest.mark.parametrize("file", RECORDED, ids=[f.stem for f in RECORDED])
def test_recorded_sessions_of_claude_code(daemon: Daemon, file: Path) -> None:
    """Every stop of what the real Claude Code wrote has the verdict that it has when it is judged live."""
    data = file.read_bytes()
    cwd = next(x["cwd"] for x in map(json.loads, data.splitlines()) if "cwd" in x)
    own = f"{file.stem}-5a7e-4b6e-9f57-3a1c2b4d5e6f".replace(".", "-")
    session = next(x["sessionId"] for x in map(json.loads, data.splitlines()) if "sessionId" in x)
    data = data.replace(cwd.encode(), str(daemon.box.project).encode()).replace(
        session.encode(), own.encode()
    )
    live, found = told_and_again(daemon, data, f"{own}.jsonl")
    if "interrupted" in file.stem:  # no hook tells of Esc
        assert (live, [v["state"] for v in found]) == ([], ["stopped"])
        return
    assert live
    assert found == live


def test_a_long_session(daemon: Daemon) -> None:
    """Many tasks in one session: failed and passed tests, a question, a steering word, a rewind, thanks."""
    story = Story(session="aaaaaaaa-5a7e-4b6e-9f57-3a1c2b4d5e6f", cwd=str(daemon.box.project))
    story.human("Fix the rounding in shop.py and run the tests")
    story.tool("Write", {"file_path": f"{story.cwd}/shop.py", "content": "x = 1"}, "ok")
    story.bash("pytest -q", "2 failed, 3 passed in 0.1s", code=1)
    story.say("The rounding is fixed.")
    story.stopped()
    begun = story.tip
    story.human("No, run the tests until they pass")
    story.bash("pytest -q", "5 passed in 0.1s")
    story.say("All tests pass now.")
    story.stopped()
    story.human("Thanks. What does shop.py do?")
    story.say("It computes prices. Shall I add documentation?")
    story.stopped()
    story.human("Add a changelog entry")
    story.tool("Read", {"file_path": f"{story.cwd}/CHANGELOG.md"}, "# Changelog")
    story.human("and keep it short")
    story.tool("Write", {"file_path": f"{story.cwd}/CHANGELOG.md", "content": "x"}, "ok")
    story.say("Next I will commit it:")
    story.stopped()
    story.tip = begun
    story.human("Use decimal instead")
    story.tool("Edit", {"file_path": f"{story.cwd}/shop.py", "old_string": "1", "new_string": "2"}, "ok")
    story.bash("pytest -q", "1 failed in 0.1s", code=1)
    story.say("Done.")
    story.stopped()
    live, found = told_and_again(daemon, story.data(), f"{story.session}.jsonl")
    assert live[0]["state"] == "incomplete"
    assert len(live) == 5
    assert found == live


def test_an_exported_session_of_opencode(daemon: Daemon) -> None:
    """Every stop of what the real opencode exported has the verdict that it has when it is judged live."""
    export: Json = json.loads(EXPORT.read_text("utf-8"))
    export["info"]["directory"] = str(daemon.box.project)
    path = daemon.box.root / "export" / "session.json"
    path.parent.mkdir()
    path.write_text(json.dumps(export), "utf-8")
    live = told(play_export(daemon, export))
    assert [v["state"] for v in live] == ["incomplete", "unscored"]
    assert again(path) == live
