"""What the final text offers or asks leave for: "Want me to run the tests?", a list of next steps.

Only finds the offered actions; ``rules.offered`` decides whether they had been asked for. A real question (a
choice, missing information, something destructive) is no offer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ...core.evidence import Topic
from ..words import MAX_SENTENCE, last_match, sentences

MAX_OFFERS: Final = 8
_LAST: Final = 6  # sentences
_ASKS_LEAVE: Final = re.compile(
    r"\b(?:(?:do you |would you )?(?:want|like) me to|(?:should|shall|can|may) i(?: now| also| go ahead and)?"
    r"|(?:let me know|tell me|just say)[^.?\n]{0,20}? (?:if|when|whether) (?:you(?:'d| would)? (?:want"
    r"|like) me to|i should)"
    r"|i can(?: also| now| then)? (?=[^.?\n]{0,120}\b(?:if you(?:'d| would)? (?:like|want)|if needed"
    r"|next|let me know))"
    r"|(?:if you(?:'d| would)? (?:like|want),? )i(?:'ll| will| can| could)"
    r"|(?:just )?(?:say (?:the word|so|yes|go)|give me (?:the|a) (?:go(?:-ahead)?|green light|nod"
    r"|thumbs up|ok(?:ay)?|word))[^.?\n]{0,20}?(?:and|,) i(?:'ll| will| can)"
    r"|(?:happy|glad) to(?= [^.?\n]{0,120}\b(?:if|let me know|next|once you)\b)|on your (?:go|word|ok"
    r"|signal),? i(?:'ll| will| can)"
    r"|(?:if (?:that|this|it) (?:sounds|looks|works|is) (?:good|right|ok(?:ay)?|fine)[^,.?\n]{0,20}"
    r"|whenever you(?:'re| are) ready|let me know),? (?:and )?i(?:'ll| will| can)"
    r"|ready (?:for me )?to|soll ich(?: noch| jetzt| auch)?|(?:wenn du (?:magst|willst|möchtest)"
    r"|bei bedarf|auf wunsch|gerne?)"
    r"(?:,? (?:kann|werde|mache|führe) ich(?: noch| jetzt| auch| gerne?)?|,? ich kann)|ich kann (?:jetzt"
    r"|gerne?|noch|auch)"
    r"|möchtest du,? dass ich|sag (?:bescheid|einfach bescheid)(?:,? (?:und|dann))? (?:\w{1,10} ich"
    r"|ich \w{1,10})"
    r"|(?:si tu (?:veux|le souhaites)|si vous (?:voulez|le souhaitez)|au besoin),? je (?:peux|vais|lance"
    r"|fais)(?: maintenant| aussi| ensuite)?"
    r"|(?:veux-tu|voulez-vous|tu veux|souhaites-tu|souhaitez-vous) que (?:je|j')|dois-je(?: aussi"
    r"| maintenant)?|je peux (?:maintenant|ensuite|aussi)"
    r"|(?:si (?:quieres|lo deseas|te parece)|cuando quieras),? (?:puedo|lo hago y|hago|voy a)(?: ahora"
    r"| también)?|(?:quieres|deseas) que(?: ahora)?|(?:puedo|debo) (?:ahora|también)"
    r"|(?:se (?:quiser|quiseres|preferir|desejar)|quando quiser),? (?:eu )?(?:posso|faço|vou)(?: agora"
    r"| também)?|(?:quer|queres|deseja) que (?:eu )?|posso (?:agora|também)"
    r")\b[ ,]*(?P<what>[^?\n]{1,300})",
    re.IGNORECASE,
)
_REAL_QUESTION: Final = re.compile(
    r"\b(?:or|oder|which|prefer|instead|rather|either(?! of)|alternative\w*|option\w*|whether|delete"
    r"|drop|destroy|wipe|erase|overwrite"
    r"|force|production|prod|reset|irreversible|credential\w*|password|token|secret|key|pay|cost|charge"
    r"|breaking change|rollback"
    r"|install|upgrade|sudo|log(?:ged)?[ -]?in|login|sign(?:ed)?[ -]?in|authenti\w+|approv\w+|[2m]fa|sso|vpn"
    r"|unlock\w*|plug(?:ged)? in|captcha|consent|licen[cs]e)\b",
    re.IGNORECASE,
)
_CHOICE: Final = re.compile(r"\b(?:or|oder|ou|o|which|prefer|whether|rather)\b", re.IGNORECASE)
_CONSEQUENCE: Final = re.compile(  # a warning just before the question makes it a real one
    r"\b(?:would|will|means|würde|wird|supprimera|borrará|eliminará|apagará)\b[^.?\n]{0,60}"
    r"\b(?:delet\w*|drop\w*|destroy\w*|wip\w+|eras\w+|overwrit\w*|los[et]\w*|break\w*|cost\w*|charg\w*"
    r"|downtime|lösch\w*|kost\w*)\b"
    r"|\b(?:for good|irreversibl\w*|(?:can't|cannot) be (?:undone|reverted|restored)|unwiderruflich"
    r"|définitivement|para siempre)\b",
    re.IGNORECASE,
)
_CONTINUES: Final = re.compile(
    r"^(?:go (?:on|ahead)|continue|proceed|keep going|move on|carry on|start|begin|implement (?:it|this"
    r"|that|these)"
    r"|(?:carry|go) (?:it )?(?:out|through)|write (?:it|this|the code)|(?:do|start) the (?:change|work"
    r"|conversion|migration|implementation|refactor\w*)"
    r"|make (?:it|them)\b|get (?:started|going)|(?:umsetzen|loslegen|anfangen|fortfahren)|(?:die änderung"
    r"|das|es) (?:umsetzen|machen|einbauen)"
    r"|(?:faire|appliquer|continuer|commencer|hacer|aplicar|continuar|empezar|fazer|começar|prosseguir"
    r"|seguir)\b[^.?\n]{0,20}$"
    r"|apply (?:it|this|that|these|the)|make (?:these|the|those|this|that) changes?|do (?:it|this|that"
    r"|so|the (?:rest|same|remaining))"
    r"|weitermachen|fortfahren)\b",
    re.IGNORECASE,
)
_JOINED: Final = re.compile(r",? (?:and then|and|then|und|et|puis|y|luego|e|depois) |, ")
_STEP: Final = re.compile(
    r"\b(?:step|item|point|task|part|phase|number|#|schritt)\s?#?(\d{1,2})\b", re.IGNORECASE
)
_WORDINGS: Final[tuple[tuple[Topic, str], ...]] = (
    (
        "tests",
        r"^(?:re-?)?(?:run|execute)\b[^.\n]{0,40}\b(?:tests?|suite|specs?|pytest|jest)\b|^test (?:it"
        r"|this|the change)|\btests?\b[^.\n]{0,20}\b(?:ausführen|laufen lassen|starten)\b"
        r"|^(?:lance[rz]?|exécute[rz]?|faire tourner|ejecut\w+|corr[ae]\w?|lanzar|pasar|rod\w+"
        r"|execut\w+)\b[^.\n]{0,30}\b(?:tests?|testes|pruebas|suite)\b",
    ),
    (
        "new_tests",
        r"^(?:écrire|ajouter|escribir|añadir|agregar|escrever|adicionar|criar)\b[^.\n]{0,30}\b(?:tests?"
        r"|testes|pruebas)\b"
        r"|\btests?\b[^.\n]{0,20}\b(?:schreiben|ergänzen|hinzufügen)\b|^(?:add|write"
        r"|create)\b[^.\n]{0,40}\b(?:tests?|specs?|test cases?)\b",
    ),
    ("build", r"^(?:run|try|do)\b[^.\n]{0,20}\bbuild\b|^build (?:it|the project)"),
    ("lint", r"^(?:run|fix)\b[^.\n]{0,30}\b(?:lint\w*|ruff|eslint|mypy|type[- ]?check\w*)\b"),
    (
        "commit",
        r"^(?:\w+ and )?commit\w*\b|^(?:faire|hacer|fazer) (?:le |el |o |un |um )?commit\b|\bcommitten\b"
        r"|^(?:make|create) (?:a|the) commit",
    ),
    (
        "push",
        r"^(?:[\w ]{1,30} and )?push\b|^(?:faire|hacer|fazer) (?:le |el |o |un |um )?push\b|\bpushen\b"
        r"|^pousser\b",
    ),
    (
        "pr",
        r"^(?:[\w ]{1,30} and )?(?:open|create|submit|raise)\b[^.\n]{0,20}\b(?:PR|pull request|MR"
        r"|merge request)\b",
    ),
    ("docs", r"^(?:update|write|add|extend)\b[^.\n]{0,40}\b(?:docs?|documentation|readme)\b|^document\b"),
    ("changelog", r"^(?:update|write|add)\b[^.\n]{0,40}\bchange-?log\b"),
    ("deploy", r"^(?:deploy|publish)\b"),
)
_TOPICS: Final = tuple((topic, re.compile(pattern, re.IGNORECASE)) for topic, pattern in _WORDINGS)
_HEADING: Final = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]+|[*_]{2})?[^\w\n]{0,4}(?:(?:suggested|recommended|immediate|remaining"
    r"|the|what's) )?"
    r"(?:next steps?|next|remaining(?: work| tasks| steps)?|left(?: to do)?|still to do|to[- ]?dos?"
    r"|not (?:yet )?done|outstanding"
    r"|still (?:open|missing|pending))\b(?P<more>[^\n]{0,80})$",
    re.IGNORECASE | re.MULTILINE,
)
_ITEM: Final = re.compile(
    r"^[ \t]{0,6}(?:[-*+•]|\d{1,2}[.)])[ \t]+(?:\[ \][ \t]*)?(?P<what>[^\n]{1,300})$", re.MULTILINE
)
_OPTIONAL: Final = re.compile(
    r"\b(?:optional\w*|if (?:you|needed|desired|wanted)|could|consider|maybe|might|nice to have|future"
    r"|you (?:can|may|could|should|need)|your"
    r"|in production|eventually|further|additional)\b",
    re.IGNORECASE,
)


_EXTRAS: Final = re.compile(
    r"\b(?:optional\w*|nice to have|not (?:asked|requested|part of)|out of scope|beyond (?:this|the)"
    r"|if you (?:ever )?(?:want|like|wish)|future|ideas?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Offer:
    """One offered action. ``topic``: what it is, where that is plain. ``step``: a numbered step it names.

    ``goes_on``: it only asks leave to continue.
    """

    what: str
    text: str
    topic: Topic | None = None
    step: int = 0
    goes_on: bool = False
    listed: bool = False


def offers(text: str) -> tuple[Offer, ...]:
    """The offers at the end of ``text``; none where the end holds a real question."""
    last = sentences(text)[-_LAST:]
    asked = [s for s in last if s.endswith("?")]
    near = last[-3:]
    if asked and any(_CONSEQUENCE.search(s) for s in near):
        return ()
    if any(_REAL_QUESTION.search(s) for s in asked) or len(asked) > 2:
        return ()
    found = [
        _offer(part, s, listed=False)
        for s in last
        if (m := _ASKS_LEAVE.search(s)) and not _REAL_QUESTION.search(s)
        for part in _parts(m["what"])
    ]
    if len(asked) > len([s for s in asked if _ASKS_LEAVE.search(s)]):
        return ()
    return tuple((found + _next_steps(text))[:MAX_OFFERS])


def leave_asked(text: str) -> str:
    """What the last sentence asks leave for, a real question or not; "" where it lets choose."""
    last = sentences(text)[-1:]
    m = _ASKS_LEAVE.search(last[0]) if last else None
    return m["what"] if m and not _CHOICE.search(last[0]) else ""


def only_extras(text: str) -> bool:
    """Whether the list of next steps at the end is itself called optional."""
    heading = last_match(_HEADING, text[-2500:])
    return heading is not None and bool(_EXTRAS.search(heading[0]))


def _parts(what: str) -> list[str]:
    """The offer as a whole, and its joined actions where more than one is named."""
    joined = [p for p in _JOINED.split(what) if p.strip()]
    return [what, *joined[1:4]] if len(joined) > 1 else [what]


def _next_steps(text: str) -> list[Offer]:
    """The items of a list of next steps, unless it is called optional."""
    tail = text[-2500:].replace("\u2019", "'")
    heading = last_match(_HEADING, tail)
    if heading is None or _OPTIONAL.search(heading[0]):
        return []
    items = [m["what"].strip(" *_`") for m in _ITEM.finditer(tail, heading.end())]
    return [_offer(item, item, listed=True) for item in items if not _OPTIONAL.search(item)]


def _offer(what: str, text: str, *, listed: bool) -> Offer:
    what = what.strip(" ,.*_`")
    for word in (
        "now ",
        "also ",
        "then ",
        "go ahead and ",
        "go ahead with ",
        "please ",
        "next ",
        "noch ",
        "jetzt ",
    ):
        what = what.removeprefix(word)
    topic = next((t for t, pattern in _TOPICS if pattern.search(what)), None)
    step = _STEP.search(what)
    return Offer(
        what[:200],
        text[:MAX_SENTENCE],
        topic,
        int(step[1]) if step else 0,
        goes_on=not topic and bool(_CONTINUES.match(what)),
        listed=listed,
    )
