"""Which files a commit took in, and which ones git was told to forget."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from daemon.evidence.collect import read
from daemon.evidence.gitfiles import MAX_COMMITS, MAX_FILES, forgotten
from daemon.evidence.work import Work
from tests.support.tables import tables
from tests.support.transcripts import bash

ROWS = tables("gitfiles")
AFTER = "[main 1a2b3c4] x\n 1 file changed, 1 insertion(+)\n create mode 100644 .env\n"


def work(*calls: ToolCall) -> Work:
    """What these calls did."""
    return read(calls, "/repo")


def committed(*calls: ToolCall) -> list[list[str]]:
    """The files of each commit."""
    return [list(c.files) for c in work(*calls).commits]


@pytest.mark.parametrize(("shows", "calls", "files"), ROWS["commits"], ids=[r[0] for r in ROWS["commits"]])
def test_the_files_of_each_commit(shows: str, calls: list[list[str]], files: list[list[str]]) -> None:
    """Of the files that were added, changed, taken back or named by git, those that the commit took in."""
    assert committed(*(bash(*call) for call in calls)) == files  # type: ignore[arg-type]


@pytest.mark.parametrize("tool", ["bash", "Bash"])
def test_what_git_calls_new(tool: str) -> None:
    """The call is known by its number, in both hosts' shells."""
    (found,) = work(bash("git add -A && git commit -m x", AFTER, tool=tool)).commits
    assert (found.files, found.created, found.call) == ((".env",), (".env",), "A1")


@pytest.mark.parametrize(("command", "printed"), ROWS["forgotten"])
def test_every_way_to_forget_a_file_is_seen(command: str, printed: str) -> None:
    """So that no agent is sent on again for what it has done; behind ``xargs`` or in a loop it may be any."""
    found = work(bash("git add -A && git commit -m x", AFTER), bash(command, printed))
    assert forgotten(".env", found.commits[0].at, found)


@pytest.mark.parametrize(("command", "paths"), ROWS["untracked"])
def test_what_git_forgets_stands_after_the_commit(command: str, paths: list[str]) -> None:
    """In a call of its own too; taking a file out of the index, or a word in a text, forgets nothing."""
    found = work(bash("git add -A && git commit -m Fix", AFTER), bash(command))
    assert [gone.path for gone in found.untracked] == paths
    assert all(gone.at > found.commits[0].at for gone in found.untracked)


def test_many_files_and_commits_are_bounded() -> None:
    """The files of a commit, and the commits."""
    many = "[main 1a2b3c4] x\n" + "\n".join(f" create mode 100644 f{i}" for i in range(999))
    assert [len(files) for files in committed(bash("git commit -am x", many))] == [MAX_FILES]
    assert len(committed(*[bash("git commit -qam x")] * (MAX_COMMITS + 9))) == MAX_COMMITS
