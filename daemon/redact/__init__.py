"""Takes secrets out of a text before it reaches a prompt, a log, a verdict file or the database (I46).

Three searches find secrets: ``tokens`` by their shape, ``places`` by headers, commands and files, ``values``
by the name that they are assigned to. Words and patterns are in ``tables.toml``. Code that only *mentions* a
secret stays readable: ``password: str``, ``$TOKEN``, ``key=lambda x: x``, git hashes.

It takes linear time on any input: patterns use bounded or possessive repeats, each search goes on behind its
last hit, and the work is counted (``text``). ``redact(redact(t)) == redact(t)``. The other modules are
imported when the first text is redacted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .text import mark

__all__ = ["Numbers", "is_secret_name", "mark", "redact", "redact_head", "redact_tail", "redact_value"]

if TYPE_CHECKING:
    from collections.abc import Iterable

BEYOND: Final = 16_384  # characters that are redacted beyond what is kept
MAX_DEPTH: Final = 100  # of nested JSON
KEY: Final = 64  # characters of a key of JSON that is looked up: a few keys come in every file


class Numbers:
    """Numbers the secrets of one case, so that equal ones look equal: ``[redacted:token-2:40-characters]``.

    It remembers each text of the case, because more than half of them stand there several times.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._clean: dict[str, str] = {"": ""}

    def __call__(self, kind: str, secret: str) -> str:
        """The mark of a secret."""
        number = self._known.setdefault(secret, len(self._known) + 1)
        return mark(f"{kind}-{number}:{len(secret)}-characters")  # one word, also for a shell

    def redact(self, text: str) -> str:
        """The text without secrets."""
        clean = self._clean.get(text)
        if clean is None:
            from .search import without_secrets

            clean = self._clean[text] = without_secrets(text, self)
        return clean


def redact(text: str, name: Numbers | None = None) -> str:
    """``text`` with every secret replaced by ``[redacted:<kind>]``, or by a mark of ``name``."""
    if name is not None:
        return name.redact(text)
    from .search import without_secrets  # hundreds of patterns, not needed by most commands

    return without_secrets(text)


def redact_head(text: str, limit: int) -> str:
    """The first ``limit`` characters of ``text`` without secrets. The text is redacted before it is cut, so a
    secret at the cut goes whole.
    """
    if len(text) > limit + BEYOND:
        text = text[: limit + BEYOND]
        text = text[: max(map(text.rfind, " \n\t\"',")) + 1] or text  # no part of a word
    return redact(text)[:limit]


def redact_tail(text: str, limit: int) -> str:
    """As ``redact_head`` for the last characters."""
    if len(text) > limit + BEYOND:
        text = text[-limit - BEYOND :]
        starts = [at for at in map(text.find, " \n\t\"',") if at >= 0]
        text = text[min(starts, default=0) :]
    return redact(text)[-limit:]


def redact_value(value: object, repeated: Iterable[str] = (), name: Numbers | None = None) -> object:
    """A JSON value with every text redacted. The whole value under a secret's name is replaced.

    ``repeated`` are texts that stand in many values, such as a system prompt: the newest of them are searched
    once for all values.
    """
    return _nested(value, 0, {text: _repeated(text) for text in repeated}, name)


def _nested(value: object, depth: int, done: dict[str, str], name: Numbers | None) -> object:
    """``done``: redacted texts with their results."""
    if isinstance(value, str):
        clean = done.get(value)
        if clean is None:
            clean = done[value] = redact(value, name)
        return clean
    if depth >= MAX_DEPTH and isinstance(value, dict | list | tuple):
        return mark("depth")
    if isinstance(value, dict):
        found: dict[object, object] = {}
        for key, inner in value.items():
            shown, secret = key, False
            if isinstance(key, str):
                shown, secret = _key(key) if len(key) <= KEY else (redact(key), is_secret_name(key))
            if secret and _holds_something(inner):
                found[shown] = name("named", inner) if name and isinstance(inner, str) else mark("named")
            else:
                found[shown] = _nested(inner, depth + 1, done, name)
        return found
    if isinstance(value, list | tuple):
        return [_nested(inner, depth + 1, done, name) for inner in value]
    return value


@lru_cache(maxsize=16)
def _repeated(text: str) -> str:
    return redact(text)


@lru_cache(maxsize=1_000)
def _key(key: str) -> tuple[str, bool]:
    return redact(key), is_secret_name(key)


def is_secret_name(name: str) -> bool:
    """Says whether the value under this key of a JSON object is a secret."""
    from .names import is_secret_name as known

    return known(name)


def _holds_something(value: object) -> bool:
    from .names import placeholder

    if isinstance(value, str):
        return not placeholder(value)
    return value is not None and not isinstance(value, bool) and value not in ({}, [])
