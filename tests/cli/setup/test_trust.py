"""``reflectd trust`` on real files: what is shown, asked and kept, and its exit codes."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pexpect
import pytest

from daemon import paths
from daemon.cli.main import main
from daemon.clock import SystemClock
from daemon.files.prompts import Prompts, Trust
from harness.machine.sandbox import REPO


@dataclass
class Desk:
    """A project with a prompt, the command, and what a running daemon would use."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def __post_init__(self) -> None:
        self.project, self.state = self.root / "project", self.root / "state"
        self.file = self.project / ".reflection" / "prompts" / "judge.txt"
        self.file.parent.mkdir(parents=True)
        self.file.write_text("You are kind.\n")
        person = paths.config_file(os.environ).parent / "prompts"
        trust = Trust(self.state / "trust.json", SystemClock())
        self.prompts = Prompts(paths.shipped("prompts"), person, trust)

    def __call__(self, *args: str, code: int = 0, folder: Path | None = None) -> str:
        line = ["trust", *([] if "--list" in args else [str(folder or self.project)]), *args]
        found = main([*line, "--state-dir", str(self.state)])
        self.out, self.err = self.capsys.readouterr()
        assert found == code, (found, self.out, self.err)
        return self.out + self.err

    def used(self) -> bool:
        """Whether a daemon uses the project's prompt now."""
        return self.prompts.templates(str(self.project)).sources["judge"] == "project"


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)


def test_in_a_sub_folder(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder it is the project's prompts that are shown; a folder that is named is that folder."""
    below = desk.project / "src"
    below.mkdir()
    monkeypatch.chdir(below)
    assert main(["trust", "--show", "--state-dir", str(desk.state)]) == 0
    assert str(desk.file) in desk.capsys.readouterr().out
    assert "brings no prompts" in desk("--show", folder=below)


@pytest.mark.shows("I27")
def test_show_trust_change_remove(desk: Desk) -> None:
    """Prompts are shown as a diff, trusted, no longer trusted after a change, and trust is removed."""
    text = desk("--show")
    assert "--- judge (shipped)\n+++ judge (this project)" in text
    assert "+You are kind.\n" in text
    assert "Not trusted, so not used." in text
    assert not desk.used()
    assert "Trusted. A running reflectd uses them" in desk("--yes")
    assert desk.used()
    assert "You trust these prompts" in desk("--yes")
    assert "+You are kind.\n" in desk("--show")
    desk.file.write_text("You are cruel.\n")
    assert not desk.used()
    assert f"{desk.project}  prompts: changed, so not used" in desk("--list")
    desk("--yes")
    assert f"{desk.project}  prompts: used" in desk("--list")
    assert "no longer trusted" in desk("--remove")
    assert not desk.used()
    assert "nothing to do" in desk("--remove")
    assert "You trust no project" in desk("--list")


def test_show_changes_nothing(desk: Desk) -> None:
    """Not even with --yes."""
    desk("--show", "--yes")
    assert not desk.used()
    assert not (desk.state / "trust.json").exists()


def test_without_a_terminal_nothing_is_trusted(desk: Desk) -> None:
    """An agent that runs the command can only look: exit code 2."""
    assert "no terminal to ask on" in desk(code=2)
    assert "no terminal to ask on" in desk("--json", code=2)
    assert not desk.used()


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 1), ("n", 1), ("yep", 1), ("\x04", 1)])
@pytest.mark.full("a pseudo-terminal is driven")
def test_on_a_terminal_it_asks(desk: Desk, answer: str, code: int) -> None:
    """Only y or yes trusts; Enter, anything else and the end of input do not: exit code 1."""
    child = pexpect.spawn(
        sys.executable,
        ["-m", "daemon", "trust", str(desk.project), "--state-dir", str(desk.state)],
        env={**os.environ, "PYTHONPATH": str(REPO)},  # type: ignore[arg-type]
        timeout=60,
    )
    try:
        child.expect(r"\[y/N\] ")
        child.send(answer if answer == "\x04" else f"{answer}\r")
        child.expect(pexpect.EOF)
    finally:
        child.close()
    assert child.exitstatus == code
    assert desk.used() is (code == 0)


@pytest.mark.shows("I27")
@pytest.mark.full("a pseudo-terminal is driven")
def test_on_a_terminal_the_whole_diff_is_shown_in_colour_before_the_question(desk: Desk) -> None:
    """The question comes after it, and added lines are green."""
    child = pexpect.spawn(
        sys.executable,
        ["-m", "daemon", "trust", str(desk.project), "--state-dir", str(desk.state)],
        env={**os.environ, "PYTHONPATH": str(REPO), "TERM": "xterm"},  # type: ignore[arg-type]
        timeout=60,
        encoding="utf-8",
    )
    try:
        child.expect(r"\[y/N\] ")
        text = str(child.before)
        child.send("n\r")
        child.expect(pexpect.EOF)
    finally:
        child.close()
    diff, _, _ = text.partition("Trust these prompts")
    assert "\x1b[32m+You are kind.\x1b[0m" in diff
    assert "\x1b[31m-" in diff
    assert diff != text


def test_as_json(desk: Desk) -> None:
    """One object: what is there, what was done."""
    found = json.loads(desk("--yes", "--json"))
    assert (found["trusted"], found["changed"], found["problems"]) == (True, True, [])
    assert found["directory"] == str(desk.project)
    assert [(f["name"], f["path"]) for f in found["files"]] == [("judge", str(desk.file))]
    assert "+You are kind." in found["files"][0]["diff"]
    (row,) = json.loads(desk("--list", "--json"))["projects"]
    assert (row["directory"], row["state"]) == (str(desk.project), "used")
    found = json.loads(desk("--remove", "--json"))
    assert (found["trusted"], found["changed"]) == (False, True)


@pytest.mark.shows("I27")
def test_a_prompt_cannot_hide_a_part_of_itself(desk: Desk) -> None:
    """Escape sequences, carriage returns and invisible characters of the text are shown as escapes."""
    desk.file.write_bytes("kind\x1b[2K\x1b[1A\rcruel\u202e\u200b\u2028\n".encode())
    desk("--show")
    assert "+kind\\x1b[2K\\x1b[1A\\rcruel\\u202e\\u200b\\u2028\n" in desk.out


def test_what_cannot_be_used(desk: Desk) -> None:
    """No prompts: nothing to do. Only unusable ones: exit code 2. Some: a warning, and the others count."""
    bad = desk.file.with_name("judge_case.txt")
    bad.write_text("nothing")
    assert f"warning: {bad} is not used: it lacks" in desk("--yes")
    assert desk.used()
    desk.file.unlink()
    assert "none of the files in" in desk("--yes", code=2)
    bad.unlink()
    assert "brings no prompts of its own" in desk("--yes")
    assert f"{desk.project}  prompts: gone, so not used: it brings no prompts" in desk("--list")
    assert "there is no folder" in desk(code=2, folder=desk.root / "nowhere")
