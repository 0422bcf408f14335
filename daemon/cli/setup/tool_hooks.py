"""The hook of Claude Code's plugin at its tool calls, for lessons that a model chose when the prompt was on
its way already.

Whoever does not want lessons has no such hook on the disk: the plugin's copy has it only while the settings
say so (``copies``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ... import config, paths

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENT: Final = "PreToolUse"
MATCHER: Final = "*"
SCRIPT: Final = "${CLAUDE_PLUGIN_ROOT}/scripts/hook.sh"


def are_wanted(env: Mapping[str, str]) -> bool:
    """What the settings say. A file with mistakes in it still says it."""
    settings = config.load(env, paths.config_file(env), left_out=[])
    return settings.memory.enabled and settings.memory.at_prompt


def with_them(named: bytes) -> bytes:
    """``hooks.json`` with this hook."""
    found: dict[str, Any] = json.loads(named)
    hook = {"type": "command", "command": SCRIPT, "args": [EVENT], "timeout": 2}
    found["hooks"].setdefault(EVENT, []).append({"matcher": MATCHER, "hooks": [hook]})
    return json.dumps(found, indent=2, ensure_ascii=False).encode() + b"\n"
