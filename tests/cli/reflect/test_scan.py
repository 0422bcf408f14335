"""``reflectd reflect``: past sessions read by real commands, once and then onwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest

from daemon.learning.rules.candidates import SEEN
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.cli.reflect.past import asked, folder, session
from tests.support.machine.command_line import COMMAND, environment, judged, reflectd
from tests.support.reflecting import book_of, journal
from tests.support.secrets import TOKENS

STRICT = "No, use strict TypeScript mode"


@pytest.mark.shows("AC-REFLECT-01")
def test_what_a_person_typed_waits_until_somebody_reads_it(box: Sandbox) -> None:
    """Messages by their text, with the sessions that they are in, the agent's words and why to look at them;
    the same files again change nothing, and the journal stays as it is.
    """
    session(box, "a", STRICT, "no, use strict typescript mode", "thanks")
    first = asked(box)
    assert (first["read"]["sessions"], first["read"]["messages"], first["patterns"]) == (1, 4, [])
    assert texts(first) == [STRICT, "thanks"]
    strict = first["candidates"][0]
    assert (strict["why"], strict["sessions"], strict["day"]) == (["correction"], 1, "2026-11-20")
    assert "strict to false" in strict["before"]
    session(box, "b", STRICT)
    again = asked(box)["candidates"][0]
    assert (again["id"], again["sessions"], again["why"]) == (strict["id"], 2, ["correction", "repeated"])
    last = asked(box)
    assert last["read"] == {"sessions": 0, "unchanged": 2, "failed": 0, "messages": 0}
    assert (journal(box)["signals"], len(texts(last))) == ([], 3)


def texts(found: dict[str, Any]) -> list[str]:
    """What waits to be read."""
    return [c["text"] for c in found["candidates"]]


@pytest.mark.shows("I44")
def test_only_so_many_messages_are_printed(box: Sandbox) -> None:
    """An agent's shell shows 30,000 characters; how many more there are is said."""
    session(box, "a", *(f"No, option {n} {'x' * 500}" for n in range(50)))
    found = asked(box)
    assert (len(found["candidates"]), found["more_candidates"]) == (40, 10)
    assert len(json.dumps(found)) < 30_000


def test_words_stay_out_of_the_project(box: Sandbox) -> None:
    """The journal may be tracked: no quote, no session's name, no secret in it; the words are private."""
    secret = TOKENS["anthropic"][0]
    path = session(box, "a", f"No, use the key {secret} of the shop", STRICT)
    asked(box)
    text = json.dumps(journal(box))
    assert secret not in text
    assert "npm install" not in text
    assert path.stem not in text
    kept = [p for p in box.state.rglob("*.json") if "messages" in p.name]
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
    found = asked(box)
    assert (found["read"]["sessions"], [c["sessions"] for c in found["candidates"]]) == (2, [1])


def scanning(box: Sandbox) -> subprocess.Popen[bytes]:
    """A scan while it runs."""
    command = [*COMMAND, "reflect", "--json"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment(box), cwd=box.project, stdout=pipe, stderr=pipe)


@pytest.mark.shows("I42")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ended_at_any_time_nothing_is_lost_or_counted_twice(box: Sandbox, how: signal.Signals) -> None:
    """After Ctrl-C and after kill -9 the next run has it all, once."""
    for n in range(60):
        session(box, f"{n:03d}", STRICT, *[f"No, use option number {n} of {i} things" for i in range(40)])
    process = scanning(box)
    state = box.state / "reflect"
    wait_until(lambda: state.exists() or process.poll() is not None, "the scan", lambda: "")
    process.send_signal(how)
    process.communicate()
    asked(box)
    found = book_of(box).unread()
    assert max(c.sessions for c in found if c.text == STRICT) == SEEN
    assert len(found) == 2 + 60 * 40, "and what opens each session"
    asked(box)
    assert book_of(box).unread() == found


@pytest.mark.shows("RULES-13")
def test_two_scans_at_once_lose_nothing(box: Sandbox) -> None:
    """Both read the same files; each message counts once."""
    for n in range(20):
        session(box, f"{n:02d}", STRICT, "Always run lint first")
    started = [scanning(box) for _ in range(2)]
    assert [p.communicate() and p.returncode for p in started] == [0, 0]
    assert [c.sessions for c in book_of(box).unread()] == [20, 20, 20]


@pytest.mark.shows("POISON_PATH-4")
def test_the_daemon_reads_no_signals(box: Sandbox) -> None:
    """A correction in a session that is judged is counted by a person's command alone."""
    session(box, "a", STRICT)
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_a", request="No, always use strict TypeScript mode. I told you twice!")
        assert not (box.project / ".claude").exists()
        assert not (box.state / "reflect").exists()
    assert texts(asked(box)) == [STRICT]


def test_only_this_project_is_read_and_a_bad_file_costs_only_itself(box: Sandbox) -> None:
    """Sub-folders belong to it; CLAUDE_CONFIG_DIR is honoured; a FIFO and damaged lines are passed over."""
    web, other = box.project / "web", box.root / "other"
    web.mkdir()
    session(box, "a", STRICT, project=web)
    session(box, "b", "From now on use tabs", project=other)
    os.mkfifo(folder(box) / "pipe.jsonl")
    (folder(box) / "junk.jsonl").write_bytes(b'{"type":"user"\n\xff\xfe\n' * 10)
    nothing = reflectd(box, "reflect", "--json", CLAUDE_CONFIG_DIR=str(box.root / "elsewhere"))
    assert json.loads(nothing.stdout)["candidates"] == []
    assert texts(asked(box)) == [STRICT]
