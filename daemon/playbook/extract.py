"""JSON out of a model's prose, by four strategies in linear time (REQ-REFL-008). For the library only: in the
daemon a reply must echo its nonce (``core.reply``), because prose may hold an object that was only quoted.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN: Final = re.compile(r'\\.|["{}]', re.DOTALL)
_FENCE: Final = "```"


def extract_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The first JSON value that one of these finds, in this order; None when none does.

    1. a fence with the tag ``json``; 2. a fence without a tag; 3. from a ``{`` to the ``}`` that closes it;
    4. the whole text.
    """
    for candidates in (_fenced(text, "json"), _fenced(text, ""), _balanced(text), iter((text,))):
        for candidate in candidates:
            try:
                found = json.loads(candidate.strip())
            except (ValueError, RecursionError):
                continue
            if found is not None:
                return found
    return None


def _fenced(text: str, tag: str) -> Iterator[str]:
    """What stands between fences that open with ``tag``, one after the other."""
    at = text.find(_FENCE)
    while at >= 0:
        start = at + len(_FENCE)
        end = text.find(_FENCE, start)
        if end < 0:
            return
        head = text[start : start + len("json")]
        if tag and head.lower() == tag:
            yield text[start + len(tag) : end]
        elif not tag and head.lower() != "json":
            yield text[start:end]
        at = text.find(_FENCE, end + len(_FENCE))


def _balanced(text: str) -> Iterator[str]:
    """Each outermost part in braces. Braces in quoted texts don't count."""
    depth, start, quoted = 0, 0, False
    for token in _TOKEN.finditer(text):
        kind = token[0]
        if depth and kind == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif kind == "{":
            if not depth:
                start = token.start()
            depth += 1
        elif kind == "}" and depth:
            depth -= 1
            if not depth:
                yield text[start : token.end()]
