"""Reads ``tables.toml``: the words, rows and patterns of the redaction, by ``section.name``."""

from __future__ import annotations

import pkgutil
import re
import tomllib
from functools import cache


@cache
def _tables() -> dict[str, dict[str, str | list[str]]]:
    return tomllib.loads((pkgutil.get_data(__package__, "tables.toml") or b"").decode())


def text(name: str) -> str:
    """The text of this name; the parts of a long one are joined."""
    section, _, key = name.partition(".")
    return "".join(_tables()[section][key])


def words(name: str) -> tuple[str, ...]:
    """A list of words."""
    return tuple(text(name).split())


def rows(name: str) -> list[list[str]]:
    """The lines of a table, each as its words."""
    return [line.split() for line in text(name).strip().splitlines()]


def pattern(name: str) -> re.Pattern[str]:
    """A pattern."""
    return re.compile(text(name))
