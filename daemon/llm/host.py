"""Provider ``host``: asks the person's own models by a judge session without tools, inside the host; no key.

The shim announces, prompts and deletes that session; this module makes the order and reads its result. A
prompt of the tier ``fast`` goes to a small model of the person's lists that the host offers, else to the
session's own model. A small model that the host refuses as unknown is left out for a while.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ..core.errors import BadReply, Unavailable
from ..core.fast import choose
from ..core.llm import Reply, Usage
from ..core.orders import RunJudge
from ..core.transcript import Model
from .offered import Refused

if TYPE_CHECKING:
    from ..core.fast import Lists, Offered
    from ..core.llm import Prompt
    from .offered import Monotonic

Run = Callable[[RunJudge, float], Awaitable[Raw]]
Look = Callable[[str], Awaitable["Offered | None"]]
"""Gives the models that a session's host offers, by session id; None while unknown. Never fails."""
SLACK_S = 2.0
ERROR_CHARS = 2_000
_UNKNOWN = re.compile(
    r"model_?not_?found|unknown model|no such model|throughput isn.t supported"
    r"|model[^\n]{0,120}(?:not found|does not exist|not supported|not available|not enabled)"
)
_AUTH = ("ProviderAuthError", "APIError 401", "APIError 403")  # as the plugin names opencode's errors


class _Tokens(Struct):
    input: float = 0
    output: float = 0


class _Model(Struct):
    provider: str = msgspec.field(name="providerID", default="")
    model: str = msgspec.field(name="modelID", default="")


class _Answer(Struct):
    text: str
    model: _Model | None = None
    tokens: _Tokens = msgspec.field(default_factory=_Tokens)
    cost: float | None = None


_decode = msgspec.json.Decoder(_Answer, strict=False).decode


def _name(said: _Model | None, asked: Model | None) -> str:
    if said is not None and said.model:
        return f"{said.provider}/{said.model}"
    return f"{asked.provider}/{asked.model}" if asked is not None else ""


class HostProvider:
    """Runs prompts in the host of the session. ``run`` carries out the order; ``look`` gives the offered
    models.

    ``model``, if set, answers instead of the session's own model. A prompt of the tier ``fast`` goes to the
    first model of ``lists`` that the host offers. A cost of 0 means that the host does not know the price
    (I41).
    """

    name = "host"

    def __init__(
        self,
        run: Run,
        model: str = "",
        *,
        lists: Lists | None = None,
        look: Look | None = None,
        monotonic: Monotonic = monotonic,
    ) -> None:
        self._run = run
        provider, _, name = model.partition("/")
        self._model = Model(provider, name) if model else None
        self._lists, self._look = lists or {}, look
        self._refused = Refused(monotonic)

    async def chosen(self, prompt: Prompt) -> Prompt:
        """A prompt of the tier ``fast`` with its small model, if the host has one; any other as it is."""
        if prompt.tier != "fast" or self._look is None or not any(self._lists.values()):
            return prompt
        offered = await self._look(prompt.session)
        model = choose(self._lists, offered, prompt.model, self._refused.now) if offered else None
        return prompt if model is None else replace(prompt, model=model)

    def _asked(self, prompt: Prompt) -> Model | None:
        return prompt.model or self._model if prompt.tier == "fast" else self._model or prompt.model

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """The setting's model, else the prompt's; for the tier ``fast`` the prompt's first."""
        model = self._asked(prompt)
        return (model.provider, model.model) if model is not None else ("", "")

    def most_tokens(self, prompt: Prompt) -> int:
        """The prompt's limit."""
        return prompt.max_tokens

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """One judge session. Raises ``Unavailable`` when the host fails or its answer has another form."""
        model = self._asked(prompt)
        started = monotonic()
        timeout_ms = int(max(1.0, deadline_s - SLACK_S) * 1000)
        order = RunJudge(prompt.session, prompt.system, prompt.text, model, timeout_ms)
        try:
            data = await self._run(order, deadline_s)
        except Unavailable as e:
            if prompt.tier == "fast" and model is not None and _UNKNOWN.search(str(e)[:ERROR_CHARS].lower()):
                self._refused.add(model)
                e.fault = "model"
            elif not e.fault and any(name in str(e)[:ERROR_CHARS] for name in _AUTH):
                e.fault = "auth"
            raise
        try:
            found = _decode(data)
        except msgspec.MsgspecError as e:
            problem = Unavailable(f"the host's answer is not of the agreed form: {e}")
            problem.usage = Usage()  # a model was asked; nobody told what it took
            raise problem from BadReply(str(e), str(data))
        return Reply(
            text=found.text,
            provider=self.name,
            model=_name(found.model, model),
            usage=Usage(int(found.tokens.input), int(found.tokens.output), found.cost or None),
            seconds=monotonic() - started,
        )
