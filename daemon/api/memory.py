"""The memory as a library: ``from reflectd.api.memory import …`` (docs/reflexion-integration-guide.md).

``evaluate_answer`` and ``generate_reflection`` ask a model by the person's settings and need no daemon; where
one runs, their cost goes into its ledger. Functions that store, count or search ask the daemon, and raise
``Unavailable`` where none runs. Nothing is written to stdout; each failure is a line on stderr.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from msgspec import to_builtins

from ..core.errors import BadReply, ReflectdError, Unavailable, UserError
from ..learning.lessons.episodes import SIMILAR, TOP_K
from ..learning.lessons.questions import (
    EVALUATION,
    MARK,
    MAX_REASONING,
    SAID,
    THRESHOLD,
    how_good,
    or_whole,
    should_reflect,
    what_went_wrong,
)
from ..learning.lessons.questions import reflection as sections
from ..learning.texts import refusal
from ..store.ledger import Entry
from .asking import Asking, tell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.question import Answer, Question, R

__all__ = [
    "evaluate_answer",
    "generate_reflection",
    "get_reflexion_stats",
    "get_reward_threshold",
    "lessons_for_context",
    "log_evaluation",
    "search_episodes",
    "should_trigger_reflection",
    "store_episode",
]

Json = dict[str, Any]
HAIKU_DOWN: Final = "haiku_api_unavailable"


async def evaluate_answer(
    query: str, context: list[str], answer: str, *, asking: Asking | None = None
) -> Json:
    """How good an answer is: ``{"reward": -1.0 … 1.0, "reward_score": the same, "reasoning": text, "model",
    "input_tokens", "output_tokens", "cost", "currency"}``, at temperature 0.0. ``cost`` is None when unknown.
    ``asking``: whom to ask; by default as the person's settings say.

    Raises ``ValueError`` and ``TypeError`` for what can't be evaluated, ``Unavailable`` and ``BadReply`` when
    there is no answer that can be read.
    """
    _check(query, context, answer, "evaluate_answer")
    found, said = await _answer(how_good(query, list(map(str, context)), answer), asking)
    usage, reward = found.usage, max(-1.0, min(1.0, said.reward))
    return {
        "reward": reward,
        "reward_score": reward,
        "reasoning": said.reasoning.strip()[:MAX_REASONING],
        "model": found.model,
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cost": usage.cost,
        "currency": usage.currency,
    }


async def generate_reflection(
    query: str,
    context: list[str],
    answer: str,
    evaluation_result: Mapping[str, Any],
    *,
    asking: Asking | None = None,
) -> dict[str, str]:
    """``{"problem", "lesson", "full_reflection"}`` for a poor answer (AC-2.6.1, AC-2.6.2).

    ``evaluation_result``: what ``evaluate_answer`` gave. Raises ``ValueError`` for an empty query or
    answer, ``TypeError`` for a context that is no list, and ``Unavailable`` when after four more tries nobody
    answers: go on without a lesson then.
    """
    _check(query, context, answer, "generate_reflection")
    reward = evaluation_result.get("reward_score", evaluation_result.get("reward"))
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        raise ValueError("evaluation_result must have a reward, -1.0 to 1.0")  # noqa: TRY004 - as the others
    why = str(evaluation_result.get("reasoning", ""))
    question = what_went_wrong(query, list(map(str, context)), answer, reward, why, whole=True)
    _, said = await _answer(question, asking)
    found = or_whole(said)
    return {"problem": found.problem, "lesson": found.lesson, "full_reflection": found.full}


def should_trigger_reflection(reward: float) -> bool:
    """Says whether a reward is below the threshold of the settings."""
    return should_reflect(reward, get_reward_threshold())


def get_reward_threshold() -> float:
    """The threshold of the settings, 0.3 unless the person set another."""
    try:
        return Asking().settings().memory.threshold
    except UserError as error:
        tell([f"the settings can't be read, so the threshold is {THRESHOLD}: {error}"])
        return THRESHOLD


def get_reflexion_stats(directory: str | None = None) -> Json:
    """How many episodes there are in this project, by state, and what reflexion did and cost lately."""
    return _daemon("GET", f"/v1/features/memory/stats?{urlencode({'directory': _here(directory)})}")


def store_episode(
    query: str, reward: float, reflection: str | Mapping[str, str], directory: str | None = None
) -> Json:
    """Keep a lesson (AC-2.6.3). ``reflection``: a text with ``Problem:`` and ``Lesson:``, or what
    ``generate_reflection`` gave. Raises ``Unavailable`` without a daemon, ``UserError`` for a lesson that may
    not be kept.
    """
    text = reflection
    if not isinstance(text, str):
        parts = f"Problem: {text.get('problem', '')}\nLesson: {text.get('lesson', '')}"
        text = text.get("full_reflection", "") or parts
    if text.strip() and sections(text) is None:
        text = f"Lesson: {' '.join(text.split())}"
    body = {"query": query, "reward": reward, "reflection": text, "directory": _here(directory)}
    found: Json = _daemon("POST", "/v1/features/memory/add", body)["episode"]
    return found


def search_episodes(
    query: str, min_similarity: float = SIMILAR, top_k: int = TOP_K, directory: str | None = None
) -> list[Json]:
    """The most similar episodes of this project: ``[{"query", "reward", "reflection", "similarity", …}]``
    (AC-2.6.4). None without a model for embeddings, which is told.
    """
    asked = {"query": query, "min_similarity": min_similarity, "top_k": top_k, "directory": _here(directory)}
    answer = _daemon("GET", f"/v1/features/memory/search?{urlencode(asked)}")
    if not answer["model"]:
        tell(["without a model for embeddings no episode is similar: `reflectd doctor` says how to get one"])
    found: list[Json] = answer["episodes"]
    return found


def lessons_for_context(episodes: Iterable[Mapping[str, Any]]) -> str:
    """The lessons of these rows as a section for a prompt; "" without any (AC-2.6.4)."""
    lessons = [str(e.get("lesson") or or_whole(str(e.get("reflection", ""))).lesson) for e in episodes]
    lines = [SAID.format(lesson) for lesson in dict.fromkeys(lessons) if not refusal(lesson)]
    return "\n".join([MARK, *lines]) if lines else ""


def log_evaluation(
    api_name: str = EVALUATION,
    *,
    model: str = "",
    input_tokens: int = 0,
    output_tokens: int = 0,
    cost: float | None = None,
    currency: str = "USD",
    directory: str | None = None,
) -> Json:
    """Write a call into ``api_cost_log``. An unknown cost stays unknown. ``evaluate_answer`` and
    ``generate_reflection`` write their own.
    """
    where = _here(directory)
    row = Entry(
        0, api_name, "", "", model, input_tokens, output_tokens, cost, 0, "ok", "asked", currency, where
    )
    found: Json = _daemon("POST", "/v1/features/memory/log", to_builtins(row))["logged"]
    return found


def _check(query: object, context: object, answer: object, who: str) -> None:
    if not isinstance(query, str) or not query.strip():
        raise ValueError("query must be a text that is not empty")
    if not isinstance(answer, str) or not answer.strip():
        raise ValueError("answer must be a text that is not empty")
    if not isinstance(context, list):
        raise TypeError("context must be a list of texts")
    if not context:
        tell([f"warning: {who} without context: the result may be worse"])


async def _answer(question: Question[R], asking: Asking | None) -> tuple[Answer[R], R]:
    """The model's answer. Raises ``Unavailable``, in the words of the requirements, and ``BadReply``."""
    by = asking or Asking()
    answer = await by.ask(question)
    for entry in by.made:
        with suppress(ReflectdError, OSError):
            _daemon("POST", "/v1/features/memory/log", to_builtins(entry), by)
    by.made.clear()
    if answer.reply is not None:
        return answer, answer.reply
    if answer.bad:
        raise BadReply(answer.why, raw=answer.bad[0].raw)
    tell([f"fallback_mode_active: true, reason: {HAIKU_DOWN}: {answer.why}"])
    raise Unavailable(answer.why)


def _daemon(method: str, route: str, body: object = None, asking: Asking | None = None) -> dict[str, Any]:
    """Ask the daemon. Raises ``Unavailable`` where none runs."""
    from .. import paths
    from ..client import request

    by = asking or Asking()
    settings = by.settings()
    where = paths.resolve(by.env, socket=settings.daemon.socket, state_dir=settings.daemon.state_dir)
    return request(paths.find_socket(where), method, route, body)


def _here(directory: str | None) -> str:
    return os.path.realpath(directory if directory is not None else Path.cwd())
