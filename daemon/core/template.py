"""See ``core.question``."""

from .question import divided, fill

__all__ = ["divided", "fill"]
