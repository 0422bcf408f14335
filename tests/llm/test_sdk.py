"""The contract of the providers with an SDK: the real SDKs against servers that speak the real formats."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import sys
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest

from daemon.core.errors import BadReply, Unavailable, UserError
from daemon.core.llm import Usage
from daemon.llm.faults import Asked
from daemon.llm.prices import cost_usd
from daemon.llm.sdk import HEADERS, MAX_BYTES, THINKING_TOKENS, Answer, SdkProvider
from harness.models.api_servers import (
    MODEL,
    Cuts,
    Fails,
    Hangs,
    Lists,
    LlmServer,
    Says,
    Sends,
    Step,
    Wire,
    llm_server,
)
from tests.llm.samples import DATA, KEY, LONG, SCHEMA, make, prompt


@pytest.fixture
async def provider(wire: Wire, server: LlmServer) -> AsyncIterator[SdkProvider]:
    made = make(wire, server.url)
    await made.warm()
    yield made
    await made.close()


async def fault(
    provider: SdkProvider, server: LlmServer, *steps: Step, deadline_s: float = LONG
) -> Unavailable:
    """How asking fails after ``steps``."""
    server.script(*steps)
    with pytest.raises(Unavailable) as caught:
        await provider.complete(prompt(schema=SCHEMA), deadline_s)
    return caught.value


@pytest.mark.shows("I28")
async def test_one_answer(wire: Wire, provider: SdkProvider, server: LlmServer) -> None:
    """One system prompt, one message, no tools, the limits asked for; the reply in our form."""
    server.script(Says("fine", input=120, output=7))
    reply = await provider.complete(prompt(max_tokens=321), LONG)
    assert (reply.text, reply.data, reply.provider, reply.model) == ("fine", None, wire, MODEL[wire])
    assert (reply.usage.input, reply.usage.output, reply.usage.cached) == (120, 7, 0)
    assert reply.seconds > 0
    (got,) = server.got
    assert (got.wire, got.system, got.user) == (wire, ["Judge."], ["The evidence."])
    assert got.body["model"] == MODEL[wire]
    assert got.body["max_tokens"] == 321
    assert got.body["temperature"] == 0
    allowed = {"model", "messages", "max_tokens", "temperature"} | ({"system"} & {*got.body})
    assert {*got.body} == allowed
    assert len(got.body["messages"]) == (1 if wire == "anthropic" else 2)


async def test_structured_answer(provider: SdkProvider, server: LlmServer) -> None:
    """With a schema, the server is asked to follow it, and the object comes as data."""
    server.script(Says(json.dumps(DATA)))
    reply = await provider.complete(prompt(schema=SCHEMA, temperature=None), LONG)
    assert reply.data == DATA
    assert json.loads(reply.text) == DATA
    (got,) = server.got
    assert got.schema is not None
    assert {*got.schema["properties"]} == {"complete", "why"}
    assert got.schema["additionalProperties"] is False
    assert not {"tools", "temperature"} & {*got.body}


@pytest.mark.shows("I27")
@pytest.mark.parametrize(
    "text", ["I think so.", '[{"complete": true}]', '{"a": 1} {"a": 2}', '```json\n{"a": 1}\n```', "[" * 9000]
)
async def test_data_is_one_object_or_nothing(text: str, provider: SdkProvider, server: LlmServer) -> None:
    """A server that ignores the schema gives text; only a text that is one object as a whole is data."""
    server.script(Says(text))
    reply = await provider.complete(prompt(schema=SCHEMA), LONG)
    assert (reply.text, reply.data) == (text, None)


@pytest.mark.shows("I41")
@pytest.mark.parametrize(
    ("url", "sold_by_us"),
    [
        ("", True),
        ("https://api.anthropic.com", True),
        ("https://api.openai.com/v1/", True),
        ("http://127.0.0.1:9", False),
    ],
)
def test_model_that_will_answer(wire: Wire, url: str, sold_by_us: bool) -> None:
    """What a call will cost can be told before it where the API is the vendor's own, and only there."""
    provider = make(wire, url)
    theirs = url and wire not in url
    vendor = wire if sold_by_us and not theirs else ""
    assert provider.model_for(prompt()) == (vendor, MODEL[wire])


@pytest.mark.shows("I41")
async def test_tokens_from_the_cache(wire: Wire, provider: SdkProvider, server: LlmServer) -> None:
    """Every input token counts, reported apart or as a part; a price at loopback is unknown, not 0."""
    server.script(Says(input=1_000, output=10, cached=600, written=300 if wire == "anthropic" else 0))
    usage = (await provider.complete(prompt(), LONG)).usage
    assert (usage.input, usage.output, usage.cached, usage.cost) == (1_000, 10, 600, None)


@pytest.mark.shows("I41")
@pytest.mark.parametrize("named", ["", "house-name", "/models/a.gguf", "x" * 10_000])
def test_price_at_the_official_address(wire: Wire, named: str) -> None:
    """The price of the model that was asked for, also when the server gives it a name of its own."""
    provider = make(wire, "")
    asked = Asked(wire, "official", MODEL[wire], KEY)
    reply = provider._reply(prompt(), asked, Answer("ok", named, Usage(1_000, 100)), 1.0)
    assert reply.usage.cost == cost_usd(wire, MODEL[wire], Usage(1_000, 100))
    assert reply.usage.cost is not None
    assert reply.model == (named if named == "house-name" else MODEL[wire])


async def test_unicode_and_size(provider: SdkProvider, server: LlmServer) -> None:
    """Long texts with every plane of Unicode arrive whole, both ways; a lone surrogate breaks nothing."""
    huge = 'Grüße 日本 🦆 \u2028 \\" ' * 100_000
    server.script(Says(huge))
    reply = await provider.complete(prompt(text=huge + "\ud83d", system="Judge \udc00."), LONG)
    assert reply.text == huge
    (got,) = server.got
    assert got.user == [huge + "?"]
    assert got.system == ["Judge ?."]


REFUSED = {
    "anthropic": {
        "output_config": "output_config: Extra inputs are not permitted",
        "temperature": "`temperature` is not supported by this model.",
    },
    "openai": {
        "response_format": "Invalid parameter: 'response_format' of type 'json_schema' is not supported.",
        "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    },
}


@pytest.mark.parametrize("parameter", ["structured", "temperature"])
async def test_refused_parameter(
    parameter: str, wire: Wire, provider: SdkProvider, server: LlmServer
) -> None:
    """A parameter that the server refuses by name is left out at once, and in every later call."""
    field = {"anthropic": "output_config", "openai": "response_format"}[wire]
    field = field if parameter == "structured" else parameter
    server.script(Fails(400, REFUSED[wire][field]), Says(json.dumps(DATA)), Says(json.dumps(DATA)))
    for _ in range(2):
        reply = await provider.complete(prompt(schema=SCHEMA), LONG)
        assert reply.text == json.dumps(DATA)
    first, *later = server.got
    assert first.schema is not None
    assert all(g.body.get(field) != first.body[field] for g in later)
    if parameter == "temperature":
        assert reply.data == DATA


async def test_what_one_model_refuses_the_other_still_gets(wire: Wire, server: LlmServer) -> None:
    """What is left out is remembered per model."""
    provider = make(wire, server.url, fast_models=("little",))
    server.models = Lists(("little",))
    server.script(Fails(400, "temperature is not supported"), Says(), Says())
    await provider.complete(await provider.chosen(prompt(tier="fast")), LONG)
    await provider.complete(prompt(), LONG)
    await provider.close()
    assert [g.body["model"] for g in server.got] == ["little", "little", MODEL[wire]]
    assert ["temperature" in g.body for g in server.got] == [True, False, True]


async def test_giving_in_ends(wire: Wire, provider: SdkProvider, server: LlmServer) -> None:
    """A server that refuses everything is asked a bounded number of times, then it is its error."""
    said = "temperature, output_config, cache_control, response_format and max_tokens are not supported"
    tries = 4 if wire == "anthropic" else 5
    failed = await fault(provider, server, *[Fails(400, said)] * tries)
    assert failed.fault == ""
    assert len(server.got) == tries


async def test_room_to_think(provider: SdkProvider, server: LlmServer) -> None:
    """A model that thinks until it is cut off gets more room at the next call: thinking counts as output."""
    server.script(Says("", stop="length", thought=1_500), Says())
    with pytest.raises(BadReply):
        await provider.complete(prompt(max_tokens=1_500), LONG)
    await provider.complete(prompt(max_tokens=1_500), LONG)
    assert [g.body["max_tokens"] for g in server.got] == [1_500, 1_500 + THINKING_TOKENS]


STATUSES = [
    (429, "Rate limit reached", "rate_limit_error", "rate_limit"),
    (529, "Overloaded", "overloaded_error", "overloaded"),
    (503, "The engine is currently overloaded", "server_error", "overloaded"),
    (500, "Internal server error", "api_error", "server"),
    (502, "Bad gateway", "api_error", "server"),
    (401, "invalid x-api-key", "authentication_error", "auth"),
    (403, "Your key may not use this", "permission_error", "auth"),
    (402, "Pay first", "billing_error", "billing"),
    (400, "Your credit balance is too low to access the API.", "invalid_request_error", "billing"),
    (429, "You exceeded your current quota", "insufficient_quota", "billing"),
    (404, "model: claude-nope", "not_found_error", "model"),
    (400, "The model `nope` does not exist", "model_not_found", "model"),
    (400, "The response was filtered", "content_filter", "refused"),
    (408, "Request timeout", "timeout", "timeout"),
    (413, "Request too large", "request_too_large", ""),
    (400, "messages: at least one message is required", "invalid_request_error", ""),
]


@pytest.mark.parametrize(("status", "message", "code", "expected"), STATUSES)
async def test_failure_has_its_fault(
    status: int, message: str, code: str, expected: str, provider: SdkProvider, server: LlmServer
) -> None:
    """Each way of a server to say no has its fault, is asked once, and tells who said what."""
    failed = await fault(provider, server, Fails(status, message, code, headers={"retry-after": "7"}))
    assert (failed.fault, failed.retry_after_s) == (expected, 7.0)
    assert len(server.got) == 1
    assert message.rstrip(".") in str(failed)
    assert server.url.removeprefix("http://") in str(failed)
    assert str(status) in str(failed)


@pytest.mark.parametrize("trickle", [False, True])
async def test_deadline(trickle: bool, provider: SdkProvider, server: LlmServer) -> None:
    """A silent server and one that sends a blank now and then end at the deadline, and are hung up on."""
    step = Hangs(trickle)
    failed = await fault(provider, server, step, deadline_s=1.5)
    assert failed.fault == "timeout"
    async with asyncio.timeout(LONG):
        await step.hung_up.wait()


@pytest.mark.shows("I11")
async def test_cancelled_call_hangs_up(provider: SdkProvider, server: LlmServer) -> None:
    """Cancelling the evaluation ends the request on the wire, and the next call works."""
    step = Hangs()
    server.script(step, Says("again"))
    call = asyncio.create_task(provider.complete(prompt(), LONG))
    async with asyncio.timeout(LONG):
        await step.started.wait()
        call.cancel()
        await step.hung_up.wait()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await provider.complete(prompt(), LONG)).text == "again"


@pytest.mark.shows("I46")
async def test_nobody_listens(wire: Wire) -> None:
    """A refused connection. The errors of the library hold the request with its key; ours does not."""
    async with llm_server() as gone:
        url = gone.url
    provider = make(wire, url)
    with pytest.raises(Unavailable, match=f"nothing listens at {url.removeprefix('http://')}") as caught:
        await provider.complete(prompt(), LONG)
    await provider.close()
    assert caught.value.fault == "connection"
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("said", [b'{"id":', b""], ids=["in the body", "before it"])
async def test_connection_breaks(said: bytes, provider: SdkProvider, server: LlmServer) -> None:
    """A connection that is cut is a fault of the connection, wherever it was."""
    assert (await fault(provider, server, Cuts(said))).fault == "connection"


@pytest.mark.shows("I44")
@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_without_end(*, packed: bool, provider: SdkProvider, server: LlmServer) -> None:
    """Only so much of it is read, unpacked, and it is asked for once."""
    body = b"x" * (MAX_BYTES + 1)
    step = Sends(gzip.compress(body), headers={"content-encoding": "gzip"}) if packed else Sends(body)
    failed = await fault(provider, server, step)
    assert (failed.fault, "is longer than 8 MB" in str(failed)) == ("", True)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (Sends(b"<html><body>Log in</body></html>", kind="text/html"), "a web page"),
        (Sends(b'{"choices": [{"mess'), "not of the agreed form"),
        (Sends(b'{"id": "x", "content": 7, "choices": 7}'), "not of the agreed form"),
        (Sends(b"[]"), "not of the agreed form"),
        (Sends(b""), "not of the agreed form"),
        (Sends(b"\xff\xfe\x00"), "not of the agreed form"),
        (Sends(b'{"content":' * 50_000), "not of the agreed form"),
        (Sends(b"<!doctype html><h1>Bad Gateway</h1>", 502, "text/html"), "502"),
        (Sends(b'{"error": "loading"}', 500), "loading"),
        (Sends(b"x" * 2_000_000, 500, "text/plain"), "500"),
    ],
)
async def test_body_of_another_form(step: Step, told: str, provider: SdkProvider, server: LlmServer) -> None:
    """Web pages, half JSON and other protocols are the server's fault, told in one short line."""
    failed = await fault(provider, server, step)
    assert failed.fault == "server"
    assert told in str(failed)
    assert "<" not in str(failed)
    assert len(str(failed)) < 500


@pytest.mark.parametrize("stop", ["refusal", "filter"])
async def test_model_refuses(stop: Any, provider: SdkProvider, server: LlmServer) -> None:
    """The model's own no is a refusal, not an answer."""
    failed = await fault(provider, server, Says("I can't help with that.", stop=stop))
    assert failed.fault == "refused"


@pytest.mark.shows("I18")
async def test_answer_is_cut_off(provider: SdkProvider, server: LlmServer) -> None:
    """A truncated answer is never taken for a verdict, even if what is there parses."""
    server.script(Says(json.dumps(DATA), stop="length", output=1_500))
    with pytest.raises(BadReply, match="cut off at 1500 tokens") as caught:
        await provider.complete(prompt(schema=SCHEMA), LONG)
    assert caught.value.raw == json.dumps(DATA)


@pytest.mark.shows("I18")
@pytest.mark.parametrize("text", ["", " \n"])
async def test_answer_is_empty(text: str, provider: SdkProvider, server: LlmServer) -> None:
    """Nothing said is not an answer."""
    server.script(Says(text))
    with pytest.raises(BadReply, match="empty"):
        await provider.complete(prompt(), LONG)


ECHO = f"Incorrect API key provided: {KEY}. Bearer {KEY}"


@pytest.mark.shows("I46")
@pytest.mark.parametrize(
    "step",
    [
        Fails(401, ECHO),
        Fails(400, ECHO),
        Fails(500, "x" * 150 + ECHO),
        Sends(ECHO.encode(), 403, "text/plain"),
        Says(ECHO, stop="refusal"),
        Sends(ECHO.encode()),
        Cuts(),
    ],
)
async def test_key_is_never_told(
    step: Step, provider: SdkProvider, server: LlmServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that echoes the key gets it into no message, traceback, chained error, log or repr."""
    caplog.set_level(logging.DEBUG)
    failed = await fault(provider, server, step)
    told = "".join(traceback.format_exception(failed)) + caplog.text + repr(provider)
    assert KEY[:20] not in told
    assert failed.__context__ is None


async def test_environment_is_not_heard(
    wire: Wire, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key, address, header, organisation or proxy of the environment reaches a request."""
    nowhere = "http://127.0.0.1:9"
    for name in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{name}_API_KEY", "env-key")
        monkeypatch.setenv(f"{name}_BASE_URL", nowhere)
        monkeypatch.setenv(
            f"{name}_CUSTOM_HEADERS", "Authorization: Bearer env-header\nX-Gateway: env-header"
        )
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "env-token")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "env-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "env-org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "env-project")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, nowhere)
    provider = make(wire, server.url)
    server.script(Says())
    await provider.complete(prompt(), LONG)
    await provider.close()
    (got,) = server.got
    assert "env-" not in json.dumps(got.headers)
    assert KEY in got.headers["authorization"]
    assert {*got.headers} <= HEADERS


@pytest.mark.shows("I46")
async def test_redirect_is_not_followed(wire: Wire, provider: SdkProvider, server: LlmServer) -> None:
    """An address that sends us on does not get the key carried elsewhere."""
    async with llm_server() as other:
        moved = Sends(b"", 307, headers={"location": f"{other.url}/v1/messages"})
        failed = await fault(provider, server, moved)
        assert other.got == []
    assert "307" in str(failed)


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
async def test_address_with_and_without_version(path: str, wire: Wire, server: LlmServer) -> None:
    """People write the address with ``/v1`` or without; a local server needs no key."""
    provider = make(wire, server.url + path, api_key="")
    server.script(Says())
    assert (await provider.complete(prompt(), LONG)).text == "ok"
    await provider.close()
    assert server.got[0].headers["authorization"] == "Bearer none"


async def test_package_that_is_broken(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warming never fails; the first call says what is wrong, and a mended package works at once."""
    async with llm_server() as server:
        server.script(Says())
        provider = make(wire, server.url)
        with monkeypatch.context() as broken:
            broken.setitem(sys.modules, wire, None)
            await provider.warm()
            with pytest.raises(Unavailable, match="install reflectd again"):
                await provider.complete(prompt(), LONG)
        assert (await provider.complete(prompt(), LONG)).text == "ok"
        await provider.close()


async def test_first_calls_at_once(wire: Wire, server: LlmServer) -> None:
    """Calls that come before the client is there share one."""
    provider = make(wire, server.url)
    server.script(*[Says()] * 20)
    replies = await asyncio.gather(*(provider.complete(prompt(), LONG) for _ in range(20)))
    await provider.close()
    assert [r.text for r in replies] == ["ok"] * 20


async def test_asked_again_after_closing(provider: SdkProvider, server: LlmServer) -> None:
    """Closing twice is fine, and a later call opens a client of its own."""
    server.script(Says(), Says())
    await provider.complete(prompt(), LONG)
    await provider.close()
    await provider.close()
    assert (await provider.complete(prompt(), LONG)).text == "ok"


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


# --- what only one of the two formats has ------------------------------------------------------------


async def test_cache_mark_only_on_a_stable_prompt(server: LlmServer) -> None:
    """A system prompt with the call's nonce is never the same twice: marking it would only cost."""
    provider = make("anthropic", server.url)
    server.script(Says(), Says())
    await provider.complete(prompt(system="Rules.", nonce="n1"), LONG)
    await provider.complete(prompt(system="Rules, fenced by n1.", nonce="n1"), LONG)
    await provider.close()
    stable, unstable = (g.body["system"][0] for g in server.got)
    assert stable["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in unstable


async def test_json_mode_between_schema_and_nothing(server: LlmServer) -> None:
    """OpenAI protocol: strict schema, then any JSON object, then only the prompt's words."""
    provider = make("openai", server.url)
    no_schema = Fails(400, "response_format: json_schema is not supported")
    server.script(no_schema, Says(json.dumps(DATA)))
    assert (await provider.complete(prompt(schema=SCHEMA), LONG)).data == DATA
    server.script(Fails(500, "Only 'text' is supported as response_format"), Says(json.dumps(DATA)))
    assert (await provider.complete(prompt(schema=SCHEMA), LONG)).data is None
    await provider.close()
    forms = [g.body.get("response_format", {}).get("type") for g in server.got]
    assert forms == ["json_schema", "json_object", "json_object", None]


async def test_limit_under_its_other_name(server: LlmServer) -> None:
    """OpenAI protocol: ``max_tokens`` refused by a reasoning model is sent as ``max_completion_tokens``."""
    provider = make("openai", server.url)
    told = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    server.script(Fails(400, told), Says())
    await provider.complete(prompt(max_tokens=77), LONG)
    await provider.close()
    first, second = server.got
    assert (first.body.get("max_tokens"), second.body.get("max_completion_tokens")) == (77, 77)
    assert "max_tokens" not in second.body


async def test_error_inside_a_success(server: LlmServer) -> None:
    """OpenAI protocol: a gateway's 200 that holds the error of the model behind it."""
    provider = make("openai", server.url)
    inner = await fault(provider, server, Sends(b'{"error": {"code": 429, "message": "upstream is busy"}}'))
    named = await fault(provider, server, Sends(b'{"error": {"code": "boom", "message": "broken"}}'))
    await provider.close()
    assert (inner.fault, named.fault) == ("rate_limit", "server")
    assert "upstream is busy" in str(inner)
