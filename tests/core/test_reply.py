"""The agreed object of a reply: all wanted keys, the call's nonce, the last one."""

from __future__ import annotations

import json

import pytest

from daemon.core.errors import BadReply
from daemon.core.llm import Prompt, Reply, Usage
from daemon.core.reply import Talk, wanted_object

GOOD = {"nonce": "n1", "action": "a", "confidence": 1}


@pytest.mark.shows("I18", "I27")
def test_an_object_needs_every_wanted_key() -> None:
    """One that lacks a key or the nonce is passed over, wherever it stands."""
    lacks = json.dumps({"nonce": "n1", "action": "last"})
    other = json.dumps({**GOOD, "nonce": "n2"})
    text = f"{json.dumps(GOOD)}\n{lacks}\n{other}"
    assert wanted_object(Reply(text, "t"), "n1", "action", "confidence") == GOOD
    assert wanted_object(Reply(text, "t"), "n1", "action")["action"] == "last"
    with pytest.raises(BadReply, match="no stuck object") as e:
        wanted_object(Reply(lacks, "t"), "n1", "action", "confidence", what="stuck")
    assert e.value.raw == lacks


@pytest.mark.shows("I48")
def test_a_talk_knows_who_answered_and_what_it_cost() -> None:
    """An unknown price makes the sum unknown, never smaller; a reply cut off is kept as a bad form."""
    talk = Talk()
    assert (talk.by, talk.cost) == (("", ""), None)
    for cost in (0.5, 0.25):
        asking = talk.ask(Prompt("stuck", "fast", "s", "t"))
        next(asking)
        with pytest.raises(StopIteration):
            asking.send(Reply("x", "host", "m1", usage=Usage(1, 1, cost)))
    assert (talk.by, talk.cost, len(talk.prompts)) == (("host", "m1"), 0.75, 2)
    asking = talk.ask(Prompt("stuck", "fast", "s", "t"))
    next(asking)
    with pytest.raises(StopIteration):
        asking.throw(BadReply("cut off", raw='{"a'))
    assert (talk.why, talk.bad[0].raw, talk.bad[0].purpose) == ("cut off", '{"a', "stuck")
    talk.replies.append(Reply("y", "host"))
    assert talk.cost is None
