"""Provisional: replaced by the real set-up."""
from __future__ import annotations
from typing import Any
import structlog
Logger = Any
def get(name: str) -> Any:
    return structlog.get_logger(name)
def configure(settings: Any, target: Any) -> None:
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(target.open("a") if hasattr(target, "open") else target))
