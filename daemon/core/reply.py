"""A model's reply → the one JSON object it was asked for; and what was asked and answered on the way.

Structured output is taken as it is. From prose, the *last* object with the wanted keys and the call's nonce
counts, found in a bounded scan in linear time: the text that was judged may echo such an object (I27). What
can't be read raises ``BadReply`` with the raw text. Never says what the object means: each flow does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .errors import BadReply
from .llm import Prompt, Reply
from .question import BadForm, object_in

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping


def wanted_object(reply: Reply, nonce: str, *keys: str, what: str = "verdict") -> Mapping[str, object]:
    """The object of the agreed form in ``reply``. Raises ``BadReply``; ``what`` is how its message names it.

    ``nonce``: must be echoed by a reply in prose, when given. ``keys``: what the object must have at least.
    """
    data = reply.data if reply.data is not None else object_in(reply.text, nonce, keys)
    if data is None:
        raise BadReply(f"the reply holds no {what} object", raw=reply.text)
    return data


@dataclass(slots=True)
class Talk:
    """What one flow asked and was answered so far. ``why``: what was wrong with the last bad reply."""

    prompts: list[Prompt] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    bad: list[BadForm] = field(default_factory=list)
    why: str = ""

    def ask(self, prompt: Prompt) -> Generator[Prompt, Reply, Reply | None]:
        """One call; None when its answer was cut off or otherwise useless, with the reason in ``why``."""
        self.prompts.append(prompt)
        try:
            reply = yield prompt
        except BadReply as e:
            self.broke(Reply(e.raw, "", ""), prompt, e)
            return None
        self.replies.append(reply)
        return reply

    def broke(self, reply: Reply, prompt: Prompt, error: BadReply) -> None:
        """Keep a reply that broke the form."""
        self.why = str(error)
        raw = error.raw or reply.text
        self.bad.append(BadForm(prompt.purpose, reply.provider, reply.model, str(error), raw))

    @property
    def by(self) -> tuple[str, str]:
        """(provider, model) of the first reply, empty when nobody answered."""
        return (self.replies[0].provider, self.replies[0].model) if self.replies else ("", "")

    @property
    def cost(self) -> float | None:
        """The sum of all costs where all are known."""
        known = [r.usage.cost for r in self.replies if r.usage.cost is not None]
        return sum(known) if known and len(known) == len(self.replies) else None
