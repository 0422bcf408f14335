"""The parts that the hook calls of all hosts share: bounds, checks, and the headers that ``hook.sh`` adds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ..core.errors import BadReply
from .wire import MAX_NAME, decode

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

MAX_BODY: Final = 8 << 20
MAX_PATH: Final = 4_096
MAX_TEXT: Final = 100_000
PERMISSION: Final = "permission"  # a request has no id, so at most one is open
_ORDER: Final = re.compile(r"\brfl_[0-9a-f]{20}\b")


def order_in(text: str) -> str:
    """The last id of an order that stands in the text, "" for none."""
    found: list[str] = _ORDER.findall(text)
    return found[-1] if found else ""


def read_body(body: bytes, form: type[T]) -> T:
    """The fields of a call. Raises ``BadReply``, here and below."""
    if len(body) > MAX_BODY:
        raise BadReply(f"the body has more than {MAX_BODY >> 20} MB")
    return decode(body, form)


def checked_session(session: str) -> str:
    """``session``, if it is an id."""
    if not session or len(session) > MAX_NAME or not session.isprintable():
        raise BadReply("no session_id")
    return session


def checked_path(value: object, name: str) -> str:
    """``value``, if it is an absolute path; "" for none. ``name``: of the field."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value or len(value) > MAX_PATH:
        raise BadReply(f"{name} is no absolute path")
    return value


class Sender(NamedTuple):
    """The headers of a call, without their prefix. ``pid``: the host's process, 0 if unknown. ``headless``:
    ``REFLECTD_HEADLESS`` asks to judge sessions without a person too.
    """

    told: Mapping[str, str]
    pid: int
    headless: bool


def sender(headers: Mapping[str, str]) -> Sender:
    """The headers that ``hook.sh`` adds, with U+FFFD for bytes that are not UTF-8."""
    named = ((name.lower(), value) for name, value in headers.items())
    told = {
        name.removeprefix("x-cc-"): value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        for name, value in named
        if name.startswith("x-cc-")
    }
    pid, asks = told.get("pid", ""), told.get("headless", "") in {"1", "true", "yes", "on"}
    return Sender(told, int(pid) if pid.isascii() and pid.isdigit() and len(pid) < 10 else 0, asks)
