"""``reflectd judge`` on Claude Code's transcripts: one, the newest, a whole folder."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harness.machine.sandbox import REPO, Sandbox
from tests.support.hosts.claude_code_story import Story
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.shows("I24")
def test_judge_a_transcript(box: Sandbox) -> None:
    """Tests that failed after the last edit are seen through the file alone; 10 is incomplete."""
    text = said(reflectd(box, "judge", RED, "--provider", "offline"), 10, "incomplete HIGH", "pytest -q")
    assert "Fix the rounding" in text
    said(reflectd(box, "judge", GREEN, "--provider", "offline"), 0, "complete  session")
    done = reflectd(box, "judge", "-", "--provider", "offline", stdin=RED.read_bytes())
    said(done, 10, "incomplete HIGH")


def test_json_is_one_verdict_object(box: Sandbox) -> None:
    """The same object as in verdict files; with --verbose the evidence is in it."""
    found = json.loads(reflectd(box, "judge", RED, "--provider", "offline", "--json").stdout)
    schema = json.loads((REPO / ".reflection" / "schemas" / "verdict.schema.json").read_text("utf-8"))
    assert set(schema["required"]) <= set(found)
    assert (found["state"], found["severity"]) == ("incomplete", "HIGH")
    more = json.loads(reflectd(box, "judge", RED, "--provider", "offline", "--json", "-v").stdout)
    assert any(r["open"] and r["kind"] == "check" for r in more["evidence"])


@pytest.mark.shows("I11")
def test_a_guard_ends_what_the_daemon_would_not_judge(box: Sandbox) -> None:
    """A turn that the person stopped does not count as unfinished work."""
    found = json.loads(reflectd(box, "judge", STOPPED, "--provider", "offline", "--json").stdout)
    assert (found["state"], found["reason"]) == ("stopped", "guard:aborted")


def test_last_is_the_newest_of_this_project(box: Sandbox) -> None:
    """The newest session of the current folder, and no file of a sub-agent."""
    done = reflectd(box, "judge", "--last", "--provider", "offline")
    said(done, 2, "no session of")
    keep(box, GREEN, RED)
    said(reflectd(box, "judge", "--last", "--provider", "offline"), 10, "incomplete")
    elsewhere = box.home / "claude"
    (box.home / ".claude").rename(elsewhere)
    done = reflectd(box, "judge", "--last", "--provider", "offline", CLAUDE_CONFIG_DIR=str(elsewhere))
    said(done, 10, "incomplete")


def test_last_in_a_sub_folder(box: Sandbox) -> None:
    """The project's newest session, also where no repository is; a folder beside it is another project."""
    deep = box.project / "src" / "deep"
    deep.mkdir(parents=True)
    said(reflectd(box, "judge", "--last", cwd=deep), 2, str(deep), f"up to {box.project}")
    keep(box, GREEN, RED)
    said(reflectd(box, "judge", "--last", "--provider", "offline", cwd=deep), 10, "incomplete")
    (box.project / ".git").rename(box.root / "git")
    said(reflectd(box, "judge", "--last", "--provider", "offline", cwd=deep), 10, "incomplete")
    said(reflectd(box, "judge", "--last", cwd=box.home), 2, "no session of")


def test_last_leaves_out_what_cannot_be_read(box: Sandbox) -> None:
    """The newest file is no session that can be judged (empty, a pipe): it is named and left out."""
    folder = keep(box, GREEN, RED)
    (folder / "begun.jsonl").write_bytes(b"")
    os.mkfifo(folder / "pipe.jsonl")
    done = reflectd(box, "judge", "--last", "--provider", "offline")
    said(done, 10, "incomplete", "begun.jsonl", "is not a regular file")
    for path in (folder / GREEN.name, folder / RED.name):
        path.unlink()
    said(reflectd(box, "judge", "--last", "--provider", "offline"), 2, "no session of", "can be judged")


@pytest.mark.shows("I36")
def test_an_odd_file_costs_only_itself(box: Sandbox) -> None:
    """A transcript whose words are lists and objects is named; the others are judged."""
    folder = keep(box, GREEN, RED)
    odd = json.dumps({"type": "user", "uuid": "u", "sessionId": "s", "promptSource": ["typed"],
                      "message": {"role": "user", "content": "Do it"}})  # fmt: skip
    (folder / "odd.jsonl").write_text(odd + "\n", "utf-8")
    text = said(reflectd(box, "judge", "--all", folder), 1, "incomplete", "complete", "odd.jsonl")
    assert "Traceback" not in text


def test_all_judges_a_folder(box: Sandbox) -> None:
    """A line for each session and a table; a bad file is named and left out, and the exit code says so."""
    folder = keep(box, GREEN, RED, STOPPED)
    text = said(reflectd(box, "judge", "--all"), 0, "incomplete", "stopped", "33%", "sessions")
    assert "NONE" not in text
    assert len(re.findall(r"^(?:complete|incomplete|stopped) .*_2\.1\.", text, re.MULTILINE)) == 3
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "noise.jsonl").write_bytes(b"\x00\xff\n[[[[\n" * 100)
    os.mkfifo(folder / "pipe.jsonl")
    done = reflectd(box, "judge", "--all", folder, "--verbose")
    text = said(done, 1, "not judged", "! E", "noise.jsonl", "pipe.jsonl", "not a regular file")
    assert text.count("nothing to judge by") == 2


def test_all_as_json_is_a_line_each(box: Sandbox) -> None:
    """One object a line on stdout: the verdict, the file, the request and the evidence; nothing else."""
    folder = keep(box, GREEN, RED)
    done = reflectd(box, "judge", "--all", folder, "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [f["state"] for f in found] == ["complete", "incomplete"]
    assert found[1]["file"].endswith(RED.name)
    assert found[1]["request"].startswith("Fix the rounding")
    assert any(r["open"] for r in found[1]["evidence"])
    assert done.stderr == ""


@pytest.mark.full("a pseudo-terminal is driven")
def test_all_shows_a_bar_on_a_terminal_only(box: Sandbox) -> None:
    """The bar is drawn on stderr when it is a terminal, and removed at the end."""
    folder = keep(box, GREEN, RED)
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "daemon", "judge", "--all", str(folder)],
            env=box.env(PYTHONPATH=str(REPO), TERM="xterm"),
            cwd=box.project,
            stdout=subprocess.PIPE,
            stderr=theirs,
            timeout=60,
            check=False,
        )
        shown = os.read(ours, 65_536).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 0
    assert "1/2" in shown
    assert shown.endswith("\r\x1b[K")
    assert b"\x1b" not in done.stdout


def test_a_last_line_without_its_end_counts(box: Sandbox) -> None:
    """The last line of a finished file counts, even without a line end."""
    story = Story()
    story.human("Say hello in another language")
    story.say("Which language?")
    path = box.project / "s.jsonl"
    path.write_bytes(story.data().rstrip(b"\n"))
    said(reflectd(box, "judge", path, "--provider", "offline"), 0, "awaiting_user")


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ((), "one of FILE"),
        (("--last", "x.jsonl"), "one of FILE"),
        (("nothing.jsonl",), "nothing.jsonl"),
        (("--all", "nothing"), "no session"),
    ],
)
def test_wrong_arguments_are_said(box: Sandbox, args: tuple[str, ...], word: str) -> None:
    """Exit code 2 and one line."""
    said(reflectd(box, "judge", *args), 2, word)
