"""The small model that `reflectd reflect` asks on a terminal: that of whoever judges, on its fast tier.

It is asked without a daemon, and the person is told the cost before. Inside a host the daemon asks it
(``in_host``). Without a model, or an answer, messages stay unread and nothing is found to contradict.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import ReflectdError, UserError
from ...core.question import ask
from ...learning.rules import questions
from ...learning.rules.journal import Reading
from ...learning.rules.questions import Compared, Stands
from ..render import count, money, plain
from ..terminal import attended, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.question import Answer, Question, Texts
    from ...learning.rules.candidates import Candidate
    from ...learning.rules.learned_rules import LearnedRules

WAIT_S: Final = 30.0  # for what contradicts a rule: a person waits with a finger on the key
Readings = dict[int, Reading]
T = TypeVar("T")


class OwnModel(Struct, frozen=True):
    """A model API or program of the person's settings, asked by this process."""

    project: Path
    state_dir: Path

    def read(self, said: Sequence[Candidate], stands: Sequence[Stands]) -> tuple[Readings, str]:
        """The readings of these messages; why there is none, where no answer comes."""
        answer = asyncio.run(self._ask(questions.to_read(said, stands)))
        return questions.readings(answer.reply, stands, len(said)), answer.why

    def compare(self, text: str, statements: Sequence[str]) -> Compared:
        """The statements that a new rule contradicts or repeats. The cost is told before."""
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
