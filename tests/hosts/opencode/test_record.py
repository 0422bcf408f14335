"""A person's answers in opencode: what the plugin tells of recorded events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.core import events as ev
from daemon.core.consent import Chosen, shown, wish
from daemon.hosts.opencode.events import parse_event
from daemon.hosts.opencode.past import parse_export

FILE = Path(__file__).parents[2] / "data" / "consent" / "opencode-1.18.33.json"
RECORDED: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
Json = dict[str, Any]


def asked_and_replied(name: str) -> tuple[Json, Json]:
    """The data of the two facts that the plugin makes of the recorded events (its own tests show that)."""
    asked, replied = (event["properties"] for event in RECORDED[name]["events"])
    tool = asked["tool"]
    session = asked["sessionID"]
    known = {"call": tool["callID"], "questions": asked["questions"]}
    first = {"sessionID": session, "id": asked["id"]}
    return first, {"sessionID": session, "requestID": asked["id"], **known, "answers": replied.get("answers")}


@pytest.mark.parametrize(
    ("name", "labels"),
    [("answered", ["Add to Workshop"]), ("two", ["Add to Workshop", "Dismiss"]), ("own_words", [""])],
)
def test_an_answer(name: str, labels: list[str]) -> None:
    """The labels of one dialog, "" for words of the person's own."""
    first, second = asked_and_replied(name)
    digests = tuple(question.digest for question in shown(second["questions"]))
    expected = tuple(Chosen(digest, label) for digest, label in zip(digests, labels, strict=True))
    session = first["sessionID"]
    assert parse_event("question.asked", 7, first) == (ev.PersonAsked(session, 7, first["id"]),)
    assert parse_event("question.replied", 8, second) == (
        ev.PersonAnswered(session, 8, first["id"]),
        ev.QuestionAnswered(session, 8, second["call"], expected),
    )


def test_a_dismissed_dialog_is_no_answer() -> None:
    """It tells only that it is closed."""
    _, rejected = asked_and_replied("dismissed")
    gone = {key: rejected[key] for key in ("sessionID", "requestID")}
    assert len(parse_event("question.rejected", 7, gone)) == 1


def test_questions_that_are_not_ours_are_only_asked() -> None:
    """Their texts are not even sent; where they are, they give nothing."""
    strange = [{"question": "Which database?"}]
    replied = {"sessionID": "s", "requestID": "q", "questions": strange, "answers": [["x"]]}
    assert parse_event("question.replied", 7, replied) == (ev.PersonAnswered("s", 7, "q"),)


@pytest.mark.shows("I9")
def test_a_typed_command() -> None:
    """What it asks for, in the event and in the stored message; it is no message of a person."""
    before = RECORDED["command"]["before"][0]
    wanted = wish("learn", "Always run `tests` first", "--soft")
    data = {"sessionID": before["sessionID"], "messageID": "m", "arguments": before["arguments"]}
    assert parse_event("command", 7, data) == (ev.CommandTyped(before["sessionID"], 7, "m", wanted.digest),)
    message = RECORDED["command"]["message"]["message"]
    part = RECORDED["command"]["message"]["parts"][0]
    marked = {**part, "metadata": {"reflectd": {"command": before["arguments"]}}}
    plain, ours = (parse_export([{"info": message, "parts": [p]}]).messages[0] for p in (part, marked))
    assert (plain.human, ours.human) == (True, False)
