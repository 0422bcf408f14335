"""Says whether reflectd learns: the first question of ``reflectd setup``, and ``--learning on|off``.

It is off until a person says yes, also after an upgrade. The answer is two settings, ``playbook.enabled`` for
points and ``memory.enabled`` for lessons; a no is an answer too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.errors import UserError
from ..judging import found
from ..terminal import insisted, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.settings import Settings

POINTS: Final = "playbook.enabled"
LESSONS: Final = "memory.enabled"
SETTINGS: Final = (POINTS, LESSONS)


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


def ask(settings: Settings) -> bool:
    """The person's answer. Raises ``EOFError`` and ``KeyboardInterrupt``."""
    say(
        "\nMay reflectd learn? A small model looks back on judged sessions and gives the next agent what "
        f"helps, for at most {settings.spend.learning_percent} % of what judging costs; `reflectd learned` "
        "shows all of it and takes it back."
    )
    return insisted("Learn? [y/N] Enter is no: ")
