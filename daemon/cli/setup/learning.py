"""Says whether reflectd learns: the first question of ``reflectd setup``, and ``--learning on|off``.

It is off until a person says yes, also after an upgrade. The answer is two settings, ``playbook.enabled`` for
points and ``memory.enabled`` for lessons; a no is an answer too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.errors import UserError
from ...core.words import HOSTS
from ...learning.playbook.questions import CURATOR_TOKENS, REFLECTOR_TOKENS
from ..judging import found, names
from ..terminal import insisted, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.settings import Settings

POINTS: Final = "playbook.enabled"
LESSONS: Final = "memory.enabled"
SETTINGS: Final = (POINTS, LESSONS)
USUAL: Final = (
    "asks a small model twice after a session in which something happened, with at most "
    f"{REFLECTOR_TOKENS:,} and {CURATOR_TOKENS:,} tokens."
)
"""As docs/cost.md says it; a test compares them."""
FAILED: Final = (
    "It asks a small model once after a task that ended badly, with at most 5,000 tokens, and once for each "
    "task that you give in a project that has lessons, with at most 10,000."
)
"""Likewise."""


def is_answered(settings: Settings) -> bool:
    """Says whether a person said yes or no, to points or to lessons."""
    return not settings.sources.keys().isdisjoint(SETTINGS)


def is_by_rules(settings: Settings, env: Mapping[str, str]) -> bool:
    """Says whether no model judges any agent that loads reflectd here: the rules can't learn."""
    from .agents import look

    try:
        judges = found(settings, env, by_host=True)
    except UserError:  # a key file that can't be read, of which others tell
        return False
    connected = [agent.host for agent in look(env, Path.cwd()) if agent.loads]
    return bool(connected) and all(judges[host].asked in {(), ("offline",)} for host in connected)


def in_words(settings: Settings, *, by_rules: bool = False) -> str:
    """Says whether it learns, and the likely cost."""
    most = f"at most {settings.spend.learning_percent} % of what judging costs"
    points, lessons = settings.playbook.enabled, settings.memory.enabled
    if by_rules and (points or lessons):
        return "nothing by itself: no agent that is connected has a model that judges"
    if points:
        return f"from judged sessions, for {most}{'' if lessons else f'; no lessons ({LESSONS})'}"
    if lessons:
        return f"lessons from tasks that ended badly, for {most}; no points ({POINTS})"
    if is_answered(settings):
        return f"nothing ({POINTS}, {LESSONS}); `reflectd setup --learning on` lets it, for {most}"
    return f"nothing, and nobody was asked yet: `reflectd setup` says what it costs ({most}) and asks"


def ask(settings: Settings, env: Mapping[str, str]) -> bool:
    """The person's answer. Raises ``EOFError`` and ``KeyboardInterrupt``."""
    say(
        "\nMay reflectd learn? A small model looks back on judged sessions and gives the next agent what "
        f"helps, for at most {settings.spend.learning_percent} % of what judging costs; `reflectd learned` "
        "shows all of it and takes it back."
    )
    return insisted("Learn? [y/N] Enter is no, ? says more: ", lambda: _more(settings, env))


def _more(settings: Settings, env: Mapping[str, str]) -> str:
    """Its cost, where the text goes, and its files."""
    who = "; ".join(f"{HOSTS[host]}: {names(j)}" for host, j in found(settings, env, by_host=True).items())
    return (
        f"  cost     It {USUAL} {FAILED} In seven days that is at most {settings.spend.learning_percent} % "
        "of what judging cost (spend.learning_percent), which the first sessions earn; `reflectd cost --by "
        "purpose` shows it. Where only the rules judge it learns nothing by itself and costs nothing.\n"
        "  text     Goes to the provider that judges, with known secrets taken out, and nowhere else. "
        f"Now that is {who}. The case of each judged turn is kept in your state folder until it was learned "
        "from, for seven days at most.\n"
        "  files    The playbook of the project, .reflection/playbook.json, and nothing else: no CLAUDE.md "
        "and no AGENTS.md. Lessons stay in your state folder."
    )
