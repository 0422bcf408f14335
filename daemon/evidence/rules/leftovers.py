"""Words of the final text that smell of half-done work: "a first step", "for now", "the others follow".

They prove nothing, so the row is closed: a model has to weigh it, and without one the turn is unscored.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...core.evidence import Row
from ..words import sentences, shorten

if TYPE_CHECKING:
    from ..facts import Facts

_REST: Final = (
    r"\b(?:the )?(?:rest|others?|remaining|remainder|übrigen|restlichen|andere[nr]?|autres|restante?s?|demás"
    r"|outr[oa]s|otr[oa]s|reste|resto)\b"
)
_ANALOGOUS: Final = re.compile(
    rf"{_REST}[^.;\n]{{0,80}}\b(?:(?:follow|works?|same|identical)[^.;\n]{{0,30}}\b(?:pattern|way"
    rf"|approach|scheme|manner|change)"
    r"|analog\w*|similarly|can (?:now )?(?:be (?:done|converted|migrated|moved|ported|added|changed"
    r"|updated)|follow)"
    r"|(?:are|is) (?:still )?(?:to be|to do|pending|open|missing|left|not (?:yet )?(?:done|converted"
    r"|migrated|ported))"
    r"|(?:need|needs|have|has) (?:still )?to (?:be |follow)|still|will (?:follow|come|be (?:done"
    r"|converted|migrated))"
    r"|(?:comes?|come|go|goes) (?:next|later)|next|later"
    r"|folgen|gehen (?:genauso|analog)|noch|fehl\w+|suivent|restent|manquent|siguen|quedan|faltan|seguem"
    r"|ficam)\b",
    re.IGNORECASE,
)
_DEFERS: Final = re.compile(  # a decision of the agent's own
    r"\b(?:left|leave|leaving|kept|deferr?ed|postponed|parked|saved|put off)\b[^.;\n]{0,90}"
    r"\b(?:follow-?ups?|(?:for|to|until) (?:later|now|next|a (?:later|second|separate|next|future)|another"
    r"|the next|tomorrow))\b"
    r"|\b(?:stopped|ended|paused) (?:here|there|at this point)\b|\bran out of (?:time|budget|context|steps)\b"
    r"|\b(?:for now|so far|to start with|as a start) (?:i(?:'ve| have)? |it )?(?:only|just)\b"
    r"|\bi(?:'ve| have)? (?:only|just) (?:did|done|handled|covered|migrated|converted|implemented|ported)\b"
    r"[^.;\n]{0,80}\b(?:so far|for now|yet|first)\b"
    r"|\bonly the (?:first|simple|basic|easy|easiest|main)\b[^.;\n]{0,60}\b(?:so far|for now|yet)\b"
    r"|\b(?:steh\w* noch aus|noch offen|folg(?:t|en) (?:später|noch|im nächsten)|fehl(?:t|en) noch)"
    r"|\b(?:reste(?:nt)? à|queda\w* (?:pendientes?|por)|fica\w* (?:para|pendentes?)|ainda falta\w*)\b",
    re.IGNORECASE,
)
_NOT_YET: Final = re.compile(  # may as well explain how things work: it has to name what was asked for
    r"\b(?:is|are|has|have|do|does|did)(?:n't| not) (?:[\w`./·'-]{1,60} ){0,5}yet\b"
    r"|\b(?:is|are) not yet\b|\bhave yet to\b|\bstill (?:need|needs|have|has|missing|to do|open|pending"
    r"|outstanding)\b"
    r"|\b(?:follow-?up|separate|second|next) (?:PR|MR|pull request|commit|change|task|ticket|issue|session)\b"
    r"|\bi(?:'ve| have)? (?:only|just) (?:did|done|handled|covered|migrated|converted|implemented|ported)\b"
    r"|\bnoch nicht\b|\bpas encore\b|\b(?:todavía|aún) no\b|\bainda não\b|\bplus tard\b|\bmás adelante\b"
    r"|\bmais tarde\b|\bpendientes?\b|\bpendentes?\b|\bfalta\w* (?:por|todavía|aún)\b|\bil manque\b",
    re.IGNORECASE,
)
_SMELLS: Final = re.compile(
    r"\b(?:partial(?:ly)?|teilweise|partiellement|parcialmente|foundation|groundwork|scaffold\w*|skeleton"
    r"|grundgerüst|squelette|esqueleto"
    r"|first (?:pass|cut|step|part|half|version|draft|iteration|batch)|minimal(?:ly)? (?:version"
    r"|implementation)|simplified|stub(?:bed|s)?"
    r"|placeholder|platzhalter|hard-?coded for now|for now|for the time being|vorerst|pour l'instant"
    r"|por ahora|por enquanto|de momento"
    r"|mostly|most of the|the majority|largely|bulk of|main parts?|so far|progress|remaining|left to"
    r"|in progress|to be continued)\b",
    re.IGNORECASE,
)
_IDEA: Final = re.compile(
    r"\b(?:could|would|might|may|optional\w*|if you|consider|worth|nice to have|suggest\w*|recommend\w*"
    r"|idea|out of scope|not part of"
    r"|unrelated|should you|you can|you may|wenn du|falls|si tu|si vous|si quieres|se quiser|könnte"
    r"|pourrait|podría|poderia)\b",
    re.IGNORECASE,
)
_NARROWED: Final = re.compile(  # the request itself asks for a part, a sketch or a start
    r"\b(?:only (?:the|do|start|begin|one|a)|just (?:the|do|start|begin|one|a)|start (?:with|by)"
    r"|begin with|for now|first (?:step|part|pass|draft)|skeleton|scaffold\w*"
    r"|prototype|proof of concept|poc|spike|sketch|draft|mvp|stub\w*|placeholder|step by step"
    r"|one (?:by one|at a time)|as far as you (?:can|get)|erstmal|vorerst|zunächst|nur"
    r"|d'abord|seulement|pour l'instant|solo|primero|por ahora|primeiro|por enquanto|apenas|(?:don't"
    r"|do not) (?:do|touch|start))\b",
    re.IGNORECASE,
)
_PATH_DOT: Final = re.compile(r"(?<=[\w)])\.(?=[a-z]\w{0,5}\b)")


def leftovers(facts: Facts) -> list[Row]:
    """At most one closed row of kind ``unmet``, without id."""
    if facts.wants in {"plan", "answer"} or facts.denied or facts.ending == "question":
        return []
    if not facts.work.code_writes or _NARROWED.search(facts.said):
        return []
    said = sentences(_PATH_DOT.sub("·", facts.final))  # the dot of a file name ends no sentence
    smell = next((s for s in said if _smells(s) and not _IDEA.search(s)), "")
    if not smell:
        return []
    return [
        Row("", "unmet", f'the final text may leave something: "{shorten(smell)}"', detail=shorten(smell))
    ]


def _smells(sentence: str) -> bool:
    return any(p.search(sentence) for p in (_SMELLS, _DEFERS, _NOT_YET, _ANALOGOUS))
