"""A command that the request spells out in backticks and that no call ran.

The row is closed: the person may have quoted it for another reason.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...core.evidence import Row
from ..calls.actions import Check, Deed
from ..calls.commands import read_script
from ..words import shorten

if TYPE_CHECKING:
    from ..facts import Facts

MAX_COMMANDS: Final = 5
_QUOTED: Final = re.compile(r"`([^`\n]{3,160})`")


def named_commands(facts: Facts) -> list[Row]:
    """The rows of kind ``unmet``, without ids."""
    if facts.work.delegated or facts.wants == "plan":
        return []
    ran = [" ".join(script.split()) for script in facts.work.scripts]
    rows = []
    for command in dict.fromkeys(m[1].strip() for _, r in facts.live for m in _QUOTED.finditer(r.text)):
        kinds = [a for a in read_script(command) if isinstance(a, Check | Deed)]
        known = any(isinstance(a, Check) or a.kind not in {"unknown", "run"} for a in kinds)
        if known and not any(" ".join(command.split()) in script for script in ran):
            text = f"the request spells out `{shorten(command)}`; no call ran it in this form"
            rows.append(Row("", "unmet", text, detail=f"`{shorten(command)}` was asked for"))
    return rows[:MAX_COMMANDS]
