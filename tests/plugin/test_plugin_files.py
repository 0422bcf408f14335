"""What the plugin's files promise Claude Code, old and new."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from daemon import __version__
from daemon.engine.hosts.claude_code import BACKGROUND_S, WAIT_S
from daemon.paths import shipped
from harness.machine.sandbox import REPO

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN = shipped("shims/claude-code")
NAMED: dict[str, Any] = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())
HOOKS: dict[str, list[Any]] = NAMED["hooks"]
OLD_NAMES = {
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "Stop",
    "SubagentStop",
    "SessionEnd",
    "Notification",
    "StopFailure",
}  # every one is known to 2.1.197, the oldest version that we support
FIELDS = {"type", "command", "args", "timeout", "async", "asyncRewake", "statusMessage", "rewakeSummary"}


def handlers() -> list[tuple[str, dict[str, Any]]]:
    return [(event, handler) for event, entries in HOOKS.items() for e in entries for handler in e["hooks"]]


@pytest.mark.shows("I39")
def test_only_old_event_names_are_shipped() -> None:
    """One name or field that an older version doesn't know would disable the whole plugin there."""
    assert set(HOOKS) == OLD_NAMES
    assert {name for _, handler in handlers() for name in handler} == FIELDS
    assert {name for entries in HOOKS.values() for entry in entries for name in entry} == {"hooks", "matcher"}


@pytest.mark.shows("I39")
def test_the_mod_is_named_beside_the_hooks() -> None:
    """2.1.197 needs `hooks` and ignores `modules`; a version with mods refuses a module with one event that
    it doesn't know.
    """
    assert NAMED["modules"] == ["./register.js"]
    module = (PLUGIN / "hooks" / "register.js").read_text()
    events = set(re.findall(r"^  on\('([^']+)'", module, re.MULTILINE))
    old = {"session.start", "session.compact", "command.run", "prompt.submit", "turn.complete"}
    assert {e for e in events if not e.startswith("classic.")} == old
    assert {e.removeprefix("classic.") for e in events if e.startswith("classic.")} <= OLD_NAMES
    assert module.count(" on(") == len(re.findall(r"^  on\('", module, re.MULTILINE))
    assert len(module.splitlines()) < 200


def test_every_hook_is_our_script_in_exec_form() -> None:
    """No shell between: `sh hook.sh` would end with 2, a wake, once the file is gone."""
    for event, handler in handlers():
        assert handler["type"] == "command"
        assert handler["command"] == "${CLAUDE_PLUGIN_ROOT}/scripts/hook.sh"
        assert handler["args"][0] == event


def test_stop_has_a_hook_that_wakes_and_one_that_is_waited_for() -> None:
    """asyncRewake by default, the other for strict mode; sub-agents' ends are told in the background."""
    wakes, waits = [handler for event, handler in handlers() if event == "Stop"]
    assert (wakes["args"][1:], wakes.get("asyncRewake")) == (["wake"], True)
    assert (waits["args"][1:], waits.get("asyncRewake"), waits.get("async")) == (["strict"], None, None)
    assert [event for event, handler in handlers() if handler.get("async")] == ["SubagentStop"]


def test_deadlines_nest() -> None:
    """The script's own deadline ends before Claude Code's, so that nothing of it is killed half-way; the
    longest wait for a shell and the judge's time fit into it.
    """
    script = (PLUGIN / "scripts" / "hook.sh").read_text()
    own = {name: int(s) for name, s in re.findall(r"^(\w+|\*)\) seconds=(\d+) ;;$", script, re.MULTILINE)}
    assert own["Stop"] == 110
    for event, handler in handlers():
        assert own.get(event, own["*"]) < handler["timeout"], event
    wakes, waits = [handler["timeout"] for event, handler in handlers() if event == "Stop"]
    (longest,) = re.findall(r"^\[ \"\$mode\" != wake \] \|\| seconds=(\d+) patience=", script, re.MULTILINE)
    assert waits == 120
    assert BACKGROUND_S + WAIT_S < int(longest) < wakes


def test_the_marketplace_names_the_plugin_beside_it() -> None:
    """Names are what settings refer to; the version is the daemon's."""
    market = json.loads((PLUGIN / ".claude-plugin" / "marketplace.json").read_text())
    plugin = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    assert (market["name"], plugin["name"], plugin["version"]) == ("reflectd", "reflectd", __version__)
    assert [(p["name"], p["source"]) for p in market["plugins"]] == [("reflectd", "./")]


def test_the_wheel_brings_the_plugin_with_its_executable_bits(tmp_path: Path) -> None:
    """Whoever installs from a wheel gets every file, and scripts that can be run."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=REPO, capture_output=True, timeout=60, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    top = "reflectd/shims/claude-code/"
    with zipfile.ZipFile(wheel) as packed:
        modes = {
            i.filename.removeprefix(top): i.external_attr >> 16
            for i in packed.infolist()
            if top in i.filename
        }
    source = REPO / "plugin-shim" / "claude-code"
    files = [f for f in source.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    assert set(modes) == {str(f.relative_to(source)) for f in files}
    assert {name for name, mode in modes.items() if mode & 0o100} == {"scripts/hook.sh", "scripts/ctl.sh"}


# --- slash commands -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["status", "on", "off", "why", "playbook"])
def test_slash_commands_run_our_script_for_this_session(name: str) -> None:
    """Typed by a person only, allowed to run nothing else, and free of what the permission check refuses."""
    text = (PLUGIN / "commands" / f"{name}.md").read_text()
    _, head, body = text.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["allowed-tools"] == "Bash(${CLAUDE_PLUGIN_ROOT}/scripts/ctl.sh:*)"
    assert fields["disable-model-invocation"] == "true"
    assert ": " not in fields["description"]  # YAML would read it as another field
    assert f'!`"${{CLAUDE_PLUGIN_ROOT}}/scripts/ctl.sh" {name} ${{CLAUDE_SESSION_ID}}`' in body
    assert "$(" not in body
    assert ":-" not in body


def ctl(tmp_path: Path, *args: str, found: bool = True) -> tuple[int, str, str]:
    program = tmp_path / "reflectd"
    program.write_text('#!/bin/sh\necho "ran: $*"\nenv\necho "said so" >&2\nexit 1\n')
    program.chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:/usr/bin:/bin" if found else "/nowhere",
        "CLAUDE_CODE_MESSAGING_TOKEN": "a-secret",
    }
    done = subprocess.run(
        [PLUGIN / "scripts" / "ctl.sh", *args], env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.shows("I40", "I46")
@pytest.mark.parametrize(
    ("args", "ran"),
    [
        (["status", "1b-2"], "ran: status\n"),
        (["on", "1b-2"], "ran: on --session 1b-2\n"),
        (["off", "1b-2"], "ran: off --session 1b-2\n"),
        (["why", "1b-2"], "ran: why 1b-2\n"),
        (["playbook", "1b-2"], "ran: playbook\n"),
    ],
)
def test_ctl_says_what_reflectd_says(tmp_path: Path, args: list[str], ran: str) -> None:
    """About this session only; errors are shown, not raised; Claude Code's secrets stay out."""
    code, out, err = ctl(tmp_path, *args)
    assert (code, err) == (0, "")
    assert ran in out
    assert "said so" in out
    assert "a-secret" not in out


def test_ctl_never_guesses(tmp_path: Path) -> None:
    """No session, a strange one, no program: it says so, and switches nothing."""
    for args in (["off"], ["off", ""], ["off", "--dir"], ["off", "a b"], ["off", "$(x)"], ["rm", "1b-2"]):
        code, out, _ = ctl(tmp_path, *args)
        assert code == 0
        assert "ran: " not in out
        assert out.startswith(("reflectd: ", "ctl.sh knows "))
    assert ctl(tmp_path, "off", "1b-2", found=False)[:2] == (
        0,
        "reflectd is not on PATH: see its README, or run reflectd doctor in a terminal\n",
    )
