"""A small model on loopback for the verbs of `reflectd reflect`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.models.server import ModelServer


@pytest.fixture
def llm() -> Iterator[ModelServer]:
    """Whoever asks it more than was scripted fails the test."""
    with ModelServer() as server:
        yield server
        assert server.unscripted == []
