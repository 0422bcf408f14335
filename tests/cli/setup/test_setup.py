"""``reflectd setup`` without an agent's name: what is there, what it asks, and what it changes."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from daemon.cli.setup import agents
from daemon.cli.setup.opencode import OPENCODE
from harness.machine.sandbox import Sandbox
from tests.support.machine.command_line import environment, reflectd, said

LEARN = "Learn? [y/N] Enter is no: "
CONNECT = "? [Y/n"
PROVE = "Prove? [y/N] Enter is no: "
UNASKED = {"REFLECTD_PROOF_ENABLED": "false"}  # the question of proof is that of one test


def a_program(box: Sandbox, *names: str) -> dict[str, str]:
    """The variables of a machine with these agents and no others."""
    folder = box.root / "bin"
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\necho 2.1.330\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def settings_of(box: Sandbox) -> dict[str, bool]:
    """Which agents have settings that load reflectd."""
    files = {
        "opencode": box.home / ".config" / "opencode" / "opencode.json",
        "claude-code": box.home / ".claude" / "settings.json",
    }
    return {host: file.exists() and "reflectd" in file.read_text() for host, file in files.items()}


@contextmanager
def asked(
    box: Sandbox, env: dict[str, str], *args: str, columns: int = 300, code: int = 0, proof: bool = False
) -> Iterator[pexpect.spawn[str]]:
    """``reflectd setup`` on a terminal; afterwards it has ended with this exit code."""
    child: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        ["-m", "daemon", "setup", *args],
        env=environment(box, **{**({} if proof else UNASKED), "TERM": "dumb", **env}),  # type: ignore[arg-type]
        cwd=str(box.project),
        dimensions=(24, columns),
        encoding="utf-8",
        timeout=60,
    )
    try:
        yield child
        child.expect(pexpect.EOF)
    finally:
        child.close()
    assert child.exitstatus == code, child.before


def settings_file(box: Sandbox) -> Path:
    """The person's own settings."""
    return box.home / ".config" / "reflectd" / "config.toml"


@pytest.mark.main("setup asks")
def test_it_asks_four_short_questions_and_says_what_comes_next(box: Sandbox) -> None:
    """Whether to learn, which agents, who judges, whether to prove; the last line is the only one with a next
    step. A second run asks only about the agent that was declined, a third one nothing; it brings an old copy
    up to date.
    """
    env = a_program(box, "opencode", "claude") | {"REFLECTD_JUDGE_PROVIDER": "auto"}
    with asked(box, env, proof=True) as child:
        child.expect_exact(LEARN)
        child.send("n\r")
        child.expect_exact(CONNECT)
        child.send("perhaps\r")
        child.expect_exact("Type y, n, or one: opencode, claude-code.")
        child.expect_exact(CONNECT)
        child.send("claude-code\r")
        child.expect_exact("Who shall judge Claude Code's sessions?")
        child.expect_exact("Enter keeps the rules (nothing is learned): ")
        child.send("2\r")
        child.expect_exact(PROVE)
        child.send("perhaps\r")
        child.expect_exact("Type y or n.")
        child.send("y\r")
        child.expect(pexpect.EOF)
        assert str(child.before).rstrip().endswith("Next: restart Claude Code.")
        assert str(child.before).count("Next") == 1
    assert settings_of(box) == {"opencode": False, "claude-code": True}
    assert tomllib.loads(settings_file(box).read_text())["proof"] == {"enabled": True}
    with asked(box, env, proof=True) as child:
        child.expect_exact("Connect opencode? [Y/n] ")
        assert LEARN not in str(child.before)
        child.send("y\r")
        child.expect_exact("Next: restart opencode.")
    assert settings_of(box) == {"opencode": True, "claude-code": True}
    copy = box.home / ".local" / "share" / "reflectd" / "plugins" / "opencode" / "index.ts"
    copy.write_text("of another version")
    with asked(box, env) as child:
        child.expect_exact("Next: restart opencode.")
    assert "of another version" not in copy.read_text()
    with asked(box, env) as child:
        child.expect_exact("All of it is set up: nothing to do.")


def test_a_dry_run_shows_the_changes_of_all_agents(box: Sandbox) -> None:
    """Also with `--yes`; nothing is asked or written."""
    env = a_program(box, "opencode", "claude")
    for more in ([], ["--yes"]):
        done = reflectd(box, "setup", "--dry-run", *more, **env)
        said(done, 0, '+  "plugin"', "reflectd@reflectd", "Nothing was written.")
    found = json.loads(reflectd(box, "setup", "--dry-run", "--json", **env).stdout)
    assert [(one["host"], one["dry_run"]) for one in found["agents"]] == [
        ("opencode", True),
        ("claude-code", True),
    ]
    assert settings_of(box) == {"opencode": False, "claude-code": False}
    assert not (box.home / ".local" / "share").exists()


def test_undo_alone_takes_the_last_change_of_each_agent_back(box: Sandbox) -> None:
    """What was there before is there again, byte for byte; where nothing is connected nothing is done. Of a
    file that was edited since only what is ours goes; one that can't be read keeps no other agent's.
    """
    env = a_program(box, "opencode", "claude")
    mine = box.home / ".claude" / "settings.json"
    mine.parent.mkdir()
    mine.write_text('{"model": "opus"}')
    said(reflectd(box, "setup", "--yes", **env), 0, "Next: restart opencode and Claude Code.")
    said(reflectd(box, "setup", "--undo", "--dry-run", **env), 0, "Nothing was written.")
    assert settings_of(box) == {"opencode": True, "claude-code": True}
    said(reflectd(box, "setup", "--undo", **env), 0, "Next: restart opencode and Claude Code.")
    assert settings_of(box) == {"opencode": False, "claude-code": False}
    assert mine.read_text() == '{"model": "opus"}'
    said(reflectd(box, "setup", "--undo", **env), 0, "Nothing was changed.")
    said(reflectd(box, "setup", "--yes", **env), 0)
    mine.write_text(mine.read_text().replace("opus", "sonnet"))
    said(reflectd(box, "setup", "--undo", **env), 0)
    assert json.loads(mine.read_text()) == {"model": "sonnet"}
    said(reflectd(box, "setup", "--yes", **env), 0)
    mine.chmod(0o444)
    said(reflectd(box, "setup", "--undo", **env), 2, "Claude Code: ", "is read-only")
    assert settings_of(box) == {"opencode": False, "claude-code": True}


def test_without_a_terminal_it_connects_only_when_told(box: Sandbox) -> None:
    """A script gets exit code 2 and the commands; with ``--yes`` each agent that is there is connected."""
    env = a_program(box, "claude")
    text = said(reflectd(box, "setup", **env), 2, "--yes", "reflectd setup claude-code", "/bin/claude")
    assert "Nothing was changed" in text
    assert json.loads(reflectd(box, "setup", "--json", **env).stdout)["error"].startswith("there is no term")
    assert settings_of(box) == {"opencode": False, "claude-code": False}
    done = json.loads(reflectd(box, "setup", "--yes", "--json", **env).stdout)
    assert [(one["host"], one["action"]) for one in done["agents"]] == [("claude-code", "created")]
    assert settings_of(box) == {"opencode": False, "claude-code": True}
    said(reflectd(box, "setup", "--yes", **env), 0, "nothing to do")


def test_what_is_refused_for_one_agent_changes_nothing_at_all(box: Sandbox) -> None:
    """Neither our own settings nor those of the agent that comes first."""
    broken = box.home / ".claude" / "settings.json"
    broken.parent.mkdir()
    broken.write_text('{"model": ')
    done = reflectd(box, "setup", "--yes", "--learning", "on", **a_program(box, "opencode", "claude"))
    said(done, 2, str(broken), "Nothing was changed")
    assert settings_of(box) == {"opencode": False, "claude-code": False}
    assert not settings_file(box).exists()


def test_no_agent_is_said(box: Sandbox) -> None:
    """Exit code 1, what to install, and nothing written."""
    env = a_program(box)
    for argv in (["setup"], ["setup", "--yes"]):
        said(
            reflectd(box, *argv, **env),
            1,
            "no coding agent was found",
            *(host.address for host in agents.HOST.values()),
        )
    assert "no coding agent" in json.loads(reflectd(box, "setup", "--json", **env).stdout)["error"]
    assert settings_of(box) == {"opencode": False, "claude-code": False}


def test_setup_of_an_agent_that_is_missing_says_so(box: Sandbox) -> None:
    """The settings are written, because the agent may come later; that it is not there is said."""
    env = a_program(box)
    said(reflectd(box, "setup", "opencode", **env), 0, "there is no `opencode` on PATH", "opencode.ai")
    assert json.loads(reflectd(box, "setup", "opencode", "--json", **env).stdout)["program"] is None
    said(reflectd(box, "setup", "claude-code", **env), 0, "there is no `claude` on PATH", "claude.com")
    there = reflectd(box, "setup", "opencode", **a_program(box, "opencode"))
    assert "there is no" not in said(there, 0)
    assert "there is no" not in said(reflectd(box, "setup", "opencode", "--remove", **env), 0)


def test_an_agent_that_its_installer_put_below_the_home_is_found(box: Sandbox) -> None:
    """A terminal that is older than the installation does not have it on PATH."""
    program = box.home / ".opencode" / "bin" / "opencode"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    assert OPENCODE.find({"PATH": "/nowhere", "HOME": str(box.home)}) == ""
    program.chmod(0o755)
    assert OPENCODE.find({"PATH": "/nowhere", "HOME": str(box.home)}) == str(program)
    assert OPENCODE.find({"PATH": "/nowhere"}) == ""


def test_flags_of_all_agents_and_of_one_do_not_mix(box: Sandbox) -> None:
    """What is wrong is said; ``--json`` counts anywhere."""
    said(reflectd(box, "setup", "opencode", "--judge=offline"), 2, "is not for opencode")
    said(reflectd(box, "setup", "--reflect"), 2, "is for one agent")
    said(reflectd(box, "setup", "emacs"), 2, "invalid choice")
    assert json.loads(reflectd(box, "setup", "--json", "opencode", "--dry-run").stdout)["dry_run"] is True
    assert os.listdir(Path(box.home, ".config")) == ["opencode"]


@pytest.mark.full("a pseudo-terminal is driven")
def test_one_question_for_all_hosts_that_lend_no_model(box: Sandbox) -> None:
    """Its answer is a setting for each; one of them can be changed by itself."""
    env = a_program(box, "claude", "codex") | {"REFLECTD_JUDGE_PROVIDER": "auto"}
    with asked(box, env) as child:
        child.expect_exact(LEARN)
        child.send("n\r")
        child.expect_exact("Connect Claude Code and Codex? [Y/n, or one: claude-code, codex]")
        child.send("y\r")
        child.expect_exact("Who shall judge Claude Code's and Codex's sessions? They lend their models")
        child.send("2\r")
    judge = tomllib.loads(settings_file(box).read_text())["judge"]
    assert judge == {"claude_code": "offline", "codex": "offline"}
    said(reflectd(box, "setup", "codex", "--judge", "claude-cli", "--yes", **env), 0, "your own Claude Code")
    judge = tomllib.loads(settings_file(box).read_text())["judge"]
    assert judge == {"claude_code": "offline", "codex": "claude-cli"}


@pytest.mark.full("a pseudo-terminal is driven")
def test_a_machine_with_codex_alone_and_no_model(box: Sandbox) -> None:
    """Where only the rules are left to choose, setup says what each model lacks and the command that chooses
    it. `--judge` without an agent is about the one that is here.
    """
    env = a_program(box, "codex") | {"REFLECTD_JUDGE_PROVIDER": "auto"}
    with asked(box, env) as child:
        child.expect_exact(LEARN)
        child.send("y\r")
        child.expect_exact("Connect Codex?")
        child.send("y\r")
        child.expect_exact("Only the rules can judge Codex's sessions yet")
        child.expect_exact("no key for OpenAI")
        child.expect_exact("reflectd setup codex --judge openai")
        child.expect_exact("learns: nothing by itself: no agent that is connected has a model")
    key = {"OPENAI_API_KEY": "sk-" + "a" * 40}
    said(reflectd(box, "setup", "--judge", "openai", **env, **key), 0, "judge.codex")
    assert tomllib.loads(settings_file(box).read_text())["judge"] == {"codex": "openai"}
