"""Long texts made short, the same way as the opencode shim does it: head and tail stay, the middle goes.

Cuts at line ends where one is near: half a token could slip past the redaction.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = (2_048, 14_336)
OUTPUT: Final = (1_024, 2_048)
_SLACK: Final = 200
_DEPTH: Final = 6
_ITEMS: Final = 200


def cut(value: str, limit: tuple[int, int]) -> tuple[str, int]:
    """(the text with at most head and tail, how many characters are missing)."""
    head, keep = limit
    if len(value) <= head + keep:
        return value, 0
    tail = len(value) - keep
    before = value.rfind("\n", 0, head + 1)
    if before > head - _SLACK:
        head = before + 1
    after = value.find("\n", tail, tail + _SLACK)
    if after >= 0:
        tail = after + 1
    missing = tail - head
    return f"{value[:head]}\n[... {missing} characters cut ...]\n{value[tail:]}", missing


def cut_deep(value: object, limit: tuple[int, int] = TEXT, depth: int = 0) -> object:
    """The same JSON value with every long string in it cut; what lies too deep becomes None."""
    if isinstance(value, str):
        return cut(value, limit)[0]
    if depth > _DEPTH:
        return None
    if isinstance(value, list):
        return [cut_deep(item, limit, depth + 1) for item in value[:_ITEMS]]
    if isinstance(value, dict):
        few = list(value.items())[:_ITEMS]
        return {cut(str(k), limit)[0]: cut_deep(v, limit, depth + 1) for k, v in few}
    return value


def size_of(value: object) -> int:
    """Characters of all strings in a JSON value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(size_of(item) for item in value)
    if isinstance(value, dict):
        return sum(len(k) + size_of(v) for k, v in value.items())
    return 1
