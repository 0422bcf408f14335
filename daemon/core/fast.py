"""Which small model answers a quick question: the first model of the person's lists that a host offers.

The caller passes the offered models in. None means that none of the lists is offered: the caller keeps the
session's own model.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from .settings import Fast, Settings, names
from .transcript import Model

KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": ("claude-haiku-5-5", "claude-haiku-4-5", "claude-haiku-4", "claude-3-5-haiku-20241022"),
    "openai": (
        "gpt-6-luna", "gpt-5.6-luna", "gpt-5.4-mini", "gpt-5-mini", "gpt-4.1-mini", "gpt-4o-mini",
        "gpt-3.5-turbo",
    ),
    "google": (
        "gemini-3.5-flash-lite", "gemini-3.1-flash-lite", "gemini-2.5-flash", "gemini-2.0-flash",
        "gemini-1.5-flash",
    ),
    "github-copilot": (
        "claude-haiku-5.5", "gpt-6-luna", "claude-haiku-4.5", "gpt-5-mini", "gpt-4o-mini",
    ),
}  # fmt: skip
"""The small models of each provider, by the host's provider ids, best first."""
LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
LOCAL_PROVIDERS: Final = frozenset(
    {"ollama", "lmstudio", "llamacpp", "llama.cpp", "local"}
)  # opencode's names

Lists = Mapping[str, tuple[str, ...]]
"""The host's provider id to model names, best first. The order of the providers counts too."""
Offered = Mapping[str, tuple[str, ...]]
"""Provider id to the model ids it has."""

# gateways put a vendor before a model's name; Amazon puts a region and a vendor there
_VENDOR: Final = re.compile(
    r"(?:[^/]{1,80}/){0,4}(?:(?:global|us|us-gov|eu|apac|au|jp|ca)\.)?(?:anthropic\.)?"
)
# after these endings it is still the same model: a date, `latest`, a short number, Amazon's `-v1:0`
_VERSION: Final = re.compile(
    r"(?:[-@](?:latest|default|\d{8}|\d{4}-\d{2}-\d{2}|\d{3,4}|preview(?:-\d{2}-\d{2,4})?))?"
    r"(?:-v\d{1,2}(?::\d{1,2})?)?"
)


def lists_of(settings: Fast) -> Lists:
    """The small models of each provider: those of the person first, then those that reflectd knows."""
    return {provider: (*names(settings.models), *known) for provider, known in KNOWN.items()}


def choose(
    lists: Lists, offered: Offered, own: Model | None, refused: Collection[Model] = ()
) -> Model | None:
    """The small model for a session whose own model is ``own``, or None.

    It comes from the provider of ``own`` if that offers one of its list, else from the next provider. When
    the provider of ``own`` has no list (a gateway, the person's own server), only that provider is searched,
    for the names of all lists: then the session's text goes to no other company. ``refused`` models are left
    out.
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

    A name also means the same model with a date or ``latest`` behind it, with a vendor before it, and with
    dots for dashes. It never means another size or kind: ``gemini-2.5-flash`` is not
    ``gemini-2.5-flash-lite``.
    """
    starts = {name: _plain(name) for name in wanted}
    every = tuple(starts.values())
    plain = [(i, p) for i in ids if (p := _plain(i)).startswith(every)]  # a few of thousands
    for name, start in starts.items():
        rest = {i: p[len(start) :] for i, p in plain if p.startswith(start)}
        forms = [i for i, r in rest.items() if _VERSION.fullmatch(r)]
        if forms:
            return max(
                forms,
                key=lambda i: (i == name, not rest[i], "latest" in rest[i], "preview" not in rest[i], i),
            )
    return ""


def needs_second_look(settings: Settings, provider: str, model: str) -> bool:
    """Says whether this judge is small or local: its feedback without a proving row is asked again."""
    base = {"openai": settings.openai.base_url, "anthropic": settings.anthropic.base_url}.get(provider, "")
    if urlsplit(base).hostname in LOCAL_HOSTS or model.partition("/")[0] in LOCAL_PROVIDERS:
        return True
    small = tuple(name for each in lists_of(settings.fast).values() for name in each)
    return bool(first_offered(small, (model,)))


def _plain(name: str) -> str:
    low = name.lower()
    vendor = _VENDOR.match(low)
    return (low[vendor.end() :] if vendor else low).replace(".", "-")
