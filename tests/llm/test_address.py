"""Keys and addresses that can not be right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from daemon.core.errors import UserError
from harness.models.api_servers import (
    Wire,
)

if TYPE_CHECKING:
    pass
from tests.llm.samples import make


@pytest.mark.parametrize(
    "wrong",
    [
        {"api_key": "", "base_url": ""},
        {"api_key": "sk-ä"},
        {"api_key": "sk-a\nb"},
        {"api_key": "two words"},
        {"model": ""},
        {"base_url": "localhost:11434"},
        {"base_url": "ftp://127.0.0.1/v1"},
        {"base_url": "http://"},
        {"base_url": "http://user:secret@127.0.0.1/v1"},
        {"base_url": "http://127.0.0.1/v1?key=secret"},
        {"base_url": "http://[::1/v1"},
        {"base_url": "http://127.0.0.1:99999/v1"},
    ],
)
def test_wrong_settings(wire: Wire, wrong: dict[str, str]) -> None:
    """Settings that can't be right are told at once, without the secret in them."""
    with pytest.raises(UserError, match=f"^{wire}: ") as caught:
        make(wire, "http://127.0.0.1:1", **wrong)
    assert "secret" not in str(caught.value)
