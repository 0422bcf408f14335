"""Avoids imports that cost start-up time and are not needed (measured with ``python -X importtime``)."""

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
    """Inside the block, importing ``module`` fails as if it were not installed. A loaded module stays
    loaded.
    """
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
    """Inside the block, TLS contexts are made without the system's certificates.

    Only for the import of aiohttp: it makes two contexts for a client that we never use, in a fifth of its
    time.
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
