"""Why a call failed: the person said no, or it only looked for something."""

from __future__ import annotations

import pytest

from daemon.core.transcript import is_denied, is_refused, looks_up
from tests.support.transcripts import bash, failed


@pytest.mark.shows("I11")
@pytest.mark.parametrize(
    "error",
    [
        "The user rejected permission to use this specific tool call.",
        "The user doesn't want to proceed with this tool use.",
        "Tool execution aborted",
        "[Request interrupted by user for tool use]",
    ],
)
def test_refused_or_stopped(error: str) -> None:
    """The hosts' own words for a person's no."""
    assert is_denied(failed("bash", error, command="git push"))


def test_not_refused() -> None:
    """A fault of the call, or output that only quotes a refusal, is none."""
    assert not is_denied(failed("edit", "oldString not found"))
    assert not is_denied(bash("cat log", "user rejected the offer"))
    assert is_denied(bash("sleep 9", "User aborted the command", None))


def test_a_rule_is_nobodys_no() -> None:
    """What the settings forbid was not refused by a person."""
    rule = failed("bash", "The user has specified a rule which prevents you from using this", command="rm x")
    assert (is_denied(rule), is_refused(rule)) == (True, False)
    assert is_refused(failed("bash", "The user rejected permission to use this specific tool call."))


@pytest.mark.parametrize(
    ("tool", "looks"),
    [
        ("read", True),
        ("webfetch", True),
        ("github_get_issue", True),
        ("edit", False),
        ("github_merge", False),
    ],
)
def test_looks(tool: str, *, looks: bool) -> None:
    """A tool that only reads, of the host or of another server."""
    assert looks_up(tool) is looks
