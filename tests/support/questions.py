"""Ask a question with answers from a script, by hand: no engine, no model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daemon.core.question import Answer, Question, R, ask
from daemon.files.prompts import read_layer
from daemon.testing import reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daemon.core.llm import Prompt

NONCE = "n0nce"
SHIPPED = read_layer(Path(__file__).resolve().parents[2] / "prompts").texts


def asked(
    question: Question[R],
    *says: dict[str, Any] | str | Exception,
    texts: Mapping[str, str] = SHIPPED,
    nonce: str = NONCE,
) -> tuple[Answer[R], list[Prompt]]:
    """How the question ends and what it asked, when these are the answers; it must ask as often."""
    flow, prompts, answers = ask(replace(question, nonce=nonce), texts), [], list(says)
    try:
        prompt = next(flow)
        while True:
            prompts.append(prompt)
            said = answers.pop(0)
            prompt = flow.throw(said) if isinstance(said, Exception) else flow.send(reply(said, nonce))
    except StopIteration as stop:
        assert not answers, "it asked less often"
        assert isinstance(stop.value, Answer)
        return stop.value, prompts
