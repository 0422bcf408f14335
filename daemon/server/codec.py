"""Request bodies as typed structs, and what we say when one is wrong.

Unknown fields are refused with the nearest name; hosts' own payloads (``data``) stay raw JSON here and are
parsed leniently in ``hosts``.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Raw, Struct

from ..core.errors import BadReply
from ..engine.threads import beside
from ..hosts.wire import mend
from ..store.ledger import By

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.orders import ResultStatus

API = 1
MAX_BODY = 8 * 1024 * 1024
MAX_BATCH = 500
ID = 200
MOST_PATH = 4_096
BY: dict[str, By] = {by: by for by in get_args(By)}

T = TypeVar("T")


class Hello(Struct, forbid_unknown_fields=True):
    """``POST /v1/hello``."""

    instance: str
    host: Literal["opencode"]
    mode: Literal["run", "serve", "tui", "unknown"]
    pid: int
    directory: str
    api: Literal[1] = 1
    version: str = ""
    debug: bool = False


Seq = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Name = Annotated[str, msgspec.Meta(max_length=ID)]
Millis = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class Event(Struct, forbid_unknown_fields=True):
    """One event of a batch."""

    seq: Seq
    t: Millis
    kind: str
    data: Raw = Raw(b"{}")


class Events(Struct, forbid_unknown_fields=True):
    """``POST /v1/events``."""

    instance: str
    events: list[Event]


class Result(Struct, forbid_unknown_fields=True):
    """``POST /v1/results``."""

    instance: str
    id: str
    status: Literal["done", "stale", "failed"]
    data: Raw = Raw(b"null")
    error: str = ""


class Asked(Struct):
    """The data of a question. ``call``: behind which tool call ``late_lessons`` would stand. ``model``: to
    which a prompt goes, as ``provider/model``.
    """

    session: Name = msgspec.field(name="sessionID", default="")
    message: Name = msgspec.field(name="messageID", default="")
    text: str = ""
    model: Name = ""
    call: Name = msgspec.field(name="callID", default="")


class Ask(Struct, forbid_unknown_fields=True):
    """``POST /v1/ask``."""

    instance: str
    what: str
    data: Asked = msgspec.field(default_factory=Asked)


class Switch(Struct, forbid_unknown_fields=True):
    """``POST /v1/switch``: exactly one of ``session`` and ``directory``."""

    on: bool
    session: str = ""
    directory: str = ""


class Dash(Struct, forbid_unknown_fields=True):
    """``POST /v1/dashboard``: open it, or close it."""

    stop: bool = False


class Prune(Struct, forbid_unknown_fields=True):
    """``POST /v1/prune``. ``trust``: a person says that the clock is right."""

    trust: bool = False


_DECODERS: dict[type, Any] = {
    k: msgspec.json.Decoder(k) for k in (Hello, Events, Result, Ask, Switch, Dash, Prune)
}
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")


def decode(body: bytes, kind: type[T]) -> T:
    """The body as ``kind``. Raises ``BadReply`` with a message for people."""
    try:
        found: T = _DECODERS[kind].decode(body)
    except msgspec.ValidationError as e:
        raise BadReply(_explain(str(e), kind)) from None
    except msgspec.DecodeError as e:
        mended = mend(body)  # JavaScript cuts emoji in halves
        if mended != body:
            return decode(mended, kind)
        raise BadReply(f"the body is not JSON: {e}") from None
    except (RecursionError, UnicodeDecodeError) as e:
        raise BadReply(f"the body is not JSON: {e}") from None
    return found


async def read(body: bytes, kind: type[T]) -> T:
    """As ``decode``; a long body is decoded beside the loop."""
    return await beside(len(body), lambda: decode(body, kind))


def number(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """A whole number of the query. Raises ``BadReply``."""
    text = query.get(name, str(default))
    if (
        len(text) > len(str(most))
        or not (text.isascii() and text.isdigit())
        or not least <= int(text) <= most
    ):
        raise BadReply(f"`{name}` must be a number from {least} to {most}")
    return int(text)


def folder(query: Mapping[str, str]) -> str:
    """The ``directory`` of the query, empty when there is none. Raises ``BadReply``."""
    found = query.get("directory", "")
    return absolute(found) if found else ""


def absolute(path: str) -> str:
    """A folder that a client names. Raises ``BadReply``."""
    if not path.startswith("/"):
        raise BadReply("`directory` must be an absolute path")
    if len(path) > MOST_PATH:
        raise BadReply(f"`directory` has more than {MOST_PATH} characters")
    return path


def checked_status(status: str) -> ResultStatus:
    """The status as the core's literal (the struct has validated it)."""
    return "done" if status == "done" else "stale" if status == "stale" else "failed"


def _explain(message: str, kind: type) -> str:
    unknown = _UNKNOWN.search(message)
    if unknown is None:
        return message
    names = {f.encode_name for k in (kind, Event) for f in msgspec.structs.fields(k)}
    near = difflib.get_close_matches(unknown.group(1), names, 1, 0.5)
    return (
        f"{message}. Did you mean `{near[0]}`?" if near else f"{message}. Known: {', '.join(sorted(names))}"
    )
