"""The words, rows and patterns of the redaction, read when the first text is redacted."""

from __future__ import annotations

from typing import Final

from ..tables import Tables

_TABLES: Final = Tables(__package__)
text, words, rows, pattern = _TABLES.text, _TABLES.words, _TABLES.rows, _TABLES.pattern
