"""GitHub work of a task: real commands that worked, and where an update may go."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.compaction.github import MAX_NAMED, GithubWork, commands, github_work
from daemon.core.transcript import Message, ToolCall, Transcript
from tests.support.tables import tables

ROWS = tables("github")
PR = "https://github.com/acme/shop/pull/12"
ISSUE = "https://github.com/acme/shop/issues/7"
Ran = tuple[str, str] | tuple[str, str, int]


def call(command: str, output: str = "", exit_code: int | None = 0, **changes: Any) -> ToolCall:
    values: dict[str, Any] = {"id": "c", "tool": "bash", "status": "completed"}
    values |= {"input": {"command": command}, "output": output, "exit": exit_code}
    return ToolCall(**(values | changes))


def work(*calls: ToolCall, request: str = "Do it", said: str = "") -> GithubWork:
    messages = (
        Message("m1", "user", text=request, human=True),
        Message("m2", "assistant", text=said, calls=calls, finish="stop"),
    )
    return github_work(Transcript("ses_1", messages))


def ran(*commands: Ran) -> GithubWork:
    return work(*(call(*command) for command in commands))


NOT_RUN = (
    call("gh pr create", status="error", error="denied by the person", exit_code=None),
    call("gh pr create", status="running", exit_code=None),
    call("gh pr create", PR, tool="webfetch"),
    ToolCall("c", "bash", "completed", {"command": ["gh", "pr", "create"]}, PR),
)


@pytest.mark.parametrize("failed", [*(call(*row) for row in ROWS["failed"]), *NOT_RUN])
def test_failed_commands_do_not_count(failed: ToolCall) -> None:
    """Neither as work nor as a place to write to."""
    assert work(failed) == GithubWork()


def test_part_of_a_failed_script_that_worked() -> None:
    """`git commit && git push` with a rejected push is a commit; a failed script names no target."""
    output = "[main 1a2b3c4] Fix\n 1 file changed\n! [rejected] main -> main\nerror: failed to push"
    assert ran(("git commit -m Fix && git push", output, 1)).tools == ("git commit",)
    found = ran((f"gh pr create --fill && npm test # {ISSUE}", f"{PR}\nFAIL", 1))
    assert (found.tools, found.target) == (("gh pr create",), None)


@pytest.mark.shows("I27", "I32")
@pytest.mark.parametrize(("command", "output", "expected"), ROWS["targets"])
def test_the_target_comes_from_results(command: str, output: str, expected: list[str | int] | None) -> None:
    """An update may go to a number that a command named or was given, never to a link in other output."""
    target = ran((command, output)).target
    assert (target and [target.kind, target.number, target.repo]) == expected


@pytest.mark.parametrize(("command", "tools"), ROWS["invocations"])
def test_invocations(command: str, tools: list[str]) -> None:
    """The seed's tool patterns, wrapped and joined; not what is quoted, commented, dry or merely looking."""
    assert [c.tool for c in commands(command)] == tools
    assert list(ran((command, "")).tools) == tools
    assert tools or work(call(command, f"{PR}\n")) == GithubWork()


@pytest.mark.shows("I27")
def test_text_is_never_a_target() -> None:
    """Whatever the request or the agent says, only a tool result opens a place to write to."""
    found = work(request=f"Fix issue #42, see {PR}", said="I work on PR #34. Run gh pr comment 99 now.")
    assert found.named == ("issue #42", "PR #12", "PR #34")
    assert found.target is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("See #123.", ("#123",)),
        ("PR #34 and PR34", ("PR #34",)),
        ("issue #42, then a pull request", ("issue #42", "a pull request")),
        ("https://github.com/acme/shop/issues/3", ("issue #3",)),
        ("a & #x1F; c#12, x/y#7, PRs, issues", ()),
    ],
)
def test_the_texts_that_the_seed_names(text: str, named: tuple[str, ...]) -> None:
    """`#123`, `PR #34`, `PR34`, `issue #42`, `pull request`, and addresses; each once."""
    assert work(request=text).named == named


def test_what_was_written_to_counts_before_what_was_looked_at() -> None:
    """The newest of those that the agent worked on; a look at another one does not move it."""
    calls = (("gh issue view 7", ""), ("gh pr create --fill", PR), ("gh pr view 3", ""))
    found = ran(*calls)
    assert found.target is not None
    assert found.target.name == "PR #12"
    assert ran(("gh issue view 7", ""), ("gh issue view 8", "")).target is not None


@pytest.mark.parametrize(
    "closing",
    [
        call("gh pr merge 12 --squash -d", "✓ Squashed and merged pull request acme/shop#12 (Fix)"),
        call("gh pr close 12", "✓ Closed pull request acme/shop#12 (Fix)"),
        call("gh pr merge --squash", "✓ Merged pull request acme/shop#12 (Fix)"),
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
    assert found.named == ("PR #7", *(f"PR #{n}" for n in range(121, 131)))


def test_claude_codes_shell_is_read_too() -> None:
    """Its tool is called Bash and reports no exit code."""
    assert work(call("gh pr create", PR, None, tool="Bash")).target is not None


@pytest.mark.parametrize("piece", ["gh pr view 1;", "$(", "'", "X=$(", "bash -c '", "gh ", "-q "])
def test_hostile_scripts_are_linear(piece: str) -> None:
    """A megabyte of shell is read in bounded work."""
    found = work(call(piece * (1_000_000 // len(piece)), "#" * 1_000_000))
    assert len(found.named) <= MAX_NAMED
