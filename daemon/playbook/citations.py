"""Which points an agent says that it used: ``[pat-001]`` in what it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..core.learned import CITED

__all__ = ["CITED", "cited_ids", "cited_in", "texts_of"]
_TEXTS: Final = {"text": "text", "thinking": "thinking", "reasoning": "text"}
"""Kind of a block of content → where its text is. What a tool was asked and answered is nobody's citation."""


def cited_in(texts: Iterable[str]) -> list[str]:
    """The ids in brackets, each once, in the order in which they come first."""
    found: dict[str, None] = {}
    for text in texts:
        found |= dict.fromkeys(CITED.findall(text))
    return list(found)


def cited_ids(messages: Iterable[object]) -> list[str]:
    """The ids that the assistant's messages cite (REQ-REFL-001).

    A message is ``{"role", "content"}``; its content is a text or a list of blocks. Whatever else is in the
    list is passed over.
    """
    return cited_in(
        text
        for message in messages
        if isinstance(message, Mapping) and message.get("role") == "assistant"
        for text in texts_of(message.get("content"))
    )


def texts_of(content: Any) -> Iterator[str]:  # noqa: ANN401 - as a host wrote it
    """What is said in a message's content: the text itself, or the texts and thoughts of its blocks."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | tuple):
        for block in content:
            if isinstance(block, str):
                yield block
            elif isinstance(block, Mapping):
                text = block.get(_TEXTS.get(str(block.get("type", "text")), ""))
                if isinstance(text, str):
                    yield text
