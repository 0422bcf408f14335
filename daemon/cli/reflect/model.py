"""The small model that `reflectd reflect` asks: that of whoever judges, on its fast tier.

``OwnModel`` is asked on a terminal, without a daemon, and the person is told the cost before. Inside a host
the daemon asks it (``in_host``). Without a model, or an answer, messages stay unread and nothing contradicts.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from ...core.errors import ReflectdError, UserError
from ...core.question import ask
from ...learning.rules import questions
from ...learning.rules.questions import Compared, Stands
from ..render import count, money, plain
from ..terminal import attended, say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ...core.question import Answer, Question, Texts
    from ...learning.rules.candidates import Candidate
    from ...learning.rules.journal import Reading
    from ...learning.rules.learned_rules import LearnedRules

WAIT_S: Final = 30.0  # for what contradicts a rule: a person waits with a finger on the key
T = TypeVar("T")


class Model(ABC):
    """One that can be asked."""

    @abstractmethod
    def ask(self, question: Question[T]) -> tuple[T, str] | tuple[None, str]:
        """The reply; without one, why there is none."""

    def read(self, said: Sequence[Candidate], stands: Sequence[Stands]) -> tuple[dict[int, Reading], str]:
        """The readings of these messages; why there is none, where no answer comes."""
        reply, why = self.ask(questions.to_read(said, stands))
        return questions.readings(reply, stands, len(said)), why

    def compare(self, text: str, statements: Sequence[str]) -> Compared:
        """The statements that a new rule contradicts or repeats; none where no answer comes."""
        reply, _ = self.ask(questions.to_compare(text, statements))
        return questions.compared(reply, statements)


class OwnModel(Model):
    """A model API or program of the person's settings, asked by this process."""

    def __init__(self, project: Path, state_dir: Path) -> None:
        self.project, self.state_dir = project, state_dir

    def ask(self, question: Question[T]) -> tuple[T, str] | tuple[None, str]:
        """Without a limit of time of its own."""
        answer = asyncio.run(self._ask(question))
        return (None, answer.why) if answer.reply is None else (answer.reply, "")

    def compare(self, text: str, statements: Sequence[str]) -> Compared:
        """The same; the cost is told before, and after ``WAIT_S`` it is given up."""
        question, why, reply = questions.to_compare(text, statements), "", None
        try:
            name, takes = self._takes([question])
            say(f"{name} looks for contradictions: {takes}")
            answer = asyncio.run(asyncio.wait_for(self._ask(question), WAIT_S))
            reply, why = answer.reply, answer.why
        except TimeoutError:
            why = f"no model answered in {WAIT_S:.0f} s"
        except ReflectdError as error:
            why = str(error)
        if why:
            say(f"only equal texts were found: {plain(why)}")
        return questions.compared(reply, statements)

    def estimate(self, said: Sequence[Candidate], stands: Sequence[Stands]) -> str:
        """A sentence on what reading all of these takes."""
        parts = questions.batches(said)
        name, takes = self._takes([questions.to_read(part, stands) for part in parts])
        return f"{count(len(said), 'message')} for {name}: {count(len(parts), 'call')} with {takes}"

    async def _ask(self, question: Question[T]) -> Answer[T]:
        from ...api.asking import Asking

        return await Asking().run(ask(replace(question, nonce=secrets.token_hex(8)), self._texts()))

    def _takes(self, asked: Sequence[Question[T]]) -> tuple[str, str]:
        """The model's name, and what these calls take. Raises ``UserError`` when no model can be asked."""
        from ...api.asking import Asking
        from ...engine.budget import likely_tokens
        from ...llm.prices import estimate_usd

        (provider, *_), texts = Asking().providers(), self._texts()
        prompts = [question.prompt(texts) for question in asked]
        tokens = sum(likely_tokens(p.system) + likely_tokens(p.text) for p in prompts)
        vendor, model = provider.model_for(prompts[0])
        cost = money(estimate_usd(vendor, model, tokens, sum(p.max_tokens for p in prompts)))
        return model or provider.name, f"{tokens:,} tokens, at most {cost}"

    def _texts(self) -> Texts:
        """The prompts that count in this project."""
        from ...clock import SystemClock
        from ...files.prompts import TRUST_FILE, Prompts, Trust
        from ...paths import config_file, shipped

        trust = Trust(self.state_dir / TRUST_FILE, SystemClock())
        prompts = Prompts(shipped("prompts"), config_file(os.environ).parent / "prompts", trust)
        return prompts.templates(str(self.project)).texts


def own_model(rules: LearnedRules) -> OwnModel | None:
    """The model that a person at a terminal has set up; None where there is none, or nobody to tell."""
    if not attended():
        return None
    from ...api.asking import Asking

    try:
        Asking().providers()
    except UserError:
        return None
    return OwnModel(rules.journal.project, rules.state_dir)


def stands_in(rules: LearnedRules) -> list[Stands]:
    """The texts that messages are compared with: the rules that stand, then what the person said or dismissed
    before, the newest first.
    """
    look = rules.look()
    found = [Stands(row.text, row.id) for row in look.rows if row.active]
    said = (s for s in look.journal["signals"] if s["type"] != "feedback")
    found += [Stands(s["content"]) for s in sorted(said, key=lambda s: s["last_seen"], reverse=True)]
    found += [Stands(stone["content"]) for stone in look.journal["tombstones"]]
    once = {each.text: each for each in reversed(found)}
    return [each for each in found if once[each.text] is each][: questions.STANDS]
