"""A kind of work that was asked for (tests, a commit, a changelog entry …) and that no call shows as done.

A row is open where nothing in the calls may have done it and the final text doesn't say why; else closed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...core.evidence import Row, Topic
from ..facts import CHECK_OF
from ..request.topics import wording
from ..words import explains_absence, sentences

if TYPE_CHECKING:
    from ..facts import Facts

_PROVABLE: Final[tuple[Topic, ...]] = (
    "tests",
    "new_tests",
    "build",
    "lint",
    "docs",
    "changelog",
    "commit",
    "push",
    "pr",
    "ci",
    "deploy",
)
_NOUNS: Final[dict[Topic, str]] = {
    "ci": r"\b(?:CI|pipeline|checks|workflow)\b",
    "deploy": r"\b(?:deploy\w*|publish\w*|release\w*)\b",
    "tests": r"\b(?:tests?|suite|specs?|pytest|jest|run)\b",
    "new_tests": r"\b(?:tests?|coverage|specs?)\b",
    "build": r"\b(?:build|compil\w+)\b",
    "lint": r"\b(?:lint\w*|types?|type-?check\w*|ruff|eslint|mypy|clippy)\b",
    "docs": r"\b(?:docs?|documentation|readme)\b",
    "changelog": r"\bchange-?log\b",
    "commit": r"\b(?:commit\w*|git)\b",
    "push": r"\b(?:push\w*|remote|git)\b",
    "pr": r"\b(?:PR|pull request|MR|merge request|gh|remote)\b",
}
_NOUN: Final = {topic: re.compile(pattern, re.IGNORECASE) for topic, pattern in _NOUNS.items()}
_COUNTER: Final = re.compile(
    r"\b(?:0|no|zero) (?:\w{1,12} )?(?:fail\w*|errors?|skipped)\b|\bfail\w*:? 0\b", re.IGNORECASE
)
_IF_NEEDED: Final = re.compile(
    r"\b(?:(?:if|where|when|as|wenn|falls|wo|si|se) (?:(?:it(?:'s| is)?|that(?:'s| is)?|they|there|you|this"
    r"|really|es|il"
    r"|est|es|é) ){0,3}(?:needed|necessary|required|applicable|appropriate|relevant|makes? sense|think|nötig"
    r"|notwendig|nécessaire|necesario|hace falta|necessário|preciso|needs?)|maybe|perhaps|optionally"
    r"|feel free)\b",
    re.IGNORECASE,
)


def topics_unmet(facts: Facts) -> list[Row]:
    """The rows of kind ``unmet``, without ids."""
    work, rows = facts.work, list[Row]()
    for topic in _PROVABLE:
        requested = topic in facts.requested
        by_project = topic in facts.by_project and topic in CHECK_OF and work.code_writes > 0
        worked = work.writes or topic == "tests" or work.did("commit", "push", "pr", "ci")
        if not (requested or by_project) or topic in facts.forbids or not worked or work.shows(topic):
            continue
        if any(topic in r.asks and _IF_NEEDED.search(r.text) for _, r in facts.live):
            continue
        source = facts.source(topic)
        who = "the request asks" if requested else "the project's rules ask"
        rows.append(
            Row(
                "",
                "unmet",
                f"{who} {wording(topic)}; {_not_seen(topic, facts)}",
                open=_provable(topic, facts) and not _explained(topic, facts.final),
                detail=f"{'The request' if requested else 'The project'} asks {wording(topic)}",
                command=facts.rerun(topic),
                topic=topic,
                cites=(source,) if source else (),
            )
        )
    return rows


def _provable(topic: Topic, facts: Facts) -> bool:
    """CI and deployments happen in too many ways to prove that they didn't; only a red CI seen does."""
    if topic == "ci":
        return bool(facts.work.did("ci"))
    return topic != "deploy"


def _not_seen(topic: Topic, facts: Facts) -> str:
    kind = CHECK_OF.get(topic)
    if stale := facts.runs(topic):
        return f"the last {kind} run ({stale[-1].id}) is older than the last edit"
    if any(d.outcome == "failed" for d in facts.work.did(topic)):
        return f"the {topic} failed and was not done again"
    return {
        "new_tests": "no test was written",
        "docs": "no document was written",
        "changelog": "no changelog was written",
        "commit": "no commit was seen",
        "push": "no push was seen",
        "pr": "no pull request was seen",
        "ci": "no passing pipeline was seen",
        "deploy": "no deployment was seen",
    }.get(topic, f"no {kind} run was seen")


def _explained(topic: Topic, final: str) -> bool:
    """Whether a sentence of the final text says why the thing is missing."""
    noun = _NOUN[topic]
    return any(noun.search(s) and explains_absence(_COUNTER.sub("", s)) for s in sentences(final))
