"""``reflectd trust`` for the preferences that a project brings: sessions are given those that a person saw.

A clone may bring a file of preferences, so nothing of it is offered before that. Only a person at a terminal
can say yes: unlike for prompts there is no ``--yes``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ...core.errors import UserError
from ..render import count, visible
from ..terminal import attended, say

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ...learning.rules.preferences import Preference
    from ...learning.state import ReflectState


def trust(folder: Path, state_dir: Path, args: argparse.Namespace) -> None:
    """Show what nobody vouches for yet, and ask. Raises ``Unavailable``."""
    from ...clock import SystemClock
    from ...files.alone import alone
    from ...learning.rules.preferences import vouch
    from ...learning.state import ReflectState
    from .confirm import asked

    state = ReflectState(state_dir, folder)
    unknown, problem = _unknown(folder, state)
    if problem:
        say(f"warning: {visible(problem)}", sys.stderr)
    if not unknown:
        return
    print(f"It brings {count(len(unknown), 'preference')} that agents are given only when you trust them:")
    for each in unknown:
        note = f" (may not be offered: {each.refused})" if each.refused else ""
        say(f"  - {visible(each.text)}{note}")
    texts = [each.text for each in unknown if not each.refused]
    if not texts or args.show or args.dry_run:
        return
    if not attended():
        say("Run `reflectd trust` on a terminal to trust them.")
        return
    if not asked(f"Trust these preferences of {visible(folder)}?", "no terminal"):
        print("Not trusted. No agent is given them.")
        return
    clock = SystemClock()
    with alone(state.folder):
        vouch(state, texts, clock.now_ms())
    print("Trusted. The next session is given them.")


def remove(folder: Path, state_dir: Path) -> int:
    """Vouch no longer for preferences that the person did not learn here; how many those were. Raises
    ``Unavailable``.
    """
    from ...clock import SystemClock
    from ...core.given import known_as
    from ...files.alone import alone
    from ...learning.rules.changes import changes_of, entries
    from ...learning.rules.preferences import vouched_for
    from ...learning.state import ReflectState

    state = ReflectState(state_dir, folder)
    if not state.has("preferences"):
        return 0
    with alone(state.folder):
        known = vouched_for(state)
        own = {known_as(entry["content"]) for entry in entries(changes_of(state))}
        kept = {digest: at for digest, at in known.items() if digest in own}
        if kept != known:
            state.save("preferences", kept, SystemClock().now_ms())
    return len(known) - len(kept)


def shown(folder: Path, state_dir: Path) -> list[dict[str, Any]]:
    """What nobody vouches for yet, for a script."""
    from ...learning.state import ReflectState

    unknown, _ = _unknown(folder, ReflectState(state_dir, folder))
    return [{"text": each.text, "refused": each.refused} for each in unknown]


def _unknown(folder: Path, state: ReflectState) -> tuple[list[Preference], str]:
    from ...core.errors import Unavailable
    from ...learning.rules.preferences import those_that_count

    try:
        return [each for each in those_that_count(folder, state) if not each.known], ""
    except (UserError, Unavailable) as error:
        return [], str(error)
