"""The names of errors in an output, in the form in which they are compared.

A name that says little by itself (``TypeError``) counts only together with what its message names: the module
that is missing, the attribute, the address. Linear in the size of the output, of which the tail is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

TAIL: Final = 8_000
MAX_FAULTS: Final = 4
MAX_MESSAGE: Final = 160
_LONG: Final = 300  # characters of a message that are looked at
_FAULT: Final = re.compile(
    r"\b(?P<name>(?:[A-Za-z_][\w]{0,60}\.){0,6}[A-Z]\w{2,60}(?:Error|Exception|Warning|Failure|NotFound|Timeout))"
    r"\b(?:: {0,2}(?P<said>[^\n]{1,300}))?"
    r"|\b(?P<code>E(?:NOENT|ACCES|PERM|EXIST|ISDIR|NOTDIR|NOTEMPTY|ROFS|BUSY|NOSPC|MFILE|PIPE|INVAL|RESOLVE"
    r"|CONN(?:REFUSED|RESET|ABORTED)|ADDRINUSE|ADDRNOTAVAIL|TIMEDOUT|NOTFOUND|HOSTUNREACH|AI_AGAIN|INTEGRITY"
    r"|BADENGINE|LIFECYCLE|TARGET|404|CONFLICT|LOCKVERIFY|USAGE|OTP|\d{4})"
    r"|(?:TS|CS)\d{3,5}|SQLSTATE\[?\w{5}|ORA-\d{5}|ERR_[A-Z_]{3,50}|P\d{4})\b(?P<rest>[^\n]{0,300})"
)
_TELLS_LITTLE: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "Error Exception BaseException AssertionError TypeError ValueError KeyError IndexError NameError "
        "AttributeError RuntimeError SyntaxError ReferenceError RangeError ImportError ModuleNotFoundError "
        "FileNotFoundError PermissionError OSError IOError LookupError NullPointerException "
        "IllegalArgumentException IllegalStateException NotImplementedError DeprecationWarning UserWarning "
        "OperationalError ProgrammingError ValidationError HTTPError RequestException ENOENT EACCES EPERM "
        "TimeoutError ConnectionError CalledProcessError TestFailure"
    ).split()
)
_SUBJECT: Final = re.compile(
    r"['\"`\u2018\u201c]([^'\"`\u2019\u201d\n]{1,120})['\"`\u2019\u201d]"  # quoted
    r"|([\w./@-]{0,60}[\w@][./_:-][\w./:@-]{1,80})"  # a path, a dotted or joined name
    r"|\b([a-z]{1,40}[A-Z]\w{1,40})\b"  # camelCase
)


@dataclass(frozen=True, slots=True)
class Fault:
    """An error's name, and what its message names."""

    name: str
    message: str = ""

    @property
    def text(self) -> str:
        """What a trigger holds: it reads back as this fault."""
        return f"{self.name}: {self.message}" if self.message else self.name

    @property
    def subjects(self) -> frozenset[str]:
        """What the message names: quoted words, paths, names in code."""
        found = (next(g for g in m.groups() if g) for m in _SUBJECT.finditer(self.message[:_LONG]))
        return frozenset(s.strip(".:,").casefold() for s in found)

    @property
    def tells_little(self) -> bool:
        """Whether its name alone says nothing of what went wrong."""
        return self.name in _TELLS_LITTLE or self.name.startswith(("TS", "CS")) or self.name[1:].isdigit()

    def is_like(self, stored: Fault) -> bool:
        """Whether this is ``stored`` again."""
        if self.name != stored.name:
            return False
        if not stored.tells_little:
            return not (stored.subjects and self.subjects) or bool(stored.subjects & self.subjects)
        return bool(stored.subjects) and stored.subjects <= self.subjects


def fault_of(text: str) -> Fault:
    """The fault that a trigger's text stands for."""
    name, _, message = text.partition(": ")
    return Fault(name, message)


def faults_in(output: str) -> tuple[Fault, ...]:
    """The errors that an output names, the last one first, each once. Those that could be anything are left
    out.
    """
    found: dict[Fault, None] = {}
    for m in _FAULT.finditer(output[-TAIL:]):
        name = (m["name"] or m["code"]).rsplit(".", 1)[-1]
        message = (m["said"] or m["rest"] or "").strip(" :,]!")
        fault = Fault(name, " ".join(message.split())[:MAX_MESSAGE])
        if fault.tells_little and not fault.subjects:
            continue
        found.pop(fault, None)
        found[fault] = None
    return tuple(reversed(found))[:MAX_FAULTS]
