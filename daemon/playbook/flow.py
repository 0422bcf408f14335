"""Reflector, curator and extraction as flows: ``case -> Generator[Prompt, Reply, Outcome]``.

One call each. A reply that can't be used, or a model that does not answer, ends with an empty output and the
reason; nothing is asked twice, because learning must stay cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.errors import BadReply, Unavailable
from ..core.llm import Prompt, Reply
from ..core.reply import BadForm, Talk
from . import parse, prompts
from .parse import Confirmed

if TYPE_CHECKING:
    from .case import Case, Curation

Flow = Generator[Prompt, Reply, "Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a flow ended. ``output``: the plain dict of its form, empty when ``why`` says what failed.

    ``confirmed``: points that waited and are shown to be true now (reflector only). ``cost``: USD, None when
    unknown.
    """

    output: dict[str, Any]
    why: str = ""
    confirmed: tuple[Confirmed, ...] = ()
    provider: str = ""
    model: str = ""
    cost: float | None = None
    replies: tuple[Reply, ...] = ()
    bad: tuple[BadForm, ...] = field(default=())

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return bool(self.why)


def reflect(case: Case) -> Flow:
    """What was the playbook worth in this session? (REQ-REFL-003, REQ-REFL-006)"""

    def read(data: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Confirmed, ...]]:
        return parse.reflection(data), parse.confirmations(data, case)

    return (yield from _asked(prompts.reflector(case), case, ("analysis", "bullet_tags"), read))


def curate(case: Curation) -> Flow:
    """What is to be changed in the playbook?"""

    def read(data: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Confirmed, ...]]:
        return parse.operations(data), ()

    return (yield from _asked(prompts.curator(case), case, ("operations",), read))


def extract(case: Case) -> Flow:
    """Which new points does the session teach, and which does it rate?"""

    def read(data: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Confirmed, ...]]:
        return parse.extraction(data), ()

    return (yield from _asked(prompts.keypoints(case), case, ("new_key_points", "evaluations"), read))


Read = Callable[[Mapping[str, Any]], tuple[dict[str, Any], tuple[Confirmed, ...]]]


def _asked(prompt: Prompt, case: Case | Curation, keys: tuple[str, ...], read: Read) -> Flow:
    """One call and its answer."""
    talk, nothing = Talk(), read({})[0]
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return Outcome(nothing, f"no model answered: {e}")
    provider, model = talk.by
    if reply is not None:
        try:
            output, confirmed = read(parse.answer(reply, case.nonce, *keys, strict=case.strict))
        except BadReply as e:
            talk.broke(reply, prompt, e)
        else:
            return Outcome(output, "", confirmed, provider, model, talk.cost, tuple(talk.replies))
    return Outcome(nothing, talk.why, (), provider, model, talk.cost, tuple(talk.replies), tuple(talk.bad))
