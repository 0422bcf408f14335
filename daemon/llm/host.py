"""Provider ``host``: a tool-less judge session inside the host, on the user's own models, without a key.

The session is announced, prompted and deleted by the shim; here is only the call and its answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Reply, Usage
from daemon.core.orders import RunJudge
from daemon.core.transcript import Model

if TYPE_CHECKING:
    from daemon.core.llm import Prompt

Run = Callable[[RunJudge, float], Awaitable[Raw]]
SLACK_S = 2.0


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
    """Runs prompts through the instance that owns the session. ``model`` overrides the session's own.

    A cost of 0 is what a host says about a model whose price it does not know: unknown, not free (I41).
    """

    name = "host"

    def __init__(self, run: Run, model: str = "") -> None:
        self._run = run
        provider, _, name = model.partition("/")
        self._model = Model(provider, name) if model else None

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """The setting's model, else the session's own."""
        model = self._model or prompt.model
        return (model.provider, model.model) if model is not None else ("", "")

    def most_tokens(self, prompt: Prompt) -> int:
        """What the prompt allows."""
        return prompt.max_tokens

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """One judge session. Raises ``Unavailable`` when the host cannot, or answers out of form."""
        model = self._model or prompt.model
        started = monotonic()
        timeout_ms = int(max(1.0, deadline_s - SLACK_S) * 1000)
        order = RunJudge(prompt.session, prompt.system, prompt.text, model, timeout_ms)
        data = await self._run(order, deadline_s)
        try:
            found = _decode(data)
        except msgspec.MsgspecError as e:
            raise Unavailable(f"the host's answer is not of the agreed form: {e}") from BadReply(
                str(e), str(data)
            )
        return Reply(
            text=found.text,
            provider=self.name,
            model=_name(found.model, model),
            usage=Usage(int(found.tokens.input), int(found.tokens.output), found.cost or None),
            seconds=monotonic() - started,
        )
