"""Reflector, curator and extraction, driven by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Prompt, Reply, Usage
from daemon.playbook.case import curation, of_messages
from daemon.playbook.flow import Flow, Outcome, curate, extract, reflect
from tests.playbook.books import book, point
from tests.playbook.test_case import TEMPLATES, task

KEYS = st.sampled_from(["analysis", "bullet_tags", "confirmed", "name", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
TAG = {"name": "pat-001", "tag": "helpful", "rationale": "r"}


def driven(flow: Flow, reply: str | Exception) -> tuple[Prompt, Outcome]:
    """The one prompt and how it ended."""
    prompt = next(flow)
    try:
        if isinstance(reply, Exception):
            flow.throw(reply)
        else:
            flow.send(Reply(reply, "scripted", "m1", usage=Usage(10, 5, 0.25)))
    except StopIteration as stopped:
        outcome: Outcome = stopped.value
        return prompt, outcome
    raise AssertionError("it asks a second time")


def says(nonce: str = "n0nce", **fields: Any) -> str:
    return json.dumps({"nonce": nonce, **fields})


@pytest.mark.shows("REQ-REFL-004")
def test_req_refl_004_a_reflection_with_tags_and_a_confirmation() -> None:
    """The plain dict; what waits is confirmed only by this case; the cost is known."""
    confirmed = [{"name": "pat-007", "cites": "E1"}, {"name": "pat-007", "cites": "A1"}]
    said = says(analysis="went well", bullet_tags=[TAG], confirmed=confirmed)
    prompt, found = driven(reflect(task()), said)
    assert (prompt.purpose, prompt.tier, prompt.session) == ("reflect", "fast", "ses_1")
    assert found.output == {"analysis": "went well", "bullet_tags": [TAG]}
    assert [(c.name, c.cites) for c in found.confirmed] == [("pat-007", "E1")]
    assert (found.provider, found.model, found.cost, found.failed) == ("scripted", "m1", 0.25, False)


def test_operations_and_points_come_as_plain_dicts() -> None:
    """A curator sees the reflector's output and the points, never the session."""
    add = {"type": "ADD", "text": "new"}
    points = book(point("pat-001", "a"))
    case = curation({"analysis": "ana"}, points, nonce="n0nce", template=TEMPLATES.curator)
    prompt, found = driven(curate(case), says(reasoning="why", operations=[add]))
    assert found.output == {"reasoning": "why", "operations": [add]}
    assert '"analysis": "ana"' in prompt.text
    case2 = of_messages([], book(), [], nonce="n0nce", template=TEMPLATES.keypoints)
    _, found = driven(extract(case2), says(new_key_points=["n"], evaluations=[]))
    assert found.output == {"new_key_points": ["n"], "evaluations": []}


@pytest.mark.shows("I48", "REQ-REFL-006")
@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Unavailable("no connection"), "no model answered: no connection"),
        (BadReply("it was cut off", raw="{"), "it was cut off"),
        ("prose", "the reply holds no playbook object"),
        (says("other", analysis="x", bullet_tags=[]), "the reply holds no playbook object"),
    ],
)
def test_req_refl_006_a_failure_ends_empty_after_one_call(reply: str | Exception, why: str) -> None:
    """Nothing is asked twice; what could not be read is kept for a person."""
    _, found = driven(reflect(task()), reply)
    assert found.output == {"analysis": "", "bullet_tags": []}
    assert (found.why, found.failed) == (why, True)
    assert bool(found.bad) is not isinstance(reply, Unavailable)


@pytest.mark.shows("INV-REFL-002")
@given(said=st.text(max_size=60) | JSON.map(json.dumps))
def test_inv_refl_002_any_reply_ends_in_the_agreed_form(said: str) -> None:
    """Whatever a model says, nothing is raised, and the output has its two fields."""
    case = of_messages([], book(), [], nonce="n", template=TEMPLATES.reflector)
    _, found = driven(reflect(case), said)
    assert found.output.keys() == {"analysis", "bullet_tags"}
    assert isinstance(found.output["analysis"], str)
    assert all(isinstance(tag, dict) for tag in found.output["bullet_tags"])
