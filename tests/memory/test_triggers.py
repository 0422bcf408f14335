"""What a failure hung on, and when an agent is at it again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from daemon.core.episodes import Episode, Trigger
from daemon.core.transcript import ToolCall
from daemon.judge.case import Case, Templates, make_case
from daemon.memory.triggers import MOST, matching, triggers_of, words_of
from tests.support.transcripts import FAILED, PASSED, bash, edit, failed, read, task, write

ASK = "Add a login throttle and keep the tests green"
MIGRATE = "relation \"users\" does not exist\nsqlalchemy.exc.ProgrammingError: no table 'users'"


def case_of(*calls: ToolCall, ask: str = ASK) -> Case:
    return make_case(task(ask, *calls), at=1, nonce="n", templates=Templates("", ""))


def found(*calls: ToolCall, ask: str = ASK) -> set[tuple[str, str]]:
    return {(t.kind, t.text) for t in triggers_of(case_of(*calls, ask=ask))}


def episode(*triggers: Trigger, name: str = "1") -> Episode:
    return Episode(name * 32, "/repo", ASK, -0.5, "It failed.", "Do it better.", "", triggers=triggers)


def hits(call: ToolCall, *triggers: Trigger) -> bool:
    return bool(matching(call, [episode(*triggers)], "/repo"))


BROKE = failed("mcp__deploy__start", "DeployLockedError: locked by 'ci'", target="prod")
REFUSED = failed("bash", "The user rejected permission to use this tool", command="rm -r x")
MENDED = (bash("pytest -q", FAILED, 1), edit(error="oldString not found"), edit())
MENDED += (bash("grep -rn nothing .", "", 1), REFUSED, bash("pytest -q", PASSED))
STUB = write("/repo/src/a.py", "def throttle():\n    # TODO: implement the login throttle\n    pass\n")


@pytest.mark.parametrize(
    ("calls", "hung"),
    [
        ((edit("b.py"), bash("pytest -q tests/a.py", FAILED, 1)), {("command", "pytest tests/a.py")}),
        ((edit("/repo/src/auth.py", error="oldString not found"),), {("file", "src/auth.py")}),
        (
            (BROKE, failed("webfetch", "404")),
            {("tool", "mcp__deploy__start"), ("error", "DeployLockedError: locked by 'ci'")},
        ),
        ((STUB,), {("file", "src/a.py")}),
        (MENDED, set()),
        ((read(),), set()),
    ],
    ids=["check", "edit", "tool", "row", "made good", "only read"],
)
def test_what_a_failure_hung_on(calls: tuple[ToolCall, ...], hung: set[tuple[str, str]]) -> None:
    """A check that failed to the end, a file, another server's tool with its error, a file that a row names;
    nothing that was made good, refused, or only looked at.
    """
    assert found(*calls) == hung


def test_a_case_without_its_transcript_has_no_triggers() -> None:
    """Cases of an older form have none."""
    bare = replace(case_of(bash("make x", "", 2)), transcript=None)
    assert triggers_of(bare) == ()


def test_a_command_that_failed_and_its_error() -> None:
    """What proves it comes first, then the failed calls with their errors, the last one first."""
    calls = (bash("npm run build", "ENOSPC: no space left", 1), bash("alembic upgrade head", MIGRATE, 1))
    triggers = triggers_of(case_of(edit(), *calls))
    assert [(t.kind, t.text) for t in triggers] == [
        ("command", "npm build"),
        ("command", "alembic upgrade head"),
        ("error", "ProgrammingError: no table 'users'"),
        ("error", "ENOSPC: no space left"),
    ]


def test_few_of_each_kind() -> None:
    """The nearest to the end stay."""
    calls = [bash(f"make t{i}", "", 2) for i in range(20)]
    triggers = triggers_of(case_of(*calls))
    assert [t.text for t in triggers] == [f"make t{i}" for i in range(19, 19 - MOST, -1)]


AGAIN = [
    (bash("cd /repo && alembic upgrade head"), Trigger("command", "alembic upgrade head")),
    (bash("npm run build", workdir="/repo/web"), Trigger("command", "cd web && npm build")),
    (edit("/repo/src/auth.py"), Trigger("file", "src/auth.py")),
    (edit("src/auth.py"), Trigger("file", "src/auth.py")),
    (bash("flask db upgrade", MIGRATE, 1), Trigger("error", "ProgrammingError: no table 'users'")),
    (ToolCall("c", "mcp__deploy__start", "running"), Trigger("tool", "mcp__deploy__start")),
]


@pytest.mark.parametrize(("call", "trigger"), AGAIN)
def test_at_it_again(call: ToolCall, trigger: Trigger) -> None:
    """By the command, the file, the error, the tool."""
    assert hits(call, trigger)


@pytest.mark.parametrize(
    ("call", "trigger"),
    [
        (bash("alembic downgrade base"), Trigger("command", "alembic upgrade head")),
        (bash("npm run build", workdir="/repo/api"), Trigger("command", "cd web && npm build")),
        (edit("/repo/tests/auth.py"), Trigger("file", "src/auth.py")),
        (edit("/elsewhere/src/auth.py"), Trigger("file", "src/auth.py")),
        (read("/repo/src/auth.py"), Trigger("file", "src/auth.py")),
        (bash("cat log", MIGRATE, 0), Trigger("error", "ProgrammingError: no table 'users'")),
        (
            bash("flask db upgrade", "no table 'users'", 1),
            Trigger("error", "ProgrammingError: no table 'users'"),
        ),
        (ToolCall("c", "mcp__deploy__stop", "running"), Trigger("tool", "mcp__deploy__start")),
    ],
)
def test_a_near_miss(call: ToolCall, trigger: Trigger) -> None:
    """Something that only looks alike is no reason to remind."""
    assert not hits(call, trigger)


@pytest.mark.parametrize(("call", "trigger"), AGAIN)
def test_a_call_that_meets_a_trigger_holds_its_word(call: ToolCall, trigger: Trigger) -> None:
    """Hooks ask about calls with one of these words only, so none may be missed."""
    (word,) = words_of([episode(trigger)])
    assert word in json.dumps([call.tool, call.input, call.output, call.error])
    assert word.isprintable()
    assert " " not in word


def test_each_episode_once() -> None:
    """One match for an episode, however many of its triggers the call meets; in the given order."""
    file, command = Trigger("file", "src/auth.py"), Trigger("command", "make deploy")
    many = [episode(command, name="1"), episode(file, command, name="2"), episode(file, name="3")]
    assert [(m.episode.id[0], m.trigger) for m in matching(bash("make deploy"), many)] == [
        ("1", command),
        ("2", command),
    ]
