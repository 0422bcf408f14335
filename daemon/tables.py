"""Reads the ``tables.toml`` of a package: its words, rows and patterns, by ``section.name``."""

from __future__ import annotations

import pkgutil
import re
import tomllib


class Tables:
    """The tables of one package."""

    def __init__(self, package: str) -> None:
        data = pkgutil.get_data(package, "tables.toml")
        self._known: dict[str, dict[str, str | list[str]]] = tomllib.loads((data or b"").decode())

    def text(self, name: str) -> str:
        """The text of this name; the parts of a long one are joined."""
        section, _, key = name.partition(".")
        return "".join(self._known[section][key])

    def words(self, name: str) -> tuple[str, ...]:
        """A list of words."""
        return tuple(self.text(name).split())

    def rows(self, name: str, columns: int = 0) -> list[list[str]]:
        """The lines of a table, each as its words; in a table of so many ``columns`` the last one may have
        blanks.
        """
        return [line.split(None, columns - 1) for line in self.text(name).strip().splitlines()]

    def pattern(self, name: str) -> re.Pattern[str]:
        """A pattern."""
        return re.compile(self.text(name))
