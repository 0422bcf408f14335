"""Reflexion and evaluation as flows: one call each; nothing is asked twice, tries are the policy's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.errors import BadReply, Unavailable
from ..core.llm import Prompt, Reply, Usage
from ..core.reply import BadForm, Talk
from . import parse, prompts
from .parse import Evaluation, Reflection

if TYPE_CHECKING:
    from collections.abc import Generator

    from .case import Case


@dataclass(frozen=True, slots=True)
class Reflected:
    """How a reflexion ended. ``why``: what failed; then there is no ``reflection``."""

    reflection: Reflection | None = None
    why: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    bad: tuple[BadForm, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluated:
    """How an evaluation ended, likewise."""

    evaluation: Evaluation | None = None
    why: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    bad: tuple[BadForm, ...] = ()


def reflect(case: Case, *, whole: bool = False) -> Generator[Prompt, Reply, Reflected]:
    """What went wrong, and what to do next time? (AC-2.6.1, AC-2.6.2) ``whole``: a reply without ``Lesson:``
    is a lesson as a whole; else it broke the form.
    """
    talk, prompt = Talk(), prompts.reflexion(case)
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return Reflected(why=f"no model answered: {e}")
    if reply is None:
        return Reflected(why=talk.why, bad=tuple(talk.bad))
    found = (parse.or_whole if whole else parse.reflection)(reply.text)
    if found is None or not found.lesson:
        talk.broke(reply, prompt, BadReply("the reply has no lesson"))
        return Reflected(None, talk.why, reply.provider, reply.model, reply.usage, tuple(talk.bad))
    return Reflected(found, "", reply.provider, reply.model, reply.usage)


def evaluate(case: Case) -> Generator[Prompt, Reply, Evaluated]:
    """How good is the answer, from -1 to 1?"""
    talk, prompt = Talk(), prompts.evaluation(case)
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return Evaluated(why=f"no model answered: {e}")
    if reply is None:
        return Evaluated(why=talk.why, bad=tuple(talk.bad))
    try:
        found = parse.evaluation(reply, case.nonce)
    except BadReply as e:
        talk.broke(reply, prompt, e)
        return Evaluated(None, talk.why, reply.provider, reply.model, reply.usage, tuple(talk.bad))
    return Evaluated(found, "", reply.provider, reply.model, reply.usage)
