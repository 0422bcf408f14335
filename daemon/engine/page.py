"""The form in which a page of a feature is given: sections, rows, actions. Plain data, no markup.

A section that is long is cut into pieces; what follows is a link whose query says where the piece begins.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Z: Final = NormalDist().inv_cdf(0.975)  # 95 of 100 such intervals hold the true share


class Share(Struct, frozen=True):
    """``hits`` of ``of``, with the interval; ``value`` is None where there is nothing to divide by."""

    hits: int
    of: int
    value: float | None
    low: float = 0.0
    high: float = 1.0


def wilson(hits: int, of: int) -> Share:
    """The share ``hits / of`` with Wilson's 95 % interval, which holds for few cases and near 0 and 1."""
    if not of:
        return Share(hits, of, None)
    p, n = hits / of, of
    middle = p + Z * Z / (2 * n)
    half = Z * sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    return Share(hits, of, p, max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale))


T = TypeVar("T")
Json = dict[str, Any]
PIECE: Final = 50
FURTHEST: Final = 1_000_000


def off(what: str, *, enabled: bool) -> str:
    """Said before a section that stays empty, because nothing is learned; "" when it is."""
    return "" if enabled else f"{what} are not learned: reflectd setup --learning on turns that on. "


def action(label: str, route: str, body: Json, *, key: str = "", confirm: str = "") -> Json:
    """``route`` of the feature is given ``body``. ``confirm``: asked before what no page takes back."""
    return {"label": label, "route": route, "body": body, "key": key, "confirm": confirm}


def row(*cells: object, actions: Sequence[Json] = ()) -> Json:
    """A row of a table. An empty text is a cell without anything."""
    return {"cells": [None if cell == "" else cell for cell in cells], "actions": list(actions)}


def when(at: int) -> Json:
    """A cell with a time: epoch ms, which the browser shows as local time."""
    return {"at": at}


def link(text: str, **query: str) -> Json:
    """A cell that leads to the same page with another query."""
    return {"text": text, "query": query}


def session(name: str) -> Json | None:
    """A cell that leads to the newest verdict of a session."""
    return {"text": name, "session": name, "round": 0} if name else None


def share(found: Share) -> object:
    """A cell with a share and its interval; empty where there is nothing to divide by."""
    if found.value is None:
        return None
    return {"share": found.value, "low": found.low, "high": found.high}


def section(
    title: str, columns: Sequence[str], rows: Sequence[Json], *, text: str = "", more: Json | None = None
) -> Json:
    """A part of a page. ``text``: a sentence above the table. ``more``: the query of what follows."""
    return {"title": title, "text": text, "columns": list(columns), "rows": list(rows), "more": more or {}}


def piece(found: Sequence[T], query: Mapping[str, Any], name: str) -> tuple[Sequence[T], Json]:
    """The part of a long list that the query asks for under this name, and the query of the next one."""
    begin = position(query, name)
    left = begin + PIECE < len(found)
    return found[begin : begin + PIECE], following(query, name, str(begin + PIECE)) if left else {}


def position(query: Mapping[str, Any], name: str) -> int:
    """From which number on; 0 where the query says nothing that can be understood."""
    said = str(query.get(name, ""))
    return min(int(said), FURTHEST) if said.isascii() and said.isdecimal() and len(said) < 9 else 0


def following(query: Mapping[str, Any], name: str, value: str) -> Json:
    """The query with another value under this name."""
    return {**{k: str(v) for k, v in query.items()}, name: value}
