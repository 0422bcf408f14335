"""The API for embeddings over real sockets: what is sent, and every answer that must not be believed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from daemon.core.errors import BadReply, Unavailable, UserError
from daemon.learning.embed.models import BATCH, MOST_CHARS, OpenAIEmbedder
from daemon.learning.embed.vectors import Vector
from harness.models.api_servers import Embeds, Fails, Hangs, LlmServer, Sends, Step, llm_server

KEY = "sk-proj-1234567890abcdefghijKLMNOP"


@pytest.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with llm_server() as running:
        yield running
        assert running.left == 0, "a scripted step was not asked for"


async def asked(server: LlmServer, *texts: str, key: str = "", url: str = "", **more: Any) -> list[Vector]:
    made = OpenAIEmbedder(api_key=key, model="small", base_url=url or server.url, **more)
    try:
        return await made.embed(texts or ("a",))
    finally:
        await made.close()


async def test_what_is_sent(server: LlmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts, the model, plain numbers wanted, the key; nothing of the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    server.script(Embeds())
    await asked(server, "one", "two", key=KEY, url=f"{server.url}/v1/")
    (got,) = server.got
    assert got.body == {"model": "small", "input": ["one", "two"], "encoding_format": "float"}
    assert got.headers["authorization"] == f"Bearer {KEY}"
    assert "org-1" not in json.dumps(got.headers)


@pytest.mark.shows("I46")
async def test_secrets_stay_here(server: LlmServer) -> None:
    """A key in a text is taken out before it leaves; a long text is cut after that."""
    server.script(Embeds())
    await asked(server, f"use {KEY}", "x" * 2 * MOST_CHARS)
    assert KEY not in json.dumps(server.got[0].body)
    assert len(server.got[0].body["input"][1]) == MOST_CHARS


async def test_vectors_are_put_in_the_order_of_their_numbers(server: LlmServer) -> None:
    """A server may answer in any order."""
    server.script(Embeds(), Embeds(backwards=True))
    assert await asked(server, "aab", "xyz") == await asked(server, "aab", "xyz")


async def test_the_model_is_named_with_its_server(server: LlmServer) -> None:
    """Two servers may call different models by one name: their vectors are never taken together."""
    server.script(Embeds(), Embeds())
    (here,) = await asked(server, "a")
    (there,) = await asked(server, "a", url=server.url.replace("127.0.0.1", "localhost"))
    assert here.model == f"small at {server.url.removeprefix('http://')}"
    assert here.model != there.model


@pytest.mark.parametrize(
    ("step", "fault", "words"),
    [
        (Fails(401, "wrong key"), "auth", "wrong key"),
        (Fails(400, "input is too long"), "", "too long"),
        (Sends(b'{"data":[{"index":0}]}'), "server", "not of the agreed form"),
        (Sends(b'{"data":[{"index":0,"embedding":[NaN]}]}'), "server", "not of the agreed form"),
        (Sends(b'{"data":[{"index":0,"embedding":"AACAPw=="}]}'), "server", "not of the agreed form"),
        (Sends(b"[" * 100_000), "server", "not of the agreed form"),
        (Hangs(), "timeout", "no answer"),
    ],
)
async def test_a_failure_has_its_fault(server: LlmServer, step: Step, fault: str, words: str) -> None:
    """No answer in time, none at all, or one that can't be read. The key is in no message."""
    server.script(step)
    call_s = 0.3 if isinstance(step, Hangs) else 60.0
    made = OpenAIEmbedder(api_key=KEY, model="small", base_url=server.url, call_s=call_s)
    await made.warm()  # the library is imported outside the time for the call
    with pytest.raises(Unavailable, match=words) as raised:
        await made.embed(["a"])
    await made.close()
    assert raised.value.fault == fault
    assert KEY not in str(raised.value)


def _sizes(text: str) -> list[float]:
    return [1.0] * len(text)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Embeds(without=1), "1 vectors for 2 texts"),
        (Embeds(vector=_sizes), "several sizes"),
        (Embeds(vector=lambda _: [0.0, 0.0]), "without a length"),
        (Embeds(vector=lambda _: []), "without a length"),
        (Embeds(vector=lambda _: [1.7e308] * 9), "without a length"),
        (Sends(b'{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}'), "wrong numbers"),
        (Sends(b'{"data":[{"index":7,"embedding":[1]},{"index":8,"embedding":[1]}]}'), "wrong numbers"),
    ],
)
async def test_vectors_that_cant_be_right_are_refused(server: LlmServer, step: Step, words: str) -> None:
    """Too few, of several sizes, of no length, with wrong numbers."""
    server.script(step)
    with pytest.raises(BadReply, match=words):
        await asked(server, "a", "bb")


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (Embeds(model="another"), "two models answered: .'another', 'small'"),
        (Embeds(vector=lambda _: [1.0, 2.0]), "vectors of several sizes"),
    ],
)
async def test_two_models_in_one_answer_are_refused(server: LlmServer, second: Step, words: str) -> None:
    """A server that changes its model between two requests: its vectors are not compared."""
    server.script(Embeds(), second)
    with pytest.raises(BadReply, match=words):
        await asked(server, *(f"text {n}" for n in range(BATCH + 1)))


def test_what_cant_be_right_is_refused_before_anything_is_sent() -> None:
    """No key for OpenAI itself, no model, an address with a password."""
    with pytest.raises(UserError, match="no API key"):
        OpenAIEmbedder(api_key="", model="small")
    with pytest.raises(UserError, match=r"embed\.model"):
        OpenAIEmbedder(api_key="k", model="")
    with pytest.raises(UserError, match="must look like"):
        OpenAIEmbedder(api_key="k", model="small", base_url="http://me:pass@host/v1")
