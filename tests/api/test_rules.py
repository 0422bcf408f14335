"""``reflectd.api.rules`` and its caller ``scripts/reflect-analyze.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.api.rules import extract_signals
from daemon.core.errors import UserError
from harness.machine.sandbox import REPO
from tests.support.hosts.claude_code_story import Story


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    story = Story()
    story.human("Add a parser")
    story.say("I set strict to false in tsconfig.json.")
    story.human("No, use strict TypeScript mode")
    story.say("Done.")
    story.human("Perfect, exactly what I wanted")
    story.human("continue")
    path = tmp_path / "session-abc123.jsonl"
    path.write_bytes(story.data())
    return path


@pytest.mark.shows("FR1", "AC-REFLECT-01")
def test_reflect_parses_jsonl_transcripts_for_signals(transcript: Path) -> None:
    """Signals of the agreed form, numbered by day, without what is no signal."""
    correction, praise = extract_signals(str(transcript))
    assert list(correction)[:6] == ["id", "type", "content", "context", "severity", "timestamp"]
    assert correction["id"] == "sig-20261120-001"
    assert (correction["type"], correction["content"]) == ("correction", "No, use strict TypeScript mode")
    assert correction["source_file"] == "session-abc123.jsonl"
    assert "strict to false" in correction["context"]
    assert correction["severity"] == "medium"
    assert (praise["id"], praise["type"], praise["polarity"]) == ("sig-20261120-002", "feedback", "positive")
    assert praise["severity"] == "low"


@pytest.mark.shows("TR2")
def test_plain_lines_of_role_and_content(tmp_path: Path) -> None:
    """The requirement's own form of a transcript; a line that is none of them costs only itself."""
    path = tmp_path / "plain.jsonl"
    lines = [
        {"role": "assistant", "content": "I set strict to false."},
        {"role": "user", "content": "No, use strict mode"},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        ["x"],
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{broken\n")
    (signal,) = extract_signals(path)
    assert (signal["id"], signal["content"], signal["line"]) == ("sig-00000000-001", "No, use strict mode", 2)


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    """Missing, or a folder."""
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(UserError, match=f"can't read {path}"):
            extract_signals(path)


def test_the_script_prints_what_the_library_finds(transcript: Path) -> None:
    """`python scripts/reflect-analyze.py FILE`; wrong files and no file are exit code 2."""
    command = [sys.executable, str(REPO / "scripts" / "reflect-analyze.py")]
    done = subprocess.run([*command, str(transcript)], capture_output=True, text=True, check=True, cwd=REPO)
    assert json.loads(done.stdout) == extract_signals(transcript)
    for args, why in (([], "usage:"), ([str(transcript.parent / "none")], "can't read")):
        failed = subprocess.run([*command, *args], capture_output=True, text=True, check=False, cwd=REPO)
        assert (failed.returncode, failed.stdout) == (2, "")
        assert why in failed.stderr
