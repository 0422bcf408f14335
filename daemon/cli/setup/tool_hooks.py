"""The hooks of Claude Code's plugin at its tool calls, for lessons at a failed call and for those
that a model chose after the prompt was on its way.

Whoever does not want these lessons has no such hook on the disk: the plugin's copy has them only while the
settings say so (``copies``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ... import config, paths

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENTS: Final = ("PreToolUse", "PostToolUseFailure")
MATCHER: Final = "*"
SCRIPT: Final = "${CLAUDE_PLUGIN_ROOT}/scripts/hook.sh"


def are_wanted(env: Mapping[str, str]) -> bool:
    """What the settings say. A file with mistakes in it still says it."""
    settings = config.load(env, paths.config_file(env), left_out=[])
    return settings.memory.enabled and (settings.memory.at_prompt or settings.memory.at_action)


def with_them(named: bytes) -> bytes:
    """``hooks.json`` with these hooks."""
    found: dict[str, Any] = json.loads(named)
    for event in EVENTS:
        hook = {"type": "command", "command": SCRIPT, "args": [event], "timeout": 2}
        found["hooks"].setdefault(event, []).append({"matcher": MATCHER, "hooks": [hook]})
    return json.dumps(found, indent=2, ensure_ascii=False).encode() + b"\n"
