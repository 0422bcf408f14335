"""``python -m evals.cost``: how many calls a turn costs by question, and how long their prompts are.

The sessions that both hosts recorded for the tests, and the labelled cases, are judged by a model that is
scripted to answer one thing: what is counted are the daemon's own prompts (characters / 4) and when it asks.
The question for lessons is asked for the tasks of ``make eval-memory``. Nothing is sent anywhere.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from daemon import paths
from daemon.core.errors import UserError
from daemon.core.fast import needs_second_look
from daemon.core.llm import Reply, Usage
from daemon.core.settings import Settings
from daemon.files.cases import read_file
from daemon.files.prompts import read_layer
from daemon.replay.cases import load, replay
from evals import memory
from evals.score import CHARS_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daemon.core.llm import Prompt
    from daemon.replay.cases import Loaded

DATA: Final = Path(__file__).resolve().parents[1] / "tests" / "data"
RECORDED: Final = (*(DATA / "claude").glob("*.jsonl"), *(DATA / "exports").glob("*.json"))
LABELLED: Final = (*(DATA / "judge").glob("*.json"),)
LARGE: Final = "anthropic/claude-opus-4-5"
SMALL: Final = "ollama/qwen3"
COMPLETE: Final = {"complete": True, "severity": "NONE"}
INCOMPLETE: Final = {
    "complete": False,
    "severity": "HIGH",
    "missing": [{"item": "a part", "cites": "M1"}],
    "feedback": "Do it.",
    "defended": False,
}


class Asked(Struct, frozen=True):
    """A prompt that was asked: its purpose and its tokens."""

    purpose: str
    tokens: int


class Scripted:
    """A provider that answers every prompt with the same object, as the model ``model``."""

    name = "host"

    def __init__(self, model: str, answer: dict[str, object]) -> None:
        self.asked: list[Asked] = []
        self._model, self._answer = model, answer

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """The model that is scripted."""
        del prompt
        return self._model, ""

    def most_tokens(self, prompt: Prompt) -> int:
        """What the prompt allows."""
        return prompt.max_tokens

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """The answer, with the marker of the data."""
        del deadline_s
        self.asked.append(Asked(prompt.purpose, tokens_of(prompt)))
        text = json.dumps({**self._answer, "nonce": prompt.nonce})
        return Reply(text, self.name, model=self._model, usage=Usage(cost=None))


def tokens_of(prompt: Prompt) -> int:
    """Its tokens, about."""
    return -(-len(prompt.system + prompt.text) // CHARS_PER_TOKEN)


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.cost", description=__doc__)
    parser.parse_args(argv)
    print("\n".join(asyncio.run(lines())))
    return 0


async def lines() -> list[str]:
    """The table."""
    shown = [f"{'':<34}{'calls a turn':<30}{'tokens of a prompt':>22}"]
    shown += [f"{'question':<34}{'complete':<10}{'open':<8}{'small':<12}{'median':>11}{'largest':>11}"]
    for title, files in (("recorded", RECORDED), ("labelled", LABELLED)):
        sessions = sessions_of(files)
        done = await asked(sessions, LARGE, COMPLETE)
        open_, small = [await asked(sessions, model, INCOMPLETE) for model in (LARGE, SMALL)]
        for purpose, name in (("judge", "first look"), ("judge.second", "second look")):
            calls = [sum(a.purpose == purpose for a in of) / len(sessions) for of in (done, open_, small)]
            tokens = [a.tokens for a in small if a.purpose == purpose]
            shown.append(row(f"{name}, {len(sessions)} {title}", calls, tokens))
    texts = {"lessons": memory.TEMPLATE.read_text("utf-8")}
    questions = [p.question(task, "0" * 16) for p in memory.read(memory.CASES) for task in p.tasks]
    lessons = [tokens_of(question.prompt(texts)) for question in questions]
    shown.append(row(f"lessons, {len(questions)} tasks with some", [1.0] * 3, lessons))
    return shown


def row(name: str, calls: Sequence[float], tokens: Sequence[int]) -> str:
    """One line of the table."""
    said = "".join(f"{n:<{width}.2f}" for n, width in zip(calls, (10, 8, 12), strict=True))
    return f"{name:<34}{said}{median(tokens):>11,.0f}{max(tokens):>11,}"


def sessions_of(files: Sequence[Path]) -> list[Loaded]:
    """Those that the daemon would judge."""
    shipped, found = read_layer(paths.shipped("prompts")).texts, []
    for path in sorted(files):
        try:
            of = load(read_file(path), str(path), lambda _: shipped)
        except UserError:
            continue
        found += [of] if of.decided is None else []
    return found


async def asked(sessions: Sequence[Loaded], model: str, answer: dict[str, object]) -> list[Asked]:
    """The prompts of all sessions when ``model`` answers so."""
    provider = Scripted(model, answer)
    second_look = partial(needs_second_look, Settings())
    for each in sessions:
        await replay(each.case, provider, second_look=second_look)
    return provider.asked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
