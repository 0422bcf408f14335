"""``judge.provider = "auto"`` in the real opencode: the host's model, else an API, else rules; and the caps.

The API is the scripted model server under ``openai.base_url``; the host's models are on the same server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.opencode import text_of
from harness.machine.reflectd import Daemon
from harness.machine.waiting import wait_until
from harness.models.scripts import (
    COMPLETE,
    HEADING,
    INCOMPLETE,
    REQUEST,
    UNDEFENDED,
    finished,
    unfinished,
    verdict,
)
from harness.models.server import fail, text
from tests.support.hosts.witness import a_later_turn
from tests.support.machine.state import ledger, wait_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.hosts.opencode import OpencodeServe
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

DOWN = "a judge does not answer"
UP = "a judge answers again"
PROVEN = verdict(
    complete=False, severity="HIGH", missing=[("make the tests pass", "")], row="`make test` failed"
)
NO_CAP = {"REFLECTD_SPEND_TOKENS_PER_DAY": "900000000", "REFLECTD_SPEND_CENTS_PER_DAY": "900000"}


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox, model_server: ModelServer) -> Iterator[Daemon]:
    settings = {"REFLECTD_JUDGE_PROVIDER": "auto", "REFLECTD_OPENAI_BASE_URL": model_server.url} | NO_CAP
    with Daemon(box, **settings) as running:
        yield running


@pytest.fixture
def fresh(daemon: Daemon, host: OpencodeServe) -> Daemon:
    """A daemon that holds nothing against any provider."""
    again(daemon, host)
    return daemon


def again(daemon: Daemon, host: OpencodeServe, **env: str) -> None:
    """Restart the daemon, with the host connected to it."""
    daemon.restart(**env)
    daemon.mark()
    host.sessions()  # the first request loads the plugin
    wait_until(lambda: daemon.status()["instances"], "hello from the shim", daemon.log)


def test_the_host_is_asked_first(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """While the person's own model answers, nobody else is asked."""
    session = host.create_session()
    llm.script(*finished(), session=session.id)
    llm.judge(COMPLETE)
    session.prompt(REQUEST)
    assert daemon.wait_verdict(session.id, "complete")["judge"]["provider"] == "host"
    wait_ledger(host.box, session.id, ("judge", "host", "ok"))
    assert not llm.of("api")
    assert DOWN not in daemon.new_log()


def test_from_the_host_to_an_api_and_back(host: OpencodeServe, fresh: Daemon, llm: ModelServer) -> None:
    """The host's model refuses: the API judges all rounds of that task, the host is not asked at
    each; told once in the log when it starts and once when it ends, and shown by ``status`` meanwhile.
    """
    daemon, session = fresh, host.create_session()
    llm.script(*unfinished(), *finished(), session=session.id)
    llm.judge(fail(400, "the plan has no such model"))
    llm.api(INCOMPLETE, UNDEFENDED, COMPLETE)
    session.prompt(REQUEST)
    assert text_of(session.wait_users(2)[1]).startswith(f"{HEADING} (HIGH)\n")
    assert daemon.wait_verdict(session.id, "complete")["judge"]["provider"] == "openai"
    wait_ledger(
        host.box,
        session.id,
        ("judge", "host", "error"),
        ("judge", "openai", "ok"),
        ("judge.second", "openai", "ok"),
        ("judge", "openai", "ok"),
    )
    assert {(len(r.tools), r.body["model"], r.session) for r in llm.of("api")} == {(0, "gpt-5.4", "")}
    assert "no such model" in daemon.status()["providers_down"]["host"]
    other = host.create_session()
    llm.script(text("Two."), session=other.id)
    llm.judge(COMPLETE)
    other.prompt("Say two")
    assert daemon.wait_verdict(other.id, "complete")["judge"]["provider"] == "host"
    assert daemon.status()["providers_down"] == {}
    log = daemon.new_log()
    assert (log.count(DOWN), log.count(UP)) == (1, 1)
    assert "provider=host" in next(line for line in log.splitlines() if DOWN in line)


def test_down_to_the_rules(host: OpencodeServe, fresh: Daemon, llm: ModelServer) -> None:
    """No model at all: the rules judge, say so, and send only what they can prove."""
    daemon, session = fresh, host.create_session()
    llm.script(*unfinished(), *finished(), session=session.id)
    llm.judge(always=fail(400, "no"))
    llm.api(fail(401, "wrong key"))
    session.prompt(REQUEST)
    assert "make test" in text_of(session.wait_users(2)[1])
    done = daemon.wait_verdict(session.id, "complete")
    assert (done["judge"]["provider"], done["judge"]["cost"]) == ("offline", 0.0)
    wait_ledger(
        host.box,
        session.id,
        ("judge", "host", "error"),
        ("judge", "openai", "error"),
        ("judge", "offline", "ok"),
        ("judge", "offline", "ok"),
    )
    assert set(daemon.status()["providers_down"]) == {"host", "openai"}
    assert daemon.new_log().count(DOWN) == 2


def test_a_model_that_keeps_failing(host: OpencodeServe, fresh: Daemon, llm: ModelServer) -> None:
    """opencode asks a server that answers 500 again for a minute and more. The deadline of the
    judge ends that, with time left for the next one to be asked; the judge session goes.
    """
    daemon = fresh
    again(daemon, host, REFLECTD_JUDGE_TIMEOUT_S="6")
    try:
        session = host.create_session()
        llm.script(*unfinished(), *finished(), session=session.id)
        llm.judge(always=fail(500, "out of order"))
        llm.api(PROVEN, COMPLETE)
        session.prompt(REQUEST)
        assert text_of(session.wait_users(2)[1]).startswith(f"{HEADING} (HIGH)\n")
        assert daemon.wait_verdict(session.id, "complete")["judge"]["provider"] == "openai"
        wait_ledger(
            host.box,
            session.id,
            ("judge", "host", "error"),
            ("judge", "openai", "ok"),
            ("judge", "openai", "ok"),
        )
        judges = {r.session for r in llm.of("judge")}
        assert len(judges) == 1
        wait_until(
            lambda: not judges & {s["id"] for s in host.sessions()},
            "end of the judge session",
            daemon.log,
        )
    finally:
        again(daemon, host, REFLECTD_JUDGE_TIMEOUT_S="180")


@pytest.mark.shows("I41")
@pytest.mark.parametrize(
    "cap", ["REFLECTD_SPEND_TOKENS_PER_DAY", "REFLECTD_SPEND_CENTS_PER_SESSION"], ids=["tokens", "cents"]
)
def test_over_the_cap(host: OpencodeServe, fresh: Daemon, llm: ModelServer, cap: str) -> None:
    """A cap that is too small for one call: no model is asked, the rules judge both rounds, and the person is
    told once, not once per session.
    """
    daemon = fresh
    again(daemon, host, **(NO_CAP | {cap: "1" if "TOKENS" in cap else "0"}))
    try:
        session, other = host.create_session(), host.create_session()
        llm.script(*unfinished(), *finished(), session=session.id)
        session.prompt(REQUEST)
        assert "make test" in text_of(session.wait_users(2)[1])
        assert daemon.wait_verdict(session.id, "complete")["judge"]["provider"] == "offline"
        llm.script(text("Two."), session=other.id)
        other.prompt("Say two")
        daemon.wait_verdict(other.id, "unscored")
        host.wait_toast("fixed rules judge")
        a_later_turn(host, daemon, llm)
        assert len([t for t in host.toasts() if "fixed rules" in t["message"]]) == 1
        assert {(c.provider, c.outcome) for c in ledger(host.box, session.id)} == {("offline", "ok")}
        assert not llm.of("judge")
        assert not llm.of("api")
        assert daemon.new_log().count("spend limit") >= 1
    finally:
        again(daemon, host, **NO_CAP, REFLECTD_SPEND_CENTS_PER_SESSION="50")
