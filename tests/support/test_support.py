"""The harness keeps its own promises, without any host."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from harness.machine.sandbox import REPO, sandbox
from harness.machine.waiting import PATIENCE_S
from harness.models.server import ModelServer


def test_what_nobody_scripted_is_refused_and_kept() -> None:
    """One request too many can't pass unseen."""
    tools = [{"type": "function", "function": {"name": "bash"}}]
    body = {"model": "m", "messages": [{"role": "user", "content": "more?"}], "tools": tools}
    with ModelServer() as server:
        url = f"{server.url}/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=PATIENCE_S)
        refused.value.close()
        assert refused.value.code == 400
        assert [r.prompt for r in server.unscripted] == ["more?"]


def test_a_sandbox_has_a_failing_test_and_no_reflectd() -> None:
    """``make test`` fails until ``answer.txt`` exists; nothing of the caller's environment comes along."""
    with sandbox() as box:
        env = box.env()
        run = [["make", "test"], ["git", "status", "--porcelain"], ["sh", "-c", "command -v reflectd"]]
        codes = [
            subprocess.run(c, cwd=box.project, env=env, capture_output=True, check=False).returncode
            for c in run
        ]
        box.file("answer.txt", "42")
        codes.append(
            subprocess.run(run[0], cwd=box.project, env=env, capture_output=True, check=False).returncode
        )
        assert codes == [2, 0, 127, 0]
        assert len(str(box.socket)) < 104
        assert not {"CI", "PYTHONPATH", "VIRTUAL_ENV"} & set(env)
    assert not box.root.exists()


def test_only_loopback_can_be_reached() -> None:
    """No test opens a connection to the outside, nor asks for a name."""
    with socket.socket() as outside, pytest.raises(RuntimeError, match="only loopback"):
        outside.connect(("192.0.2.1", 80))
    with pytest.raises(RuntimeError, match="only loopback"):
        socket.getaddrinfo("example.org", 80)
    assert socket.getaddrinfo("localhost", 80)


@pytest.mark.parametrize(
    ("ci", "code", "words"), [("", 0, "1 deselected"), ("1", 4, "nosuchtool is missing")]
)
def test_a_missing_tool_deselects_or_fails(tmp_path: Path, ci: str, code: int, words: str) -> None:
    """One printed line and one test less locally; an error in CI."""
    source = "import pytest\n@pytest.mark.needs('nosuchtool')\ndef test_a(): pass\ndef test_b(): pass\n"
    (tmp_path / "test_it.py").write_text(source)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = needs(tool): x\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.support.machine.needs",
        "-p",
        "no:randomly",
        str(tmp_path),
    ]
    env = os.environ | {"CI": ci, "PYTHONPATH": str(REPO)}
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (ran.returncode, words in ran.stdout + ran.stderr) == (code, True), ran
    assert "nosuchtool is missing: 1 tests deselected" in ran.stdout + ran.stderr
