"""What a failure hung on, and when a failed call is that failure again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.core.episodes import Episode, Trigger
from daemon.core.transcript import ToolCall
from daemon.judge.case import Case, Templates, make_case
from daemon.memory.triggers import MOST, Triggers, failed, triggers_of
from tests.support.transcripts import FAILED, PASSED, bash, edit, read, task
from tests.support.transcripts import failed as other_tool

ASK = "Add a login throttle and keep the tests green"
ERROR = "sqlalchemy.exc.ProgrammingError: no table 'users'"
LOCKED = "DeployLockedError: locked by 'ci'"
MIGRATE = f'relation "users" does not exist\n{ERROR}'


def case_of(*calls: ToolCall, ask: str = ASK) -> Case:
    return make_case(task(ask, *calls), at=1, nonce="n", templates=Templates("", ""))


def episode(*triggers: Trigger, name: str = "1") -> Episode:
    return Episode(name * 32, "/repo", ASK, -0.5, "It failed.", "Do it better.", "", triggers=triggers)


REFUSED = other_tool("bash", "The user rejected permission to use this tool", command="rm -r x")
MENDED = (bash("pytest -q", FAILED, 1), edit(), REFUSED, bash("pytest -q", PASSED))


@pytest.mark.parametrize(
    ("calls", "hung"),
    [
        ((edit("b.py"), bash("pytest -q tests/a.py", "2 failed", 1)), {("command", "pytest -q tests/a.py")}),
        ((bash("cd web && timeout 60 npm run x > log", "", 2),), {("command", "npm run x")}),
        ((bash("alembic upgrade head", MIGRATE, 1),), {("error", ERROR)}),
        ((other_tool("deploy", LOCKED),), {("error", LOCKED)}),
        (MENDED, set()),
        ((read(),), set()),
    ],
    ids=["check", "command", "error", "tool", "made good", "only read"],
)  # fmt: skip
def test_what_a_failure_hung_on(calls: tuple[ToolCall, ...], hung: set[tuple[str, str]]) -> None:
    """A check that failed to the end, a command that printed no error, an error; nothing that was made good,
    refused or only looked at.
    """
    assert {(t.kind, t.text) for t in triggers_of(case_of(*calls))} == hung


def test_a_case_without_its_transcript_has_its_rows_only() -> None:
    """Cases of an older form."""
    bare = replace(case_of(bash("make x", "", 2)), transcript=None)
    assert triggers_of(bare) == ()
    check = case_of(edit("b.py"), bash("pytest -q", "2 failed", 1))
    assert triggers_of(replace(check, transcript=None)) == (Trigger("command", "pytest -q"),)


def test_few_of_each_kind() -> None:
    """The nearest to the end stay."""
    calls = [bash(f"make t{i}", "", 2) for i in range(20)]
    triggers = triggers_of(case_of(*calls))
    assert [t.text for t in triggers] == [f"make t{i}" for i in range(19, 19 - MOST, -1)]


AGAIN = Triggers([episode(Trigger("command", "npm run build"), Trigger("error", ERROR))])


@pytest.mark.parametrize(
    ("call", "met"),
    [
        (bash("cd web && npm run build 2>&1 | tail", "", 1), True),
        (bash("flask db upgrade", MIGRATE, 1), True),
        (bash("npm run build", "", 0), False),
        (bash("npm run build --watch", "", 1), False),
        (bash("cat log", MIGRATE, 0), False),
        (bash("flask db upgrade", ERROR.replace("users", "user"), 1), False),
        (ToolCall("c", "bash", "running", {"command": "npm run build"}), False),
        (replace(REFUSED, input={"command": "npm run build"}), False),
    ],
)
def test_only_the_same_failure_is_met(call: ToolCall, met: bool) -> None:
    """The whole command or the whole error, of a call that failed by itself; nothing that is only like it."""
    assert bool(AGAIN.met_by(call)) is met


def test_each_episode_once() -> None:
    """However many of its triggers the call meets."""
    error, command = Trigger("error", ERROR), Trigger("command", "make deploy")
    many = [episode(command, name="1"), episode(error, command, name="2"), episode(name="3")]
    met = Triggers(many).met_by(bash("make deploy", ERROR, 1))
    assert sorted(e.id[0] for e in met) == ["1", "2"]
    assert not Triggers([episode(name="3")])


def test_a_call_that_a_person_refused_did_not_fail() -> None:
    """Nor did one that still runs."""
    assert failed(bash("x", "", 1))
    assert not failed(REFUSED)
    assert not failed(ToolCall("c", "bash", "running"))
