"""Episodes as rows, the same in every store of them, and their vectors as bytes.

Lists are JSON texts. A text loses what a database can't hold: lone surrogates and zero bytes. A list that
can't be read any more is empty: the episode itself is still good.
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import fields
from importlib.util import find_spec
from operator import mul
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

import msgspec

from .episodes import Candidate, Episode, State, Trigger, TriggerKind, Use

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

Outcome = Literal["given", "helped", "failed"]
STATES: Final[tuple[State, ...]] = get_args(State)
USES_DAYS: Final = 90
"""So long it is remembered which sessions an episode was counted for. The counts themselves stay."""
COLUMNS: Final = (
    "id", "project", "query", "reward", "problem", "lesson", "reflection", "state", "triggers", "cites",
    "files", "proof", "author", "session", "turn", "task", "at",
)  # fmt: skip
COUNTS: Final = tuple(f.name for f in fields(Use))
_LISTS: Final = frozenset({"cites", "files"})
LISTED: Final = 200  # of one list; a shared store may hold any number
NOTHING: Final = "[]"  # how an empty list is stored
_encode = msgspec.json.Encoder().encode
_triggers = msgspec.json.Decoder(list[tuple[TriggerKind, str]]).decode
_texts = msgspec.json.Decoder(list[str]).decode
T = TypeVar("T")


def values(episode: Episode) -> tuple[Any, ...]:
    """The values of ``COLUMNS``."""
    return tuple(_value(name, getattr(episode, name)) for name in COLUMNS)


def candidate(row: Sequence[Any], similarity: float | None = None, score: float | None = None) -> Candidate:
    """From the values of ``COLUMNS`` and ``COUNTS``."""
    at = len(COLUMNS)
    given = {name: _read(name, value) for name, value in zip(COLUMNS, row[:at], strict=True)}
    return Candidate(
        Episode(**given), similarity=similarity, bm25=score, use=Use(*(int(n) for n in row[at : at + 4]))
    )


def plain(text: str) -> str:
    """As a database can hold it."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def listed(ids: Collection[str]) -> list[str]:
    """Each once, as a database can hold it."""
    return list(dict.fromkeys(map(plain, ids)))


def floats(data: bytes) -> array[float]:
    """The numbers of a vector."""
    found = array("f")
    found.frombytes(data[: len(data) // 4 * 4])
    if sys.byteorder == "big":
        found.byteswap()
    return found


def cosines(vectors: Sequence[bytes], other: bytes) -> list[float]:
    """Of vectors of one size with the other one; by numpy where the extra ``[embed]`` brings it."""
    if find_spec("numpy") is None:
        wanted = floats(other)
        return [sum(map(mul, floats(data), wanted)) for data in vectors]
    import numpy as np

    rows = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)
    found: list[float] = (rows @ np.frombuffer(other, dtype="<f4")).tolist()
    return found


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - of any column
    if name == "triggers":
        return _encode([(t.kind, plain(t.text)) for t in value]).decode()
    if name in _LISTS:
        return _encode([plain(text) for text in value]).decode()
    return plain(value) if isinstance(value, str) else value


def _read(name: str, value: Any) -> Any:  # noqa: ANN401 - of any column
    if name == "triggers":
        return tuple(Trigger(kind, text) for kind, text in _list(value, _triggers))
    if name in _LISTS:
        return tuple(_list(value, _texts))
    if name == "state":
        return value if value in STATES else "quarantined"
    return value


def _list(value: str, decode: Callable[[str], list[T]]) -> list[T]:
    try:
        return decode(value)[:LISTED] if value != NOTHING else []
    except msgspec.MsgspecError:
        return []
