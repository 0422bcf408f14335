"""What is kept of each line of a Claude Code transcript. Nothing here parses or decides.

These are structs and no dataclasses, because a file may have 100,000 lines and a struct is made ten times
faster.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ...core.transcript import Compaction
from .results import Result

Kind = Literal["human", "note", "answer", "result", "boundary", "summary", "interrupt", "expansion", "link"]


class Use(Struct, frozen=True):
    """A tool call as the model wrote it."""

    id: str
    tool: str
    input: dict[str, object]


class Entry(Struct, frozen=True, kw_only=True):
    """What is kept of one line.

    Of a ``link`` only its place in the conversation is kept. An ``expansion`` is what a command stands for;
    it becomes part of the ``command`` before it. ``parent``: the ``uuid`` of the entry before it, None for
    the first of a conversation, empty where the line does not say. ``prompt``: the id of the prompt that it
    belongs to. ``mode``: Claude Code's permission mode. ``text`` of a ``result``: what the person said with
    it. ``size``: how many characters are kept. ``thin``: its long texts were cut.
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
    message: str = ""  # the id of an answer, which may have several lines
    model: str = ""
    stop: str = ""
    error: str = ""
    tokens: int = 0
    uses: tuple[Use, ...] = ()
    results: tuple[Result, ...] = ()
    order: str = ""
    cited: tuple[str, ...] = ()  # names of points in what the agent thought
    compaction: Compaction = ""
    command: bool = False
    size: int = 0
    thin: bool = False
