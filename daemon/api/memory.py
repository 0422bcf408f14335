"""The memory as a library: ``from reflectd.api.memory import …`` (docs/reflexion-integration-guide.md).

``evaluate_answer`` and ``generate_reflection`` ask a model by the person's settings and need no daemon; where
one runs, what they cost goes into its ledger. What stores, counts or searches asks the daemon, and raises
``Unavailable`` where none runs. Nothing is written to stdout; a line on stderr says what went wrong.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import urlencode

from ..core.errors import BadReply, ReflectdError, Unavailable, UserError
from ..learning.lessons.episodes import SIMILAR, TOP_K
from ..learning.lessons.picking import MARK, SAID
from ..learning.lessons.reflexion import (
    EVALUATION,
    TEMPERATURE,
    THRESHOLD,
    Case,
    Settings,
    evaluate,
    or_whole,
    reflect,
    should_reflect,
)
from ..learning.lessons.reflexion import reflection as sections
from ..learning.texts import refusal
from .asking import Asking, nonce, tell, template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.reply import Answer

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


async def evaluate_answer(query: str, context: list[str], answer: str) -> Json:
    """How good an answer is: ``{"reward": -1.0 … 1.0, "reward_score": the same, "reasoning": text, "model",
    "input_tokens", "output_tokens", "cost", "currency"}``, at temperature 0.0. ``cost`` is None when unknown.

    Raises ``ValueError`` and ``TypeError`` for what can't be evaluated, ``Unavailable`` and ``BadReply`` when
    there is no answer that can be read.
    """
    return await evaluated(Asking(), query, context, answer)


async def generate_reflection(
    query: str, context: list[str], answer: str, evaluation_result: Mapping[str, Any]
) -> dict[str, str]:
    """``{"problem", "lesson", "full_reflection"}`` for a poor answer (AC-2.6.1, AC-2.6.2).

    ``evaluation_result``: what ``evaluate_answer`` gave. Raises ``ValueError`` for an empty query or
    answer, ``TypeError`` for a context that is no list, and ``Unavailable`` when after four more tries nobody
    answers: go on without a lesson then.
    """
    return await reflected(Asking(), query, context, answer, evaluation_result)


def should_trigger_reflection(reward: float) -> bool:
    """Whether a reward is below the threshold of the settings."""
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
    asked = {
        "query": query,
        "min_similarity": min_similarity,
        "top_k": top_k,
        "directory": _here(directory),
        "vouched": 1,
    }
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
    """Write a call into ``api_cost_log``. An unknown cost stays unknown. What ``evaluate_answer`` and
    ``generate_reflection`` cost is written by them.
    """
    row = {
        "api_name": api_name,
        "model": model,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cost": cost,
        "currency": currency,
        "directory": _here(directory),
    }
    found: Json = _daemon("POST", "/v1/features/memory/log", row)["logged"]
    return found


# --- with somebody to ask ------------------------------------------------------------------------


async def evaluated(asking: Asking, query: str, context: list[str], answer: str) -> Json:
    """``evaluate_answer``, with somebody to ask."""
    _check(query, context, answer, "evaluate_answer")
    wanted = Settings(temperature=TEMPERATURE)
    case = Case(
        query=query,
        context=tuple(map(str, context)),
        answer=answer,
        template=template("evaluation", asking),
        nonce=nonce(),
        settings=wanted,
    )
    outcome = await asking.run(evaluate(case))
    _log(asking)
    if outcome.found is None:
        _failed(outcome)
    found, usage = outcome.found, outcome.usage
    return {
        "reward": found.reward,
        "reward_score": found.reward,
        "reasoning": found.reasoning,
        "model": outcome.model,
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cost": usage.cost,
        "currency": usage.currency,
    }


async def reflected(
    asking: Asking, query: str, context: list[str], answer: str, evaluation_result: Mapping[str, Any]
) -> dict[str, str]:
    """``generate_reflection``, with somebody to ask."""
    _check(query, context, answer, "generate_reflection")
    case = Case(
        query=query,
        context=tuple(map(str, context)),
        answer=answer,
        template=template("reflexion", asking),
        reward=_reward(evaluation_result),
        reasoning=str(evaluation_result.get("reasoning", "")),
        nonce=nonce(),
        settings=Settings(),
    )
    outcome = await asking.run(reflect(case, whole=True))
    _log(asking)
    if outcome.found is None:
        _failed(outcome)
    found = outcome.found
    return {"problem": found.problem, "lesson": found.lesson, "full_reflection": found.full}


def _check(query: object, context: object, answer: object, who: str) -> None:
    if not isinstance(query, str) or not query.strip():
        raise ValueError("query must be a text that is not empty")
    if not isinstance(answer, str) or not answer.strip():
        raise ValueError("answer must be a text that is not empty")
    if not isinstance(context, list):
        raise TypeError("context must be a list of texts")
    if not context:
        tell([f"warning: {who} without context: the result may be worse"])


def _reward(result: Mapping[str, Any]) -> float:
    found = result.get("reward_score", result.get("reward"))
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ValueError("evaluation_result must have a reward, -1.0 to 1.0")  # noqa: TRY004 - as the others
    return float(found)


def _failed(outcome: Answer[Any]) -> NoReturn:
    """There is no answer: said in the words of the requirements, and raised."""
    if outcome.bad:
        raise BadReply(outcome.why, raw=outcome.bad[0].raw)
    tell([f"fallback_mode_active: true, reason: {HAIKU_DOWN}: {outcome.why}"])
    raise Unavailable(outcome.why)


def _log(asking: Asking) -> None:
    """Hand the calls to the daemon's ledger, where one runs."""
    made, asking.made[:] = list(asking.made), []
    for entry in made:
        row = {**asdict(entry), "api_name": entry.purpose, "input_tokens": entry.input}
        row |= {"output_tokens": entry.output, "error": "" if entry.outcome == "ok" else entry.outcome}
        with suppress(ReflectdError, OSError):
            _daemon("POST", "/v1/features/memory/log", row, asking.env)


def _daemon(
    method: str, route: str, body: object = None, env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Ask the daemon. Raises ``Unavailable`` where none runs."""
    from .. import paths
    from ..client import request

    asking = Asking() if env is None else Asking(env)
    settings = asking.settings()
    where = paths.resolve(asking.env, socket=settings.daemon.socket, state_dir=settings.daemon.state_dir)
    return request(paths.find_socket(where), method, route, body)


def _here(directory: str | None) -> str:
    return os.path.realpath(directory if directory is not None else Path.cwd())
