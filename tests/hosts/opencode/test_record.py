"""A person's answers in opencode: what the plugin tells of recorded events, and the host's own record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.core import events as ev
from daemon.core.consent import TYPED, Chosen, shown, wish
from daemon.hosts.opencode.events import parse_event
from daemon.hosts.opencode.export import parse_export
from daemon.hosts.opencode.record import parse_record

FILE = Path(__file__).parents[2] / "data" / "consent" / "opencode-1.18.33.json"
RECORDED: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
Json = dict[str, Any]


def asked_and_replied(name: str) -> tuple[Json, Json]:
    """The data of the two facts that the plugin makes of the recorded events (its own tests show that)."""
    asked, replied = (event["properties"] for event in RECORDED[name]["events"])
    tool = asked["tool"]
    session = asked["sessionID"]
    known = {"call": tool["callID"], "messageID": tool["messageID"], "questions": asked["questions"]}
    first = {"sessionID": session, "id": asked["id"], "questions": asked["questions"]}
    return first, {"sessionID": session, "requestID": asked["id"], **known, "answers": replied.get("answers")}


@pytest.mark.parametrize(
    ("name", "labels"),
    [("answered", ["Add to Workshop"]), ("two", ["Add to Workshop", "Dismiss"]), ("own_words", [""])],
)
def test_events_and_record_say_the_same(name: str, labels: list[str]) -> None:
    """The answer that the event told is in the stored call too."""
    first, second = asked_and_replied(name)
    digests = tuple(question.digest for question in shown(first["questions"]))
    expected = tuple(Chosen(digest, label) for digest, label in zip(digests, labels, strict=True))
    session = first["sessionID"]
    assert parse_event("question.asked", 7, first) == (
        ev.PersonAsked(session, 7, first["id"]),
        ev.QuestionShown(session, 7, digests),
    )
    call, message = second["call"], second["messageID"]
    assert parse_event("question.replied", 8, second) == (
        ev.PersonAnswered(session, 8, first["id"]),
        ev.QuestionAnswered(session, 8, call, message, expected),
    )
    state = RECORDED[name]["part"]["state"]
    stored = {
        "status": state["status"],
        "questions": state["input"]["questions"],
        "answers": state["metadata"]["answers"],
    }
    assert parse_record(stored) == expected


def test_a_dismissed_dialog_is_no_answer() -> None:
    """Nor is one that is still open, or a record of nothing."""
    state = RECORDED["dismissed"]["part"]["state"]
    questions = state["input"]["questions"]
    assert parse_record({"status": state["status"], "questions": questions, "answers": None}) == ()
    assert parse_record({"status": "running", "questions": questions, "answers": [["Dismiss"]]}) == ()
    assert parse_record({}) == ()
    assert parse_record({"questions": 1, "answers": {}, "command": None}) == ()
    _, rejected = asked_and_replied("dismissed")
    gone = {key: rejected[key] for key in ("sessionID", "requestID")}
    assert len(parse_event("question.rejected", 7, gone)) == 1


def test_questions_that_are_not_ours_are_only_asked() -> None:
    """Their texts are not even sent; where they are, they give nothing."""
    strange = {"sessionID": "s", "id": "q", "questions": [{"question": "Which database?"}]}
    assert parse_event("question.asked", 7, strange) == (ev.PersonAsked("s", 7, "q"),)
    replied = {"sessionID": "s", "requestID": "q", "questions": strange["questions"], "answers": [["x"]]}
    assert parse_event("question.replied", 7, replied) == (ev.PersonAnswered("s", 7, "q"),)


@pytest.mark.shows("I9")
def test_a_typed_command() -> None:
    """What it asks for, in the event and in the stored message; it is no message of a person."""
    before = RECORDED["command"]["before"][0]
    wanted = wish("learn", "Always run `tests` first", "--soft")
    data = {"sessionID": before["sessionID"], "messageID": "m", "arguments": before["arguments"]}
    assert parse_event("command", 7, data) == (
        ev.CommandTyped(before["sessionID"], 7, "m", "", wanted.digest),
    )
    assert parse_record({"command": before["arguments"]}) == (Chosen(wanted.digest, TYPED),)
    assert parse_record({"command": "status"}) == ()
    message = RECORDED["command"]["message"]["message"]
    part = RECORDED["command"]["message"]["parts"][0]
    marked = {**part, "metadata": {"reflectd": {"command": before["arguments"]}}}
    plain, ours = (parse_export([{"info": message, "parts": [p]}]).messages[0] for p in (part, marked))
    assert (plain.human, ours.human) == (True, False)
