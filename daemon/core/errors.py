"""The one tree of errors that reflectd raises on purpose. A bug of ours stays a plain exception.

ReflectdError
├── UserError      settings or arguments are wrong: say what, where, and what to do; exit code 2
│   └── Refused    the daemon said no
├── Unavailable    a host, model, file system or database did not answer: retry or fall back
├── BadReply       a model or a client broke the form: keep the raw text, send nothing
└── Rejected       a guard or the budget forbade it: not a fault
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from .guards import Skip
    from .llm import Usage

Fault = Literal[
    "",
    "connection",
    "timeout",
    "rate_limit",
    "overloaded",
    "server",
    "auth",
    "billing",
    "model",
    "refused",
    "gone",
]
"""Why a model gave no answer. The first five faults go away by themselves. The person must mend ``auth``,
``billing`` and ``model``. ``refused``: the model itself would not answer. ``gone``: the host ended, and
with it the session that was to answer. Empty: no model failed, or the
cause is unknown.
"""


class ReflectdError(Exception):
    """Root of everything reflectd raises on purpose."""


class UserError(ReflectdError):
    """The person's settings, files or arguments are wrong; the message says how to mend them."""


class Refused(UserError):
    """The daemon said no, in its own words. ``status`` is that of HTTP: 404 when there is no such thing."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Unavailable(ReflectdError):
    """Something outside did not answer (host gone, disk full, model down).

    ``fault`` says why a model did not answer. ``retry_after_s`` is how long its server asks us to wait, None
    if it does not ask. ``usage`` is what the failed call cost: a refusal, for example, is paid for.
    ``limit``: the cap on spending that forbade the call.
    """

    def __init__(
        self, message: str, fault: Fault = "", retry_after_s: float | None = None, limit: Skip | None = None
    ) -> None:
        super().__init__(message)
        self.fault: Fault = fault
        self.retry_after_s = retry_after_s
        self.usage: Usage | None = None
        self.limit = limit


def words(error: Exception) -> str:
    """The failure in words for a person; of a system's error without number and path."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def told(error: Exception) -> str:
    """``words``, after the name of the file that a system's error is about."""
    about = error.filename if isinstance(error, OSError) else None
    return f"{about}: {words(error)}" if about else words(error)


class BadReply(ReflectdError):
    """A reply or a request has a wrong form. ``raw`` keeps its text, ``usage`` what the call cost."""

    def __init__(self, message: str, raw: str = "", usage: Usage | None = None) -> None:
        super().__init__(message)
        self.raw = raw
        self.usage = usage


class Rejected(ReflectdError):
    """A guard, a limit or a cancellation forbade something; ``reason`` is a stable slug for logs."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
