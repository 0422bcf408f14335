"""Prompt templates: replaces only declared ``{names}``, in one pass.

JSON braces in a template and braces in the data are therefore safe: nothing is formatted twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from daemon.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping


def fill(template: str, values: Mapping[str, str]) -> str:
    """``template`` with each ``{name}`` of ``values`` replaced. A declared name the template lacks is an
    error (an edited prompt would silently lose its data); other braces stay.
    """
    missing = [name for name in values if "{" + name + "}" not in template]
    if missing:
        raise UserError(
            f"the prompt template lacks {{{missing[0]}}}; put it back or restore the shipped prompt"
        )
    pattern = re.compile("|".join(re.escape("{" + name + "}") for name in values) or r"(?!)")
    return pattern.sub(lambda m: values[m.group()[1:-1]], template)
