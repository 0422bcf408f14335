"""A person's answers and commands in Claude Code: hooks and transcript, as both versions wrote them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from daemon.core import events as ev
from daemon.core.consent import TYPED, Chosen, Question, wish
from daemon.hosts.claude_code.hooks import command_of, events_of, parse_hook
from daemon.hosts.claude_code.record import recorded

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
SECOND = Question("Second one? (reflectd 5f4e3d2c1b0a)", "Rule 2", OPTIONS)
YES = Chosen(FIRST.digest, "Add to CLAUDE.md")
TTY = {"X-CC-Entrypoint": "cli", "X-CC-Attended": "1", "X-CC-Project": "/home/ada/shop"}
NOBODY = {"X-CC-Entrypoint": "sdk-cli", "X-CC-Attended": "0"}
Json = dict[str, Any]
both = pytest.mark.parametrize("version", list(RECORDED))


def lines(*found: Json) -> list[bytes]:
    return [json.dumps(line, ensure_ascii=False).encode() for line in found]


def call_of(line: Json) -> str:
    found: str = line["message"]["content"][0]["id"]
    return found


def heard(version: str, hook: str, headers: dict[str, str] | None = None, **more: Any) -> list[ev.Event]:
    body = json.dumps(RECORDED[version]["hooks"][hook] | more).encode()
    return list(events_of(parse_hook(hook, body, TTY if headers is None else headers), 7))


@both
def test_the_hooks_tell_that_it_was_shown_and_what_was_answered(version: str) -> None:
    """`PermissionRequest` before the dialog, `PostToolUse` with the answer."""
    seen = [e for e in heard(version, "PermissionRequest") if isinstance(e, ev.QuestionShown)]
    assert seen == [ev.QuestionShown(SESSION, 7, (FIRST.digest,))]
    call = RECORDED[version]["hooks"]["PostToolUse"]["tool_use_id"]
    place = f"/home/ada/.claude/projects/-home-ada-shop/{SESSION}.jsonl"
    (told,) = [e for e in heard(version, "PostToolUse") if isinstance(e, ev.QuestionAnswered)]
    assert told == ev.QuestionAnswered(SESSION, 7, call, place, (YES,))
    assert not [e for e in heard(version, "PreToolUse") if isinstance(e, ev.QuestionShown)]


@both
def test_the_hooks_of_a_session_without_a_person_tell_nothing(version: str) -> None:
    """Nor do those of a sub-agent, of another tool, or with answers that only the call has."""
    hooks = RECORDED[version]["hooks"]
    for hook in ("PermissionRequest", "PostToolUse"):
        for headers, more in (
            (NOBODY, {}),
            (None, {"agent_id": "a1"}),
            (None, {"tool_name": "Bash"}),
            (None, {"tool_input": [], "tool_response": []}),
        ):
            found = heard(version, hook, headers, **more)
            assert not [e for e in found if isinstance(e, ev.QuestionShown | ev.QuestionAnswered)]
    bare = {k: v for k, v in hooks["PostToolUse"]["tool_response"].items() if k != "answers"}
    for response in (bare, bare | {"answers": {}}, bare | {"answers": {FIRST.text: ["x"]}}, "", None):
        assert not _answers(heard(version, "PostToolUse", tool_response=response))


def _answers(found: list[ev.Event]) -> list[ev.Event]:
    return [e for e in found if isinstance(e, ev.QuestionAnswered)]


@both
def test_the_file_says_the_same(version: str) -> None:
    """The call and its result; two questions at once; words of their own; and nothing of a dismissal."""
    found = RECORDED[version]
    for name, chosen in (
        ("answered", (YES,)),
        ("two", (Chosen(FIRST.digest, "Add to Workshop"), Chosen(SECOND.digest, "Dismiss"))),
        ("own_words", (Chosen(FIRST.digest, ""),)),
        ("dismissed", ()),
    ):
        if name in found:
            dialog = found[name]
            source = call_of(dialog["call"])
            assert recorded(lines(dialog["call"], dialog["result"]), SESSION, source) == chosen, name


def test_an_answer_by_a_hook_is_no_answer_of_a_person() -> None:
    """2.1.330 writes who allowed the call. 2.1.197 does not: there only the missing dialog tells."""
    dialog = RECORDED["2.1.330"]["by_a_hook"]
    assert dialog["result"]["permissionDecision"]["source"] == "hook"
    assert recorded(lines(dialog["call"], dialog["result"]), SESSION, call_of(dialog["call"])) == ()
    old = RECORDED["2.1.197"]["by_a_hook"]
    assert recorded(lines(old["call"], old["result"]), SESSION, call_of(old["call"])) == (YES,)


FORGERIES: dict[str, Any] = {
    "another session": lambda c, r: r.update(sessionId="another"),
    "a sub-agent's": lambda c, r: r.update(isSidechain=True),
    "a program's": lambda c, r: r.update(entrypoint="sdk-cli"),
    "a failed call": lambda c, r: r["message"]["content"][0].update(is_error=True),
    "no result of the tool": lambda c, r: r.pop("toolUseResult"),
    "another tool": lambda c, r: c["message"]["content"][0].update(name="Bash"),
    "another question than was called": lambda c, r: c["message"]["content"][0]["input"]["questions"][
        0
    ].update(question="Shall I go on? (reflectd 0a1b2c3d4e5f)"),
    "refused": lambda c, r: r.update(permissionDecision={"decision": "reject", "source": "user_temporary"}),
    "a decision of no form": lambda c, r: r.update(permissionDecision="accept"),
    "no call before it": lambda c, r: c.update(type="attachment"),
}


@both
@pytest.mark.parametrize("change", FORGERIES, ids=list(FORGERIES))
def test_a_line_that_does_not_fit_is_no_record(version: str, change: str) -> None:
    """What an agent writes into the file itself must be all that the host writes; then a hook is missing."""
    dialog = copy.deepcopy(RECORDED[version]["answered"])
    FORGERIES[change](dialog["call"], dialog["result"])
    source = RECORDED[version]["hooks"]["PostToolUse"]["tool_use_id"]
    assert recorded(lines(dialog["call"], dialog["result"]), SESSION, source) == ()


@both
def test_two_results_that_contradict_each_other_are_no_record(version: str) -> None:
    """A second line for the same call, before or behind the true one; the same line twice is harmless."""
    dialog = RECORDED[version]["answered"]
    source, forged = call_of(dialog["call"]), copy.deepcopy(dialog["result"])
    forged["toolUseResult"]["answers"] = {FIRST.text: "Dismiss"}
    for order in ([dialog["result"], forged], [forged, dialog["result"]]):
        assert recorded(lines(dialog["call"], *order), SESSION, source) == ()
    twice = [dialog["result"], dialog["result"], b"{", b"[]"]
    assert recorded([*lines(dialog["call"], *twice[:2]), *twice[2:]], SESSION, source) == (YES,)


@both
def test_a_typed_command_in_hook_and_file(version: str) -> None:
    """The bare `/reflect`, with the words as they were typed; another plugin's command is not ours."""
    hooks = RECORDED[version]["hooks"]["UserPromptSubmit"]
    strange, mine = [parse_hook("UserPromptSubmit", json.dumps(h).encode(), TTY) for h in hooks]
    wanted = wish("learn", "Use bun")
    assert command_of(strange, 7) == ()
    (told,) = command_of(mine, 7)
    assert isinstance(told, ev.CommandTyped)
    assert (told.digest, told.message) == (wanted.digest, mine.prompt_id)
    commands = RECORDED[version]["commands"]
    assert recorded(lines(*commands), SESSION, mine.prompt_id) == (Chosen(wanted.digest, TYPED),)
    assert recorded(lines(*commands), SESSION, strange.prompt_id) == ()
    for change in ({"isMeta": True}, {"origin": {"kind": "plugin"}}, {"entrypoint": "sdk-ts"}):
        changed = [c | change for c in commands]
        assert recorded(lines(*changed), SESSION, mine.prompt_id) == ()


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
