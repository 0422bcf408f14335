"""What a person said in a session that is read as a whole, as from an export of opencode."""

from __future__ import annotations

import json
from dataclasses import replace

from daemon.core.guards import ABORT_ERROR
from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.hosts.opencode.export import parse_export
from daemon.rules.said import said_in
from harness.machine.sandbox import REPO

NO = "The user rejected permission to use this specific tool call"
REFUSED = f"{NO} with the following feedback: use pnpm, not npm"


def human(name: str, text: str) -> Message:
    return Message(name, "user", 5, text, human=True)


def answer(name: str, text: str, *calls: ToolCall, error: str = "") -> Message:
    return Message(name, "assistant", 6, text, calls=calls, error=error)


def test_a_message_comes_with_the_agents_words_before_it() -> None:
    """All that the agent said since the last message; nothing that we or the host said."""
    messages = (
        human("u1", "Add a list"),
        answer("a1", "I look at the code."),
        answer("a2", "I added a list."),
        Message("n", "user", 6, "## Reflection-3: go on", order="rfl_1"),
        answer("a3", "Now it is done."),
        human("u2", "No, use a table"),
        human("u3", "   "),
    )
    first, second = said_in(Transcript("ses_1", messages))
    assert (first.text, first.prior, first.message, first.at) == ("Add a list", "", "u1", 5)
    assert second.prior == "I look at the code.\n\nI added a list.\n\nNow it is done."
    assert (second.session, second.interrupted, second.refusal) == ("ses_1", False, False)


def test_words_at_a_refused_call_and_after_esc() -> None:
    """opencode's own words for a refusal with feedback; an aborted answer marks what comes after it."""
    call = ToolCall("c1", "bash", "error", {"command": "npm install x"}, error=REFUSED, ended=7)
    plain = replace(call, id="c2", error=f"{NO}.")
    messages = (
        human("u1", "Install x"),
        answer("a1", "I install it.", call, plain, error=ABORT_ERROR),
        human("u2", "only the types"),
    )
    _, refused, after = said_in(Transcript("s", messages))
    assert (refused.text, refused.refusal, refused.at) == ("use pnpm, not npm", True, 7)
    assert refused.prior == "I install it.\n\nbash: npm install x"
    assert refused.message == "a1/c1"
    assert after.interrupted


def test_a_real_export() -> None:
    """opencode 1.18: what the person typed, and not what reflectd told the agent."""
    found = json.loads((REPO / "tests" / "data" / "exports" / "opencode_1.18.json").read_bytes())
    said = said_in(parse_export(found))
    assert [s.text for s in said] == ["Write hello.py; make test must pass"]
    assert said[0].session.startswith("ses_")
