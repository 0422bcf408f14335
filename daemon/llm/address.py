"""Checks an API key and a server's address, and says which part of an address a message may show.

Raises ``UserError`` with words for a person, which hold neither the key nor credentials inside the address.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ..core.errors import UserError


def key(provider: str, given: str, base_url: str) -> str:
    """``given``, checked. It may be empty only for another server than the vendor's."""
    if not given and not base_url:
        raise UserError(f"{provider}: no API key is set; set one, or the address of a server that needs none")
    if not (given.isascii() and given.isprintable()) or " " in given:
        raise UserError(f"{provider}: the API key holds characters that no key has; copy it again")
    return given


def url(provider: str, given: str) -> str:
    """``given``, checked: an HTTP address without credentials, query and fragment, or empty."""
    try:
        parts = urlsplit(given)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    plain = given.isascii() and given.isprintable() and " " not in given
    if given and not (valid and plain and parts.username is None and not parts.query and not parts.fragment):
        raise UserError(f"{provider}: the address must look like https://host/v1, with nothing after it")
    return given


def host(given: str) -> str:
    """Host and port: the part of an address that messages may show."""
    return urlsplit(given).netloc.rpartition("@")[2]
