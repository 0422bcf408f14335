"""Asking leave for what was asked for, listing it as a next step, or admitting that it is not done.

``answer.offers`` finds what the final text offers. Whether the request had asked for it is decided here: then
the row is open. Offers of more than was asked for make one closed row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...core.evidence import Row
from ..answer.claims import admissions
from ..answer.offers import leave_asked, offers, only_extras
from ..words import shorten, words

if TYPE_CHECKING:
    from ..answer.offers import Offer
    from ..facts import Facts

_MORE: Final = re.compile(
    r"\b(?:more|another|extra|further|additional\w*|similar|different|same|improve\w*|polish|optimi\w+"
    r"|other (?:places|areas|improvements))\b",
    re.IGNORECASE,
)
_EXTRA: Final = re.compile(
    r"\b(?:optional\w*|if you (?:ever )?(?:want|like|wish)|possible (?:follow-?ups|next steps"
    r"|improvements)|nice to have|in the future)\b",
    re.IGNORECASE,
)
_REST: Final = re.compile(r"\b(?:rest|remaining|others?|next)\b", re.IGNORECASE)
_WHOLE: Final = re.compile(
    r"\b(?:all|every\w*|each|both|whole|entire\w*|throughout|get rid of|no more|no (?:\w{1,20} ){0,2}left"
    r"|the (?:rest|remaining)"
    r"|alle[nrsm]?|jede[nrsm]?|überall|sämtliche\w*|ganze[nrs]?|beide[nrs]?|tous|toutes|toute|chaque|partout"
    r"|tod[oa]s?|cada|ambos|tudo|completamente|komplett)\b",
    re.IGNORECASE,
)
_PRONOUNS: Final = frozenset(
    "them those these sie diese les ceux los las os as elas eles li le loro ze hen".split()  # noqa: SIM905
)
_FIXES: Final = re.compile(r"^(?:fix|add|make|do|change|create)\b", re.IGNORECASE)
_LOOKS: Final = re.compile(  # more of the answer
    r"^(?:look|check|dig|investigate|search|trace|go (?:deeper|through|into)|verify|find|list|read|continue"
    r"|explain"
    r"|analy[sz]e|compare|measure|run)\b",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(r"[^\W_]{6,40}")
MIN_ANSWER: Final = 160  # characters before the offer


def offered(facts: Facts) -> list[Row]:
    """The rows of kind ``offer``, without ids."""
    found = offers(facts.final) if facts.ending in {"question", "next_steps", "statement"} else ()
    rows, told = list[Row](), set[str]()
    for offer in found:
        if not offer.listed and offer.text in told:
            continue  # one offer may name several actions
        if source := _asked_for(offer, facts):
            told.add(offer.text)
            rows.append(_offer_row(offer, source))
    more = bool(found and _EXTRA.search(facts.final[-2000:])) or _answered(facts)
    extras = facts.ending == "question" and more
    if not rows and (extras or (facts.ending == "next_steps" and only_extras(facts.final))):
        rows.append(Row("", "offer", "the final text only offers more than was asked for"))
    if facts.ending != "question":
        for sentence in admissions(facts.final):
            if source := _overlaps(sentence, facts, share=0.5):
                text = f'the final text says that a part of {source} is not done: "{shorten(sentence)}"'
                rows.append(Row("", "offer", text, open=True, detail=shorten(sentence), cites=(source,)))
    return rows


def _offer_row(offer: Offer, source: str) -> Row:
    how = "lists as a next step" if offer.listed else "asks leave for" if "?" in offer.text else "offers"
    return Row(
        "",
        "offer",
        f'the final text {how} what {source} asks for: "{shorten(offer.text)}"',
        open=True,
        detail=shorten(offer.what),
        topic=offer.topic or "",
        cites=(source,),
    )


def _answered(facts: Facts) -> bool:
    """Whether only an answer was asked for, the text gives one, and it ends with the offer of a change."""
    what = leave_asked(facts.final) if facts.wants == "answer" and not facts.work.writes else ""
    told = len(facts.final) - len(what) >= MIN_ANSWER
    return bool(what) and told and not _LOOKS.match(what)


def _same_verb(offer: Offer, facts: Facts) -> str:
    """The requirement about all of something, whose verb the offer has with a pronoun: "update them"."""
    plain = offer.what.lower().split()[:6]
    if not _PRONOUNS & set(plain) or _FIXES.search(offer.what):
        return ""
    stems = {w[:5] for w in plain if len(w) >= 6}
    for source, r in facts.live:
        if r.change and _WHOLE.search(r.text) and stems & {w[:5] for w in _TOKEN.findall(r.text.lower())}:
            return source
    return ""


def _asked_for(offer: Offer, facts: Facts) -> str:
    """The requirement that already asks for what is offered, where nothing shows it as done."""
    work = facts.work
    if facts.wants == "plan" or facts.denied:
        return ""
    if offer.topic:
        asked = offer.topic in facts.requested and offer.topic not in facts.forbids
        return facts.source(offer.topic) if asked and not work.shows(offer.topic) else ""
    if not offer.listed and (source := _same_verb(offer, facts)):
        return source
    if offer.step and not offer.listed:
        steps = [(i, r) for i, r in facts.live if r.step == offer.step]
        return steps[0][0] if steps else ""
    if offer.goes_on and not offer.listed:
        change = [i for i, r in facts.live if r.change]
        if not work.writes and not work.delegated and not work.blind_writes and facts.wants == "change":
            return change[0]
        whole = [i for i, r in facts.live if r.change and _WHOLE.search(r.text)]
        return whole[0] if whole and _REST.search(offer.what) else _overlaps(offer.what, facts, share=0.75)
    return "" if _MORE.search(offer.what) else _overlaps(offer.what, facts, share=0.75)


def _overlaps(text: str, facts: Facts, *, share: float) -> str:
    """The live requirement that holds most content words of ``text``."""
    said = words(text)
    for source, r in facts.live:
        shared = said & r.words
        if len(shared) >= 2 and len(shared) >= share * min(len(said), 8):
            return source
    return ""
