"""``reflectd why``: the short form, ``--full``, and what it reads."""

from __future__ import annotations

import json
import os
import time

import pytest

from daemon.cli.render import Paint
from daemon.cli.verdicts.why import explained
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.cli.verdicts.folders import judged_in
from tests.support.hosts.wire import WireHost, unfinished
from tests.support.machine.command_line import case_files, judged, reflectd, said

NOW = int(time.time() * 1000)


def test_why_tells_the_whole_story(box: Sandbox) -> None:
    """In about ten lines: verdict, what is missing on what evidence, feedback with its outcome, cost and the
    next command; by the beginning of an id, with and without a daemon. ``--full`` adds the rest.
    """
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_told_1", request="Add a login page with tests")
        for args in (["why"], ["why", "ses_t"], ["why", "ses_told_1"]):
            text = said(reflectd(box, *args), 0, "ses_told_1", "not done HIGH", str(box.project))
            assert len(text.splitlines()) <= 10
            for words in (
                "[E",
                "pytest -q",
                "it reached the agent",
                "fixed rules, free",
                "--should-be done",
            ):
                assert words in text
        assert reflectd(box, "why").stdout == text
        text = said(reflectd(box, "why", "--full"), 0)
        for part in ("Asked", "Evidence", "Reply 1 (offline rules", "Decision", "cost", "fixed rules, free"):
            assert part in text
        for words in ("Add a login page with tests", "pytest -q", "it reached the agent", "Task Incomplete"):
            assert words in text
        assert str(case_files(box, "ses_told_1")[0]) in text
        found = json.loads(reflectd(box, "why", "--json").stdout)
        assert found["case"]["case"]["session"] == found["session"]["session"] == "ses_told_1"
        assert found["verdicts"][0]["order"]["status"] == "done"
        assert "  judge     the rules, without a model" in text
    assert reflectd(box, "why", "--full").stdout == text


@pytest.mark.shows("I16")
def test_what_a_turn_waits_for_is_named() -> None:
    """A shell in the background that holds a turn back; an escape sequence does nothing."""
    session = {"session": "ses_1", "busy": True, "phase": "open"}
    session |= {"waits_for": ["npm run dev", "sleep 9\x1b[2J"]}
    lines = explained({"session": session, "daemon": True}, Paint())
    assert "  now       waits for `npm run dev`, `sleep 9\\x1b[2J` in the background" in lines
    assert not [x for x in explained({"session": {**session, "waits_for": []}}, Paint()) if "waits" in x]


def test_which_verdict_is_meant(box: Sandbox) -> None:
    """The newest of the project, from a folder below it and above where its host works; else the newest of
    all, which stderr and the JSON say. ``--dir`` names a folder; a session is explained by its own case, also
    where its id begins another's.
    """
    deep, part, elsewhere = box.project / "src" / "deep", box.root / "mono" / "part", box.root / "elsewhere"
    for folder in (deep, part, elsewhere, part.parent / ".git"):
        folder.mkdir(parents=True)
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_1")
        case = case_files(box, "ses_1")[0]
        judged(box, daemon, "ses_10")
        judged_in(part, daemon, "ses_part")
        for args, cwd, session, other in (
            ([], box.project, "ses_10", False),
            ([], deep, "ses_10", False),
            ([], part.parent, "ses_part", False),
            ([], part, "ses_part", False),
            (["--dir", str(part)], box.project, "ses_part", False),
            ([], elsewhere, "ses_part", True),
            (["ses_1"], elsewhere, "ses_1", False),
        ):
            done = reflectd(box, "why", "--json", *args, cwd=cwd)
            found = json.loads(done.stdout)
            assert (found["session"]["session"], found["elsewhere"]) == (session, other)
            assert ("was judged; this is the newest of all, in " in done.stderr) is other
        assert (found["case_file"], found["case"]["case"]["session"]) == (str(case), "ses_1")
    text = said(reflectd(box, "why", "--full", cwd=deep), 0, "ses_10", "pytest -q", "Decision")
    assert str(box.project / ".reflection") in text
    said(reflectd(box, "why", "ses_third"), 2, "ses_third", "reflectd history --all")
    said(reflectd(box, "why", "--dir", "/nope"), 2, "there is no folder /nope")


def test_no_severity_is_not_named() -> None:
    """A finished task is "done", not "done NONE", in each verdict."""
    verdict = {"state": "complete", "severity": "NONE", "session": "ses_1", "reason": "judged"}
    answer = '{"complete": true, "severity": "NONE", "missing": []}'
    case = {"case": {}, "verdict": verdict, "replies": [{"text": answer}]}
    text = "\n".join(explained({"verdicts": [verdict, verdict], "case": case}, Paint(), full=True))
    assert "  verdict   done, " in text
    assert "NONE" not in text.replace(answer, "")


def test_why_of_what_is_not_there(box: Sandbox) -> None:
    """Exit code 2: unknown, or several begin like that, and which. Nothing yet is no error."""
    said(reflectd(box, "why"), 0, "nothing was judged yet", "reflectd setup")
    with Daemon(box) as daemon:
        said(reflectd(box, "why"), 0, "nothing was judged yet", "reflectd setup")
        with WireHost(box.socket, box.project) as host:
            for session in ("ses_one", "ses_two"):
                host.send([host.event("session.status", sessionID=session, status={"type": "busy"})])
            said(reflectd(box, "why", "ses_"), 2, "ses_one, ses_two")
            said(reflectd(box, "why", "nobody"), 2, "nobody", "reflectd history")
            said(reflectd(box, "why", "ses_one"), 0, "ses_one", "the agent works", "none yet")
        daemon.new_log()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "[" * 100_000,
        "\ufeff{}",
        '{"version": 1}',
        '{"version": 1, "case": 7, "prompts": {}, "replies": [null, {"text": 5}], "verdict": []}',
        '{"version": 1, "case": {"evidence": {"rows": [1, {}]}, "requests": "x"}, "verdict": {"at": 1e308}}',
        '{"version": 1, "verdict": {"state": {}, "at": "x", "judge": 1, "missing": [5], "next_actions": 1}}',
    ],
    ids=lambda t: repr(t[:40]),
)
def test_why_reads_a_strange_file(box: Sandbox, text: str) -> None:
    """Bad input: a case file comes with a clone; whatever is in it, no trace and no crash."""
    box.file(f".reflection/ses_x_{NOW}.json", text)
    assert reflectd(box, "why", "--full").returncode == 0


def test_why_does_not_follow_what_is_no_file(box: Sandbox) -> None:
    """A pipe or a link in the place of a case file is not opened: it would hang, or show another file."""
    folder = box.project / ".reflection"
    folder.mkdir()
    os.mkfifo(folder / f"ses_pipe_{NOW}.json")
    said(reflectd(box, "why"), 0, "not a regular file")
    secret = box.root / "secret.json"
    secret.write_text('{"version": 1, "why": "a secret"}')
    (folder / f"ses_pipe_{NOW}.json").unlink()
    (folder / f"ses_link_{NOW}.json").symlink_to(secret)
    assert "a secret" not in said(reflectd(box, "why", "--full"), 0)


def test_what_others_wrote_cannot_drive_the_terminal(box: Sandbox) -> None:
    """Escape sequences of a request or an agent's text are shown, not sent."""
    evil = "\x1b]0;owned\x07\x1b[2JAdd a page\u202e"
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_evil", request=evil, final=evil, output=f"1 failed {evil}", title=evil)
        for args in (["why", "--full"], ["status"]):
            text = said(reflectd(box, *args), 0)
            assert not set(text) & {"\x1b", "\x07", "\u202e"}
        assert "Add a page" in reflectd(box, "why").stdout


def test_why_nothing_was_proven(box: Sandbox) -> None:
    """A turn that the rules can't tell: no model judged it, and it is quiet."""
    words = {"request": "What does the cache do?", "command": "ls cache", "final": "It keeps pages."}
    asked = unfinished(box.project, **words)
    with Daemon(box) as daemon, WireHost(box.socket, box.project, asked) as host:
        host.send(host.turn("ses_open"))
        wait_until(lambda: daemon.verdicts("ses_open"), "a verdict", daemon.log)
        said(reflectd(box, "why", "ses_open"), 0, "not judged", "no model judged it", "reflectd setup")


def test_what_is_done_says_by_which_check_and_after_how_many_rounds() -> None:
    """The last check that passed after the last edit; where there was none, nothing is said of one."""
    rows = [
        {"id": id_, "kind": "check", "outcome": "passed", "position": position, "text": text}
        for id_, position, text in (
            ("E1", "before_last_write", "old"),
            ("E2", "after_last_write", "`make test`"),
        )
    ]
    verdict = {"turn": "m1", "state": "complete", "severity": "NONE", "attempt": 2, "round": 3, "at": 0}
    found = {"verdicts": [], "case": {"case": {"evidence": {"rows": rows}}, "verdict": verdict}}
    told = "\n".join(explained(found, Paint()))
    assert "because   E2: `make test`" in told
    assert "round 3, 1970" in told.replace(", 1969", ", 1970")
    assert "after it was sent back 2 times" in told
    rows.pop()
    assert "because" not in "\n".join(explained(found, Paint()))
