"""Which ``git`` and ``gh`` commands a script holds."""

from __future__ import annotations

import pytest

from daemon.compaction.github import GithubWork
from daemon.compaction.invocations import invocations
from tests.compaction.commands import PR, call, ran, work


@pytest.mark.parametrize(
    ("command", "tools"),
    [
        ("gh pr create --fill", ["gh pr create"]),
        ("gh pr comment 12 --body 'half done'", ["gh pr comment"]),
        ("gh issue create -t x -b y", ["gh issue create"]),
        ("gh issue comment 7 -b hello", ["gh issue comment"]),
        ("git commit -m 'x'", ["git commit"]),
        ("git commit -n -m 'x'", ["git commit"]),
        ("git -C sub -c user.name=x commit -am x", ["git commit"]),
        ("git push -u origin HEAD", ["git push"]),
        ("git branch feature/x", ["git branch"]),
        ("git branch -d old", ["git branch"]),
        ("git checkout -b feature/x", ["git branch"]),
        ("git switch -c feature/x main", ["git branch"]),
        ("git add . && git commit -m x && git push", ["git commit", "git push"]),
        ("cd sub && GH_TOKEN=x gh pr create", ["gh pr create"]),
        ("/usr/local/bin/gh -R acme/shop pr create", ["gh pr create"]),
        ("gh pr new --fill", ["gh pr create"]),
        ("bash -lc 'gh pr comment 12 -b x'", ["gh pr comment"]),
        ("URL=$(gh pr create --fill); echo $URL", ["gh pr create"]),
        ("if gh pr view 12; then git push; fi", ["gh pr view", "git push"]),
        ("timeout 60 gh pr checks 12 --watch", ["gh pr checks"]),
        ("gh pr edit 12 --title x", ["gh pr edit"]),
        ("gh pr review 12 --approve", ["gh pr review"]),
        ("gh pr create --body \"$(cat <<'EOF'\ngit push\nEOF\n)\"", ["gh pr create"]),
    ],
)
def test_real_invocations(command: str, tools: list[str]) -> None:
    """The seed's tool patterns, however they are wrapped and joined."""
    assert [i.tool for i in invocations(command)] == tools
    assert list(ran((command, "")).tools) == tools


@pytest.mark.parametrize(
    "command",
    [
        'echo "gh pr create"',
        "echo gh pr create",
        "# gh pr create",
        "grep -r 'git push' docs",
        "cat <<'EOF' > notes.md\ngh pr create\nEOF",
        "git commit --dry-run",
        "git push --dry-run",
        "git push -n",
        "gh pr create --help",
        "gh pr create --dry-run",
        "gh pr create --web",
        "gh help pr create",
        "man git-commit",
        "git branch",
        "git branch -a",
        "git branch --show-current",
        "git branch --contains abc123",
        "git branch --list 'feat/*'",
        "git status",
        "git log --oneline",
        "git checkout main",
        "gh repo view",
        "gh run list",
        "gh auth status",
        "gh pr list",
        "gh issue list --search 'gh pr create'",
        "ghq pr create",
        "mygit commit",
        "npm run gh pr create",
        "alias p='gh pr create'",
        "python -c \"print('gh pr create')\"",
        "ssh box gh pr create",
        "which gh pr create",
        "command -v gh",
        "xargs gh pr comment",
    ],
)
def test_what_only_looks_like_one(command: str) -> None:
    """Quoted, commented, documented, dry or merely looking: no GitHub work."""
    assert list(invocations(command)) == []
    assert work(call(command, f"{PR}\n")) == GithubWork()
