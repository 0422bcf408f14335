"""``reflectd judge`` on Claude Code's transcripts: one, the newest, a whole folder."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from harness.machine.sandbox import REPO, Sandbox
from tests.cli.reflect.person import ended, typed
from tests.support.hosts.claude_code_story import Story
from tests.support.machine.command_line import COMMAND, reflectd, said

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
    text = said(reflectd(box, "judge", RED, "--provider", "offline"), 10, "incomplete HIGH", "pytest -q")
    assert "Fix the rounding" in text
    said(reflectd(box, "judge", GREEN, "--provider", "offline"), 0, "complete  session")
    done = reflectd(box, "judge", "-", "--provider", "offline", stdin=RED.read_bytes())
    said(done, 10, "incomplete HIGH")
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
    said(reflectd(box, *last, cwd=deep), 2, "no session of", str(deep), f"up to {box.project}")
    folder = keep(box, GREEN, RED)
    (folder / "begun.jsonl").write_bytes(b"")
    os.mkfifo(folder / "pipe.jsonl")
    said(reflectd(box, *last), 10, "incomplete", "begun.jsonl", "is not a regular file")
    said(reflectd(box, *last, cwd=deep), 10, "incomplete")
    (box.project / ".git").rename(box.root / "git")
    said(reflectd(box, *last, cwd=deep), 10, "incomplete")
    said(reflectd(box, *last, cwd=box.home), 2, "no session of")
    (box.home / ".claude").rename(box.home / "claude")
    said(reflectd(box, *last, CLAUDE_CONFIG_DIR=str(box.home / "claude")), 10, "incomplete")
    for path in (box.home / "claude").rglob("*_2.1.*.jsonl"):
        path.unlink()
    done = reflectd(box, *last, CLAUDE_CONFIG_DIR=str(box.home / "claude"))
    said(done, 2, "no session of", "can be judged")


@pytest.mark.shows("I36")
def test_all_judges_a_folder(box: Sandbox) -> None:
    """A line for each session and a table; a bad file is named and left out, and the exit code says so."""
    folder = keep(box, GREEN, RED, STOPPED)
    text = said(reflectd(box, "judge", "--all"), 0, "incomplete", "stopped", "33%", "sessions")
    assert "NONE" not in text
    assert len(re.findall(r"^(?:complete|incomplete|stopped) .*_2\.1\.", text, re.MULTILINE)) == 3
    odd = {"type": "user", "uuid": "u", "sessionId": "s", "promptSource": ["typed"]}
    odd |= {"message": {"role": "user", "content": "Do it"}}
    (folder / "odd.jsonl").write_text(json.dumps(odd) + "\n", "utf-8")
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "noise.jsonl").write_bytes(b"\x00\xff\n[[[[\n" * 100)
    os.mkfifo(folder / "pipe.jsonl")
    done = reflectd(box, "judge", "--all", folder, "--verbose")
    text = said(done, 1, "not judged", "! E", "noise.jsonl", "odd.jsonl", "not a regular file")
    assert text.count("nothing to judge by") == 3


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
    shell = ["sh", "-c", f"{shlex.join(COMMAND)} judge --all {folder} >out"]
    code, shown = ended(typed(box, [], command=shell, TERM="xterm"))
    assert (code, "1/2" in shown) == (0, True)
    assert shown.endswith("\r\x1b[K")
    assert "\x1b" not in (box.project / "out").read_text()


def test_a_last_line_without_its_end_counts(box: Sandbox) -> None:
    """The last line of a finished file counts, even without a line end."""
    story = Story()
    story.human("Say hello in another language")
    story.say("Which language?")
    path = box.project / "s.jsonl"
    path.write_bytes(story.data().rstrip(b"\n"))
    said(reflectd(box, "judge", path, "--provider", "offline"), 0, "awaiting_user")
