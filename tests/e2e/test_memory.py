"""Lessons with both real hosts and a model on loopback: a bad verdict, a reflexion, an episode; then a task
for which the fast model names the lesson has it, with the prompt or, when the answer is late, with the first
tool result. Another task has nothing.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.hosts.claude_code import ClaudeCode, Version
from harness.hosts.codex import hooked
from harness.hosts.codex import shell as codex_shell
from harness.hosts.opencode import OpencodeServe
from harness.machine.reflectd import Daemon, verdict_file
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.claude_code import bash as claude_bash
from harness.models.claude_code_scripts import HEADLESS
from harness.models.scripts import COMPLETE, DONE, REQUEST, nonce_of, verdict
from harness.models.server import ModelServer, Request, Step, bash, text
from tests.support.machine.command_line import reflectd, said

EARNED = 5_000_000  # tokens that a judgement is said to have cost, so that learning may cost something
PROBLEM = "The agent stopped while make test still failed."
LESSON = "The check of this project needs its answer file; write that one before the check runs."
MARK = "Lesson from Episode Memory"
GIVEN = f"{MARK}\nPast experience from similar query suggests: {LESSON}"
OTHER = "What does the word idempotent mean? One sentence, please"
BAD = verdict(
    complete=False,
    severity="HIGH",
    missing=[("the tests do not pass", "")],
    next_actions=["make the tests pass"],
    feedback="make test fails: write answer.txt.",
    row="make test",
)


def picks(*numbers: int, after_s: float = 0.0) -> Step:
    """The fast model names these lessons; meanwhile the model server answers nobody."""

    def reply(request: Request) -> str:
        time.sleep(after_s)
        return json.dumps({"nonce": nonce_of(request), "lessons": numbers})

    return text(reply)


def remembers(box: Sandbox, llm: ModelServer, prompt_ms: int) -> Daemon:
    """A daemon that draws lessons, and whose judge and fast model are the scripted API."""
    return Daemon(
        box,
        REFLECTD_JUDGE_PROVIDER="openai",
        REFLECTD_OPENAI_BASE_URL=llm.url,
        REFLECTD_MEMORY_ENABLED="true",
        REFLECTD_MEMORY_PROMPT_MS=str(prompt_ms),
        REFLECTD_SPEND_TOKENS_PER_DAY="900000000",
        REFLECTD_SPEND_CENTS_PER_DAY="1000000",
        REFLECTD_SPEND_CENTS_PER_SESSION="1000000",
    )


def given(request: Request) -> int:
    """How many lessons of ours the model was sent."""
    return request.everything.replace("\\n", "\n").count(GIVEN)


def story(
    box: Sandbox,
    llm: ModelServer,
    session: Callable[..., None],
    shell: Callable[[str], Step],
    prompt_ms: int,
    late_s: float,
) -> None:
    """Four sessions, each of its own. ``session`` runs one: the prompt, then what its agent does. In the last
    one the model thinks for ``late_s``, longer than a prompt waits.
    """
    answer = box.project / "answer.txt"

    def asked(prompt: str, *steps: Step) -> list[int]:
        """What each request of a session was sent of ours."""
        answer.unlink(missing_ok=True)
        before = len(llm.of("main"))
        session(prompt, *steps)
        return [given(r) for r in llm.of("main")[before:]]

    judged = text(COMPLETE, tokens_in=EARNED)
    mended = shell("echo 42 > answer.txt && make test"), text(DONE)
    with remembers(box, llm, prompt_ms) as daemon:
        llm.api(text(BAD, tokens_in=EARNED), judged, text(f"Problem: {PROBLEM}\nLesson: {LESSON}"))
        failed = shell("echo 'print(1)' > hello.py"), shell("make test"), text("All done.")
        assert set(asked(REQUEST, *failed, *mended)) == {0}, "nothing is known yet"

        def stored() -> bool:
            found: dict[str, int] = daemon.status()["features"]["memory"]["episodes"]
            return bool(sum(n for state, n in found.items() if state != "bytes"))

        wait_until(stored, "the episode", daemon.log)

        llm.api(picks(1), judged)
        seen = asked(REQUEST, shell("ls"), *mended)
        assert seen[0] == 1, "before its first answer the agent has the lesson"
        assert set(seen) == {1}, "once a session"

        llm.api(picks(), judged)
        seen = asked(OTHER, shell("ls"), text("It means: the same."))
        assert set(seen) == {0}, "another task"

        llm.api(picks(1, after_s=late_s), judged)
        seen = asked(REQUEST, shell("ls"), *mended)
        assert seen[:2] == [0, 1], "the answer was late, and came with the first tool result"
        assert set(seen[1:]) == {1}, "once a session"
        daemon.new_log()

    questions = [r for r in llm.of("api") if "The marker of this data" in r.prompt]
    judges = [r for r in questions if "--- the new task" not in r.prompt]
    assert (len(judges), len(questions) - len(judges)) == (5, 3)
    ours = [r for r in judges if LESSON in r.everything or MARK in r.everything]
    assert not ours, "our own words are no work"


@pytest.fixture
def plugin(own_box: Sandbox) -> Path:
    """The plugin's copy as `setup` makes it, after lessons were switched on by one command."""
    for argv in (["setup", "claude-code"], ["config", "set", "memory.enabled", "true"]):
        said(reflectd(own_box, *argv), 0)
    copy = own_box.root / "plugin"
    shutil.copytree(own_box.home / ".local" / "share" / "reflectd" / "plugins" / "claude-code", copy)
    said(reflectd(own_box, "setup", "claude-code", "--remove"), 0)
    return copy


@pytest.mark.needs("claude")
@pytest.mark.parametrize("version", ["new", "old"])
@pytest.mark.main("a lesson is given")
def test_the_story_with_claude_code(
    own_box: Sandbox, llm: ModelServer, plugin: Path, version: Version
) -> None:
    """UserPromptSubmit and PreToolUse bring the lesson to the model."""
    claude = ClaudeCode(own_box, llm.url, version, plugin=plugin)

    def session(prompt: str, *steps: Step) -> None:
        llm.script(*steps)
        ran = claude.run(prompt, **HEADLESS)
        assert ran.code == 0, ran

    story(own_box, llm, session, claude_bash, prompt_ms=950, late_s=1.5)  # its hook waits a second


@pytest.mark.needs("codex")
def test_the_story_with_codex(own_box: Sandbox, llm: ModelServer) -> None:
    """UserPromptSubmit brings the lesson, or PostToolUse when the answer was late."""
    codex = hooked(own_box, llm)

    def session(prompt: str, *steps: Step) -> None:
        llm.script(*steps)
        ran = codex.run(prompt)
        assert ran.code == 0, ran

    story(own_box, llm, session, codex_shell, prompt_ms=950, late_s=1.5)  # its hook waits a second


@pytest.mark.main("a lesson is given")
def test_the_story_with_opencode(own_box: Sandbox, llm: ModelServer) -> None:
    """`chat.message` and `tool.execute.after` bring the lesson; the person's message stays theirs. opencode
    was started while nothing was learned, and goes on when the daemon is restarted after a yes.
    """
    with OpencodeServe(own_box, llm.url) as host:

        def session(prompt: str, *steps: Step) -> None:
            s = host.create_session()
            llm.script(*steps, session=s.id)
            s.prompt(prompt)
            wait_until(
                lambda: (verdict_file(own_box.project, s.id) or {}).get("state") == "complete",
                "the last verdict",
                s.outline,
            )
            s.delete()

        with Daemon(own_box) as off:
            host.create_session()
            wait_until(lambda: bool(off.status()["instances"]), "opencode is connected", off.log)
        story(own_box, llm, session, bash, prompt_ms=4_000, late_s=6.0)
        titles = llm.of("title")
        assert titles
        assert not any(MARK in r.everything for r in titles), "a lesson is for the agent alone"
