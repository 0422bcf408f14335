"""What the lines of a project's rules oblige every task to do, or never to do."""

from __future__ import annotations

import re
from typing import Final

from ...core.evidence import Topic
from .topics import MAX_CLAUSE, Said, read_clause

MAX_PROJECT: Final = 1_500  # characters
MAX_RULES: Final = 10
_OBLIGES: Final = re.compile(
    r"\b(?:always|must|never|before|after (?:every|each|any|all|you|making|changing)|make sure|ensure"
    r"|required?|do not|don't"
    r"|every change|each change|all changes|when (?:you're|you are|done|finished)|no)\b",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(r"(?<=[.;!])\s+|,\s+(?=(?:then|and|never|always|do not|don't)\b)")


def obligations(project: str) -> tuple[tuple[str, Said], ...]:
    """The lines of a project's rules that oblige: what they ask for and forbid; not mere descriptions."""
    found: list[tuple[str, Said]] = []
    for raw in project[:MAX_PROJECT].split("\n"):
        line = raw.strip(" \t-*+>#").strip()
        if not _OBLIGES.search(line):
            continue
        parts = [read_clause(part) for part in _CLAUSE_END.split(line)]
        asks = frozenset[Topic]().union(*(p.asks for p in parts))
        forbids = frozenset[Topic]().union(*(p.forbids for p in parts))
        if asks or forbids:
            found.append((line[:MAX_CLAUSE], Said(asks, forbids)))
    return tuple(found[:MAX_RULES])
