"""A project whose learning journal has signals, and ``reflectd reflect`` in a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daemon.clock import SystemClock
from daemon.hosts.claude_code.past import named, projects
from daemon.learning.rules.candidates import Candidate
from daemon.learning.rules.journal import Reading, Severity, Sighting
from daemon.learning.rules.journal_file import ProjectJournal
from daemon.learning.rules.learned_rules import LearnedRules
from harness.machine.sandbox import Sandbox
from harness.machine.terminal import Terminal
from harness.machine.waiting import wait_until
from harness.models.scripts import nonce_of
from harness.models.server import Request
from tests.support.hosts.claude_code_story import Story
from tests.support.machine.command_line import COMMAND, environment

DAY = "2025-11-27"
DAYS = ("2025-11-20", "2025-11-24", DAY)
QUESTION = "Letter (Enter is s):"
"""How the question about a pattern ends."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Something that a person said, in as many sessions as there are ``words``."""

    content: str
    words: tuple[str, ...]
    severity: Severity = "high"


STRICT = Wish(
    "Use strict TypeScript mode",
    ("No, use strict mode", "I said strict TypeScript mode", "strict mode again, please"),
)
BUN = Wish("Use bun for package management", ("use bun, not npm", "bun please"), "medium")
LINT = Wish("Run lint before committing", ("lint first", "you did not lint", "lint before you commit"), "low")


def model_of(url: str) -> dict[str, str]:
    """The settings of a person who runs this model."""
    return {
        "REFLECTD_JUDGE_PROVIDER": "openai",
        "REFLECTD_OPENAI_BASE_URL": url,
        "REFLECTD_OPENAI_MODEL": "local-model",
    }


def teaches(
    *taught: tuple[str, str, str], kind: str = "correction", against: str = ""
) -> Callable[[Request], str]:
    """A small model that reads messages. Each ``taught``: a part of a message, the wording, the severity; all
    other messages are none. The same wording is one group. ``against``: a part of what they contradict.
    """

    def reply(request: Request) -> str:
        lines = [json.loads(line) for line in request.prompt.splitlines() if line.startswith('{"n":')]
        group = {line["stands"]: line["n"] for line in lines if "stands" in line}
        met = [n for text, n in group.items() if against and against in text]
        found = []
        for line in lines:
            if "person" in line:
                said = next((t for t in taught if t[0] in line["person"]), None)
                n, text = line["n"], said[1] if said else ""
                entry = {"n": n, "type": kind if said else "none", "content": text}
                entry |= {"severity": said[2] if said else "low", "against": met if said else []}
                found.append(entry | {"group": group.setdefault(text, n) if said else n})
        return json.dumps({"nonce": nonce_of(request), "signals": found})

    return reply


def compares(contradicts: str = "", same: str = "") -> Callable[[Request], str]:
    """A small model that compares: parts of the statements that it names."""

    def reply(request: Request) -> str:
        lines = [json.loads(line) for line in request.prompt.splitlines() if line.startswith('{"n":')]
        found = {
            name: [line["n"] for line in lines if part and part in line["statement"]]
            for name, part in (("contradicts", contradicts), ("same", same))
        }
        return json.dumps({"nonce": nonce_of(request), **found})

    return reply


def book_of(box: Sandbox) -> ProjectJournal:
    return ProjectJournal(box.project, box.state, SystemClock())


def said_before(box: Sandbox, *wishes: Wish) -> list[str]:
    """Put into the journal what a scan would; gives the ids of the signals."""
    book, names = book_of(box), []
    for number, wish in enumerate(wishes):
        messages = {}
        for at, text in enumerate(wish.words):
            seen = Sighting(f"{number}{at}-session-of-{number}", f"m{number}{at}", DAYS[at])
            messages[f"k{number}{at}"] = Candidate(f"k{number}{at}", text, seen=(seen,))
        reading = Reading("correction", wish.content, wish.severity)
        journal = book.keep(messages, dict.fromkeys(messages, reading)).journal
        names.append(book.messages(journal)[f"k{number}0"].became)
    return names


def worked(box: Sandbox, session: str, day: str, *said: tuple[str, str]) -> None:
    """A session of Claude Code in the project: what the agent said, and what the person said then."""
    story = Story(session=session, cwd=str(box.project))
    story.human("Add the price list.")
    for agent, person in said:
        story.say(agent)
        story.human(person)
    folder = projects(box.env()) / named(box.project)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.jsonl").write_bytes(story.data().replace(b"2026-11-20T", f"{day}T".encode()))


def learned(box: Sandbox, text: str) -> None:
    """A rule that the person stated before, in the project's file for rules."""
    rules = LearnedRules(box.project, box.state, SystemClock(), box.env())
    rules.learn(text)


def journal(box: Sandbox) -> dict[str, Any]:
    """The journal's file."""
    found: dict[str, Any] = json.loads(book_of(box).path.read_text("utf-8"))
    return found


def rules_file(box: Sandbox, name: str = "CLAUDE.md") -> str:
    """What a file of rules or preferences says; nothing where there is none."""
    path = box.project / name
    return path.read_text("utf-8") if path.exists() else ""


def statuses(box: Sandbox) -> dict[str, str]:
    """What became of each signal, by its content."""
    return {s["content"]: s["status"] for s in journal(box)["signals"]}


class Reviewing(Terminal):
    """``with`` it: the first question is on the screen."""

    def asked(self, content: str) -> None:
        """Until this pattern is the one that is asked about: its choices stand below it."""

        def shown() -> bool:
            head, _, below = " ".join(self.screen.split()).rpartition("Found pattern: ")
            return bool(head or below) and below.startswith(f'"{content}"') and below.endswith(QUESTION)

        wait_until(shown, f"the question about {content!r}", lambda: self.screen)

    def ends(self, words: str = QUESTION) -> None:
        """Until these are the last words on the screen: what was typed before a question is no answer."""
        wait_until(lambda: " ".join(self.screen.split()).endswith(words), words, lambda: self.screen)

    def answer(self, key: str, then: str) -> None:
        """Type a letter, and wait until this pattern is asked about."""
        self.press(f"{key}\r")
        self.asked(then)


def review(
    box: Sandbox, *args: str, ready: str = QUESTION, size: tuple[int, int] = (80, 24), **env: str
) -> Reviewing:
    """``reflectd reflect`` in a terminal of that size."""
    command = [*COMMAND, "reflect", *args]
    return Reviewing(command, environment(box, **env), box.project, ready, size=size)
