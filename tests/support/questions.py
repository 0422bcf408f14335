"""Ask a question, or drive a flow of several, with answers from a script, by hand: no engine, no model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from daemon.core.question import Answer, Question, R, ask
from daemon.files.prompts import read_layer
from daemon.judge.prompts import first
from daemon.testing import reply

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from daemon.core.llm import Prompt, Reply
    from daemon.judge.case import Case

NONCE = "n0nce"
SHIPPED = read_layer(Path(__file__).resolve().parents[2] / "prompts").texts
T = TypeVar("T")


def driven(
    flow: Generator[Prompt, Reply, T],
    *says: dict[str, Any] | str | Exception,
    nonce: str = NONCE,
    by: str = "scripted",
) -> tuple[T, list[Prompt]]:
    """The flow's end and all it asked, when these are the answers; it must ask exactly as often."""
    prompts, answers = list["Prompt"](), list(says)
    try:
        prompt = next(flow)
        while True:
            prompts.append(prompt)
            said = answers.pop(0)
            prompt = flow.throw(said) if isinstance(said, Exception) else flow.send(reply(said, nonce, by))
    except StopIteration as stop:
        assert not answers, "it asked less often"
        end: T = stop.value
        return end, prompts


def asked(
    question: Question[R],
    *says: dict[str, Any] | str | Exception,
    texts: Mapping[str, str] = SHIPPED,
    nonce: str = NONCE,
) -> tuple[Answer[R], list[Prompt]]:
    """How the question ends and what it asked, when these are the answers."""
    return driven(ask(replace(question, nonce=nonce), texts), *says, nonce=nonce)


def first_prompt(case: Case) -> Prompt:
    """What the judge is asked first."""
    return first(case).prompt(case.templates)
