"""What every part of the engine works with. Built once, in ``app``; holds no logic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daemon import config
from daemon.core.errors import Unavailable
from daemon.core.guards import Limits
from daemon.core.ports import Clock
from daemon.core.settings import Settings
from daemon.engine.calls import Calls
from daemon.engine.cases import templates_of
from daemon.engine.stream import Hub
from daemon.files.project import ProjectGates
from daemon.files.prompts import Prompts
from daemon.log import Logger
from daemon.store.db import Database
from daemon.store.dead_letters import DeadLetters
from daemon.store.ledger import Ledger
from daemon.store.outbox import Outbox
from daemon.store.sessions import Sessions
from daemon.store.verdicts import Verdicts

if TYPE_CHECKING:
    from daemon.core.session import Session
    from daemon.judge.case import Templates
    from daemon.store.db import Statement

PROJECT_TTL_MS = 2_000
WAKES = 8  # Claude Code ends the ninth wake of a prompt without a result
HOOK_S = 100  # and kills a hook that waits longer than the plugin says
DAY_MS = 86_400_000
PROJECTS_KEPT = 500


@dataclass(slots=True)
class World:
    """The daemon's parts. ``degraded`` says what does not work right now, empty when all is well."""

    settings: Settings
    clock: Clock
    db: Database
    sessions: Sessions
    outbox: Outbox
    verdicts: Verdicts
    ledger: Ledger
    calls: Calls
    dead_letters: DeadLetters
    prompts: Prompts
    gates: ProjectGates
    nonce: Callable[[], str]
    log: Logger
    spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
    degraded: str = ""
    stream: Hub = field(default_factory=Hub)
    _projects: dict[str, tuple[int, Settings]] = field(default_factory=dict)

    def later(self, *statements: Statement) -> None:
        """Store something nobody waits for (ledger rows, marks)."""

        async def store() -> None:
            try:
                await self.db.commit(*statements)
            except Unavailable as e:
                self.degraded = str(e)

        self.spawn(store(), "later")

    def project(self, directory: str) -> Settings:
        """The settings tightened by the project in ``directory``; read at most every two seconds."""
        now = self.clock.now_ms()
        known = self._projects.get(directory)
        if known is not None and 0 <= now - known[0] < PROJECT_TTL_MS:
            return known[1]
        settings, problems = self.settings, list[str]()
        if directory:
            settings, problems = config.load_project(self.settings, Path(directory))
        if problems and (known is None or known[1] != settings):
            self.log.warning("project settings", directory=directory, problems=problems)
        if len(self._projects) >= PROJECTS_KEPT:
            self._projects.clear()
        self._projects[directory] = (now, settings)
        return settings

    def templates(self, directory: str) -> Templates:
        """The prompts in force for a workspace; what is wrong with an overriding one is logged once."""
        return templates_of(self.prompt_texts(directory))

    def prompt_texts(self, directory: str) -> Mapping[str, str]:
        """The texts of every prompt in force for a workspace. Reads files: call it in a thread."""
        found = self.prompts.templates(directory)
        for problem in found.problems:
            self.log.warning("prompt", problem=problem)
        return found.texts

    def limits(self, s: Session) -> Limits:
        """What the guards compare with for this session."""
        settings = self.project(s.directory)
        hooked = s.host == "claude-code"
        return Limits(
            enabled=settings.enabled and not self.sessions.is_off(s.directory),
            observe=settings.judge.mode == "observe",
            toasts=settings.toasts,
            max_attempts=min(settings.judge.max_attempts, WAKES) if hooked else settings.judge.max_attempts,
            wait_s=HOOK_S if hooked else 600,
            max_idle_age_ms=int(settings.judge.max_idle_age_s * 1000),
            usd_per_day=settings.spend.cents_per_day / 100,
            usd_per_session=settings.spend.cents_per_session / 100,
            tokens_per_day=settings.spend.tokens_per_day,
        )

    def logger(self, s: Session, *, debug: bool = False) -> Logger:
        """A logger that names the session."""
        return self.log.bind(session=s.id, debug=True) if debug else self.log.bind(session=s.id)

    def update(self, session: str, **changes: object) -> Session | None:
        """Change fields of the session as it is now; None when it is not known."""
        now = self.sessions.get(session)
        if now is None:
            return None
        after = replace(now, **changes)  # type: ignore[arg-type]
        self.sessions.put(after)
        return after
