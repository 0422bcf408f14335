"""What the final text admits to have left: "3 of the 7", "the others follow the same pattern", "Remaining:".

A row is ``open`` where the request asked for the whole or names the part, and the text gives no reason. Words
that only smell of half-done work ("a first step", "for now") make a closed row: a judge has to weigh them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import gives_reason_in, sentences
from daemon.core.evidence import Row
from daemon.core.look import Look, short
from daemon.core.requirements import words

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ROWS: Final = 4
_NUMBERS: Final = {
    word: n
    for n, group in enumerate(
        (
            "one eine einen un une uno una um uma",
            "two zwei deux dos dois duas",
            "three drei trois tres três",
            "four vier quatre cuatro quatro",
            "five fünf cinq cinco",
            "six sechs seis",
            "seven sieben sept siete sete",
            "eight acht huit ocho oito",
            "nine neun neuf nueve nove",
            "ten zehn dix diez dez",
            "eleven elf onze once",
            "twelve zwölf douze doce doze",
        ),
        1,
    )
    for word in group.split()
}
_NUMBER: Final = rf"(\d{{1,5}}|{'|'.join(_NUMBERS)})"
_SOME_OF: Final = re.compile(
    rf"\b{_NUMBER} (?:out )?(?:of|von|der|sur|de(?: los| las)?|dos|das|des|/) ?"
    rf"(?:the |all |our |its |den |insgesamt |les |los |las |os |as )?{_NUMBER}\b(?P<more>[^.;:\n]{{0,60}})",
    re.IGNORECASE,
)
_MEASURES: Final = re.compile(
    r"^[^\w\n]{0,3}(?:\w{1,15} ){0,2}(?:tests?|specs?|examples|checks|assertions|cases|runs?|attempts?"
    r"|retries|times|points|stars"
    r"|requests|samples|pixels|cores|bytes|passed|pass|passing|green|succeeded|testes|pruebas|rows|users"
    r"|seeds)\b",
    re.IGNORECASE,
)
WHOLE: Final = re.compile(
    r"\b(?:all|every\w*|each|both|whole|entire\w*|throughout|get rid of|no more|no (?:\w{1,20} ){0,2}left"
    r"|the (?:rest|remaining)"
    r"|alle[nrsm]?|jede[nrsm]?|überall|sämtliche\w*|ganze[nrs]?|beide[nrs]?|tous|toutes|toute|chaque|partout"
    r"|tod[oa]s?|cada|ambos|tudo|completamente|komplett)\b",
    re.IGNORECASE,
)
_REST: Final = (
    r"\b(?:the )?(?:rest|others?|remaining|remainder|übrigen|restlichen|andere[nr]?|autres|restante?s?|demás"
    r"|outr[oa]s|otr[oa]s|reste|resto)\b"
)
_BARE_REST: Final = re.compile(rf"\b{_REST}|\bden rest\b", re.IGNORECASE)
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
_OWN_CHOICE: Final = re.compile(  # plain words for leaving a part: one word of the request is enough
    r"\bi (?:did(?:n't| not)|have(?:n't| not)|never|couldn't) (?:yet )?(?:get|got|gotten) (?:to|around)\b"
    r"|\b(?:for|until) (?:another|a later|some other) (?:day|time)\b"
    r"|\b(?:is|are|remains?|stays?) (?:still )?(?:missing|to do|to be done|undone|unfinished|outstanding|open"
    r"|pending)[.!]?$"
    r"|^[\w ,`/-]{3,60} remains?[.!]?$"
    r"|\b(?:is|are) still (?:on|using|in|at) (?:the )?(?:old|legacy|previous|former)\b"
    r"|\b(?:mache|erledige|folgt|folgen|kommt|kommen)\b[^.;\n]{0,30}\b(?:später|nächsten|danach|separat)\b"
    r"|\bfehl(?:t|en)(?: noch)?[.!]?$|\b(?:manque(?:nt)?|reste(?:nt)?)(?: encore)?[.!]?$"
    r"|\b(?:falta\w*|queda\w*)(?: todavía| aún| ainda)?[.!]?$",
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
_EXPLAINS: Final = re.compile(  # how it was, not how it is left
    r"\b(?:previously|before|used to|the bug|the cause|root cause|the old|the original|was|were|when"
    r"|until|if|because"
    r"|vorher|früher|avant|antes)\b",
    re.IGNORECASE,
)
_THEIRS: Final = re.compile(  # a step of another person, which the agent can only wait for
    r"\b(?:approv(?:e|es|ed|al)|review(?:ed|s|er|ers)?|signed[- ]off|sign-?off|confirmed|responded|answered"
    r"|replied|granted|decided|genehmigt|freigegeben|bestätigt|geantwortet|approuvé|validé|répondu|aprobado"
    r"|aprovado|respondido)\b",
    re.IGNORECASE,
)
_WHOLE_SET: Final = re.compile(  # counts what there was, not what was done
    r"\b(?:affected|had|contain\w*|need(?:ed|s)?|required?|were|was|match\w*|found|used the|call(?:ed|s)?"
    r"|betroffen)\b",
    re.IGNORECASE,
)
_FAILS: Final = re.compile(
    r"\b(?:still (?:fail\w*|broken|breaks?|crash\w*|errors?(?: out)?|red|hangs?|(?:does|do|is|are)(?:n't"
    r"| not) (?:work\w*|compil\w*|pass\w*|build\w*))"
    r"|(?:doesn't|does not|don't|do not|isn't|is not|aren't|not) (?:yet |fully |quite |completely "
    r"|really ){1,2}"
    r"(?:work\w*|compil\w*|pass\w*|build\w*|fixed|functional|finished|there|done|complete\w*)"
    r"|(?:schlägt|schlagen|läuft|laufen|funktionier\w+) (?:weiterhin|immer noch|noch) (?:fehl|nicht)"
    r"|(?:échoue\w*|plante) (?:encore|toujours)"
    r"|sigue\w* fallando|continua\w* (?:falhando|a falhar)|todavía falla\w*|ainda falha\w*)\b",
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
_HEADING: Final = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]+|[*_]{2})?[^\w\n]{0,4}(?:(?:what's|what is|still|the|tasks|work|items) )?"
    r"(?:remaining(?: \w{1,12})?|left(?: to do| open)?|missing|open(?: items| points| tasks)?|outstanding"
    r"|to[- ]?do|pending|not (?:yet )?(?:done|covered|migrated|started)"
    r"|not in this (?:change|pass|pr)|in progress|noch offen|offen|ausstehend|fehlt noch|restant"
    r"|reste à faire|à faire|pendiente|pendientes|falta|por hacer|pendente|pendentes)"
    r"[ ]?(?:\([^)\n]{0,40}\))?[*_ ]{0,3}:?[*_ ]{0,3}(?P<more>[^\n]{0,200})$",
    re.IGNORECASE | re.MULTILINE,
)
_ITEM: Final = re.compile(
    r"^[ \t]{0,6}(?:[-*+•☐]|\d{1,2}[.)])[ \t]+(?:\[ \][ \t]*)?(?P<what>[^\n]{1,300})$", re.MULTILINE
)
_NOT_AGENTS: Final = re.compile(
    r"\b(?:optional\w*|if (?:you|needed|desired|wanted)|could|consider|maybe|might|nice to have|future"
    r"|you|your|manual\w*|human|reviewer?s?|review"
    r"|approv\w+|sign-?off|production|deploy\w*|release|monitor\w*|credential\w*|account|qa"
    r"|stakeholder\w*|team|warnings?|none|nothing|pre-?existing"
    r"|out of scope|not (?:part|asked|requested)|beyond|separate|risks?)\b",
    re.IGNORECASE,
)
_IDEA: Final = re.compile(
    r"\b(?:could|would|might|may|optional\w*|if you|consider|worth|nice to have|suggest\w*|recommend\w*"
    r"|idea|out of scope|not part of"
    r"|unrelated|should you|you can|you may|wenn du|falls|si tu|si vous|si quieres|se quiser|könnte"
    r"|pourrait|podría|poderia)\b",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"[*`]")
_PATH_DOT: Final = re.compile(r"(?<=[\w)])\.(?=[a-z]\w{0,5}\b)")


def left(look: Look) -> list[Row]:
    """The rows of what the text leaves, without ids: open ones first; at most one closed row."""
    if look.wants in {"plan", "answer"} or look.denied or look.ending == "question" or _narrowed(look):
        return []
    said = sentences(_PATH_DOT.sub("·", look.final))  # the dot of a file name ends no clause
    rows = [*_some_of(look, said), *_remaining(look), *_put_off(look, said), *_still_fails(look, said)]
    if rows:
        return rows[:MAX_ROWS]
    smell = next((s for s in said if _smells(s) and not _IDEA.search(s)), "")
    if not smell or not look.found.code_writes:
        return []
    return [Row("", "unmet", f'the final text may leave something: "{short(smell)}"', detail=short(smell))]


def _smells(sentence: str) -> bool:
    return bool(
        _SMELLS.search(sentence)
        or _DEFERS.search(sentence)
        or _NOT_YET.search(sentence)
        or _ANALOGOUS.search(sentence)
    )


def _narrowed(look: Look) -> bool:
    """Whether the request itself asks for a part, a sketch or a start only."""
    return bool(_PART.search(look.said))


_PART: Final = re.compile(
    r"\b(?:only (?:the|do|start|begin|one|a)|just (?:the|do|start|begin|one|a)|start (?:with|by)"
    r"|begin with|for now|first (?:step|part|pass|draft)|skeleton|scaffold\w*"
    r"|prototype|proof of concept|poc|spike|sketch|draft|mvp|stub\w*|placeholder|step by step"
    r"|one (?:by one|at a time)|as far as you (?:can|get)|erstmal|vorerst|zunächst|nur"
    r"|d'abord|seulement|pour l'instant|solo|primero|por ahora|primeiro|por enquanto|apenas|(?:don't"
    r"|do not) (?:do|touch|start))\b",
    re.IGNORECASE,
)


def _row(text: str, said: str, look: Look) -> Row:
    source = look.first()
    return Row(
        "",
        "unmet",
        f'the final text {text}: "{short(said)}"',
        open=True,
        detail=f'Asked for and left: "{short(said)}"',
        cites=(source,) if source else (),
    )


def _some_of(look: Look, said: list[str]) -> Iterator[Row]:
    """Says "3 of the 7 fragments": fewer than there are, of something that the request names."""
    asked = words(look.said, 4000)
    for s in said:
        bare = _CODE.sub("", s)
        m = _SOME_OF.search(bare)
        if not m or gives_reason_in(s) or _WHOLE_SET.search(bare) or _MEASURES.match(m["more"]):
            continue
        done, of = _value(m[1]), _value(m[2])
        if done < of and (words(m["more"]) & asked or re.search(_REST, look.final, re.IGNORECASE)):
            yield _row("says that only a part is done", s, look)


def _value(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS.get(text.lower(), 0)


def _remaining(look: Look) -> Iterator[Row]:
    """The items under "Remaining" and the like that speak of what the request names."""
    tail = look.final[-3000:]
    heading = None
    for heading in _HEADING.finditer(tail):  # noqa: B007 -- the last one counts
        pass
    if heading is None or _NOT_AGENTS.search(heading[0]):
        return
    items = [m["what"] for m in _ITEM.finditer(tail, heading.end())]
    if len(heading["more"].strip(" *_")) > 3:
        items.insert(0, heading["more"])
    if len(items) == 1 and not items[0].strip(" *_.-"):
        return
    asked = words(look.said, 4000)
    todo = [i for i in items if not (_NOT_AGENTS.search(i) or gives_reason_in(i))]
    hit = [i for i in todo if words(i) & asked]
    if hit and 2 * len(hit) >= len(todo):
        yield _row("lists what was asked for as still to do", hit[0], look)


def _put_off(look: Look, said: list[str]) -> Iterator[Row]:
    """A part that is left for later, where all of it or that very part was asked for."""
    asked, whole = words(look.said, 4000), bool(WHOLE.search(look.said))
    for s in said:
        if s.endswith("?") or _IDEA.search(s) or _THEIRS.search(s) or gives_reason_in(s):
            continue
        mine = words(s)
        shared = len(mine & asked)
        if _OWN_CHOICE.search(s) and not _EXPLAINS.search(_OWN_CHOICE.sub("", s)):
            enough = shared >= 1 or (whole and bool(_BARE_REST.search(s)))
        elif _DEFERS.search(s):
            enough = whole or (shared >= 2 and shared * 3 >= min(len(mine), 9))
        elif _NOT_YET.search(s) and not _EXPLAINS.search(s):
            enough = (whole and shared >= 1) or (shared >= 2 and shared * 3 >= min(len(mine), 9))
        elif _ANALOGOUS.search(s):
            enough = whole and bool(shared or _SOME_OF.search(look.final))
        else:
            continue
        if enough:
            yield _row("leaves a part for later", s, look)


def _still_fails(look: Look, said: list[str]) -> Iterator[Row]:
    """It says that what was to work doesn't."""
    asked = words(look.said, 4000)
    for s in said:
        if (
            _FAILS.search(s)
            and not _EXPLAINS.search(s)
            and not (s.endswith("?") or _IDEA.search(s) or gives_reason_in(s))
            and words(s) & asked
        ):
            yield _row("says that it doesn't work yet", s, look)
