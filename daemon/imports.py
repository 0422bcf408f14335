"""Imports that cost start-up time for nothing, measured with ``python -X importtime``."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CERTIFICATES = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}


@contextmanager
def without(module: str) -> Iterator[None]:
    """Inside, importing ``module`` fails, as where it is not installed. One that is loaded stays."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


@contextmanager
def without_certificates() -> Iterator[None]:
    """Inside, TLS contexts are made without the system's certificates (a fifth of aiohttp's import).

    For aiohttp's import only, which makes two for a client that a Unix socket server never uses.
    """
    before = {name: os.environ.get(name) for name in _CERTIFICATES}
    os.environ.update(_CERTIFICATES)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
