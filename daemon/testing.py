"""Doubles for tests, shipped with the package: a clock that stands still and a judge with a script.

They replace the outside world (time, the text of a model), never our own code.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from .core.evidence import Evidence, Row
from .core.llm import Prompt, Reply, Usage
from .judge.case import Case


@dataclass(slots=True)
class FakeClock:
    """A clock that moves only when told to."""

    ms: int = 1_700_000_000_000
    seconds: float = 1000.0

    def now_ms(self) -> int:
        """Epoch ms."""
        return self.ms

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Time passes."""
        self.ms += int(seconds * 1000)
        self.seconds += seconds

    def jump(self, seconds: float) -> None:
        """The wall clock jumps (sleep, a new time zone); monotonic time does not."""
        self.ms += int(seconds * 1000)


class OutOfScriptError(AssertionError):
    """The code under test asked more often than the script has entries."""


@dataclass
class ScriptedLLM:
    """A provider that answers from a script, and raises ``OutOfScriptError`` after its last entry.

    An entry is a verdict object (a dict, to which the nonce is added), a raw text, or an exception to raise.
    ``hold`` makes the provider wait, so that a test can act while it judges. ``second`` answers every second
    look, whose prompts are kept in ``seconds``; with None the script answers these too.
    """

    script: deque[dict[str, Any] | str | Exception] = field(default_factory=deque)
    name: str = "scripted"
    prompts: list[Prompt] = field(default_factory=list)
    seconds: list[Prompt] = field(default_factory=list)
    hold: asyncio.Event | None = None
    second: dict[str, Any] | None = field(default_factory=lambda: {"defended": False, "reasons": "No."})

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """A model that no price table has."""
        del prompt
        return "scripted", "script"

    def add(self, *entries: dict[str, Any] | str | Exception) -> None:
        """Append entries to the script."""
        self.script.extend(entries)

    def most_tokens(self, prompt: Prompt) -> int:
        """As many as the prompt allows."""
        return prompt.max_tokens

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """The next entry of the script."""
        del deadline_s
        if prompt.purpose == "judge.second" and self.second is not None:
            self.seconds.append(prompt)
            return reply(self.second, prompt.nonce, self.name)
        self.prompts.append(prompt)
        if not self.script:
            raise OutOfScriptError(f"no reply left for: {prompt.text[:200]}")
        entry = self.script.popleft()
        if self.hold is not None:
            await self.hold.wait()
        return reply(entry, prompt.nonce, self.name)


def reply(entry: dict[str, Any] | str | Exception, nonce: str = "", provider: str = "scripted") -> Reply:
    """A script entry as a model would send it: a sentence and the object, or the raw text."""
    if isinstance(entry, Exception):
        raise entry
    text = entry if isinstance(entry, str) else "Here it is:\n" + json.dumps({"nonce": nonce, **entry})
    return Reply(text=text, provider=provider, model="script", usage=Usage(1_000, 500, None))


TEMPLATES = {
    "judge": "Judge.",
    "judge_case": "{nonce}\n{requests}\n{project}\n{evidence}\n{log}\n{changes}\n{earlier}\n{final}",
    "judge_second": "Defend.",
    "judge_second_case": "{case}\n{missing}\n{nonce}",
    "judge_again": "{case}\n{why}\n{nonce}",
}


def make_case(**changes: Any) -> Case:  # noqa: ANN401 - any field of Case
    """A case with one request and one failed check (``E2``); change what the test is about."""
    rows = (
        Row("E1", "write", "files written: src/login.py; last write: src/login.py (edit)"),
        Row("E2", "check", "`pytest -q` failed: 2 failed", "failed", "after_last_write", open=True),
    )
    values: dict[str, Any] = {
        "session": "ses_1",
        "task": "msg_1",
        "turn": "msg_2",
        "at": 1_700_000_000_000,
        "nonce": "n0nce",
        "requests": ("Add a login page and run the tests",),
        "earlier": (),
        "final": "All done.",
        "evidence": Evidence(rows=rows, tool_calls=3, writes=1),
        "templates": TEMPLATES,
    }
    return Case(**(values | changes))
