"""What the final text gives away: offers of what was asked for, parts put off, claims that no row shows.

``gaps`` adds what ``unmet`` finds. A row is ``open`` only where it proves by itself that work is left.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import admissions, claims
from daemon.core.evidence import Outcome, Row, Topic
from daemon.core.left import WHOLE, left
from daemon.core.look import GATES, Look, short
from daemon.core.named import named
from daemon.core.offers import leave_asked, offers, only_extras
from daemon.core.requirements import words
from daemon.core.shortfall import shortfall
from daemon.core.structure import structure
from daemon.core.undone import undone
from daemon.core.unmet import unmet

if TYPE_CHECKING:
    from daemon.core.claims import Claim
    from daemon.core.offers import Offer

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
_BACKTICKS: Final = re.compile(r"`([^`\n]{3,200})`")
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
MAX_ROWS: Final = 10


def gaps(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, ``offer`` and ``claim``, in this order, without ids."""
    put_off = _offers(look)
    missing = [] if look.ending == "question" or look.denied else unmet(look)
    missing += [*undone(look), *shortfall(look)]
    missing += named(look, missing)
    known = "\n".join(r.text for r in missing if r.open)
    missing += [r for r in structure(look) if r.detail.split(" ", 1)[0] not in known]
    half = [] if any(r.open for r in (*missing, *put_off)) else left(look)
    covered: set[str] = {r.topic for r in missing if r.topic}
    return [
        *missing[:MAX_ROWS],
        *[r for r in put_off if not (r.topic and r.topic in covered)][:MAX_ROWS],
        *half,
        *_claims(look, covered),
    ]


def _offers(look: Look) -> list[Row]:
    """Offers, next steps and admissions that speak of something asked for."""
    rows: list[Row] = []
    offered = offers(look.final) if look.ending in {"question", "next_steps", "statement"} else ()
    told: set[str] = set()
    for offer in offered:
        if not offer.listed and offer.text in told:
            continue  # one offer may name several actions
        if source := _asked_for(offer, look):
            what = (
                "lists as a next step"
                if offer.listed
                else "asks leave for"
                if "?" in offer.text
                else "offers"
            )
            told.add(offer.text)
            text = f'the final text {what} what {source} asks for: "{short(offer.text)}"'
            rows.append(
                Row(
                    "",
                    "offer",
                    text,
                    open=True,
                    detail=short(offer.what),
                    topic=offer.topic or "",
                    cites=(source,),
                )
            )
    more = bool(offered and _EXTRA.search(look.final[-2000:])) or _told(look)
    extras = look.ending == "question" and more
    if not rows and (extras or (look.ending == "next_steps" and only_extras(look.final))):
        rows.append(Row("", "offer", "the final text only offers more than was asked for"))
    if look.ending != "question":
        for sentence in admissions(look.final):
            if source := _overlaps(sentence, look, share=0.5):
                text = f'the final text says that a part of {source} is not done: "{short(sentence)}"'
                rows.append(Row("", "offer", text, open=True, detail=short(sentence), cites=(source,)))
    return rows


def _told(look: Look) -> bool:
    """Whether only an answer was asked for, the text gives one, and it ends with the offer of a change."""
    what = leave_asked(look.final) if look.wants == "answer" and not look.found.writes else ""
    told = len(look.final) - len(what) >= MIN_ANSWER
    return bool(what) and told and not _LOOKS.match(what)


def _same_verb(offer: Offer, look: Look) -> str:
    """The requirement about all of something, whose verb the offer has with a pronoun: "update them"."""
    plain = offer.what.lower().split()[:6]
    if not _PRONOUNS & set(plain) or _FIXES.search(offer.what):
        return ""
    stems = {w[:5] for w in plain if len(w) >= 6}
    for source, r in look.live:
        if r.change and WHOLE.search(r.text) and stems & {w[:5] for w in _TOKEN.findall(r.text.lower())}:
            return source
    return ""


def _asked_for(offer: Offer, look: Look) -> str:
    """The requirement that already asks for what is offered, where nothing shows it as done."""
    found = look.found
    if look.wants == "plan" or look.denied:
        return ""
    if offer.topic:
        asked = offer.topic in look.requested and offer.topic not in look.forbids
        return look.source(offer.topic) if asked and not found.shows(offer.topic) else ""
    if not offer.listed and (source := _same_verb(offer, look)):
        return source
    if offer.step and not offer.listed:
        steps = [(i, r) for i, r in look.live if r.step == offer.step]
        return steps[0][0] if steps else ""
    if offer.goes_on and not offer.listed:
        change = [i for i, r in look.live if r.change]
        if not found.writes and not found.delegated and not found.blind_writes and look.wants == "change":
            return change[0]
        whole = [i for i, r in look.live if r.change and WHOLE.search(r.text)]
        return whole[0] if whole and _REST.search(offer.what) else _overlaps(offer.what, look, share=0.75)
    return "" if _MORE.search(offer.what) else _overlaps(offer.what, look, share=0.75)


def _overlaps(text: str, look: Look, *, share: float) -> str:
    """The live requirement that holds most content words of ``text``."""
    said = words(text)
    for source, r in look.live:
        shared = said & r.words
        if len(shared) >= 2 and len(shared) >= share * min(len(said), 8):
            return source
    return ""


def _claims(look: Look, covered: set[str]) -> list[Row]:
    return [_claim(claim, look, covered) for claim in claims(look.final)]


def _claim(claim: Claim, look: Look, covered: set[str]) -> Row:
    outcome, why, cites = _shown(claim.topic, look)
    if outcome == "unknown" and (command := _quoted(claim, look)):
        outcome, why = "passed", f"shown by `{short(command)}`"
    row_text = f'the final text says "{short(claim.text)}": {why}'
    if outcome == "unknown" and claim.topic in GATES and look.found.wrapped:
        outcome, why = "", "a runner that may have done it passed"
    provable = claim.topic in GATES and outcome == "unknown" and not look.found.shows(claim.topic)
    is_open = (
        provable
        and look.found.code_writes > 0
        and look.ending != "question"
        and claim.topic not in look.forbids
        and claim.topic not in covered
        and not look.denied
    )
    command = look.rerun(claim.topic)
    detail = short(claim.text)
    return Row(
        "",
        "claim",
        row_text,
        outcome,
        open=is_open,
        detail=detail,
        command=command,
        topic=claim.topic,
        cites=cites,
    )


def _quoted(claim: Claim, look: Look) -> str:
    """A command that the sentence quotes and that ended with exit code 0, or ``""``."""
    quoted = (" ".join(m[1].split()) for m in _BACKTICKS.finditer(claim.text))
    return next((q for q in quoted if " " in q and any(q in ran for ran in look.found.proven)), "")


def _shown(topic: Topic, look: Look) -> tuple[Outcome, str, tuple[str, ...]]:
    """What the rows say about a claim of ``topic``."""
    if topic in GATES:
        runs = look.runs(topic)
        failed = [r for r in runs if r.outcome == "failed"]
        passed = [r for r in runs if r.outcome == "passed" and r.position != "before_last_write"]
        if failed and (failed[-1].open or not passed):
            return "failed", f"{failed[-1].id} says otherwise", (failed[-1].id,)
        if passed:
            return "passed", f"shown by {passed[-1].id}", (passed[-1].id,)
        if runs:
            return "unknown", f"no evidence after the last edit; {runs[-1].id} is no proof", (runs[-1].id,)
        return "unknown", "no evidence", ()
    done = look.found.did("run") if topic == "browser" else look.found.did(topic)
    if not done:
        return "unknown", "no evidence", ()
    outcome: Outcome = "passed" if topic == "browser" else done[-1].outcome
    said = {"passed": "shown by", "failed": "contradicted by", "unknown": "no proof in"}.get(outcome, "see")
    return outcome, f"{said} `{short(done[-1].deed.text)}`", ()
