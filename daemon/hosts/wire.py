"""JSON from a host, decoded into typed structs.

Owns the repair of usual faults: null where a value is missing, half of a character, numbers out of range.
Raises ``BadReply`` and nothing else.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Raw

from ..core.errors import BadReply

if TYPE_CHECKING:
    from collections.abc import Callable

Wire = Raw | bytes | dict[str, Any]
T = TypeVar("T")

MAX_NAME: Final = 200
MOST_WRONG: Final = 100  # values in one body
_PLACE: Final = re.compile(r"\.(\w{1,60})|\[(\d{1,9})\]")  # of a value, as msgspec names it
MAX_NUMBER: Final = 1 << 53  # JavaScript has no exact integers beyond this


def decode(data: Wire, form: type[T]) -> T:
    """``data`` as ``form``; null gives an empty ``form``. Raises ``BadReply`` and nothing else."""
    wire = _encode(data) if isinstance(data, dict) else data
    try:
        found: T | None = _decoder(form).decode(wire)
    except msgspec.ValidationError as error:
        raise BadReply(str(error), _head(wire)) from None
    except (ValueError, RecursionError, msgspec.MsgspecError):  # perhaps half of a character: see ``mend``
        try:
            found = _decoder(form).decode(mend(bytes(wire)))
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise BadReply(str(error), _head(wire)) from None
    return found or form()


def decode_most(data: Wire, form: type[T], on_skip: Callable[[str], None]) -> T:
    """``data`` as ``form`` without the values of a wrong type: of a list the item goes in which one stands.
    ``on_skip`` is told why. Raises ``BadReply`` where nothing of the form is there.
    """
    try:
        return decode(data, form)
    except BadReply:
        most = decode(data, dict[str, Any])
    for _ in range(MOST_WRONG):
        try:
            return msgspec.convert(most, form)
        except msgspec.ValidationError as error:
            why = str(error)
        path = _PLACE.findall(why.rpartition(" - at ")[2])
        if not path:
            raise BadReply(why)
        on_skip(why)
        _remove(most, [int(number) if number else name for name, number in path])
    raise BadReply(f"more than {MOST_WRONG} values have a wrong type")


def _remove(found: Any, path: list[str | int]) -> None:  # noqa: ANN401 - any JSON
    last = max((i for i, key in enumerate(path) if isinstance(key, int)), default=len(path) - 1)
    for key in path[:last]:
        found = found[key]
    del found[path[last]]


_DECODERS: Final[
    dict[object, msgspec.json.Decoder[Any]]
] = {}  # kept, because making a decoder costs more than using it


def _decoder(form: type[T]) -> msgspec.json.Decoder[Any]:
    found = _DECODERS.get(form)
    if found is None:
        found = _DECODERS[form] = msgspec.json.Decoder(form | None)
    return found


def _encode(data: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(data)
    except UnicodeEncodeError:
        return json.dumps(data).encode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadReply(f"not JSON: {error}") from None


_HALF: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|[c-fC-F][0-9a-fA-F]{2})"
)
_ALONE: Final = len(rb"\ud83d")
_BACKSLASH: Final = ord("\\")


def mend(wire: bytes) -> bytes:
    r"""The JSON with U+FFFD for each lone surrogate (``\ud83d``) and for broken UTF-8.

    JavaScript writes such half characters when it cuts a text inside an emoji, and JSON readers refuse them.
    Other escapes, of which a long text has millions, are not looked at.
    """
    parts: list[bytes] = []
    done = at = 0
    while (half := _HALF.search(wire, at)) is not None:
        if _is_escaped(wire, half.start()):
            at = half.start() + 2
            continue
        at = half.end()
        if at - half.start() == _ALONE:
            parts += (wire[done : half.start()], rb"\ufffd")
            done = at
    return b"".join((*parts, wire[done:])).decode("utf-8", "replace").encode()


def _is_escaped(wire: bytes, at: int) -> bool:
    """Says whether the backslash there belongs to the one before it."""
    first = at
    while first and wire[first - 1] == _BACKSLASH:
        first -= 1
    return (at - first) % 2 == 1


def _head(wire: Raw | bytes) -> str:
    return bytes(wire)[:200].decode("utf-8", "replace")


def text_or_empty(value: object) -> str:
    """``value`` when it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def name_or_empty(value: object) -> str:
    """As ``text_or_empty``, at most ``MAX_NAME`` characters."""
    return value[:MAX_NAME] if isinstance(value, str) else ""


def record(value: object) -> dict[str, Any]:
    """``value`` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def epoch_ms(value: object) -> int:
    """Epoch ms of an ISO time; 0 for anything else."""
    try:
        return max(0, int(datetime.fromisoformat(text_or_empty(value)[:40]).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0


def milliseconds(value: float | None) -> int:
    """A count or a time in ms as an integer; 0 when it is missing or out of range."""
    return int(value) if value is not None and 0 < value < MAX_NUMBER else 0
