"""Turns the failure of a model server into ``Unavailable``, with its fault and words for a person.

It reads statuses, headers and error bodies of any form. It never puts the key, a URL's path or an HTML page
into a message. An unknown failure has the fault ``""``: asking again would not help.
"""

from __future__ import annotations

import email.utils
import re
import socket
import ssl
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from ..core.errors import Fault, Unavailable
from ..redact import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

READ_CHARS: Final = 10_000  # of an error body
SHOWN_CHARS: Final = 200
LONGEST_WAIT_S: Final = 7 * 86_400.0

_BILLING: Final = re.compile(
    r"credit balance|insufficient[_ ](?:quota|credits?|balance|funds)|spend[_ ]limit|billing(?:_| hard limit)"
)
_REFUSED: Final = re.compile(r"content_filter|content_policy|content management policy|responsibleai")
_MODEL: Final = re.compile(
    r"model_not_found|unknown model|invalid model|no such model|model[^\n]{0,120}(?:not found|does not exist)"
)
_ADVICE: Final[dict[Fault, str]] = {
    "rate_limit": "It allows fewer calls than were made; wait.",
    "overloaded": "It is overloaded; try later.",
    "server": "Its server failed; try later.",
    "auth": "Check the API key and what it may do.",
    "billing": "Look at the account's credit, plan and spend limit.",
    "model": "Check the model's name and the address.",
    "refused": "The model does not answer this.",
    "timeout": "Try later.",
    "": "Asking again would not help.",
}


class Asked(Struct, frozen=True):
    """The party that a call asked. ``host`` is the server's address without path and credentials."""

    provider: str
    host: str
    model: str
    key: str

    def __repr__(self) -> str:
        """Without the key."""
        return f"Asked({self.provider!r}, {self.host!r}, {self.model!r})"


def of_status(asked: Asked, status: int, headers: Mapping[str, str], body: str, now_s: float) -> Unavailable:
    """The failure that an HTTP status and its error body mean. ``now_s``: epoch seconds."""
    said = said_in(body)
    fault = _fault(status, said.lower())
    shown = _shown(asked, said)
    model = f" for {asked.model}" if fault == "model" else ""
    wait = retry_after_s(headers, now_s)
    text = f"{asked.provider}: {asked.host} answered {status}{model}{': ' + shown if shown else ''}"
    return Unavailable(f"{text.rstrip('.')}. {_ADVICE[fault]}", fault, wait)


def of_timeout(asked: Asked, seconds: float) -> Unavailable:
    """No answer in time."""
    return Unavailable(f"{asked.provider}: no answer from {asked.host} in {seconds:.3g} s", "timeout")


def of_connection(asked: Asked, error: BaseException) -> Unavailable:
    """No connection, or one that broke. The message names only its kind: the text may hold a header."""
    return Unavailable(
        f"{asked.provider}: {_connection(error)} {asked.host}. Is it running, and is the address right?",
        "connection",
    )


def of_form(asked: Asked, what: str) -> Unavailable:
    """A success whose body has another form: a login page, another server, a proxy's error."""
    text = f"{asked.provider}: the answer of {asked.host} is {what}. Is the address that of a model API?"
    return Unavailable(text, "server")


def of_length(asked: Asked, most: int) -> Unavailable:
    """An answer that does not end, or unpacks to that."""
    return Unavailable(f"{asked.provider}: the answer of {asked.host} is longer than {most >> 20} MB")


def of_refusal(asked: Asked, said: str) -> Unavailable:
    """The model refused to answer."""
    shown = _shown(asked, said)
    return Unavailable(
        f"{asked.provider}: {asked.model} refused to answer{': ' + shown if shown else ''}", "refused"
    )


def said_in(body: str) -> str:
    """Message, type, code and parameter of an error body, in one line; empty for an HTML page."""
    start = body[:READ_CHARS].strip()
    if start.startswith("<"):
        return ""
    try:
        found = msgspec.json.decode(body.encode("utf-8", "replace")) if len(body) <= READ_CHARS else start
    except (msgspec.MsgspecError, RecursionError):
        found = start
    if isinstance(found, dict):
        inner = found.get("error", found)
        found = inner
    if isinstance(found, dict):
        names = ("message", "detail", "type", "code", "param")
        found = " · ".join(str(found[name]) for name in names if found.get(name))
    return " ".join(str(found)[:READ_CHARS].split()) if isinstance(found, str) else ""


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """The wait that ``retry-after-ms`` or ``retry-after`` (seconds or a date) asks for; None without a valid
    one.
    """
    for name, per_second in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) / per_second
        except ValueError:
            try:
                seconds = max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now_s)
            except (ValueError, OverflowError):
                continue
        if 0.0 <= seconds <= LONGEST_WAIT_S:
            return seconds
    return None


def _fault(status: int, said: str) -> Fault:
    if status == 402 or (status in {400, 403, 429} and _BILLING.search(said)):
        return "billing"
    if status in {400, 403, 422} and _REFUSED.search(said):
        return "refused"
    if status == 404 or (status in {400, 403, 422} and _MODEL.search(said)):
        return "model"
    by_status: dict[int, Fault] = {
        401: "auth",
        403: "auth",
        408: "timeout",
        429: "rate_limit",
        503: "overloaded",
        529: "overloaded",
    }
    return by_status.get(status, "server" if status >= 500 else "")


def _shown(asked: Asked, said: str) -> str:
    """At most a line of the server's words, without the key, should the server repeat it (I46)."""
    clean = said.replace(asked.key, "[redacted]") if asked.key else said
    clean = redact(clean)
    return clean if len(clean) <= SHOWN_CHARS else clean[:SHOWN_CHARS].rstrip() + "…"


def _connection(error: BaseException) -> str:
    seen: BaseException | None = error
    for _ in range(10):
        if isinstance(seen, ConnectionRefusedError):
            return "nothing listens at"
        if isinstance(seen, socket.gaierror):
            return "no such address:"
        if isinstance(seen, ssl.SSLError):
            return "no trusted TLS connection to"
        if seen is None:
            break
        seen = seen.__cause__ or seen.__context__
    return "the connection broke to"
