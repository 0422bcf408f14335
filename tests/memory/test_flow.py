"""Reflexion and evaluation as flows, driven by hand."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Reply, Usage
from daemon.memory.case import Case
from daemon.memory.flow import evaluate, reflect

CASE = Case("q", ("c",), "a", "{reward_score}{query}{context}{answer}{evaluation_reasoning}", nonce="n1")
ASKED = Case("q", ("c",), "a", "{nonce}{query}{context}{answer}", nonce="n1")


def ended(flow: Any, answer: Reply | Exception) -> Any:
    """What the flow ends with after its one call."""
    next(flow)
    with pytest.raises(StopIteration) as stop:
        flow.throw(answer) if isinstance(answer, Exception) else flow.send(answer)
    return stop.value.value


def test_an_answer() -> None:
    """One call; tokens and model are told on."""
    found = ended(reflect(CASE), Reply("Lesson: Look first.", "p", "m", usage=Usage(5, 6)))
    assert (found.reflection.lesson, found.model, found.usage) == ("Look first.", "m", Usage(5, 6))
    said = Reply('{"nonce": "n1", "reasoning": "r", "reward": 0.5}', "p", "m")
    assert ended(evaluate(ASKED), said).evaluation.reward == 0.5


@pytest.mark.parametrize("flow", [lambda: reflect(CASE), lambda: evaluate(ASKED)])
def test_no_answer(flow: Any) -> None:
    """A model that is not there leaves a reason and nothing bad; a reply of another form is kept."""
    found = ended(flow(), Unavailable("down"))
    assert ("down" in found.why, found.bad) == (True, ())
    assert [b.raw for b in ended(flow(), BadReply("cut off", "half")).bad] == ["half"]
    assert len(ended(flow(), Reply("  ", "p")).bad) == 1


def test_a_reply_without_its_form() -> None:
    """A verdict of another question is no lesson for the daemon; for a caller of the library it is one."""
    said = Reply('{"complete": false, "feedback": "The tests fail."}', "p", "m")
    found = ended(reflect(CASE), said)
    assert (found.reflection, len(found.bad)) == (None, 1)
    assert ended(reflect(CASE, whole=True), said).reflection.lesson == said.text
