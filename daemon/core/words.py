"""Words for a person: names of hosts and providers, outcomes of turns."""

from __future__ import annotations

from typing import Final

HOSTS: Final = {"opencode": "opencode", "claude-code": "Claude Code", "codex": "Codex"}
PROVIDERS: Final = {
    "host": "your session's own model",
    "anthropic": "Anthropic's API",
    "openai": "OpenAI's API or a server like it",
    "claude-cli": "your own Claude Code (claude -p)",
    "offline": "the rules",
    "rules": "the rules",
}
NAMES: Final = {
    "complete": "done",
    "incomplete": "not done",
    "awaiting_user": "your turn",
    "stopped": "gave up",
    "unscored": "not judged",
    "skipped": "not judged",
    "error": "failed",
}
"""A verdict's state in words. JSON keeps the states themselves."""
UNJUDGED: Final = "no model judged it, and the calls prove neither that it is done nor that it is not; quiet"
STATES: Final = {
    "complete": "the task is done",
    "incomplete": "the task is not done",
    "awaiting_user": "the agent waits for you",
    "stopped": "reflectd gave up on this task",
    "unscored": "nobody could tell",
    "error": "judging or the host failed",
    "skipped": "the turn was not judged",
}
OUTCOMES: Final = {
    "done": "it reached the agent",
    "sent": "sent, no answer from the host yet",
    "pending": "not sent yet",
    "stale": "not delivered: the session went on before",
    "failed": "not delivered: the host refused or dropped it",
    "expired": "not delivered: another host took over or it never came back",
}
EXPECTED: Final = ("complete", "incomplete", "awaiting_user")
"""The verdicts that a person may give in a dispute."""


def state_name(state: str, reason: str = "") -> str:
    return "you stopped it" if reason == "guard:aborted" else NAMES.get(state, state)
