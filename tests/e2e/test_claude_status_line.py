"""Claude Code's status line with the snippet of docs/status-line.md."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from harness.hosts.claude_code import ClaudeCode
from harness.hosts.claude_code_tui import ClaudeTui
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox
from harness.models.claude_code import bash, write
from harness.models.scripts import CLAIM, REQUEST
from harness.models.server import ModelServer, text

pytestmark = pytest.mark.needs("claude")
PLUGIN = REPO / "plugin-shim" / "claude-code"


def patient(box: Sandbox) -> Path:
    """A folder for PATH with a ``reflectd`` that waits longer for its daemon, as this machine may be busy."""
    folder = box.root / "bin"
    folder.mkdir()
    file = folder / "reflectd"
    more = '[ "$1" = line ] && set -- "$@" --wait 10000'
    file.write_text(
        f'#!/bin/sh\n{more}\nPYTHONPATH="{REPO}" exec "{sys.executable}" -m daemon "$@"\n', "utf-8"
    )
    file.chmod(0o755)
    return folder


def test_the_status_line_is_about_the_session(own_box: Sandbox, llm: ModelServer) -> None:
    """Claude Code runs the page's command again and again: sent back once, then the person's turn."""
    page = (REPO / "docs" / "status-line.md").read_text("utf-8")
    (snippet,) = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    path = f"{patient(own_box)}:{own_box.env()['PATH']}"
    claude = ClaudeCode(own_box, llm.url, plugin=PLUGIN, settings=json.loads(snippet), PATH=path)
    hello = str(own_box.project / "hello.py")
    question = "The tests want a file. Shall I make answer.txt?"
    llm.script(write(hello, "print('hello')\n"), bash("make test"), text(CLAIM), text(question))
    with Daemon(own_box), ClaudeTui(claude) as tui:
        tui.ask(REQUEST)
        tui.wait_for(question)
        tui.wait_for("waiting for you · round 1 · agent <0.01 USD")
        assert tui.quit() == 0
