"""kill -9 at random moments while sessions are judged: none lost, given up, doubled or left behind."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

from attack.host import Chat, Host, until
from attack.outcome import Deadline, Outcome
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox, sandbox

SESSIONS = 6  # begin between two kills
DEAD_EACH = 10  # kills: this often a host dies with the daemon
PATIENCE_S = 300.0


class Story:
    """One host that lives through all kills, and hosts that die with the daemon."""

    def __init__(self, box: Sandbox, rng: random.Random) -> None:
        self.box, self.rng = box, rng
        self.daemon = Daemon(box)
        self.host = Host(box.socket, box.project, "lives", self._prompted)
        self.dead: list[str] = []
        self._work: set[asyncio.Task[None]] = set()

    def spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    @property
    def settled(self) -> bool:
        return self.host.settled and not self._work

    def _prompted(self, chat: Chat) -> None:
        self.spawn(self._agent(chat, chat.human))

    async def _agent(self, chat: Chat, task: str) -> None:
        """The agent works for a moment; the person may press Esc meanwhile."""
        await asyncio.sleep(self.rng.random() * 0.1)
        if not chat.busy or chat.human != task:
            return
        if self.rng.random() < 0.08:
            self.host.escapes(chat)
        else:
            self.host.answers(chat, finished=self.rng.random() < 0.5)

    async def person(self, session: str) -> None:
        """Types once, and sometimes again while the turn is judged."""
        await asyncio.sleep(self.rng.random() * 0.4)
        chat = self.host.create(session)
        self.host.types(chat)
        await self._agent(chat, chat.human)
        if self.rng.random() < 0.2:
            await asyncio.sleep(self.rng.random() * 0.3)
            if not chat.busy:
                self.host.types(chat)
                await self._agent(chat, chat.human)

    async def play(self, kills: int, deadline: Deadline) -> int:
        """How many kills there were."""
        async with self.host:
            for n in range(kills):
                if deadline.over:
                    return n
                await asyncio.to_thread(self.daemon.start)
                for i in range(SESSIONS):
                    self.spawn(self.person(f"ses_{n:04d}{i}"))
                if n % DEAD_EACH == 0:
                    await self._dies(n)
                else:
                    await asyncio.sleep(self.rng.random())
                self.daemon.kill9()
            await asyncio.to_thread(self.daemon.start)
            await until(lambda: self.settled, PATIENCE_S)
            await until(lambda: not self.lost() and not self.left(), PATIENCE_S)
            return kills

    async def _dies(self, n: int) -> None:
        """A host in a folder of its own that is gone when its turn is being judged."""
        folder = self.box.root / f"dead{n}"
        folder.mkdir()
        async with Host(self.box.socket, folder, f"dead{n}") as host:
            chat = host.create(f"dead_{n:04d}")
            self.dead.append(chat.id)
            host.types(chat)
            host.answers(chat, finished=False)
            await asyncio.sleep(self.rng.random() * 0.5)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.box.state / 'reflectd.sqlite3'}?mode=ro", uri=True)) as c:
            return c.execute(sql).fetchall()

    def lost(self) -> list[str]:
        """Sessions whose last turn has no verdict, or whose stored state has none."""
        judged = {(s, t) for s, t in self.rows("SELECT session, turn FROM verdicts")}
        states = {
            session: json.loads(state) for session, state in self.rows("SELECT id, state FROM sessions")
        }
        chats = [c for c in self.host.chats.values() if not c.aborted and c.turn]
        found = [
            f"lost: {c.id} {c.turn}, {states.get(c.id)}, {[t for s, t in judged if s == c.id]}"
            for c in chats
            if (c.id, c.turn) not in judged
        ]
        for session, state in states.items():
            final = state["final"]
            if final and (session, final) not in judged:
                found.append(f"state without its verdict: {session} {final}")
        return found

    def given_up(self) -> list[str]:
        """Verdicts that a turn could not be judged, though its host was there and answered all the time."""
        errors = self.rows("SELECT session, turn, body FROM verdicts WHERE state = 'error'")
        return [
            f"given up: {session} {turn}, {json.loads(body)['reason']}"
            for session, turn, body in errors
            if session in self.host.chats
        ]

    def doubled(self) -> list[str]:
        prompts = self.host.prompts
        counts = Counter((p.session, p.turn) for p in prompts) + Counter(p.order for p in prompts)
        return [f"prompted {n} times: {what}" for what, n in counts.items() if n > 1]

    def left(self) -> list[str]:
        """Files that still say `judging`, temporary files, and sessions that are busy with nobody there."""
        found = list[str]()
        files = self.box.root.rglob("verdict_*.json")
        judging = (p for p in files if json.loads(p.read_text("utf-8"))["state"] == "judging")
        found += [f"left judging: {path.relative_to(self.box.root)}" for path in judging]
        found += [
            f"temporary file: {p.relative_to(self.box.root)}" for p in self.box.root.rglob(".reflectd-*.tmp")
        ]
        states = {
            session: json.loads(state) for session, state in self.rows("SELECT id, state FROM sessions")
        }
        busy = [s for s in self.dead if s in states and states[s]["busy"]]
        return found + [f"busy, but its host is dead: {session}" for session in busy]


async def attack(kills: int, seed: int, deadline: Deadline) -> Outcome:
    """Every kill comes with new sessions; what must not be is looked for at the end."""
    found = Outcome("kills", kills)
    with sandbox() as box:
        story = Story(box, random.Random(seed))
        try:
            found.done = await story.play(kills, deadline)
            # files of the host that lives are written by now; those of dead ones were given time
            found.findings += story.lost() + story.given_up() + story.doubled() + story.left()
            found.check_log(story.daemon)
            verdicts = story.rows("SELECT count(*) FROM verdicts")[0][0]
            turns = sum(1 for c in story.host.chats.values() for m in c.messages if "finish" in m["info"])
            prompts = len(story.host.prompts)
            found.figures = f"{turns} turns, {verdicts} verdicts, {prompts} prompts"
        finally:
            story.daemon.kill9()
    return found


def run(kills: int, seed: int, deadline: Deadline) -> Outcome:
    return asyncio.run(attack(kills, seed, deadline))
