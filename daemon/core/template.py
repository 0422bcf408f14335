"""Fills in prompt templates: replaces only the given ``{names}``, in one pass.

So JSON braces in a template and braces in the data stay as they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping


def fill(template: str, values: Mapping[str, str]) -> str:
    """``template`` with each ``{name}`` of ``values`` replaced. Raises ``UserError`` when the template lacks
    one of the names: an edited prompt would silently lose its data.
    """
    missing = [name for name in values if "{" + name + "}" not in template]
    if missing:
        raise UserError(
            f"the prompt template lacks {{{missing[0]}}}; put it back or restore the shipped prompt"
        )
    pattern = re.compile("|".join(re.escape("{" + name + "}") for name in values) or r"(?!)")
    return pattern.sub(lambda m: values[m.group()[1:-1]], template)


def divided(template: str, values: Mapping[str, str]) -> tuple[str, str]:
    """(system prompt, data): the lines before the first placeholder, which are the same in each call and can
    be cached, and the rest, filled in as by ``fill``.
    """
    slots = [at for name in values if (at := template.find("{" + name + "}")) >= 0]
    start = template.rfind("\n", 0, min(slots, default=0)) + 1
    return template[:start].strip(), fill(template[start:], values)
