"""What is kept of the lines of a Claude Code transcript. Values only: nothing here parses or decides.

Structs, not dataclasses: a file may have 100,000 lines, and making one costs a tenth.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from daemon.core.transcript import Compaction
from daemon.hosts.claude_results import Result

Kind = Literal["human", "note", "answer", "result", "boundary", "summary", "interrupt", "link"]


class Use(Struct, frozen=True):
    """A tool call as the model wrote it."""

    id: str
    tool: str
    input: dict[str, object]


class Entry(Struct, frozen=True, kw_only=True):
    """What is kept of one line. ``link``: nothing but its place between two others.

    ``parent`` is None for the root of a conversation and empty where the line does not say. ``size``:
    characters kept. A ``result`` may carry what the person said with it in ``text``.
    """

    kind: Kind
    uuid: str
    parent: str | None = ""
    at: int = 0
    text: str = ""
    session: str = ""
    cwd: str = ""
    prompt: str = ""
    mode: str = ""
    message: str = ""  # of an answer: lines with the same one are one message
    model: str = ""
    stop: str = ""
    error: str = ""
    tokens: int = 0
    uses: tuple[Use, ...] = ()
    results: tuple[Result, ...] = ()
    order: str = ""
    compaction: Compaction = ""
    size: int = 0
    thin: bool = False
