"""The result of a ``record`` order: what opencode itself stored of a person's answer or typed command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ...core.consent import TYPED, Chosen, chosen, shown, typed
from ..wire import decode

if TYPE_CHECKING:
    from ..wire import Wire


class _Record(Struct):
    status: Any = None
    questions: Any = None
    answers: Any = None
    command: Any = None


def parse_record(data: Wire) -> tuple[Chosen, ...]:
    """What it says; () when there is no such record. Raises ``BadReply``."""
    found = decode(data, _Record)
    if isinstance(found.command, str):
        wanted = typed(found.command)
        return (Chosen(wanted.digest, TYPED),) if wanted is not None else ()
    known = shown(found.questions) if found.status == "completed" else ()
    return chosen(known, found.answers) if known else ()
