"""What was asked against what the calls reached, with no stock phrase of any language in between.

Composes the rows of the modules that compare: forms of commands, parts of lists, outputs, written texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from daemon.core.aims import aims
from daemon.core.forms import forms
from daemon.core.parts import parts
from daemon.core.shown import shown
from daemon.core.texts import texts
from daemon.core.values import values

if TYPE_CHECKING:
    from daemon.core.evidence import Row
    from daemon.core.look import Look

MAX_ROWS: Final = 6


def structure(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, without ids."""
    if look.wants in {"plan", "answer"} or look.denied or look.ending == "question":
        return []
    return [*forms(look), *parts(look), *shown(look), *texts(look), *values(look), *aims(look)][:MAX_ROWS]
