"""The harness keeps its own promises, without any host."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from harness.machine.sandbox import REPO, sandbox
from harness.machine.waiting import PATIENCE_S, wait_until
from harness.models.scripts import COMPLETE
from harness.models.server import ModelServer, bash, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def ask(server: ModelServer, prompt: str, *, tools: bool = True, session: str = "ses_1") -> Any:
    """One request of the OpenAI wire, not streamed; the whole answer."""
    functions = [{"type": "function", "function": {"name": "bash"}}] if tools else []
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], "tools": functions}
    headers = {"content-type": "application/json", "x-session-affinity": session}
    request = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)["choices"][0]


def test_scripts_by_session_marker_and_order(server: ModelServer) -> None:
    """The session's script comes first, then a marker's, then the default one."""
    server.script(text("for anybody"))
    server.script(text("for the marker"), marker="[x]")
    server.script(text("for two"), session="ses_2")
    assert ask(server, "[x]", session="ses_2")["message"]["content"] == "for two"
    assert ask(server, "say [x]")["message"]["content"] == "for the marker"
    assert ask(server, "hello")["message"]["content"] == "for anybody"
    assert [r.session for r in server.requests] == ["ses_2", "ses_1", "ses_1"]


def test_a_tool_call_and_a_judge(server: ModelServer) -> None:
    """A tool step is a tool call; a request without tools is a judge's and gets its nonce back."""
    server.script(bash("ls"))
    server.judge(COMPLETE)
    called = ask(server, "list")["message"]["tool_calls"][0]["function"]
    assert (called["name"], json.loads(called["arguments"])["command"]) == ("bash", "ls")
    assert (
        '"nonce": "n1"' in ask(server, "The marker of this data is n1.\nx", tools=False)["message"]["content"]
    )


def test_what_nobody_scripted_is_refused_and_kept(server: ModelServer) -> None:
    """One request too many can't pass unseen."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(server, "more?")
    refused.value.close()
    assert refused.value.code == 400
    assert [r.prompt for r in server.unscripted] == ["more?"]


def test_waiting_says_what_it_saw() -> None:
    """A time-out names what was wanted and what was there."""
    with pytest.raises(AssertionError, match=r"no third apple within 0\.05 s; last seen:\n2 apples"):
        wait_until(lambda: False, "third apple", lambda: "2 apples", within=0.05)


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
