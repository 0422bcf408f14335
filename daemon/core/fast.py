"""Which small model answers a quick question: the first of the person's lists that is really offered.

Never asks anybody: what is offered comes in. None means that nothing of the lists is, and that the caller
stays with the session's own model.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from daemon.core.settings import names
from daemon.core.transcript import Model

if TYPE_CHECKING:
    from daemon.core.settings import Fast

Lists = Mapping[str, tuple[str, ...]]
"""Provider id, as the host has it, to model names, best first; the providers' order counts too."""
Offered = Mapping[str, tuple[str, ...]]
"""Provider id to the model ids it has."""

# gateways put a vendor before the name, Amazon a region and a vendor
_VENDOR: Final = re.compile(
    r"(?:[^/]{1,80}/){0,4}(?:(?:global|us|us-gov|eu|apac|au|jp|ca)\.)?(?:anthropic\.)?"
)
# what may follow a name and still be the same model: a date, `latest`, a short number; Amazon's `-v1:0`
_VERSION: Final = re.compile(
    r"(?:[-@](?:latest|default|\d{8}|\d{4}-\d{2}-\d{2}|\d{3,4}|preview(?:-\d{2}-\d{2,4})?))?"
    r"(?:-v\d{1,2}(?::\d{1,2})?)?"
)


def lists_of(settings: Fast) -> Lists:
    """The lists of the section ``[fast]``, under the host's provider ids."""
    return {f.name.replace("_", "-"): names(getattr(settings, f.name)) for f in fields(settings)}


def choose(
    lists: Lists, offered: Offered, own: Model | None, refused: Collection[Model] = ()
) -> Model | None:
    """The model for a session whose own is ``own``: from its provider if that has one, else from the next.

    A provider without a list (a gateway, a server of one's own) is searched for all names, and nobody else is
    asked then: what such a session says stays where it goes anyway. ``refused`` are left out.
    """
    home = own.provider if own is not None else ""
    if home and home not in lists:
        searched: Lists = {home: tuple(name for each in lists.values() for name in each)}
    else:
        searched = {p: lists[p] for p in (home, *lists) if p in lists}
    for provider, wanted in searched.items():
        ids = tuple(i for i in offered.get(provider, ()) if Model(provider, i) not in refused)
        found = first_offered(wanted, ids)
        if found:
            return Model(provider, found)
    return None


def first_offered(wanted: tuple[str, ...], ids: tuple[str, ...]) -> str:
    """The id of the first wanted name that is among ``ids``, or nothing.

    A name also stands for its dated and ``latest`` forms, with a vendor before it, dots as good as dashes;
    never for another size or kind (``gemini-2.5-flash`` is not ``gemini-2.5-flash-lite``).
    """
    starts = {name: _plain(name) for name in wanted}
    every = tuple(starts.values())
    plain = [(i, p) for i in ids if (p := _plain(i)).startswith(every)]  # few of thousands
    for name, start in starts.items():
        rest = {i: p[len(start) :] for i, p in plain if p.startswith(start)}
        forms = [i for i, r in rest.items() if _VERSION.fullmatch(r)]
        if forms:
            return max(
                forms,
                key=lambda i: (i == name, not rest[i], "latest" in rest[i], "preview" not in rest[i], i),
            )
    return ""


def _plain(name: str) -> str:
    low = name.lower()
    vendor = _VENDOR.match(low)
    return (low[vendor.end() :] if vendor else low).replace(".", "-")
