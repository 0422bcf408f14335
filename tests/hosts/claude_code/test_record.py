"""A person's answers and commands in Claude Code: the hooks, as both versions wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.core import events as ev
from daemon.core.consent import Chosen, Question, wish
from daemon.hosts.claude_code.hooks import command_of, events_of, parse_hook

DATA = Path(__file__).parents[2] / "data" / "consent"
RECORDED: dict[str, Any] = {
    version: json.loads((DATA / f"claude-code-{version}.json").read_text("utf-8"))
    for version in ("2.1.330", "2.1.197")
}
SESSION = "11111111-2222-4333-8444-555555555555"
OPTIONS = (
    ("Add to CLAUDE.md", "a rule, always followed"),
    ("Add to Workshop", "a preference"),
    ("Dismiss", "never suggest it again"),
    ("Skip for now", "ask again next time"),
)
FIRST = Question(
    'Found pattern: "Always use é strict" (3 occurrences).\n\nRule for CLAUDE.md? (reflectd 0a1b2c3d4e5f)',
    "Rule 1",
    OPTIONS,
)
YES = Chosen(FIRST.digest, "Add to CLAUDE.md")
TTY = {"X-CC-Entrypoint": "cli", "X-CC-Attended": "1", "X-CC-Project": "/home/ada/shop"}
NOBODY = {"X-CC-Entrypoint": "sdk-cli", "X-CC-Attended": "0"}
both = pytest.mark.parametrize("version", list(RECORDED))


def heard(version: str, hook: str, headers: dict[str, str] | None = None, **more: Any) -> list[ev.Event]:
    body = json.dumps(RECORDED[version]["hooks"][hook] | more).encode()
    return list(events_of(parse_hook(hook, body, TTY if headers is None else headers), 7))


@both
def test_the_hook_tells_what_was_answered(version: str) -> None:
    """`PostToolUse` with the answer, in the person's words or by a label."""
    call = RECORDED[version]["hooks"]["PostToolUse"]["tool_use_id"]
    assert _answers(heard(version, "PostToolUse")) == [ev.QuestionAnswered(SESSION, 7, call, (YES,))]
    came = RECORDED[version]["hooks"]["PostToolUse"]["tool_response"]
    own = heard(version, "PostToolUse", tool_response=came | {"answers": {FIRST.text: "as I like it"}})
    assert _answers(own) == [ev.QuestionAnswered(SESSION, 7, call, (Chosen(FIRST.digest, ""),))]


@both
def test_the_hooks_of_a_session_without_a_person_tell_nothing(version: str) -> None:
    """Nor do those of a sub-agent, of another tool, or with answers that only the call has."""
    hooks = RECORDED[version]["hooks"]
    for headers, more in (
        (NOBODY, {}),
        (None, {"agent_id": "a1"}),
        (None, {"tool_name": "Bash"}),
        (None, {"tool_input": [], "tool_response": []}),
    ):
        assert not _answers(heard(version, "PostToolUse", headers, **more))
    bare = {k: v for k, v in hooks["PostToolUse"]["tool_response"].items() if k != "answers"}
    for response in (bare, bare | {"answers": {}}, bare | {"answers": {FIRST.text: ["x"]}}, "", None):
        assert not _answers(heard(version, "PostToolUse", tool_response=response))


def _answers(found: list[ev.Event]) -> list[ev.Event]:
    return [e for e in found if isinstance(e, ev.QuestionAnswered)]


@both
def test_a_typed_command(version: str) -> None:
    """The bare `/reflect`, with the words as they were typed; another plugin's command is not ours."""
    hooks = RECORDED[version]["hooks"]["UserPromptSubmit"]
    strange, mine = [parse_hook("UserPromptSubmit", json.dumps(h).encode(), TTY) for h in hooks]
    wanted = wish("learn", "Use bun")
    assert command_of(strange, 7) == ()
    (told,) = command_of(mine, 7)
    assert isinstance(told, ev.CommandTyped)
    assert (told.digest, told.message) == (wanted.digest, mine.prompt_id)


@both
def test_a_command_that_nobody_typed_tells_nothing(version: str) -> None:
    """A prompt of a plugin, of `claude -p`, or without an id."""
    body = RECORDED[version]["hooks"]["UserPromptSubmit"][1]
    for headers, more in (
        (NOBODY, {}),
        (TTY, {"reflectd_origin": "plugin"}),
        (TTY, {"prompt_id": None}),
        (TTY, {"prompt": "/reflection learn x"}),
    ):
        assert command_of(parse_hook("UserPromptSubmit", json.dumps(body | more).encode(), headers), 7) == ()
    plugin = json.dumps(body | {"prompt": "/reflectd:reflect status"}).encode()
    (told,) = command_of(parse_hook("UserPromptSubmit", plugin, TTY), 7)
    assert isinstance(told, ev.CommandTyped)
    assert told.digest == ""
