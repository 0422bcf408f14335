"""``reflectd judge`` on Claude Code's transcripts: one, or the newest."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from harness.machine.sandbox import REPO, Sandbox
from tests.support.hosts.claude_code_story import Story
from tests.support.machine.command_line import reflectd, said

DATA = REPO / "tests" / "data" / "claude"
RED = DATA / "tests_fail_2.1.330.jsonl"
GREEN = DATA / "tests_pass_2.1.197.jsonl"
STOPPED = DATA / "interrupted_2.1.197.jsonl"


def keep(box: Sandbox, *sources: Path) -> Path:
    """The project's own folder among Claude Code's, with these sessions, the last one the newest."""
    folder = box.home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(box.project.resolve()))
    (folder / "x" / "subagents").mkdir(parents=True)
    (folder / "x" / "subagents" / "agent-1.jsonl").write_bytes(RED.read_bytes())
    for n, source in enumerate(sources):
        path = folder / source.name
        path.write_bytes(source.read_bytes())
        os.utime(path, (1_760_000_000 + n, 1_760_000_000 + n))
    return folder


OFFLINE = ("--provider", "offline")


@pytest.mark.shows("I11", "I24")
def test_judge_a_transcript(box: Sandbox) -> None:
    """Tests that failed after the last edit are seen through the file alone; 10 is incomplete. A turn that
    the person stopped does not count as unfinished work.
    """
    text = said(reflectd(box, "judge", RED, "--provider", "offline"), 10, "not done HIGH", "pytest -q")
    assert "Fix the rounding" in text
    said(reflectd(box, "judge", GREEN, "--provider", "offline"), 11, "verdict   not judged")
    done = reflectd(box, "judge", "-", "--provider", "offline", stdin=RED.read_bytes())
    said(done, 10, "not done HIGH")
    found = json.loads(reflectd(box, "judge", STOPPED, *OFFLINE, "--json").stdout)
    assert (found["state"], found["reason"]) == ("stopped", "guard:aborted")


def test_the_name_of_a_folder_reaches_no_terminal_as_it_stands(box: Sandbox) -> None:
    """A folder may be called so that a terminal would obey: its name is printed escaped."""
    hostile = box.project / "\x1b[31mred\x07"
    hostile.mkdir()
    done = reflectd(box, "judge", "--last", *OFFLINE, cwd=hostile)
    said(done, 2, "no session of", r"\x1b[31mred\x07")
    assert not {"\x1b", "\x07"} & set(done.stdout + done.stderr)


def test_last_is_the_newest_of_this_project(box: Sandbox) -> None:
    """Also from a folder below it, where no repository is, and where Claude Code keeps its files elsewhere.
    No file of a sub-agent; what can't be judged (empty, a pipe) is named and left out.
    """
    deep, last = box.project / "src" / "deep", ("judge", "--last", *OFFLINE)
    deep.mkdir(parents=True)
    said(reflectd(box, *last, cwd=deep), 2, "no session of", str(deep))
    folder = keep(box, GREEN, RED)
    (folder / "begun.jsonl").write_bytes(b"")
    os.mkfifo(folder / "pipe.jsonl")
    said(reflectd(box, *last), 10, "not done", "begun.jsonl", "is not a regular file")
    said(reflectd(box, *last, cwd=deep), 10, "not done")
    (box.project / ".git").rename(box.root / "git")
    said(reflectd(box, *last, cwd=deep), 10, "not done")
    said(reflectd(box, *last, cwd=box.home), 2, "no session of")
    (box.home / ".claude").rename(box.home / "claude")
    said(reflectd(box, *last, CLAUDE_CONFIG_DIR=str(box.home / "claude")), 10, "not done")
    for path in (box.home / "claude").rglob("*_2.1.*.jsonl"):
        path.unlink()
    done = reflectd(box, *last, CLAUDE_CONFIG_DIR=str(box.home / "claude"))
    said(done, 2, "no session of", "can be judged")


def test_a_last_line_without_its_end_counts(box: Sandbox) -> None:
    """The last line of a finished file counts, even without a line end."""
    story = Story()
    story.human("Say hello in another language")
    story.say("Which language?")
    path = box.project / "s.jsonl"
    path.write_bytes(story.data().rstrip(b"\n"))
    said(reflectd(box, "judge", path, "--provider", "offline", "-v"), 11, "ends with a question")
