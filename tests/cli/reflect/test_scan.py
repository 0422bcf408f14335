"""``reflectd reflect``: past sessions read by real commands, once and then onwards."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import wait_until
from tests.cli.reflect.past import asked, folder, journal, session
from tests.support.machine.command_line import COMMAND, environment, judged, reflectd, said
from tests.support.secrets import TOKENS

STRICT = "No, use strict TypeScript mode"


@pytest.mark.shows("AC-REFLECT-02")
def test_signals_accumulated_in_learning_journal_with_occurrence_counts(box: Sandbox) -> None:
    """Sessions are counted; the same files again change nothing."""
    session(box, "a", STRICT, "no, use strict typescript mode please", "continue")
    first = asked(box)
    assert (first["read"]["files"], first["read"]["messages"], first["new"]) == (1, 4, ["sig-20261120-001"])
    session(box, "b", STRICT)
    assert asked(box)["again"] == ["sig-20261120-001"]
    (signal,) = journal(box)["signals"]
    assert (signal["occurrences"], signal["content"]) == (2, "Use strict TypeScript mode")
    before = journal(box)
    again = asked(box)
    assert again["read"] == {"files": 0, "unchanged": 2, "failed": 0, "messages": 0, "bytes": 0}
    assert (again["changed"], journal(box)) == (False, before)


@pytest.mark.shows("AC-REFLECT-03")
def test_patterns_identified_based_on_severity_threshold_logic(box: Sandbox) -> None:
    """High at once, medium from two sessions, low from three."""
    low = "use conventional commits please"
    session(box, "a", STRICT, "Always run lint first", low)
    found = asked(box)
    assert [s["content"] for s in found["suggested"]] == ["Always run lint first"]
    session(box, "b", STRICT, low)
    found = asked(box)
    assert {s["content"]: s["severity"] for s in found["suggested"]} == {
        "Always run lint first": "high",
        "Use strict TypeScript mode": "medium",
    }
    assert [(s["content"], s["occurrences"]) for s in found["waiting"]] == [("Use conventional commits", 2)]
    session(box, "c", low)
    assert asked(box)["suggested"][-1]["severity"] == "low"


@pytest.mark.shows("FR4")
def test_patterns_come_with_examples_from_transcripts(box: Sandbox) -> None:
    """Up to three quotes, each with its day and session, and what the agent had said."""
    for n in "abcd":
        session(box, n, f"{STRICT}, {n}", f"{STRICT}")
    (pattern,) = [s for s in asked(box)["suggested"] if s["occurrences"] == 4]
    assert len(pattern["quotes"]) == 3
    assert len({q["session"] for q in pattern["quotes"]}) == 3
    assert pattern["quotes"][0]["day"] == "2026-11-20"
    assert "strict to false" in pattern["quotes"][0]["context"]
    shown = said(reflectd(box, "reflect", "scan"), 0, "suggested as rules", "4 sessions, medium, correction")
    assert shown.count("2026-11-20  ") == 3


def test_words_stay_out_of_the_project(box: Sandbox) -> None:
    """The journal may be tracked: no quote, no session's name, no secret in it; the words are private."""
    secret = TOKENS["anthropic"][0]
    path = session(box, "a", f"No, use the key {secret} of the shop", STRICT)
    asked(box)
    text = json.dumps(journal(box))
    assert secret not in text
    assert "npm install" not in text
    assert path.stem not in text
    kept = [p for p in box.state.rglob("*.json") if "quotes" in p.name]
    assert len(kept) == 1
    assert secret not in kept[0].read_text()
    assert kept[0].stat().st_mode & 0o077 == 0


def test_a_fork_and_a_renamed_file_count_once(box: Sandbox) -> None:
    """Claude Code copies lines into the file of a forked session; a file that was renamed is read again."""
    path = session(box, "a", STRICT)
    asked(box)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    fork = folder(box) / "fork.jsonl"
    fork.write_text("".join(json.dumps({**line, "sessionId": "fork"}) + "\n" for line in lines))
    path.rename(path.with_name("renamed.jsonl"))
    assert asked(box)["read"]["files"] == 2
    assert [s["occurrences"] for s in journal(box)["signals"]] == [1]


def test_only_this_project_unless_all_is_said(box: Sandbox) -> None:
    """Sub-folders belong to it; other projects count only with --all; CLAUDE_CONFIG_DIR is honoured."""
    web, other = box.project / "web", box.root / "other"
    web.mkdir()
    session(box, "a", STRICT, project=web)
    session(box, "b", "From now on use tabs", project=other)
    assert asked(box)["read"]["files"] == 1
    read = {"files": 1, "unchanged": 1, "failed": 0, "messages": 2}
    size = next(folder(box, other).iterdir()).stat().st_size
    assert asked(box, "scan", "--all")["read"] == read | {"bytes": size}
    assert {s["content"] for s in journal(box)["signals"]} == {"Use strict TypeScript mode", "Use tabs"}
    nothing = reflectd(box, "reflect", "scan", CLAUDE_CONFIG_DIR=str(box.root / "elsewhere"))
    said(nothing, 0, "Claude Code has no sessions of")


def test_a_dry_run_says_it_all_and_writes_nothing(box: Sandbox) -> None:
    """And the run after it still finds everything new."""
    session(box, "a", "Always run lint first")
    found = asked(box, "--dry-run")
    assert (found["new"], found["changed"]) == (["sig-20261120-001"], False)
    assert [s["content"] for s in found["suggested"]] == ["Always run lint first"]
    assert not (box.project / ".claude").exists()
    said(reflectd(box, "reflect", "scan", "--dry-run"), 0, "(nothing was written)")
    assert asked(box)["new"] == ["sig-20261120-001"]


def test_since_when(box: Sandbox) -> None:
    """Older words are left for later; a moment that is none is refused."""
    path = session(box, "a", STRICT)
    os.utime(path)
    assert asked(box, "--since", "2026-11-21")["new"] == []
    assert asked(box, "--since", "2026-11-19")["new"] == ["sig-20261120-001"]
    said(reflectd(box, "reflect", "scan", "--since", "soon"), 2, "is no time")


def test_files_that_are_named(box: Sandbox) -> None:
    """A transcript, an export of opencode, a folder of both; anything else is refused with what it may be."""
    export = json.loads((REPO / "tests" / "data" / "exports" / "opencode_1.18.json").read_bytes())
    more = copy.deepcopy([m for m in export["messages"] if m["info"]["role"] == "user"][:1])
    more[0]["info"]["id"] = "msg_later"
    more[0]["parts"][0]["text"] = "No, use a generator instead"
    place = box.root / "exports"
    place.mkdir()
    (place / "one.json").write_text(json.dumps({**export, "messages": export["messages"] + more}))
    found = asked(box, "scan", str(place / "one.json"))
    assert [s["content"] for s in found["waiting"]] == ["Use a generator"]
    assert asked(box, "scan", str(place))["read"]["unchanged"] == 1
    session(box, "a", STRICT).rename(place / "two.jsonl")
    assert asked(box, "scan", str(place))["read"]["files"] == 1
    said(reflectd(box, "reflect", "scan", "Makefile"), 2, "Makefile is no transcript (.jsonl)")
    said(reflectd(box, "reflect", "scan", "--all", str(place)), 2, "give FILE or --all, not both")


def test_a_bad_file_costs_only_itself(box: Sandbox) -> None:
    """It is named, and the others are read: a FIFO, what is no export, damaged lines."""
    session(box, "a", STRICT)
    os.mkfifo(folder(box) / "pipe.jsonl")
    (folder(box) / "junk.jsonl").write_bytes(b'{"type":"user"\n\xff\xfe\n' * 10)
    assert asked(box)["new"] == ["sig-20261120-001"]
    broken = box.root / "broken.json"
    broken.write_text("[1]")
    found = asked(box, "scan", str(broken))
    assert found["read"]["failed"] == 1
    assert found["told"] == [f"{broken}: it is no export of opencode"]


def scanning(box: Sandbox) -> subprocess.Popen[bytes]:
    """A scan while it runs."""
    command = [*COMMAND, "reflect", "scan", "--json"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment(box), cwd=box.project, stdout=pipe, stderr=pipe)


@pytest.mark.shows("I42")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ended_at_any_time_nothing_is_lost_or_counted_twice(box: Sandbox, how: signal.Signals) -> None:
    """After Ctrl-C what was read counts (exit code 130); after kill -9 the next run has it all."""
    for n in range(60):
        session(box, f"{n:03d}", STRICT, *[f"No, use option number {n} of {i} things" for i in range(40)])
    process = scanning(box)
    state = box.state / "reflect"
    wait_until(lambda: state.exists() or process.poll() is not None, "the scan", lambda: "")
    process.send_signal(how)
    process.communicate()
    if how == signal.SIGINT and process.returncode == 130:
        assert journal(box)["signals"]
    asked(box)
    found = journal(box)["signals"]
    strict = next(s for s in found if s["content"] == "Use strict TypeScript mode")
    assert strict["occurrences"] == 60
    before = journal(box)
    asked(box)
    assert journal(box) == before


@pytest.mark.shows("RULES-13")
def test_two_scans_at_once_lose_nothing(box: Sandbox) -> None:
    """Both read the same files; each message counts once."""
    for n in range(20):
        session(box, f"{n:02d}", STRICT, "Always run lint first")
    started = [scanning(box) for _ in range(2)]
    assert [p.communicate() and p.returncode for p in started] == [0, 0]
    assert [s["occurrences"] for s in journal(box)["signals"]] == [20, 20]


@pytest.mark.shows("POISON_PATH-4")
def test_the_daemon_reads_no_signals(box: Sandbox) -> None:
    """A correction in a session that is judged is counted by a person's command alone."""
    session(box, "a", STRICT)
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_a", request="No, always use strict TypeScript mode. I told you twice!")
        assert not (box.project / ".claude").exists()
        assert not (box.state / "reflect").exists()
    assert asked(box)["new"] == ["sig-20261120-001"]


def test_what_is_no_project(box: Sandbox, tmp_path: Path) -> None:
    """The home folder has no journal, and a folder that is not there is named."""
    said(reflectd(box, "reflect", "scan", "--dir", str(box.home)), 2, "is no project")
    said(reflectd(box, "reflect", "scan", "--dir", str(tmp_path / "none")), 2, "there is no folder")
