"""The daemon's own log: one line per event, redacted (I46), bounded on disk (I44). Never raises.

Only the server imports this at its start: loading structlog takes a tenth of a second, which is too long for
the command line. A line is logfmt (``timestamp level event key=value``). A logger
bound with ``debug=True`` keeps its debug lines whatever the level is: so one host instance can be debugged. A
line that can't be written (disk full, terminal closed) is lost, and the daemon goes on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from .imports import without

with without("rich"):  # structlog would load it to draw tracebacks in colour, which a log does not need
    import structlog
    from structlog.typing import FilteringBoundLogger

from .core.errors import Unavailable
from .files.safe import write_atomic
from .redact import is_secret_name, mark, redact, redact_head, redact_tail, redact_value

if TYPE_CHECKING:
    from io import TextIOWrapper

    from structlog.typing import EventDict, WrappedLogger

    from .core.settings import Settings

Logger = FilteringBoundLogger

FILE_BYTES = 5 * 1024 * 1024
FILES = 3  # the log, .1 and .2
VALUE_CHARS = 4_000  # of one value in a line
DIAGNOSTICS = 50
DIAGNOSTIC_CHARS = 256 * 1024

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
# a terminal would obey these characters; the renderers quote line ends
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def configure(settings: Settings, target: TextIO | Path) -> None:
    """Log to a stream, or to a file that is rotated. When the file can't be opened, its lines are lost."""
    order = ["timestamp", "level", "part", "event", "session"]
    renderer = structlog.processors.LogfmtRenderer(key_order=order, drop_missing=True, bool_as_flag=False)
    structlog.configure(
        processors=[
            _Threshold(settings.log.level),
            structlog.processors.format_exc_info,
            _clean,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(0),  # _Threshold decides, it knows the logger
        logger_factory=_Sink(target),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_Forward()], force=True)


def get(name: str) -> Logger:
    """A logger whose lines say ``part=name``. It may be made before ``configure``."""
    return cast("Logger", structlog.get_logger(part=name))


def save_diagnostic(directory: Path, name: str, text: str) -> Path | None:
    """Save a raw reply for a person to read (I48): redacted, 0600, all or nothing. The newest 50 stay.

    Returns the file, None when it can't be written. A second text under the same name replaces the first.
    """
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:100] or "reply"
    path = directory / f"{safe}.txt"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, _cut(text, DIAGNOSTIC_CHARS).encode("utf-8", "backslashreplace"), durable=False)
        kept = sorted(directory.glob("*.txt"), key=lambda p: p.stat().st_mtime_ns, reverse=True)
        for old in kept[DIAGNOSTICS:]:
            old.unlink(missing_ok=True)
    except (OSError, Unavailable):
        return None
    return path


class _Forward(logging.Handler):
    """Writes what aiohttp and asyncio log into our log, where it is redacted and bounded."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):
            error = record.exc_info[1] if record.exc_info else None
            if type(error).__module__ == "aiohttp.http_exceptions" or "PayloadError" in type(error).__name__:
                # a client sent something that is no HTTP: not worth a warning
                get(record.name).debug("not HTTP", error=str(error))
            else:
                get(record.name).error(record.getMessage(), exc_info=record.exc_info)


class _Threshold:
    """Drops what is below the level, unless the logger is bound with ``debug=True``."""

    def __init__(self, level: str) -> None:
        self._least = _LEVELS[level]

    def __call__(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        if not event.pop("debug", False) and _LEVELS.get(method, _LEVELS["error"]) < self._least:
            raise structlog.DropEvent
        return event


def _clean(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Redact secrets, escape control characters and shorten long values of a line."""
    for key, value in event.items():
        named = is_secret_name(key) and value not in (None, "", True, False)
        event[key] = mark("named") if named else _short(value, tail=key == "exception")
    return event


def _short(value: object, *, tail: bool = False) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict | list | tuple):
        value = redact_value(value)  # secrets are found by their keys, which the text would not show
    try:
        text = value if isinstance(value, str) else str(value)
    except Exception as error:  # noqa: BLE001 - a broken __str__ must not break whoever logs
        text = f"<{type(value).__name__}: str() raised {type(error).__name__}>"
    return _cut(text, VALUE_CHARS, tail=tail).translate(_CONTROLS)


def _cut(text: str, limit: int, *, tail: bool = False) -> str:
    """The text redacted and cut to ``limit`` characters, with a note. ``tail`` keeps the end: the last lines
    of a traceback say more than the first.
    """
    if len(text) <= limit:
        return redact(text)
    if tail:
        return "… " + redact_tail(text, limit)
    return redact_head(text, limit) + f" … ({len(text)} characters)"


class _Sink:
    """Writes lines to a stream or a file at once, because after a crash the last lines matter most. Never
    raises. It is structlog's logger and the factory of that logger.
    """

    def __init__(self, target: TextIO | Path) -> None:
        self._handler = _File(target) if isinstance(target, Path) else _Stream(target)

    def __call__(self, *_args: object) -> _Sink:
        return self

    def msg(self, line: str) -> None:
        """Write one line."""
        self._handler.handle(logging.makeLogRecord({"msg": line}))

    debug = info = warning = error = critical = exception = warn = fatal = log = msg


class _Stream(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """The line is lost."""


class _File(RotatingFileHandler):
    """A file that is renamed to ``.1`` and ``.2`` when it is full."""

    handleError = _Stream.handleError  # noqa: N815 - logging's name

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=FILE_BYTES, backupCount=FILES - 1, encoding="utf-8", delay=True)

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(fd, "a", encoding="utf-8", errors="backslashreplace")

    def __del__(self) -> None:
        self.close()
