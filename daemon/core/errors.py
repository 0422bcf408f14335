"""The one error tree. Our own bugs stay plain exceptions and are never caught as one of these.

ReflectdError
├── UserError      settings or arguments are wrong: say what, where, and what to do; exit code 2
├── Unavailable    a host, model, file system or database did not answer: retry or fall back
├── BadReply       a model or a client broke the form: keep the raw text, send nothing
└── Rejected       a guard or the budget said no: not a fault
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from daemon.core.llm import Usage

Fault = Literal[
    "", "connection", "timeout", "rate_limit", "overloaded", "server", "auth", "billing", "model", "refused"
]
"""Why a model gave no answer. The first five pass; ``auth``, ``billing`` and ``model`` need the person;
``refused`` is the model's own no. Empty: not a model, or unknown.
"""


class ReflectdError(Exception):
    """Root of everything reflectd raises on purpose."""


class UserError(ReflectdError):
    """The person's settings, files or arguments are wrong; the message says how to mend them."""


class Unavailable(ReflectdError):
    """Something outside did not answer (host gone, disk full, model down).

    ``fault`` says why a model did not; ``retry_after_s`` is what its server asked for, None if nothing;
    ``usage`` what it took all the same (a refusal is paid for).
    """

    def __init__(
        self,
        message: str,
        fault: Fault = "",
        retry_after_s: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.fault: Fault = fault
        self.retry_after_s = retry_after_s
        self.usage = usage


class BadReply(ReflectdError):
    """A reply or a request is not of the agreed form; ``raw`` keeps what came, ``usage`` what it took."""

    def __init__(self, message: str, raw: str = "", usage: Usage | None = None) -> None:
        super().__init__(message)
        self.raw = raw
        self.usage = usage


class Rejected(ReflectdError):
    """A guard, a limit or a cancellation said no; ``reason`` is a stable slug for logs."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
