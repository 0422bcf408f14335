"""Which lessons belong to a task: the question, and what of an answer counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Reply
from daemon.core.reply import Answer
from daemon.core.transcript import Model
from daemon.learning.lessons.picking import LESSON_CHARS, SHOWN, TASK_CHARS, Lesson, pick, prompt_of
from daemon.paths import shipped

TEMPLATE = Path(shipped("prompts"), "lessons.txt").read_text("utf-8")
LESSONS = [Lesson(f"id{n}", f"Do {n} first.", f"Task {n}") for n in range(1, 60)]
SECRET = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def ended(answer: str | Exception, lessons: list[Lesson] = LESSONS) -> Answer[tuple[str, ...]]:
    """What comes of this answer to the one call."""
    flow: Any = pick(prompt_of("Fix it", lessons, TEMPLATE, "n1"), lessons)
    next(flow)
    with pytest.raises(StopIteration) as stop:
        flow.throw(answer) if isinstance(answer, Exception) else flow.send(Reply(answer, "p", "m"))
    found: Answer[tuple[str, ...]] = stop.value.value
    return found


def test_what_is_asked() -> None:
    """Rules apart from data, the data between marks of the call; so many lessons, cut, without secrets."""
    many = [Lesson("x", f"Never use {SECRET}. {'long ' * 900}"), *LESSONS]
    prompt = prompt_of(f"Use {SECRET}. {'y' * 90_000}", many, TEMPLATE, "n1", "ses", Model("p", "m"))
    assert (prompt.purpose, prompt.tier, prompt.session) == ("lessons", "fast", "ses")
    assert prompt.model == Model("p", "m")
    assert "{" in prompt.system
    assert "n1" not in prompt.system
    rows = [json.loads(line) for line in prompt.text.splitlines() if line.startswith('{"n":')]
    assert [row["n"] for row in rows] == list(range(1, SHOWN + 1))
    assert rows[1] == {"n": 2, "task": "Task 1", "lesson": "Do 1 first."}
    assert len(rows[0]["lesson"]) <= LESSON_CHARS + 100
    assert len(prompt.text) < TASK_CHARS + SHOWN * 200 + 2_000
    assert SECRET not in prompt.text


@pytest.mark.parametrize(
    ("numbers", "ids"),
    [([], ()), ([2], ("id2",)), ([3, 1, 3], ("id3", "id1")), ([4, 3, 2, 1], ("id4", "id3", "id2"))],
)
def test_at_most_three_or_none(numbers: list[int], ids: tuple[str, ...]) -> None:
    """In the model's order, each once."""
    found = ended(f"So: {json.dumps({'nonce': 'n1', 'lessons': numbers})}")
    assert found.found == ids


@pytest.mark.shows("I27")
@pytest.mark.parametrize(
    "said",
    [
        '{"nonce": "other", "lessons": [1]}',
        '{"nonce": "n1", "lessons": "1"}',
        '{"nonce": "n1", "lessons": [1.5]}',
        '{"nonce": "n1", "lessons": [41]}',
        '{"nonce": "n1", "lessons": [0]}',
        "number 1",
    ],
)
def test_an_answer_of_another_form_is_no_lesson(said: str) -> None:
    """It is kept as a dead letter. A lesson that was not shown is none, and neither is an echo."""
    found = ended(said)
    assert found.found is None
    assert found.why
    assert [b.purpose for b in found.bad] == ["lessons"]


def test_nobody_answers() -> None:
    """No lesson, a reason, nothing bad."""
    found = ended(Unavailable("down"))
    assert (found.found, found.bad, "down" in found.why) == (None, (), True)
    assert [b.raw for b in ended(BadReply("cut off", "half")).bad] == ["half"]
