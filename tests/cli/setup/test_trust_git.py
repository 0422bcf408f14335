"""``reflectd trust --git`` on a real repository: what is shown, asked and kept, and its exit codes."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pexpect
import pytest

from daemon.cli.main import main
from daemon.clock import SystemClock
from daemon.core.errors import Unavailable
from daemon.files.trust import Trust
from daemon.files.workspace import Workspace
from harness.machine.sandbox import REPO
from harness.machine.waiting import PATIENCE_S
from tests.support.machine.repository import Repository, Trap


@dataclass
class Desk:
    """A repository, the command, and what a running daemon would do."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def __post_init__(self) -> None:
        self.repository, self.state = Repository(self.root / "project"), self.root / "state"
        self.top = self.repository.top
        self.workspace = Workspace(Trust(self.state / "trust.json", SystemClock()), PATIENCE_S)

    def __call__(self, *args: str, code: int = 0, folder: Path | None = None) -> str:
        line = ["trust", *([] if "--list" in args else [str(folder or self.top), "--git"]), *args]
        found = main([*line, "--state-dir", str(self.state)])
        self.out, self.err = self.capsys.readouterr()
        assert found == code, (found, self.out, self.err)
        return self.out + self.err

    def used(self) -> bool:
        """Whether a daemon runs git here now."""
        try:
            self.workspace.entries(str(self.top))
        except Unavailable:
            return False
        return True


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)


def test_show_trust_change_remove(desk: Desk) -> None:
    """The configuration is shown, trusted, no longer trusted after a change, and trust is removed."""
    text = desk("--show")
    assert f"repository  {desk.top}\ngit folder  {desk.top}/.git\n" in text
    assert f"{desk.top}/.git/config\n    [core]\n" in text
    assert "Not trusted, so git is not run." in text
    assert not desk.used()
    assert "Trusted, until git's configuration or attributes here change." in desk("--yes")
    assert desk.used()
    text = desk("--yes")
    assert "You trust git here." in text
    assert "[core]" not in text
    assert f"{desk.top}  git: used" in desk("--list")
    desk.repository.write(".gitattributes", "* text\n")
    assert not desk.used()
    assert f"{desk.top}  git: changed, so not used: run `reflectd trust --git` there" in desk("--list")
    assert "    * text\n" in desk("--yes")
    assert desk.used()
    assert "would no longer" in desk("--remove", "--dry-run")
    assert desk.used()
    assert "no longer trusted. A running reflectd stops running git there" in desk("--remove")
    assert not desk.used()
    assert "nothing to do" in desk("--remove")
    assert "You trust no project" in desk("--list")


def test_trust_in_git_and_in_prompts_are_two(desk: Desk) -> None:
    """One is given, listed and taken back without the other."""
    desk.repository.write(".reflection/prompts/judge.txt", "You are kind.\n")
    assert main(["trust", str(desk.top), "--yes", "--state-dir", str(desk.state)]) == 0
    assert not desk.used()
    desk("--yes")
    assert desk(folder=desk.top / ".reflection")  # the trust is that of the repository
    text = desk("--list")
    assert f"{desk.top}  prompts: used\n{desk.top}  git: used\n" in text
    desk("--remove", folder=desk.top / ".reflection")
    assert f"{desk.top}  prompts: used\n" in desk("--list")
    assert not desk.used()


def test_dry_run_and_show_change_nothing(desk: Desk) -> None:
    """Not even with --yes."""
    assert "You would be asked" in desk("--dry-run", "--yes")
    desk("--show", "--yes")
    assert not desk.used()
    assert not (desk.state / "trust.json").exists()


def test_without_a_terminal_nothing_is_trusted(desk: Desk) -> None:
    """An agent that runs the command can only look: exit code 2."""
    assert "no terminal to ask on" in desk(code=2)
    assert "no terminal to ask on" in desk("--json", code=2)
    assert not desk.used()


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 1)])
@pytest.mark.full("a pseudo-terminal is driven")
def test_on_a_terminal_it_asks(desk: Desk, answer: str, code: int) -> None:
    """Only a yes trusts; anything else does not: exit code 1."""
    child = pexpect.spawn(
        sys.executable,
        ["-m", "daemon", "trust", str(desk.top), "--git", "--state-dir", str(desk.state)],
        env={**os.environ, "PYTHONPATH": str(REPO)},  # type: ignore[arg-type]
        timeout=PATIENCE_S,
    )
    try:
        child.expect(r"May reflectd run `git status` in .*\[y/N\] ")
        child.send(f"{answer}\r")
        child.expect(pexpect.EOF)
    finally:
        child.close()
    assert child.exitstatus == code
    assert desk.used() is (code == 0)


def test_as_json(desk: Desk) -> None:
    """One object: what is there, what was done. Secrets are left out."""
    desk.repository.git("config", "remote.origin.url", "https://me:hunter2secret@example.org/x")
    found = json.loads(desk("--yes", "--json"))
    assert (found["trusted"], found["changed"], found["problems"]) == (True, True, [])
    assert found["directory"] == str(desk.top)
    ((path, text),) = [(f["path"], f["text"]) for f in found["files"]]
    assert path == str(desk.top / ".git" / "config")
    assert "example.org" in text
    assert "hunter2secret" not in text
    (row,) = json.loads(desk("--list", "--json"))["git"]
    assert (row["directory"], row["state"]) == (str(desk.top), "used")
    found = json.loads(desk("--remove", "--json"))
    assert (found["trusted"], found["changed"]) == (False, True)


def test_where_git_cannot_be_used(desk: Desk, tmp_path: Path) -> None:
    """Filters, or no repository: it says why and trusts nothing, exit code 2. Looking runs nothing."""
    trap = Trap(tmp_path / "trap")
    desk("--yes")
    desk.repository.git("config", "filter.lfs.clean", trap.program("filter"))
    desk.repository.git("config", "core.fsmonitor", trap.program("fsmonitor"))
    assert "git has filters here (filter.lfs.clean)" in desk("--show")
    assert "git has filters here" in desk("--yes", code=2)
    assert "git: refused, so not used" in desk("--list")
    assert "is in no git repository" in desk("--yes", code=2, folder=tmp_path)
    assert trap.ran() == set()
    (desk.top / ".git").rename(tmp_path / "away")
    assert f"{desk.top}  git: gone, so not used" in desk("--list")
    desk("--remove")
    assert "You trust no project" in desk("--list")


def test_it_says_that_the_setting_is_off(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust alone does nothing; with the setting there is nothing to say."""
    assert "judge.git_status is false" in desk("--yes")
    monkeypatch.setenv("REFLECTD_JUDGE_GIT_STATUS", "true")
    assert "judge.git_status" not in desk("--show")


def test_the_configuration_cannot_hide_a_part_of_itself(desk: Desk) -> None:
    """Escape sequences and invisible characters of the file are shown as escapes."""
    with (desk.top / ".git" / "config").open("ab") as file:
        file.write("# kind\x1b[2K\x1b[1A\rcruel\u202e\n".encode())
    desk("--show")
    assert "    # kind\\x1b[2K\\x1b[1A\\rcruel\\u202e\n" in desk.out
