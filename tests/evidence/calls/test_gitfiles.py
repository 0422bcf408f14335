"""Which files a commit took in, and which ones git was told to forget."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from daemon.evidence.calls.gitfiles import MAX_COMMITS, MAX_FILES, forgotten
from daemon.evidence.calls.reading import read
from daemon.evidence.calls.work import Work
from tests.support.transcripts import bash

MADE = "[main 1a2b3c4] Fix\n 2 files changed, 5 insertions(+)\n create mode 100644 {}"


def work(*calls: ToolCall) -> Work:
    """What these calls did."""
    return read(calls, "/repo")


def committed(*calls: ToolCall) -> list[tuple[str, ...]]:
    """The files of each commit."""
    return [c.files for c in work(*calls).commits]


@pytest.mark.parametrize("tool", ["bash", "Bash"])
def test_what_git_calls_new(tool: str) -> None:
    """``git add -A`` names no file, git's own output does; the call is known by its number."""
    (found,) = work(bash("git add -A && git commit -m Fix", MADE.format(".env"), tool=tool)).commits
    assert (found.files, found.created, found.call) == ((".env",), (".env",), "A1")


def test_what_was_added_by_name() -> None:
    """A quiet commit takes in what was added since the last one; all of it at once is no name."""
    calls = (
        bash("git add src/a.py .env"),
        bash("git -C /repo add -f b.py"),
        bash("git add . && git commit -qm Fix"),
        bash("git add c.py && git commit -qm More"),
    )
    assert committed(*calls) == [("src/a.py", ".env", "b.py"), ("c.py",)]


QUIET = "[main 1a2b3c4] Fix\n 1 file changed, 1 insertion(+)"
STATUS = "On branch main\nChanges not staged for commit:\n\tmodified:   .env\n\nno changes added to commit"


@pytest.mark.parametrize(
    "look",
    [
        bash("git status", STATUS),
        bash("git status --short", " M .env\n?? notes.txt"),
        bash("git status --porcelain", "MM .env"),
    ],
    ids=["status", "short", "staged"],
)
@pytest.mark.parametrize("commit", ["-am Fix", "-a -m Fix", "--all -m Fix", "-qam Fix", "-m Fix .env"])
def test_a_tracked_file_that_changed(commit: str, look: ToolCall) -> None:
    """``git commit -a`` names no file, and git calls only new ones; what is tracked, git said before."""
    assert committed(look, bash(f"git commit {commit}", QUIET)) == [(".env",)]
    assert committed(look, bash("git commit -m a", QUIET)) == [()]
    assert committed(bash(f"git commit {commit}", QUIET)) == [()]


@pytest.mark.parametrize(
    "undo",
    ["git checkout -- .env", "git restore .env", "git stash", "git reset --hard HEAD", "git checkout -q ."],
)
def test_a_change_that_was_taken_back_is_in_no_commit(undo: str) -> None:
    """What git called changed was undone before the commit."""
    calls = (bash("git status -s", " M .env"), bash(undo), bash("git commit -am Fix", QUIET))
    assert committed(*calls) == [()]


def test_a_tracked_file_that_was_added_by_name() -> None:
    """The summary counts it among the changed files; where it counts fewer, the file may be ignored."""
    assert committed(bash("git add .env && git commit -m Fix", QUIET)) == [(".env",)]
    assert committed(bash("git add .env a.py && git commit -m Fix", QUIET)) == [()]
    new = MADE.format("a.py").replace("2 files", "1 file")
    assert committed(bash("git add a.py .env; git commit -m Fix", new)) == [("a.py",)]


@pytest.mark.parametrize(
    "script",
    [
        "bash -c 'git add .env && git commit -qm Fix'",
        'sh -ec "git add .env; git commit -qm Fix"',
        "timeout 60 bash -lc 'cd /repo && bash -c \"git add .env && git commit -qm Fix\"'",
    ],
)
def test_git_in_a_shell_of_its_own(script: str) -> None:
    """What ``bash -c`` runs is read like any script."""
    assert committed(bash(script)) == [(".env",)]


@pytest.mark.parametrize(
    "script",
    [
        "git ls-files | grep .env | xargs git rm --cached -q",
        "echo .env | xargs -r -n 1 git rm -q --cached --",
        "find . -name .env -exec git rm -q --cached {} +",
        'for f in .env; do git rm -q --cached "$f"; done',
        "bash -c 'git rm -q --cached .env'",
    ],
)
def test_files_that_git_is_told_to_forget_by_others(script: str) -> None:
    """Behind ``xargs``, ``find`` and in loops the words don't name the file: it may be any."""
    done = work(bash("git add .env && git commit -qm Fix"), bash(script))
    assert forgotten(".env", done.commits[0].at, done)


@pytest.mark.parametrize(
    "output",
    [
        "On branch main\nnothing to commit, working tree clean",
        'no changes added to commit (use "git add")',
        "Aborting commit due to empty commit message.",
        "pre-commit hook failed (add --no-verify to bypass)",
        "fatal: not a git repository",
    ],
)
def test_a_commit_that_was_not_made(output: str) -> None:
    """It takes in nothing; what was added waits for the next one."""
    calls = (bash("git add .env"), bash("git commit -m Fix", output, 1), bash("git commit -qm Fix"))
    assert committed(*calls) == [(".env",)]


def test_what_was_forgotten_before_is_not_in_it() -> None:
    """``git rm --cached`` before the commit."""
    assert committed(bash("git add .env a.py"), bash("git rm --cached .env"), bash("git commit -qm x")) == [
        ("a.py",)
    ]


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("git rm --cached .env", ".env"),
        ("git rm -r --cached secrets", "secrets"),
        ("git reset --soft HEAD~1", "."),
        ("git reset 1a2b3c4", "."),
    ],
)
def test_what_git_forgets_stands_after_the_commit(command: str, path: str) -> None:
    """In a call of its own too, where nothing else gives it a place."""
    found = work(bash("git add -A && git commit -m Fix", MADE.format(".env")), bash(command))
    (gone,) = found.untracked
    assert gone.path == path
    assert gone.at > found.commits[0].at


@pytest.mark.parametrize("command", ["git reset -- a.py", "git status", "echo git rm --cached x"])
def test_what_forgets_nothing(command: str) -> None:
    """Taking a file out of the index, or a word in a text."""
    assert work(bash(command)).untracked == []


def test_quoted_names_and_many_files() -> None:
    """Git quotes names with other letters; a huge commit is bounded, and so is their number."""
    assert committed(bash("git commit -am x", MADE.format('"d\\303\\251j\\303\\240.env"'))) == [
        ("d\\303\\251j\\303\\240.env",)
    ]
    many = "[main 1a2b3c4] x\n" + "\n".join(f" create mode 100644 f{i}" for i in range(999))
    assert [len(files) for files in committed(bash("git commit -am x", many))] == [MAX_FILES]
    assert len(committed(*[bash("git commit -qam x")] * (MAX_COMMITS + 9))) == MAX_COMMITS


AFTER = "[main 1a2b3c4] x\n 1 file changed, 1 insertion(+)\n create mode 100644 .env\n"


@pytest.mark.parametrize(
    "printed",
    [
        f"{AFTER}On branch main\nnothing to commit, working tree clean",
        f"{AFTER}fatal: The current branch x has no upstream branch.",
    ],
)
def test_what_git_says_later_in_the_script_takes_no_commit_back(printed: str) -> None:
    """``git status`` and a push that fails follow a commit that was made."""
    assert committed(bash("git add -A && git commit -m x && git status", printed)) == [(".env",)]


@pytest.mark.parametrize(
    "command", ["HUSKY=0 git commit -m x", "sudo git commit -m x", "time git commit -m x"]
)
def test_wrapped_commands(command: str) -> None:
    """What may stand before a command changes nothing."""
    assert committed(bash(command, AFTER)) == [(".env",)]


def test_what_another_command_made_is_not_the_commits() -> None:
    """A pull lists files too; a commit's own summary ends with its last line."""
    pulled = "Fast-forward\n create mode 100644 server.pem\n[main 1a2b3c4] x\n 1 file changed\n"
    assert committed(bash("git pull && git commit -am x", pulled)) == [()]


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("git rm .env && git commit -m y", "rm '.env'\n[main 2b3c4d5] y\n delete mode 100644 .env"),
        ("rm .env && git commit -am y", "[main 2b3c4d5] y\n 1 file changed\n delete mode 100644 .env"),
        (
            "git mv .env .env.example && git commit -m y",
            "[main 2b3c4d5] y\n rename .env => .env.example (100%)",
        ),
        ("git rm -r --cached . && git add a.py && git commit -m y", "[main 2b3c4d5] y\n 1 file changed"),
        ("git rm --cached '*.env'", ""),
        ("HUSKY=0 git rm --cached .env", ""),
        ("git update-index --force-remove .env", ""),
        ("git revert --no-edit HEAD", ""),
        ("git reset --hard origin/main", ""),
        ("git filter-repo --invert-paths --path .env", ""),
    ],
)
def test_every_way_to_forget_a_file_is_seen(command: str, printed: str) -> None:
    """So that no agent is sent on again for what it has done."""
    found = work(bash("git add -A && git commit -m x", AFTER), bash(command, printed))
    assert forgotten(".env", found.commits[0].at, found)


def test_what_was_unstaged_is_not_in_the_commit() -> None:
    """``git add`` that was taken back, that was refused, or that only said what it would do."""
    for before in ("git reset .env", "git restore --staged .env"):
        calls = (bash("git add .env a.py"), bash(before), bash("git commit -qm x"))
        assert committed(*calls) == [("a.py",)]
    assert committed(bash("git add -n .env"), bash("git commit -qm x")) == [()]


def test_an_amended_commit_replaces_the_one_before() -> None:
    """Git lists all that the new commit has."""
    again = "[main 2b3c4d5] x\n Date: today\n 1 file changed\n create mode 100644 a.py"
    assert committed(bash("git commit -m x", AFTER), bash("git commit --amend --no-edit", again)) == [
        ("a.py",)
    ]
