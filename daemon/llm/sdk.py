"""What the providers with an SDK share: from a ``Prompt`` to a ``Reply``, within the call's deadline.

A server may refuse a parameter that we would like to send (structured output, temperature …). Then the
provider asks again at once without it, and leaves it out for that model from then on. A prompt of the tier
``fast`` goes to the first of ``fast_models`` that the server lists; any other prompt goes to ``model``.
A failure is ``Unavailable`` with a fault; a reply that was cut off or is empty is ``BadReply``.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from ..core.errors import BadReply, Unavailable, UserError
from ..core.llm import Prompt, Reply, Usage
from ..core.policy import POLICIES, REFLEXION
from . import faults, prices
from .offered import FastOfApi
from .sdk_client import SdkClient

if TYPE_CHECKING:
    import re

    from httpx2 import Response

    from ..core.errors import ReflectdError
    from .faults import Asked
    from .offered import Monotonic

Body = dict[str, Any]

LIST_S: Final = 5.0  # for listing the server's models
MOST_LISTED: Final = 5_000
EUR: Final = "EUR"
PRICED: Final = frozenset({"claude-3-5-haiku-20241022"})
IN_PER_1K: Final = 0.001
OUT_PER_1K: Final = 0.005
"""What reflexion and evaluation cost by the requirements, in EUR, with the model that they name. Any other
model has its price from the table of prices, in USD. The two are never summed."""
LONGEST_NAME: Final = 200
THINKING_TOKENS: Final = 8_000  # more room for a model that thought before and was cut off
REFUSING: Final = frozenset({400, 404, 422, 500, 501})


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, as both protocols give it. ``usage.cost`` is not yet known."""

    text: str
    model: str
    usage: Usage
    written: int = 0  # input tokens that were written to a cache
    thought: int = 0  # output tokens that the model spent on thinking
    cut: bool = False
    refusal: str | None = None


class _Entry(msgspec.Struct):
    id: str


class _Listed(msgspec.Struct):
    data: list[_Entry]


_decode_listed = msgspec.json.Decoder(_Listed).decode


class SdkProvider(SdkClient):
    """A provider (``core.ports.Provider``) on top of an SDK."""

    wishes: ClassVar[tuple[tuple[str, re.Pattern[str]], ...]]
    """The parameters that can be left out, each with a pattern for how a server's error text names it. When
    several match, the first is left out.
    """

    def __init__(
        self,
        *,
        api_key: str,
        model: str,
        base_url: str = "",
        fast_models: tuple[str, ...] = (),
        monotonic: Monotonic = time.monotonic,
        list_s: float = LIST_S,
    ) -> None:
        """Raises ``UserError`` when key, model or address can't be right."""
        super().__init__(api_key, base_url)
        if not model:
            raise UserError(f"{self.name}: no model is set; name one")
        self._model, self._list_s = model, list_s
        self._fast = FastOfApi(fast_models, model, self._list, monotonic, official=not self._url)
        self._without: dict[str, frozenset[str]] = {}
        self._thinks: set[str] = set()

    @abstractmethod
    def _body(self, prompt: Prompt, model: str, max_tokens: int, without: frozenset[str]) -> Body:
        """The arguments of one call, without the parameters that the server refused before."""

    @abstractmethod
    def _used(self, prompt: Prompt, without: frozenset[str]) -> frozenset[str]:
        """The names of those ``wishes`` that the body holds."""

    @abstractmethod
    async def _send(self, client: Any, body: Body, wait: Any) -> Response:  # noqa: ANN401 - the SDK's
        """Send one prompt. Raises the SDK's errors."""

    @abstractmethod
    async def _send_list(self, client: Any, wait: Any) -> Response:  # noqa: ANN401 - the SDK's
        """Ask which models there are. Raises the SDK's errors."""

    @abstractmethod
    def _read(self, content: bytes, asked: Asked) -> Answer:
        """The answer in a body. Raises ``msgspec.MsgspecError``, or ``Unavailable`` for an error in a 200."""

    @abstractmethod
    def _structured(self, prompt: Prompt, without: frozenset[str]) -> bool:
        """Whether the body asked for structured output."""

    async def _send_rehearsal(self, client: Any, wait: Any) -> None:  # noqa: ANN401 - the SDK's
        """See ``SdkClient``."""
        prompt = Prompt("judge", "judge", "", "", schema={"type": "object", "properties": {}})
        await self._send(client, self._body(prompt, self._model, 1, frozenset()), wait)

    async def chosen(self, prompt: Prompt) -> Prompt:
        """``prompt`` itself. Before a prompt of the tier ``fast`` it lists the server's models, if that was
        not done lately.
        """
        if prompt.tier == "fast":
            await self._fast.look()
        return prompt

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """The setting's model, or for the tier ``fast`` the small model that the server offers. The vendor is
        unknown when the person set another address.
        """
        model = self._fast.after(prompt.wanted) if prompt.tier == "fast" else self._model
        return ("" if self._url else self.name), model

    def most_tokens(self, prompt: Prompt) -> int:
        """The prompt's limit, with more room for a model that was seen to think."""
        thinks = self.model_for(prompt)[1] in self._thinks
        return prompt.max_tokens + (THINKING_TOKENS if thinks else 0)

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """One reply. Raises ``Unavailable`` with a fault, or ``BadReply`` with the raw text."""
        started = time.monotonic()
        asked = self._asked(self.model_for(prompt)[1])
        answer: Answer | None = None
        problem: ReflectdError
        try:
            async with asyncio.timeout(deadline_s):
                await self._ready()
                answer = await self._ask(prompt, asked, started + deadline_s)
        except TimeoutError:
            problem = faults.of_timeout(asked, deadline_s)
        except Unavailable as e:
            if e.fault == "model" and prompt.tier == "fast":
                self._fast.refuse(asked.model)
            raise
        if answer is None:
            raise problem
        return self._reply(prompt, asked, answer, time.monotonic() - started)

    async def _list(self) -> tuple[str, ...]:
        """The ids of the models that the API lists. Raises ``Unavailable``."""
        asked, found = self._asked(""), None
        problem: Unavailable
        await self._ready()  # the first time that is a second of importing, and no fault of the server
        try:
            async with asyncio.timeout(self._list_s):
                found = await self._post(
                    lambda wait: self._send_list(self._client, wait), asked, self._list_s
                )
        except TimeoutError:
            problem = faults.of_timeout(asked, self._list_s)
        if found is None:
            raise problem
        if not isinstance(found, bytes):
            raise faults.of_status(asked, *found, time.time())
        listed = await self._decoded(_decode_listed, found, asked)
        return tuple(entry.id for entry in listed.data[:MOST_LISTED])

    async def _ask(self, prompt: Prompt, asked: Asked, end: float) -> Answer:
        """Ask; whenever the server refuses a parameter, ask again without it."""
        while True:
            without = self._without.get(asked.model, frozenset())
            room = THINKING_TOKENS if asked.model in self._thinks else 0
            body = self._body(prompt, asked.model, prompt.max_tokens + room, without)
            send = partial(self._send, self._client, body)
            found = await self._post(send, asked, max(0.1, end - time.monotonic()))
            if isinstance(found, bytes):
                return await self._decoded(partial(self._read, asked=asked), found, asked)
            status, headers, text = found
            refused = self._refused(status, text, self._used(prompt, without))
            if not refused:
                raise faults.of_status(asked, status, headers, text, time.time())
            self._without[asked.model] = self._without.get(asked.model, frozenset()) | {refused}

    def _refused(self, status: int, text: str, used: frozenset[str]) -> str:
        """The parameter that the server's error names, or empty."""
        if status not in REFUSING:
            return ""
        said = faults.said_in(text)
        return next((wish for wish, named in self.wishes if wish in used and named.search(said)), "")

    def _reply(self, prompt: Prompt, asked: Asked, answer: Answer, seconds: float) -> Reply:
        usage = self._priced(prompt, asked.model, answer)
        if answer.refusal is not None:
            refused = faults.of_refusal(asked, answer.refusal)
            refused.usage = usage
            raise refused
        if answer.cut:
            if answer.thought:
                self._thinks.add(asked.model)
            raise BadReply(
                f"{self.name}: the answer of {asked.model} was cut off at {answer.usage.output} tokens",
                raw=answer.text,
                usage=usage,
            )
        if not answer.text.strip():
            raise BadReply(f"{self.name}: the answer of {asked.model} is empty", usage=usage)
        without = self._without.get(asked.model, frozenset())
        return Reply(
            text=answer.text,
            provider=self.name,
            model=_name(answer.model) or asked.model,
            data=_object(answer.text) if self._structured(prompt, without) else None,
            usage=usage,
            seconds=seconds,
        )

    def _priced(self, prompt: Prompt, asked: str, answer: Answer) -> Usage:
        """The tokens with what they cost. Prices that the memory's requirements name count for its model."""
        if POLICIES.get(prompt.purpose) is REFLEXION and {asked, answer.model} & PRICED:
            cost = cost_eur(answer.usage.input, answer.usage.output)
            return replace(answer.usage, cost=cost, currency=EUR)
        return replace(answer.usage, cost=self._cost(asked, answer))

    def _cost(self, asked: str, answer: Answer) -> float | None:
        """The price by the model's name in the answer, else by the name that was asked for."""
        for model in (_name(answer.model), asked):
            cost = prices.cost_usd(self.name, model, answer.usage, base_url=self._url, written=answer.written)
            if cost is not None:
                return cost
        return None


def encodable(text: str) -> str:
    """``text`` without lone surrogates: JSON from a transcript may hold them, UTF-8 can't encode them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _name(model: str) -> str:
    """The model's name in an answer; empty when it is a file's path or too long for a name."""
    return model if len(model) <= LONGEST_NAME and not model.startswith("/") else ""


def _object(text: str) -> dict[str, object] | None:
    """The JSON object that ``text`` is, or None when it is anything else."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def cost_eur(input_tokens: int, output_tokens: int) -> float | None:
    """EUR for one reflexion or evaluation; None when no tokens were told: unknown is never 0 (I41)."""
    if input_tokens <= 0 and output_tokens <= 0:
        return None
    return input_tokens / 1000 * IN_PER_1K + output_tokens / 1000 * OUT_PER_1K
