"""Judges the stops of one past session with the rules, as the daemon would have judged them then.

A ``Judging`` knows the settings that count: limits, prompts, the demands of a project's own files as they are
now. It sends nothing and stores nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from ... import __version__
from ...clock import SystemClock
from ...core.fast import needs_second_look
from ...core.guards import Limits
from ...engine.budget import likely_tokens
from ...engine.hosts.host import capabilities
from ...files.project import ProjectRules
from ...files.prompts import TRUST_FILE, Prompts, Trust
from ...judge.case import Templates
from ...judge.decide import Decision
from ...judge.flow import Opinion
from ...paths import config_file, shipped
from ...replay.backtest import Result, result_of
from ...replay.stops import Prepared, Walk, driven, mark_of, rules
from .reading import stops_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...core.llm import Prompt, Reply
    from ...core.settings import Settings
    from ...paths import Paths
    from .reading import Source

NONCE = "0" * 16  # of the rules, which read no prompt


@dataclass(frozen=True, slots=True)
class Judged:
    """One stop with its verdict. ``opinion``: None where a guard decided."""

    mark: str
    prepared: Prepared
    decision: Decision
    result: Result
    opinion: Opinion | None = None


class Judging:
    """For all files of one command."""

    def __init__(self, settings: Settings, where: Paths) -> None:
        clock = SystemClock()
        trust = Trust(where.state_dir / TRUST_FILE, clock)
        self._prompts = Prompts(shipped("prompts"), config_file(os.environ).parent / "prompts", trust)
        self._rules = ProjectRules(clock)
        self._judge = settings.judge
        self._second_look = partial(needs_second_look, settings)
        self._models = {"anthropic": settings.anthropic.model, "openai": settings.openai.model}
        self._models["claude-cli"] = settings.claude_cli.model
        self.templates = self._templates("")
        said = repr((self.templates, self._judge.second_look, self._judge.max_attempts))
        self._by = f"{__version__} {sha256(said.encode()).hexdigest()[:16]}"

    def by(self, judge: str) -> str:
        """What the results of a judge depend on, besides the files: with another value they count no more."""
        return self._by if judge == "offline" else f"{self._by} {self._models.get(judge, '')}"

    def _templates(self, directory: str) -> Templates:
        return Templates.of(self._prompts.templates(directory).texts)

    def _limits(self, host: str) -> Limits:
        most = self._judge.max_attempts
        return Limits(max_attempts=min(most, capabilities(host).prompts or most))

    def each(
        self,
        file: Source,
        ask: Callable[[Prompt], Reply] = rules,
        *,
        nonce: Callable[[], str] = lambda: NONCE,
        known: Callable[[str], Opinion | None] = lambda _: None,
        since: int = 0,
    ) -> Iterator[Judged]:
        """The stops of a file. ``known``: a mark → the opinion that was paid for, which is not asked for
        again. ``since``: stops before that (epoch ms) are judged by the rules, whoever is asked. Raises
        ``ReflectdError``, and what ``ask`` raises to end it.
        """
        host, stops = stops_of(file)
        walk, own = Walk(host, self._limits(host)), ask is not rules
        for stop in stops:
            directory = stop.transcript.directory
            found = walk.prepare(
                stop,
                self._templates(directory) if own else self.templates,
                project=self._rules.lines(directory) if directory else "",
                nonce=nonce(),
            )
            if found is None:
                continue
            mark = mark_of(stop.transcript)
            if found.decided is not None:
                yield Judged(mark, found, found.decided, result_of(found, host, found.decided))
            elif found.case is not None:
                whom = ask if found.case.at >= since else rules
                opinion = known(mark) or driven(found.case, whom, second_look=self._second_look)
                decision = walk.decide(found, opinion)
                result = result_of(found, host, decision, opinion)
                tokens = sum(likely_tokens(t) for p in opinion.prompts[:1] for t in (p.system, p.text))
                yield Judged(mark, found, decision, replace(result, tokens=tokens), opinion)
