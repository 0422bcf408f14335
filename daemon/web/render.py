"""Data to HTML: the templates, and the cleaning of each text before it is shown.

Every value that a template prints goes through ``shown``: an agent, a repository or a model may have written
it. It is escaped by the template library, control characters are made visible, escape sequences of terminals
are dropped, and very long lines are cut with a note. Nothing else makes markup.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ..core.words import HOSTS, PROVIDERS, state_name

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]
_SECTION: Final[Json] = {"title": "", "text": "", "columns": (), "more": {}}
_ACTION: Final[Json] = {"body": {}, "key": "", "confirm": ""}


def sections(read: Mapping[str, Any], feature: str) -> list[Json]:
    """The sections of a page (``engine.feature.Page``), or of the part that this feature has in it,
    with what the feature left out. A cell of a wrong type is a bug of that feature and raises ``TypeError``
    or ``KeyError``.
    """
    return [
        {
            **_SECTION,
            **s,
            "feature": feature,
            "rows": [
                {
                    "cells": [_cell(cell) for cell in row["cells"]],
                    "actions": [{**_ACTION, **action} for action in row.get("actions", ())],
                }
                for row in s.get("rows", ())
            ],
        }
        for s in read["sections"]
    ]


def _cell(cell: object) -> Json:
    """``kind``: the form of the cell: ``text``, ``number``, ``none``, ``at``, ``link``, ``query`` or
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


HERE: Final = Path(__file__).parent
LINE: Final = 2_000
TEXT: Final = 200_000
_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\^_])"
)
_SHOWN: Final = {c: chr(0x2400 + c) for c in range(32) if chr(c) not in "\n\t"}
_SHOWN.update({0x7F: "\u2421"} | {c: f"\\x{c:02x}" for c in range(0x80, 0xA0)})
_SHOWN.update(
    dict.fromkeys((0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
)


def clean(text: str) -> str:
    """The text for display: nothing in it is obeyed, and no line is longer than ``LINE``."""
    if len(text) < LINE and text.isprintable() and text.isascii():
        return text
    if len(text) > TEXT:
        text = f"{text[:TEXT]}\n[… {len(text) - TEXT:,} characters more are not shown]"
    text = _ESCAPES.sub("", text.replace("\r\n", "\n")).translate(_SHOWN)
    if len(text) >= LINE:
        text = "\n".join(map(_cut, text.split("\n")))
    return text.encode("utf-8", "replace").decode()


def encoded(values: Mapping[str, object]) -> str:
    """The query of an address."""
    return urlencode({name: str(value).encode("utf-8", "replace") for name, value in values.items()})


def _cut(line: str) -> str:
    if len(line) <= LINE:
        return line
    return f"{line[:LINE]} [… {len(line) - LINE:,} characters more in this line are not shown]"


def shown(value: object) -> object:
    """A value for a template; markup of our own templates as it is."""
    return value if isinstance(value, Markup) else clean(str(value))


def utc(ms: object) -> str:
    """A time for a reader without the script: UTC. ``ms``: epoch ms."""
    return _time(ms).strftime("%Y-%m-%d %H:%M UTC")


def iso(ms: object) -> str:
    """A time for the script, which shows it as local time."""
    return _time(ms).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(ms: object) -> datetime:
    try:
        return datetime.fromtimestamp(float(str(ms)) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def money(cost: object, currency: str = "USD") -> str:
    """An amount; None is unknown, never 0."""
    if not isinstance(cost, int | float):
        return "unknown"
    return f"{cost:.2f} {currency}" if cost >= 1 or round(cost, 2) == cost else f"{cost:.4f} {currency}"


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def state(name: object) -> str:
    """A state in words."""
    return state_name(str(name))


def project(folder: object) -> str:
    """The last name of a folder."""
    return str(folder).rstrip("/").rpartition("/")[2] or str(folder)


class Renderer:
    """Renders templates. A name that a template misses is an error, not an empty place."""

    def __init__(self) -> None:
        self._env = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._env.filters.update(
            urlencode=lambda values: Markup(escape(encoded(values))),  # noqa: S704 - quoted, and never cut
            utc=utc,
            iso=iso,
            money=money,
            count=count,
            state=state,
            project=project,
            host=lambda name: HOSTS.get(str(name), str(name)),
            provider=lambda name: PROVIDERS.get(str(name), str(name)),
            json=lambda value: escape(json.dumps(value)),
            part=lambda value: Markup(quote(str(value).encode("utf-8", "replace"), safe="")),  # noqa: S704 - quoted
        )

    def page(self, template: str, values: Mapping[str, Any]) -> str:
        """The HTML of a template."""
        return self._env.get_template(template).render(values)
