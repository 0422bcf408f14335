"""GitHub work of a task: real commands that worked, and where an update may go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.compaction.github import GithubWork, github_work
from daemon.core.transcript import Message, ToolCall, Transcript
from tests.compaction.commands import ISSUE, PR, call, ran, work


@pytest.mark.parametrize(
    "failed",
    [
        call("gh pr create --fill", "pull request create failed: GraphQL: No commits between main and x", 1),
        call("gh pr create", f'a pull request for branch "x" into branch "main" already exists:\n{PR}', 1),
        call("gh pr view 12", "GraphQL: Could not resolve to a PullRequest with the number of 12.", 1),
        call("gh pr view 12 || true", "GraphQL: Could not resolve to a PullRequest with the number of 12."),
        call("gh pr view; true", 'no pull requests found for branch "x"'),
        call("gh issue comment 7 -b x", "HTTP 403: Resource not accessible", 1),
        call("gh pr comment 12 -b x", "gh: command not found", 127),
        call("git commit -m x", "nothing to commit, working tree clean", 1),
        call("git commit -m x; true", "error: pathspec 'x' did not match"),
        call("git push", "! [rejected] main -> main (fetch first)\nerror: failed to push some refs", 1),
        call("git push | tail -1", "error: failed to push some refs to 'github.com:acme/shop'"),
        call("git branch x; true", "fatal: a branch named 'x' already exists"),
        call("gh pr create", status="error", error="denied by the person", exit_code=None),
        call("gh pr create", status="running", exit_code=None),
        call("gh pr create", PR, tool="webfetch"),
        call("", PR),
        ToolCall("c", "bash", "completed", {"command": ["gh", "pr", "create"]}, PR),
    ],
)
def test_failed_commands_do_not_count(failed: ToolCall) -> None:
    """Neither as work nor as a place to write to."""
    assert work(failed) == GithubWork()


def test_part_of_a_failed_script_that_worked() -> None:
    """`git commit && git push` with a rejected push is a commit; a failed script names no target."""
    output = "[main 1a2b3c4] Fix\n 1 file changed\n! [rejected] main -> main\nerror: failed to push"
    assert ran(("git commit -m Fix && git push", output, 1)).tools == ("git commit",)
    found = ran((f"gh pr create --fill && npm test # {ISSUE}", f"{PR}\nFAIL", 1))
    assert (found.tools, found.target) == (("gh pr create",), None)


@pytest.mark.shows("I32")
@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("gh pr create --fill", f"Creating pull request for x\n\n{PR}\n", ("pr", 12, "acme/shop")),
        (
            "git push && gh pr create",
            f"remote:  {PR.replace('12', 'new/x')}\n{PR}\n",
            ("pr", 12, "acme/shop"),
        ),
        ("gh issue create -t x -b y", f"{ISSUE}\n", ("issue", 7, "acme/shop")),
        ("gh pr comment 12 -b x", f"{PR}#issuecomment-1\n", ("pr", 12, "acme/shop")),
        ("gh pr comment -b x 12", "", ("pr", 12, "")),
        ("gh pr comment '#12' -b x -R acme/shop", "", ("pr", 12, "acme/shop")),
        ("gh pr comment 12 -b x --repo=git.example.com/a/b", "", ("pr", 12, "git.example.com/a/b")),
        ("gh pr comment 12 -b x -R '$(curl x)'", "", ("pr", 12, "")),
        (f"gh pr view {PR} --comments", "title: x", ("pr", 12, "acme/shop")),
        ("gh pr view 12", f"title:\tx\nnumber:\t12\nurl:\t{PR}\n--\nlike {PR}3", ("pr", 12, "acme/shop")),
        ("gh pr view", f"title:\tx\nnumber:\t12\nurl:\t{PR}\n", ("pr", 12, "acme/shop")),
        ("gh pr view --json number,url", f'{{"number":12,"url":"{PR}"}}', ("pr", 12, "acme/shop")),
        ("gh pr view --json number -q .number", "12\n", ("pr", 12, "")),
        ("gh issue view 7", "title:\tx\nnumber:\t7\n", ("issue", 7, "")),
        ("gh pr view --json url --jq .url", f"{PR}\n", ("pr", 12, "acme/shop")),
        ("gh pr view 12 --comments", "author:\teve\n--\nhttps://github.com/evil/x/pull/12\n", ("pr", 12, "")),
        ("gh pr ready", '✓ Pull request acme/shop#12 is marked as "ready for review"', ("pr", 12, "")),
        ("gh pr review -a 12", "", ("pr", 12, "")),
        ("gh pr checkout 12", "Switched to branch 'x'", ("pr", 12, "")),
        ("gh pr create", "https://git.example.com/a/b/pull/3\n", ("pr", 3, "git.example.com/a/b")),
        ("gh pr view feature/x", f"url:\t{PR}\nnumber:\t12\n", ("pr", 12, "acme/shop")),
    ],
)
def test_the_target_comes_from_results(command: str, output: str, expected: tuple[str, int, str]) -> None:
    """The number an update may go to is one that a command named or was given."""
    target = ran((command, output)).target
    assert target is not None
    assert (target.kind, target.number, target.repo, target.source) == (*expected, "tool")


@pytest.mark.shows("I27")
@pytest.mark.parametrize(
    ("command", "output"),
    [
        (
            "git push -u origin x",
            "remote: Create one:\nremote:  https://github.com/a/b/pull/new/x",
        ),
        ("gh pr list", f"12\tFix\tx\tOPEN\n{PR}"),
        ("cat README.md", PR),
        ("git log --oneline", "1a2b3c4 Fix (#12)"),
        ("curl -s https://evil.example", f"gh pr comment 12\n{PR}"),
        ("cat notes.md && gh pr create", f"https://github.com/evil/x/pull/99\n{PR}"),
        ("gh pr create --fill", "done"),
        ("gh pr create --fill", f"see also {PR} for more"),
        ("gh pr create --fill", ISSUE),
        ("gh pr edit --title x", "see pull request #12 there"),
        ("gh pr view x", f"title: y\n{PR}\n{PR}3"),
        ("gh pr view --comments", f"author:\teve\n--\nnumber:\t99\nurl:\t{PR}\n--\n"),
        ("gh pr view --json body", '{"body":"\\"number\\":99, \\"url\\":\\"' + PR + '\\""}'),
        ("gh pr checks", "build\tpass\t1m"),
        ("gh pr view 0", ""),
        ("gh pr view 12345678901", ""),
    ],
)
def test_no_target_without_a_clear_number(command: str, output: str) -> None:
    """Links in other output, in bodies and in lists are never a place to write to."""
    assert ran((command, output)).target is None


@pytest.mark.shows("I27")
def test_text_is_never_a_target() -> None:
    """Whatever the request or the agent says, only a tool result opens a place to write to."""
    found = work(request=f"Fix issue #42, see {PR}", said="I work on PR #34. Run gh pr comment 99 now.")
    assert found.active
    assert [(r.kind, r.number, r.source) for r in found.references] == [
        ("issue", 42, "text"),
        ("pr", 12, "text"),
        ("pr", 34, "text"),
    ]
    assert found.target is None


def test_what_was_written_to_counts_before_what_was_looked_at() -> None:
    """The newest of those that the agent worked on; a look at another one does not move it."""
    found = ran(
        ("gh issue view 7", "number:\t7"),
        ("gh pr create --fill", PR),
        ("gh pr view 3", "number:\t3"),
    )
    assert found.target is not None
    assert found.target.name == "PR #12"
    assert [r.name for r in found.references] == ["issue #7", "PR #12", "PR #3"]
    assert ran(("gh issue view 7", ""), ("gh issue view 8", "")).target is not None


@pytest.mark.parametrize(
    "closing",
    [
        call("gh pr merge 12 --squash -d", "✓ Squashed and merged pull request acme/shop#12 (Fix)"),
        call("gh pr merge -m", "✓ Merged pull request acme/shop#12 (Fix)"),
        call("gh pr close -c 'not needed' 12", ""),
        call("gh pr close 12", "✓ Closed pull request acme/shop#12 (Fix)"),
    ],
)
def test_what_is_closed_is_no_target(closing: ToolCall) -> None:
    """Nobody wants an update on what is merged; reopened, it counts again."""
    assert work(call("gh pr create --fill", PR), closing).target is None
    again = work(call("gh pr create --fill", PR), closing, call("gh pr reopen 12", ""))
    assert again.target is not None
    assert again.target.number == 12


@pytest.mark.shows("I6")
def test_only_this_task_counts() -> None:
    """What an earlier task did on GitHub is not this task's work."""
    messages = (
        Message("m1", "user", text="Open a PR", human=True),
        Message("m2", "assistant", calls=(call("gh pr create", PR),), text="PR #12", finish="stop"),
        Message("m3", "user", text="Now rename the module", human=True),
        Message("m4", "assistant", text="Renamed.", finish="stop"),
    )
    assert github_work(Transcript("ses_1", messages)) == GithubWork()


def test_the_newest_texts_are_read_first() -> None:
    """A long session costs bounded work: what was said long ago is left out, not what was said last."""
    said = [
        Message(f"a{i}", "assistant", text=f"PR #{i + 1} " + "x" * 20_000 + f" PR #{i + 101}")
        for i in range(30)
    ]
    found = github_work(Transcript("ses_1", (Message("m1", "user", text="Do PR #7", human=True), *said)))
    assert [r.number for r in found.references] == [7, *range(121, 131)]


def test_claude_codes_shell_is_read_too() -> None:
    """Its tool is called Bash and reports no exit code."""
    assert work(call("gh pr create", PR, None, tool="Bash")).target is not None


PIECES = [
    "gh",
    "pr",
    "create",
    "12",
    "-R",
    "a/b",
    "'",
    '"',
    "$(",
    ")",
    ";",
    "&&",
    "\n",
    "-q",
    "=",
    "git",
    "push",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.text(max_size=80))
def test_any_script_is_read(pieces: list[str], output: str) -> None:
    """Any script and any output: no error, and a target only ever with a number."""
    target = ran((" ".join(pieces), output)).target
    assert target is None or target.number > 0


@pytest.mark.parametrize("piece", ["gh pr view 1;", "$(", "'", "X=$(", "bash -c '", "gh ", "-q "])
def test_hostile_scripts_are_linear(piece: str) -> None:
    """A megabyte of shell is read in bounded work."""
    found = work(call(piece * (1_000_000 // len(piece)), "#" * 1_000_000))
    assert len(found.references) <= 20
