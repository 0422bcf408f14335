"""The small model that `reflectd reflect` asks: that of whoever judges, on its fast tier.

On a terminal it is asked without a daemon, and the person is told before what it takes. Inside a host the
daemon asks it, on its ledger and within its caps (``engine.features.rules``). Without a model, or an answer,
messages stay unread and nothing is found to contradict.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...core.errors import ReflectdError, UserError
from ...learning.rules import questions
from ...learning.rules.candidates import for_a_model
from ...learning.rules.questions import Compared, Read, Reading, Stands, batches
from ...paths import Paths
from ..progress import Progress
from ..render import count, money, plain
from ..terminal import attended, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.llm import Prompt
    from ...learning.rules.candidates import Candidate
    from ...learning.rules.learned_rules import LearnedRules
    from .reading import Scan

WAIT_S: Final = 30.0  # for what contradicts a rule: a person waits with a finger on the key
HOST_S: Final = 150.0
MOST_IN_HOST: Final = 200  # messages that one `/reflect` has read


@dataclass(frozen=True, slots=True)
class OwnModel:
    """A model API or program of the person's settings, asked by this process."""

    project: Path
    state_dir: Path

    def read(self, said: Sequence[Candidate], stands: Sequence[Stands]) -> Read:
        """What each of these messages teaches; why not, where no answer comes."""
        from ...api.asking import Asking

        template = _template(self.project, self.state_dir, questions.SIGNALS)
        return asyncio.run(Asking().run(questions.read(said, stands, template, secrets.token_hex(8))))

    def compare(self, text: str, statements: Sequence[str]) -> Compared:
        """What a new rule contradicts, or repeats. What it takes is told before."""
        from ...api.asking import Asking

        try:
            template = _template(self.project, self.state_dir, questions.CONTRADICTS)
            prompt = questions.compare_prompt(text, statements, template, "0" * 16)
            name, takes = _takes([prompt], questions.COMPARE_TOKENS)
            say(f"{name} looks for contradictions: {takes}")
            flow = questions.compare(text, statements, template, secrets.token_hex(8))
            found = asyncio.run(asyncio.wait_for(Asking().run(flow), WAIT_S))
        except TimeoutError:
            found = Compared(why=f"no model answered in {WAIT_S:.0f} s")
        except ReflectdError as error:
            found = Compared(why=str(error))
        if found.why:
            say(f"only equal texts were found: {plain(found.why)}")
        return found

    def estimate(self, said: Sequence[Candidate], stands: Sequence[Stands]) -> str:
        """What reading all of these takes."""
        template = _template(self.project, self.state_dir, questions.SIGNALS)
        parts = batches(said)
        prompts = [questions.read_prompt(part, stands, template, "0" * 16) for part in parts]
        name, takes = _takes(prompts, questions.READ_TOKENS * len(said))
        return f"{count(len(said), 'message')} for {name}: {count(len(parts), 'call')} with {takes}"


@dataclass(frozen=True, slots=True)
class HostModel:
    """The small model of whoever judges this session, asked by the daemon."""

    session: str
    where: Paths

    def read(self, said: Sequence[Candidate], stands: Sequence[Stands]) -> Read:
        """What each of these messages teaches; why not, where no answer comes."""
        messages = [{"text": c.text, "prior": c.prior} for c in said]
        body = {"messages": messages, "stands": msgspec.to_builtins(list(stands))}
        try:
            found = self._asked("signals", body)
            readings = {int(at): msgspec.convert(r, Reading) for at, r in found["readings"].items()}
            return Read(readings, str(found["why"]))
        except (ReflectdError, msgspec.ValidationError, ValueError, KeyError) as error:
            return Read({}, str(error))

    def compare(self, text: str, statements: Sequence[str]) -> Compared:
        """What a new rule contradicts, or repeats; why it is not known, where no answer comes."""
        some = list(statements)[: questions.MOST]
        try:
            found = self._asked("contradicts", {"text": text, "statements": some})
            return Compared(tuple(found["contradicts"]), tuple(found["same"]), str(found["why"]))
        except (ReflectdError, KeyError) as error:
            return Compared(why=str(error))

    def _asked(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        from ...client import request
        from ...paths import find_socket

        route, sent = f"/v1/features/rules/{what}", {"session": self.session, **body}
        return request(find_socket(self.where), "POST", route, sent, HOST_S)


def own_model(project: Path, state_dir: Path) -> OwnModel | None:
    """The model that a person at a terminal has set up; None where there is none, or nobody to tell."""
    if not attended():
        return None
    from ...api.asking import Asking

    try:
        Asking().providers()
    except UserError:
        return None
    return OwnModel(project, state_dir)


def stands_in(rules: LearnedRules, journal: Mapping[str, Any]) -> list[Stands]:
    """What messages are compared with: the rules that stand, then what the person said or dismissed
    before, the newest first.
    """
    found = [Stands(row.text, row.id) for row in rules.look().rows if row.active]
    said = (s for s in journal.get("signals", ()) if s["type"] != "feedback")
    found += [Stands(s["content"]) for s in sorted(said, key=lambda s: s["last_seen"], reverse=True)]
    found += [Stands(stone["content"]) for stone in journal.get("tombstones", ())]
    once: dict[str, Stands] = {}
    for each in found:
        once.setdefault(each.text, each)
    return list(once.values())[: questions.STANDS]


def read_with(
    reader: OwnModel | HostModel, scan: Scan, rules: LearnedRules, *, most: int = 0, quiet: bool
) -> bool:
    """Have the candidates of a scan read, and count what they teach. ``most``: how many at most, 0 for all.
    Whether each batch was answered; what was not read stays a candidate.
    """
    waiting = for_a_model(scan.gathering.kept.values())
    parts = batches(waiting[:most] if most else waiting)
    progress = Progress(0 if quiet else len(parts))
    try:
        for done, part in enumerate(parts):
            progress.show(done, "asking")
            found = reader.read(part, stands_in(rules, scan.journal or scan.book.read().journal))
            for at, r in found.readings.items():
                scan.gathering.settle(part[at], r.type, r.content, r.severity, r.against)
            scan.count()
            if found.why:
                scan.told.append(f"not all was read: {found.why}")
                return False
    finally:
        progress.clear()
    return True


def _takes(prompts: Sequence[Prompt], tokens_out: int) -> tuple[str, str]:
    """The model's name, and what these calls take. Raises ``UserError`` when no model can be asked."""
    from ...api.asking import Asking
    from ...engine.budget import likely_tokens
    from ...llm.prices import estimate_usd

    (provider, *_) = Asking().providers()
    tokens = sum(likely_tokens(p.system) + likely_tokens(p.text) for p in prompts)
    vendor, model = provider.model_for(prompts[0])
    cost = money(estimate_usd(vendor, model, tokens, tokens_out))
    return model or provider.name, f"{tokens:,} tokens, at most {cost}"


def _template(project: Path, state_dir: Path, name: str) -> str:
    """The prompt of that name that counts in this project."""
    from ...clock import SystemClock
    from ...files.prompts import TRUST_FILE, Prompts, Trust
    from ...paths import config_file, shipped

    trust = Trust(state_dir / TRUST_FILE, SystemClock())
    prompts = Prompts(shipped("prompts"), config_file(os.environ).parent / "prompts", trust)
    return prompts.templates(str(project)).texts[name]
