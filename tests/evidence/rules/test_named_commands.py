"""A command that the request spells out and that no call ran."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from daemon.evidence.rules.named_commands import MAX_COMMANDS
from tests.support.transcripts import bash, edit, evidence_of


def named(ask: str | tuple[str, ...], *calls: ToolCall) -> list[str]:
    """The commands in rows of this rule; none of them is open."""
    rows = [r for r in evidence_of(ask, edit(), *calls).of("unmet") if r.detail.endswith("` was asked for")]
    assert not any(r.open for r in rows)
    return [r.detail.split("`")[1] for r in rows]


def test_spelled_out_and_never_run() -> None:
    """Each command once, in its own words."""
    ask = "Fix it. Then run `npm run lint:all` and `git push origin HEAD:review`. Again: `npm run lint:all`."
    assert named(ask) == ["npm run lint:all", "git push origin HEAD:review"]
    assert named(("Fix it", "and run `make check`")) == ["make check"]
    assert named("Fix it and run `make check FULL=1`.", bash("make check")) == ["make check FULL=1"]


@pytest.mark.parametrize(
    "command",
    ["make check", "cd /repo && make check 2>&1 | tail -5", "make  check", "FOO=1 make check || true"],
)
@pytest.mark.parametrize("tool", ["bash", "Bash"])
def test_run_in_any_clothes(command: str, tool: str) -> None:
    """With a folder, a pipe or more blanks it is the same command."""
    assert named("Fix it and run `make check`.", bash(command, tool=tool)) == []


NONE = (
    "Rename `make_check` to `check`.",
    "`TypeError: x is undefined` comes up. Fix it.",
    "Use `src/a.py`.",
    "Fix it. Do not run `make check`.",
)


def test_what_is_no_command() -> None:
    """Names, messages, paths, what is forbidden; a sub-agent may have run it; a plan runs nothing."""
    assert [ask for ask in NONE if named(ask)] == []
    assert named("Fix it and run `make check`.", ToolCall("t", "task", "completed", {})) == []
    assert evidence_of("Make a plan: when do we run `make check`?").of("unmet") == ()


def test_many_are_bounded() -> None:
    """A request with a list of commands names some."""
    ask = "Run " + ", ".join(f"`make test-{i}`" for i in range(20))
    assert len(named(ask)) == MAX_COMMANDS
