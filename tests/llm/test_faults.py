"""What a model server's failure means, without a server."""

from __future__ import annotations

import json

import pytest

from daemon.llm import faults
from daemon.llm.faults import Asked, retry_after_s, said_in
from tests.llm.samples import KEY

NOW = 1_790_000_000.0  # Mon, 21 Sep 2026 14:13:20 GMT
ASKED = Asked("anthropic", "api.anthropic.com", "claude", KEY)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "30"}, 30),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "30", "retry-after-ms": "1200"}, 1.2),
        ({"retry-after": "5", "retry-after-ms": "soon"}, 5),
        ({"retry-after": "Mon, 21 Sep 2026 14:13:30 GMT"}, 10),
        ({"retry-after": "Mon, 21 Sep 2026 14:00:00 GMT"}, 0),
        ({"retry-after": "Mon, 21 Sep 9026 14:13:30 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "later"}, None),
        ({}, None),
    ],
)
def test_when_to_ask_again(headers: dict[str, str], expected: float | None) -> None:
    """Seconds, milliseconds and dates are understood; nonsense and more than a week are nothing."""
    assert retry_after_s(headers, NOW) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"type": "error", "error": {"type": "api_error", "message": "Broken"}}', "Broken · api_error"),
        ('{"error": {"message": "No", "param": "temperature", "code": null}}', "No · temperature"),
        ('{"error": "model is loading"}', "model is loading"),
        ('{"detail": "Not Found"}', "Not Found"),
        ('{"object": "error", "message": "Bad", "code": 40001}', "Bad · 40001"),
        ("  plain\n text ", "plain text"),
        ("<html>no</html>", ""),
        ("[1, 2]", ""),
        ("7", ""),
        ("", ""),
    ],
)
def test_what_an_error_body_says(body: str, expected: str) -> None:
    """The error bodies of the usual servers, as one line."""
    assert said_in(body) == expected


def test_long_bodies_cost_little() -> None:
    """A body of megabytes is read only at its start, a deep one is left."""
    assert len(said_in("x" * 5_000_000)) == faults.READ_CHARS
    assert said_in('{"error":' * 1_000).startswith('{"error"')
    assert len(said_in('{"error":' * 500_000)) == faults.READ_CHARS


def test_message_for_people() -> None:
    """What happened, where, and what to do; the key and long texts are cut out."""
    body = json.dumps({"error": {"message": f"Invalid key {KEY} " + "and more " * 100}})
    failed = faults.of_status(ASKED, 401, {}, body, NOW)
    text = str(failed)
    assert text.startswith("anthropic: api.anthropic.com answered 401: Invalid key [redacted] and more")
    assert text.endswith("… Check the API key and what it may do.") or "…. Check the API key" in text
    assert KEY not in text + repr(ASKED)
    assert len(text) < 400


@pytest.mark.shows("I46")
def test_connection_errors_tell_their_kind_only() -> None:
    """A failed request's own text may hold a header; the kind of the failure is enough."""
    error = RuntimeError(f"Illegal header value b'Bearer {KEY}'")
    assert str(faults.of_connection(ASKED, error)) == (
        "anthropic: the connection broke to api.anthropic.com. Is it running, and is the address right?"
    )
