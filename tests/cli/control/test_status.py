"""``reflectd status``."""

from __future__ import annotations

import json
from typing import Any

from daemon import paths
from daemon.cli.control.status import render
from daemon.cli.doctor.checks import About, told_by_the_daemon
from daemon.cli.render import Paint
from daemon.core.settings import Settings
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from tests.cli.test_screens import SCREENS
from tests.support.hosts.wire import WireHost
from tests.support.machine.command_line import judged, reflectd, said


def test_status_as_json(box: Sandbox) -> None:
    """``status --json`` is an object, running or not; exit codes 0 and 3."""
    done = reflectd(box, "status", "--json")
    assert (done.returncode, json.loads(done.stdout)["running"]) == (3, False)
    with Daemon(box) as daemon, WireHost(box.socket, box.project) as host:
        host.send(host.turn("ses_listed", title="A title"))
        done = reflectd(box, "status", "--json")
        found = json.loads(done.stdout)
        assert (done.returncode, found["running"], found["pid"]) == (0, True, daemon.status()["pid"])
        assert [s["session"] for s in found["sessions_shown"]] == ["ses_listed"]
        said(reflectd(box, "status"), 0, "ses_listed", "A title")
        (listed,) = found["sessions_shown"]
        waits = {**listed, "busy": True, "waits_for": ["npm run dev"]}
        assert "waits for `npm run dev` in the background" in render(daemon.status(), [waits], Paint(), 0)[1]


def test_status_tells_the_age_of_each_session(box: Sandbox) -> None:
    """Of this project's; others are counted. One of something is not several."""
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_one", title="A title")
        lines = said(reflectd(box, "status"), 0).splitlines()
        assert lines[1].startswith("  session  ses_one  not done, sent back once  A title  ")
        assert len(lines) <= 10
        elsewhere = said(reflectd(box, "status", cwd=box.home), 0)
        assert "ses_one" not in elsewhere
        assert "  others   1 more session (`reflectd history --all`)" in elsewhere
        (listed,) = json.loads(reflectd(box, "status", "--json").stdout)["sessions_shown"]
        now = listed["active_at"] + 2 * 86_400_000
        shown = render(daemon.status(), [{**listed, "attempts": 2}], Paint(), now)[1]
        assert shown == "  session  ses_one  not done, sent back 2 times  A title  2 d ago"


def test_status_says_what_learning_waits_for() -> None:
    """Nothing while it is off; else what waits, what lapsed, and why."""
    status: dict[str, Any] = json.loads((SCREENS / "answers.json").read_text("utf-8"))["status"]

    def said(**found: Any) -> str:
        return "\n".join(render({**status, "features": found}, [], Paint(), 0))

    assert "learns" not in said()
    assert "nothing yet" in said(playbook={"hosts": ["opencode"]})
    assert "no model is set up" in said(playbook={"hosts": []})
    assert "no model is set up" in said(playbook={"hosts": ["an agent that is not connected"]})
    full = {"hosts": ["opencode"], "cases_waiting": 2, "texts_waiting": 1, "lapsed": 3, "over_limit": True}
    text = " ".join(said(playbook=full).split())
    assert "learns 2 turns to look back on, 1 text to be confirmed" in text
    assert "3 turns lapsed for want of money or a model · it waits, over spend.learning_percent" in text
    alone = " ".join(said(memory={"unproven": 2, "waiting": 1, "over_limit": True}).split())
    assert "learns 1 bad task to learn from, 2 lessons that nothing proves" in alone
    assert "(`reflectd learned approve`) · it waits, over spend" in alone
    unchosen = " ".join(said(memory={"unproven": 0}, lessons={"over_limit": True}).split())
    assert "learns nothing yet · over spend.learning_percent: the newest task got no lesson" in unchosen


def test_status_names_the_judge_of_each_host(box: Sandbox) -> None:
    """Each host's own judge, what the rules lack, and what is missing where nobody can be asked."""
    server = {"REFLECTD_OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    cases: list[tuple[dict[str, str], str, str]] = [
        (
            {"REFLECTD_JUDGE_PROVIDER": "auto"},
            "your session's own model, then the rules",
            "the rules (no model, so they miss much; run `reflectd setup claude-code` to choose a judge)",
        ),
        (
            {"REFLECTD_JUDGE_CLAUDE_CODE": "openai", **server},
            "the rules (no model, so they miss much; judge.provider is offline)",
            "OpenAI's API or a server like it",
        ),
        (
            {"REFLECTD_JUDGE_PROVIDER": "host"},
            "your session's own model",
            "nobody (judge.provider is host, and Claude Code lends no model)",
        ),
        (
            {"REFLECTD_JUDGE_PROVIDER": "auto", "REFLECTD_JUDGE_CLAUDE_CODE": "anthropic"},
            "your session's own model, then the rules",
            "nobody (no key for Anthropic: set ANTHROPIC_API_KEY or anthropic.key_file)",
        ),
    ]
    for env, opencode, claude in cases:
        daemon = Daemon(box, **env)
        with daemon:
            lines = said(reflectd(box, "status"), 0).splitlines()
            assert f"  judge    opencode -> {opencode}" in lines
            assert f"  judge    Claude Code -> {claude}" in lines
            found = json.loads(reflectd(box, "status", "--json").stdout)["judges"]
            assert set(found) == {"opencode", "claude-code", "codex"}
            named = "REFLECTD_JUDGE_CLAUDE_CODE" in env
            assert found["claude-code"]["setting"] == ("judge.claude_code" if named else "judge.provider")
    assert "this judge is not set up" in daemon.log()


def test_status_and_doctor_name_a_judge_that_is_refused(box: Sandbox) -> None:
    """A judge that only failed once is silent, one without a key is refused; each is named with its words."""
    with Daemon(box) as daemon:
        status = daemon.status()
        status["providers_down"] = {"openai": "answered 401", "anthropic": "no answer"}
        status["providers_refused"] = ["openai"]
        lines = render(status, [], Paint(), 0)
        assert "  REFUSED  openai is refused again and again: answered 401" in lines
        assert "  silent   anthropic did not answer when last asked: no answer" in lines
        about = About({}, Settings(), paths.resolve(box.env()), status)
        found = [c[:3] for c in told_by_the_daemon(about)]
    assert found == [
        ("providers", "fail", "openai is refused again and again: answered 401"),
        ("providers", "warn", "anthropic did not answer when last asked: no answer"),
    ]
