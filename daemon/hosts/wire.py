"""JSON from a host as typed structs, and the structs that opencode's events and messages share.

Owns what is wrong with JSON in practice: nulls where nothing is, halves of characters, numbers out of range.
Raises ``BadReply`` and nothing else.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from daemon.core.errors import BadReply

Wire = Raw | bytes | dict[str, Any]
T = TypeVar("T")

MAX_MS: Final = 1 << 53  # beyond this JavaScript has no exact integers


class ErrorData(Struct):
    message: str | None = None


class Error(Struct):
    name: str | None = None
    message: str | None = None
    data: ErrorData | None = None  # opencode's own form, when a shim passes it on unreduced

    @property
    def said(self) -> str:
        return self.message or (self.data.message if self.data else None) or ""


class Info(Struct):
    id: str | None = None
    parent: str | None = field(name="parentID", default=None)
    title: str | None = None
    directory: str | None = None


def decode(data: Wire, form: type[T]) -> T:
    """``data`` as ``form``, where null is the empty form. Raises ``BadReply`` and nothing else."""
    wire = _encode(data) if isinstance(data, dict) else data
    try:
        found: T | None = _decoder(form).decode(wire)
    except msgspec.ValidationError as error:
        raise BadReply(str(error), _head(wire)) from None
    except (ValueError, RecursionError, msgspec.MsgspecError):  # perhaps only half a character: see mend
        try:
            found = _decoder(form).decode(mend(bytes(wire)))
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise BadReply(str(error), _head(wire)) from None
    return found or form()


_DECODERS: Final[dict[object, msgspec.json.Decoder[Any]]] = {}  # making one costs more than using it


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


_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def mend(wire: bytes) -> bytes:
    r"""JSON with each lone surrogate (``\ud83d``) and broken UTF-8 made U+FFFD.

    JavaScript writes such halves when a text is cut in the middle of an emoji; JSON readers refuse them.
    """
    whole = _ESCAPE.sub(lambda m: b"\\ufffd" if m[1] else m[0], wire)
    return whole.decode("utf-8", "replace").encode()


def _head(wire: Raw | bytes) -> str:
    return bytes(wire)[:200].decode("utf-8", "replace")


def milliseconds(value: float | None) -> int:
    """A count or a time as a plain integer; 0 for none and for nonsense."""
    return int(value) if value is not None and 0 < value < MAX_MS else 0
