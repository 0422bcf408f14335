"""The question which lessons of a project belong to a task that a person just gave.

The fast model reads the task and at most ``SHOWN`` lessons and names at most three, or none. One call, never
a second one: without an answer, or with one out of form, there is no lesson. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...core.cuts import head_and_tail
from ...core.errors import BadReply
from ...core.llm import Prompt, Reply
from ...core.reply import answered, wanted_object
from ...core.template import divided
from ...redact import redact
from .episodes import TOP_K

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ...core.reply import Answer
    from ...core.transcript import Model

PURPOSE: Final = "lessons"
MARK: Final = "Lesson from Episode Memory"
SAID: Final = "Past experience from similar query suggests: {}"
SHOWN: Final = 40
TASK_CHARS: Final = 4_000
QUERY_CHARS: Final = 200
LESSON_CHARS: Final = 400
TOKENS_OUT: Final = 200
SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "nonce": {"type": "string"},
        "lessons": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["nonce", "lessons"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson as the model reads it. ``task``: what went wrong; "" when nobody knows."""

    id: str
    text: str
    task: str = ""


def prompt_of(
    task: str,
    lessons: Sequence[Lesson],
    template: str,
    nonce: str,
    session: str = "",
    own: Model | None = None,
) -> Prompt:
    """What is asked. ``own``: the session's model, next to which a small one is looked for. Raises
    ``UserError`` for a template that lacks a placeholder.
    """
    rows = [
        {
            "n": n,
            **({"task": head_and_tail(redact(x.task), QUERY_CHARS)} if x.task else {}),
            "lesson": head_and_tail(redact(x.text), LESSON_CHARS),
        }
        for n, x in enumerate(lessons[:SHOWN], 1)
    ]
    values = {
        "nonce": nonce,
        "lessons": "\n".join(json.dumps(row, ensure_ascii=False) for row in rows),
        "task": head_and_tail(redact(task), TASK_CHARS),
    }
    system, text = divided(template, values)
    return Prompt(
        purpose=PURPOSE,
        tier="fast",
        system=system,
        text=text,
        session=session,
        model=own,
        nonce=nonce,
        schema=SCHEMA,
        max_tokens=TOKENS_OUT,
    )


def pick(prompt: Prompt, lessons: Sequence[Lesson]) -> Generator[Prompt, Reply, Answer[tuple[str, ...]]]:
    """Ask ``prompt_of`` these lessons: the ids of those that belong to the task, best first."""
    shown = lessons[:SHOWN]

    def read(reply: Reply) -> tuple[str, ...]:
        numbers = _numbers(reply, prompt.nonce, len(shown))
        return tuple(shown[n - 1].id for n in numbers[:TOP_K])

    return answered(prompt, read)


def _numbers(reply: Reply, nonce: str, many: int) -> list[int]:
    """Each once, in the model's order. Raises ``BadReply``, also for a lesson that was not shown."""
    found = wanted_object(reply, nonce, "lessons", what="lessons").get("lessons")
    if not isinstance(found, list):
        raise BadReply("the lessons are no list", raw=reply.text)
    numbers = [n for n in found if type(n) is int and 1 <= n <= many]
    if len(numbers) != len(found):
        raise BadReply("the list names a lesson that was not shown", raw=reply.text)
    return list(dict.fromkeys(numbers))
