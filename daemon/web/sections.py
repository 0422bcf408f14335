"""What a feature's page may hold (``engine.features.feature.Page``), made complete for the template.

A feature leaves out what it has no use for; here each section and each cell gets every field. A value of a
wrong type is a bug of that feature and raises ``TypeError`` or ``KeyError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]


def sections(read: Mapping[str, Any], feature: str) -> list[Json]:
    """The sections of a page, or of the part that this feature has in it."""
    return [
        {
            "feature": feature,
            "title": s.get("title", ""),
            "text": s.get("text", ""),
            "columns": list(s.get("columns", ())),
            "rows": [_row(row) for row in s.get("rows", ())],
            "more": dict(s.get("more") or {}),
        }
        for s in read["sections"]
    ]


def _row(row: Mapping[str, Any]) -> Json:
    actions = [
        {
            "label": a["label"],
            "route": a["route"],
            "body": dict(a.get("body", {})),
            "key": a.get("key", ""),
            "confirm": a.get("confirm", ""),
        }
        for a in row.get("actions", ())
    ]
    return {"cells": [_cell(cell) for cell in row["cells"]], "actions": actions}


def _cell(cell: object) -> Json:
    """``kind`` says how it is shown: ``text``, ``number``, ``none``, ``at``, ``link``, ``query`` or
    ``share``.
    """
    if cell is None:
        return {"kind": "none"}
    if isinstance(cell, bool | str):
        return {"kind": "text", "text": str(cell)}
    if isinstance(cell, int | float):
        return {"kind": "number", "text": f"{cell:,}" if isinstance(cell, int) else f"{cell:,.4g}"}
    if not isinstance(cell, dict):
        raise TypeError(f"a cell is no {type(cell).__name__}")
    if "at" in cell:
        return {"kind": "at", "at": cell["at"]}
    if "share" in cell:
        return {"kind": "share", **{k: _share(cell.get(k, cell["share"])) for k in ("share", "low", "high")}}
    if "query" in cell:
        return {"kind": "query", "text": cell["text"], "query": dict(cell["query"])}
    return {"kind": "link", "text": cell["text"], "session": cell["session"], "round": cell.get("round", 0)}


def _share(value: object) -> float:
    return min(1.0, max(0.0, float(str(value))))
