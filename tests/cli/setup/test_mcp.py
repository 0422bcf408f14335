"""``reflectd setup HOST --mcp``: the agents start our MCP server, or don't, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daemon.cli.setup import copies
from daemon.cli.setup.mcp import COMMAND, NAMED_IN
from tests.cli.setup.test_opencode import Desk as OpencodeDesk
from tests.support.hosts.claude_code_settings import Desk


@pytest.fixture
def claude(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    found = Desk(tmp_path, capsys)
    monkeypatch.chdir(found.project)
    return found


@pytest.fixture
def opencode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> OpencodeDesk:
    found = OpencodeDesk(tmp_path, capsys)
    monkeypatch.chdir(found.project)
    return found


def test_claude_code_starts_it_only_when_asked(claude: Desk) -> None:
    """Without the flag no file names a server. With it the plugin's copy has one, also after it was brought
    up to date; `--no-mcp` takes it away.
    """
    assert claude() == 0
    assert not Path(claude.folder, NAMED_IN).exists()
    assert claude("--mcp") == 0
    assert "claude_code.mcp = true written in" in claude.out
    named = json.loads(Path(claude.folder, NAMED_IN).read_text())
    assert named == {"mcpServers": {"reflectd": {"command": "reflectd", "args": ["mcp"]}}}
    assert copies.state(claude.env, "claude-code") == "current"
    assert claude() == 0
    assert Path(claude.folder, NAMED_IN).is_file()
    assert claude("--no-mcp") == 0
    assert not Path(claude.folder, NAMED_IN).exists()


def test_opencode_has_an_entry_only_when_asked(opencode: OpencodeDesk) -> None:
    """Beside the plugin's line; every other byte stays, and `--no-mcp` and `--remove` take it away again."""
    file = opencode.write("opencode.json", '{\n  // mine\n  "theme": "dark"\n}\n')
    before = file.read_text()
    assert opencode() == 0
    without = file.read_text()
    assert '"mcp"' not in without
    assert opencode("--mcp", "--dry-run") == 0
    assert file.read_text() == without
    assert opencode("--mcp") == 0
    assert f'"reflectd": {json.dumps({"type": "local", "command": list(COMMAND), "enabled": True})}' in (
        file.read_text()
    )
    assert opencode() == 0
    assert '"mcp"' in file.read_text()
    assert opencode("--no-mcp") == 0
    assert file.read_text() == without
    assert opencode("--mcp") == 0
    assert opencode("--remove") == 0
    assert file.read_text() == before


def test_anothers_server_of_that_name_is_left_alone(opencode: OpencodeDesk) -> None:
    """It is an error to ask for ours then, and `--remove` does not touch it."""
    text = '{"mcp": {"reflectd": {"type": "local", "command": ["other"]}}}\n'
    file = opencode.write("opencode.json", text)
    assert opencode("--mcp") == 2
    assert "another MCP server is called 'reflectd'" in opencode.err
    assert file.read_text() == text
    assert opencode() == 0
    assert opencode("--remove") == 0
    assert file.read_text() == text


def test_the_flag_goes_with_nothing_that_removes(claude: Desk) -> None:
    """Code 2, and nothing is changed."""
    assert claude("--mcp", "--remove") == 2
    assert "alone" in claude.err
