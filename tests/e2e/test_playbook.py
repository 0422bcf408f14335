"""Points and preferences with both real hosts: learned, confirmed, given, counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.hosts.claude_code import ClaudeCode
from harness.hosts.codex import hooked, said_by, shell, write
from harness.hosts.opencode import OpencodeServe, opencode_run
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models import claude_code_scripts, scripts
from harness.models.claude_code import bash as claude_bash
from harness.models.claude_code_scripts import HEADLESS, PLUGIN
from harness.models.scripts import COMPLETE, DONE, REQUEST, nonce_of
from harness.models.server import Kind, ModelServer, Request, Step, bash, text
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said

NEW = "The check needs the file answer.txt before it passes."
LINE = f"[ctx-001] helpful=0 harmful=0 :: {NEW}"
CITING = f"As [ctx-001] says, I wrote answer.txt first. {DONE}"
EARNED = 5_000_000  # tokens that a judgement is said to have cost, so that learning may cost something


def says(**answer: Any) -> Callable[[Request], str]:
    """The reply of a reflector or a curator, with the nonce of the call."""
    return lambda request: json.dumps({"nonce": nonce_of(request), **answer})


def reflector(tags: Sequence[tuple[str, str]] = (), confirmed: Sequence[str] = ()) -> Step:
    return text(
        says(
            analysis="The check failed until answer.txt was there.",
            bullet_tags=[{"name": n, "tag": t, "rationale": "It was followed."} for n, t in tags],
            confirmed=[{"name": name, "cites": "A1"} for name in confirmed],
        )
    )


def curator(*operations: dict[str, str]) -> Step:
    return text(says(reasoning="scripted", operations=list(operations)))


def learns(box: Sandbox, llm: ModelServer) -> Daemon:
    """A daemon that learns, and whose judge is the scripted API."""
    return Daemon(
        box,
        REFLECTD_JUDGE_PROVIDER="openai",
        REFLECTD_OPENAI_BASE_URL=llm.url,
        REFLECTD_PLAYBOOK_ENABLED="true",
        REFLECTD_SPEND_TOKENS_PER_DAY="900000000",
        REFLECTD_SPEND_CENTS_PER_DAY="1000000",
        REFLECTD_SPEND_CENTS_PER_SESSION="1000000",
    )


def loop(box: Sandbox, llm: ModelServer, session: Callable[..., None]) -> None:
    """Four sessions, each of its own process. ``session`` runs one, whose last words it is given."""
    file = box.project / ".reflection" / "playbook.json"

    def points() -> dict[str, Any]:
        found = json.loads(file.read_text())["sections"] if file.exists() else {}
        return {p["name"]: p for section in found.values() for p in section}

    def given() -> list[bool]:
        return [LINE in r.everything for r in llm.of("main")]

    judged = text(COMPLETE, tokens_in=EARNED)
    with learns(box, llm) as daemon:

        def status() -> dict[str, Any]:
            found: dict[str, Any] = daemon.status()["features"]["playbook"]
            return found

        add = {"type": "ADD", "section": "PROJECT CONTEXT", "text": NEW}
        llm.api(judged, reflector(), curator(add))
        session(DONE)
        wait_until(lambda: status()["texts_waiting"] == 1, "a text that is kept apart", daemon.log)
        assert points() == {}

        llm.api(judged, reflector(confirmed=["new-1"]), curator())
        session(DONE)
        wait_until(lambda: "ctx-001" in points(), "the confirmed point", daemon.log)
        assert not any(given()), "what is kept apart is given to nobody"

        llm.api(judged, reflector(tags=[("ctx-001", "helpful")]), curator())
        before = len(llm.of("main"))
        session(CITING)
        assert all(given()[before:]), "each request of the session has it"
        wait_until(lambda: points()["ctx-001"]["helpful"] == 1, "the count", daemon.log)
        asked = next(r for r in reversed(llm.of("api")) if "(cited)" in r.everything)
        assert "(cited) [ctx-001]" in asked.prompt


def claude_sessions(box: Sandbox, llm: ModelServer) -> Callable[..., None]:
    """What runs a session of Claude Code, each its own process."""
    claude = ClaudeCode(box, llm.url, plugin=PLUGIN)

    def session(last: str = DONE) -> None:
        (box.project / "hello.py").unlink(missing_ok=True)
        llm.script(claude_bash("ls"), *claude_code_scripts.finished(claude, text(last)))
        ran = claude.run(REQUEST, **HEADLESS)
        assert (ran.code, ran.result) == (0, last), ran

    return session


@pytest.mark.shows("LEARN-01")
@pytest.mark.needs("claude")
@pytest.mark.main("a point is given")
def test_the_loop_with_claude_code(own_box: Sandbox, llm: ModelServer) -> None:
    """SessionStart gives the points, SessionEnd begins the look back."""
    loop(own_box, llm, claude_sessions(own_box, llm))


def codex_sessions(box: Sandbox, llm: ModelServer) -> Callable[..., None]:
    """What runs a session of Codex, each its own process."""
    codex = hooked(box, llm)

    def session(last: str = DONE) -> None:
        (box.project / "hello.py").unlink(missing_ok=True)
        work = [
            shell("ls"),
            write("hello.py", "print('hello')\n"),
            shell("echo 42 > answer.txt && make test"),
        ]
        llm.script(*work, text(last))
        ran = codex.run(REQUEST)
        assert (ran.code, said_by(ran)) == (0, [last]), ran

    return session


@pytest.mark.shows("LEARN-01")
@pytest.mark.needs("codex")
def test_the_loop_with_codex(own_box: Sandbox, llm: ModelServer) -> None:
    """The same in Codex."""
    loop(own_box, llm, codex_sessions(own_box, llm))


@pytest.mark.needs("claude")
@pytest.mark.main("a preference is given")
def test_claude_code_is_given_a_preference(own_box: Sandbox, llm: ModelServer) -> None:
    """By SessionStart, with the daemon's default settings but for the judge."""
    session, words = claude_sessions(own_box, llm), "Prefer tables over long prose"
    with Daemon(own_box, REFLECTD_JUDGE_PROVIDER="openai", REFLECTD_OPENAI_BASE_URL=llm.url):
        llm.api(text(COMPLETE), text(COMPLETE))
        session()
        assert not any(words in r.everything for r in llm.of("main"))
        before = len(llm.of("main"))
        assert at_a_terminal(own_box, ["reflect", "learn", words, "--soft"], "w")[0] == 0
        session()
        given = [f"- {words}" in r.everything for r in llm.of("main")[before:]]
        assert given
        assert all(given)


@pytest.mark.shows("I40", "LEARN-09")
def test_opencode_is_given_a_preference_until_it_is_switched_off(own_box: Sandbox, llm: ModelServer) -> None:
    """Also to a person's own agent, whatever its prompt says; not with the request for the title. `off` and
    `on` count from the next request of a running session.
    """
    words = "Prefer tables over long prose"
    agent = {"mode": "primary", "prompt": "You are a writer who summarizes what others wrote."}

    def given(kind: Kind) -> list[bool]:
        return [words in r.everything for r in llm.of(kind)]

    with Daemon(own_box) as daemon:
        assert at_a_terminal(own_box, ["reflect", "learn", words, "--soft"], "w")[0] == 0
        with OpencodeServe(own_box, llm.url, config={"agent": {"writer": agent}}) as host:
            s = host.create_session(agent="writer")

            def asks() -> None:
                llm.script(text("Hello."), session=s.id)
                s.prompt("Say hello.")

            wait_until(lambda: daemon.status()["instances"], "its plugin", daemon.log)
            asks()
            wait_until(lambda: llm.of("title"), "the request for the title")
            assert (given("main"), set(given("title"))) == ([True], {False})
            said(reflectd(own_box, "off"), 0)
            asks()
            said(reflectd(own_box, "on"), 0)
            asks()
            assert given("main") == [True, False, True]


@pytest.mark.shows("I38", "LEARN-01", "LEARN-07")
@pytest.mark.main("a point is given")
def test_the_loop_with_opencode(own_box: Sandbox, llm: ModelServer) -> None:
    """Each request's system text has the points; the end of `run` does not wait for the look back."""

    def session(last: str) -> None:
        llm.script(bash("ls"), *scripts.finished(text(last)))
        ran = opencode_run(own_box, llm.url, REQUEST)
        assert (ran.returncode, last in ran.stdout) == (0, True), ran

    loop(own_box, llm, session)
    systems = {json.dumps([m for m in r.messages if m["role"] == "system"]) for r in llm.of("main")[-4:]}
    assert len(systems) == 1, "the model's cache of the prompt stays good"
