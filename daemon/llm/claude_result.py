"""Reads the output of ``claude -p --output-format json`` and turns its failures into errors for a person.

Usage and cost are those that Claude Code reports; a cost of 0 means unknown. An unknown failure has an empty
fault.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field

from ..core.errors import BadReply, Unavailable
from ..core.llm import Usage
from ..core.redact import redact, redact_head
from . import faults

if TYPE_CHECKING:
    from ..core.errors import Fault, ReflectdError
    from .faults import Asked

SHOWN_CHARS: Final = 200
RAW_CHARS: Final = 4_000
LOGIN: Final = "Claude Code is not logged in here. Run `claude` and type /login, or set claude_cli.token_file"
TOO_OLD: Final = "this Claude Code is too old to be asked (2.1.169 or newer is needed). Run `claude update`"
_LOGIN: Final = re.compile(
    r"not logged in|/login|failed to authenticate|invalid (?:api key|bearer)", re.IGNORECASE
)
_LIMIT: Final = re.compile(
    r"(?:usage|session|hour|weekly) limit reached|hit your [\w -]{0,40}limit"
    r"|out of (?:extra )?usage|credit balance",
    re.IGNORECASE,
)
_CUT: Final = re.compile(r"exceeded the \d{1,9} output token maximum")
_CONNECTION: Final = re.compile(r"connection|ECONN|ENOTFOUND|ETIMEDOUT|fetch failed|socket", re.IGNORECASE)
_TIMED_OUT: Final = re.compile(r"timed out|timeout", re.IGNORECASE)


class _Usage(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Model(Struct):
    output: int = field(name="outputTokens", default=0)


class Result(Struct):
    """The object that Claude Code prints at the end of the call."""

    type: str = ""
    subtype: str = ""
    is_error: bool = False
    result: str = ""
    structured_output: dict[str, object] | None = None
    stop_reason: str | None = None
    api_error_status: int | None = None
    api_error: str | None = None
    total_cost_usd: float | None = None
    usage: _Usage = field(default_factory=_Usage)
    models: dict[str, _Model] = field(name="modelUsage", default_factory=dict)


_decode = msgspec.json.Decoder(Result, strict=False).decode
_decode_all = msgspec.json.Decoder(list[Result], strict=False).decode


def read(out: bytes) -> Result | None:
    """The result in the output: an object, or with ``verbose`` the last one of a list. None without one."""
    text = out.strip()
    try:
        found = _decode_all(text) if text.startswith(b"[") else [_decode(text.rpartition(b"\n")[2])]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return next((f for f in reversed(found) if f.type == "result"), None)


def usage(found: Result) -> Usage:
    """Tokens and cost; the input includes the tokens of the cache."""
    used = found.usage
    cached, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
    cost = found.total_cost_usd or None
    return Usage(used.input_tokens + cached + written, used.output_tokens, cost, cached)


def model(found: Result) -> str:
    """The model that wrote most, without the mark for its context window; empty when none is named."""
    name = max(found.models, key=lambda each: found.models[each].output, default="")
    return name.partition("[")[0][:200]


def of_error(asked: Asked, found: Result) -> ReflectdError:
    """The error for a result that reports a failure, with the usage of the call."""
    said, used = found.result, usage(found)
    if found.subtype.startswith("error_max"):
        return BadReply(
            f"{asked.provider}: {asked.model} gave no reply of the wanted form", said[:RAW_CHARS], used
        )
    if found.api_error == "max_output_tokens" or _CUT.search(said):
        return BadReply(f"{asked.provider}: the answer of {asked.model} was cut off", said[:RAW_CHARS], used)
    refused = found.stop_reason == "refusal"
    problem = faults.of_refusal(asked, said) if refused else _unavailable(asked, found)
    problem.usage = used if used.input or used.output else None
    return problem


def of_exit(asked: Asked, code: int, out: bytes, err: bytes) -> Unavailable:
    """The error for a program that ended without a result."""
    said = _shown((err.strip() or out.strip()).decode("utf-8", "replace"))
    if "unknown option" in said:
        return Unavailable(f"{asked.provider}: {TOO_OLD}")
    return Unavailable(
        f"{asked.provider}: {asked.host} ended with exit code {code}{': ' + said if said else ''}"
    )


def _unavailable(asked: Asked, found: Result) -> Unavailable:
    said, status = found.result, found.api_error_status
    shown = _shown(said)
    if status in {401, 403} or (status is None and _LOGIN.search(said)):
        return Unavailable(f"{asked.provider}: {LOGIN} ({shown})", "auth")
    if _LIMIT.search(said):
        return Unavailable(f"{asked.provider}: the limit of your login is used up ({shown})", "billing")
    if status is not None:
        return faults.of_status(asked, status, {}, said, 0.0)
    fault: Fault = "timeout" if _TIMED_OUT.search(said) else "connection" if _CONNECTION.search(said) else ""
    return Unavailable(f"{asked.provider}: {shown or 'no reason is given'}", fault)


def _shown(text: str) -> str:
    """The first line, redacted and cut."""
    first = text.strip().partition("\n")[0]
    line = redact(" ".join(redact_head(first, SHOWN_CHARS * 4).split()))
    return line if len(line) <= SHOWN_CHARS else line[:SHOWN_CHARS] + " …"
