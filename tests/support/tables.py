"""Long tables of examples, kept as data: ``tests/data/tables/<name>.json``, one row a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "data" / "tables"


def tables(name: str) -> dict[str, list[Any]]:
    """The tables of a file, by their names."""
    found: dict[str, list[Any]] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return found
