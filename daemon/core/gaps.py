"""What was asked for and is not shown: unmet requests, offers of what was asked, claims without a row.

A row is ``open`` only where the request names the thing, nothing in the calls may have done it, and the final
text gives no reason. Everything doubtful stays a closed row or no row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from daemon.core.claims import admissions, claims, sentences
from daemon.core.evidence import Ending, Outcome, Row, Topic, Wants
from daemon.core.offers import offers
from daemon.core.reading import Found
from daemon.core.requirements import Requirement, words
from daemon.core.topics import wording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.core.claims import Claim
    from daemon.core.offers import Offer

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
_GATES: Final[tuple[Topic, ...]] = ("tests", "build", "lint")
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
_REASON: Final = re.compile(
    r"\b(?:can(?:'t|not)|could(?:n't| not)|unable|not (?:available|installed|possible|needed|necessary"
    r"|required|configured|a git)"
    r"|no (?:remote|network|access|git|tests?|test suite|readme|changelog|docs|build|linter|need)\b"
    r"|already|nothing to|isn't|is not|doesn't|does not"
    r"|there (?:is|are) no|requires?|blocked|denied|fail(?:s|ed|ing)?|because|existing|you (?:asked"
    r"|said)|as (?:you )?(?:requested|asked)|skipped"
    r"|authenticat\w+|credential\w*|permission\w*|up[- ]to[- ]date|unchanged|covered)\b",
    re.IGNORECASE,
)
_NO_CHANGE: Final = re.compile(
    r"\b(?:already|no (?:code )?changes? (?:is |are |was |were )?(?:needed|required|necessary|made)"
    r"|nothing to (?:do|change|fix)|no need"
    r"|can(?:'t|not)|could(?:n't| not)|unable|(?:doesn't|does not|don't) (?:exist|seem|appear)"
    r"|works? as (?:intended|expected|designed)"
    r"|not a bug|by design|blocked|no access|credential\w*|need you to|i need|not found|no such"
    r"|correct as)\b",
    re.IGNORECASE,
)
_PLANS: Final = re.compile(
    r"\b(?:i(?:'ll| will| would|'d| can now| plan to| propose| recommend| suggest|'m going to)"
    r"|we (?:should|need to|could|can|will)"
    r"|here(?:'s| is) (?:the|my|a|how)[^.\n]{0,20}(?:plan|approach|proposal|fix|change)|(?:the|my"
    r"|proposed|implementation) plan|plan:|should be (?:changed|replaced|updated|moved|fixed|added)"
    r"|needs? to be (?:changed|replaced|updated|moved|fixed|added|refactored)|to fix (?:this|it)"
    r"|the fix (?:is|would be)|step 1)\b",
    re.IGNORECASE,
)
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
_WHOLE: Final = re.compile(r"\b(?:all|every|each|both|whole|entire)\b", re.IGNORECASE)
_EXT: Final = (
    r"(?:py|[cm]?[jt]sx?|rs|go|java|kt|rb|php|cs|swift|cc?|cpp|hpp|h|exs?|mdx?|rst|txt|json|ya?ml|toml|ini|cfg|sh|sql|html|s?css|vue"
    r"|svelte|xml|gradle|tf|proto|graphql|ipynb|dart|lua|scala)"
)
_FILE: Final = rf"[`\"']?(?P<path>(?![A-Z][a-z]+\.js\b)[\w@-][\w./@-]{{0,120}}\.{_EXT})\b"
_NAMED: Final = (
    re.compile(
        rf"\b(?:create|write|generate)\s+(?:(?:a|an|the|new|file|called|named|it|as|to"
        rf"|in)\s+){{0,5}}{_FILE}",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?:update|edit|modify|adjust|extend)\s+(?:(?:the|file)\s+){{0,2}}{_FILE}", re.IGNORECASE),
    re.compile(
        rf"\b(?:add|put|note|document|mention|describe)\b[^.;\n]{{0,80}}?\b(?:to|in|into)\s+(?:(?:the"
        rf"|file)\s+){{0,2}}{_FILE}",
        re.IGNORECASE,
    ),
)
MAX_ROWS: Final = 10


@dataclass(frozen=True, slots=True)
class Look:
    """All that the rules look at. ``requested``: topics of the request itself; ``gates``: of the project."""

    asked: Sequence[Requirement]
    requested: tuple[Topic, ...]
    gates: tuple[Topic, ...]
    forbids: tuple[Topic, ...]
    wants: Wants
    found: Found
    final: str
    ending: Ending
    checks: Sequence[Row]
    denied: bool = False

    @property
    def live(self) -> Iterator[tuple[str, Requirement]]:
        """(row id, requirement) of those that nothing took back."""
        numbered = ((f"R{i}", r) for i, r in enumerate(self.asked, 1))
        return ((i, r) for i, r in numbered if r.by < 0 and not r.negative)

    def source(self, topic: Topic) -> str:
        """The id of the requirement that asks for ``topic``, or ``""``."""
        return next((i for i, r in self.live if topic in r.asks), "")


def gaps(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, ``offer`` and ``claim``, in this order, without ids."""
    put_off = _offers(look)
    unmet = [] if look.ending == "question" or look.denied else _unmet(look)
    covered: set[str] = {r.topic for r in unmet if r.topic}
    return [
        *unmet[:MAX_ROWS],
        *[r for r in put_off if not (r.topic and r.topic in covered)][:MAX_ROWS],
        *_claims(look, covered),
    ]


def _unmet(look: Look) -> list[Row]:
    found = look.found
    rows: list[Row] = []
    if look.wants == "change" and (row := _nothing_written(look)):
        return [row]
    for topic in _PROVABLE:
        requested = topic in look.requested
        gate = topic in look.gates and topic in _GATES and found.code_writes > 0
        worked = found.writes or topic == "tests"
        if not (requested or gate) or topic in look.forbids or not worked or found.shows(topic):
            continue
        source = look.source(topic)
        who = f"{source} asks" if source else "the request asks" if requested else "the project's rules ask"
        rows.append(
            Row(
                "",
                "unmet",
                f"{who} {wording(topic)}; {_not_seen(topic, look)}",
                open=_sure(topic, look) and not _explained(topic, look.final),
                detail=f"{'The request' if requested else 'The project'} asks {wording(topic)}",
                command=_rerun(topic, look),
                topic=topic,
                cites=(source,) if source else (),
            )
        )
    rows.extend(_files(look))
    if row := _untouched(look):
        rows.append(row)
    return rows


def _untouched(look: Look) -> Row | None:
    """An item of the person's own list that nothing written, run or said speaks of, while the others are."""
    found = look.found
    items = [(i, r) for i, r in look.live if r.change and r.step and len(r.words) >= 2]
    if found.blind_writes or found.delegated or not found.writes or len(items) < 2:
        return None
    seen = found.touched | words(look.final, 4_000)
    left = [(i, r) for i, r in items if not r.words & seen]
    if len(left) != 1:
        return None  # none, or words that this work's language doesn't share
    source, r = left[0]
    text = f"{source} is not spoken of in anything written, run or said"
    return Row(
        "", "unmet", text, open=len(r.words) >= 3, detail=f'"{_short(r.text)}" was not done', cites=(source,)
    )


def _sure(topic: Topic, look: Look) -> bool:
    """CI and deployments happen in too many ways to prove that they didn't; only a red CI seen does."""
    if topic == "ci":
        return bool(look.found.did("ci"))
    return topic != "deploy"


def _not_seen(topic: Topic, look: Look) -> str:
    kind = {"tests": "test", "build": "build", "lint": "lint"}.get(topic)
    stale = [r for r in look.checks if r.check == kind]
    if kind and stale:
        return f"the last {kind} run ({stale[-1].id}) is older than the last edit"
    if any(d.outcome == "failed" for d in look.found.did(topic)):
        return f"the {topic} failed and was not done again"
    return {
        "new_tests": "no test was written",
        "docs": "no document was written",
        "changelog": "no changelog was written",
        "commit": "no commit was seen",
        "push": "no push was seen",
        "pr": "no pull request was seen",
    }.get(topic, f"no {kind} run was seen")


def _rerun(topic: Topic, look: Look) -> str:
    kind = {"tests": "test", "build": "build", "lint": "lint"}.get(topic)
    return next((r.command for r in reversed(look.checks) if r.check == kind), "")


def _explained(topic: Topic, final: str) -> bool:
    """Whether a sentence of the final text gives a reason for the missing thing."""
    noun = _NOUN[topic]
    return any(noun.search(s) and _REASON.search(s) for s in sentences(final))


def _nothing_written(look: Look) -> Row | None:
    """I25: a change was asked for, and the work was reading and a plan."""
    found = look.found
    if (
        found.writes
        or found.opaque
        or found.delegated
        or found.done
        or look.ending not in {"statement", "next_steps"}
    ):
        return None
    if _NO_CHANGE.search(look.final[-4000:]) or not _PLANS.search(look.final[-4000:]):
        return None
    source, r = next((i, r) for i, r in look.live if r.change)
    return Row(
        "",
        "unmet",
        f"{source} asks for a change; the work wrote nothing and ends with a plan",
        open=True,
        detail=f'The request "{_short(r.text)}" asks for a change',
        cites=(source,),
    )


def _files(look: Look) -> Iterator[Row]:
    """Files that the request names as to be written, and that nothing wrote."""
    found = look.found
    if found.blind_writes or found.delegated or not found.writes:
        return
    written = {w.path.rstrip("/").rsplit("/", 1)[-1].lower() for w in found.writes}
    for source, r in look.live:
        for path in dict.fromkeys(m["path"] for p in _NAMED if (m := p.search(r.text))):
            name = path.rsplit("/", 1)[-1]
            said = any(name.lower() in s.lower() and _REASON.search(s) for s in sentences(look.final))
            if name.lower() not in written and not said:
                text = f"{source} names {path}; it was not written"
                yield Row("", "unmet", text, open=True, detail=f"{path} was to be written", cites=(source,))


def _offers(look: Look) -> list[Row]:
    """Offers, next steps and admissions that speak of something asked for."""
    rows: list[Row] = []
    offered = offers(look.final) if look.ending in {"question", "next_steps", "statement"} else ()
    for offer in offered:
        if source := _asked_for(offer, look):
            what = (
                "lists as a next step"
                if offer.listed
                else "asks leave for"
                if "?" in offer.text
                else "offers"
            )
            text = f'the final text {what} what {source} asks for: "{_short(offer.text)}"'
            rows.append(
                Row(
                    "",
                    "offer",
                    text,
                    open=True,
                    detail=_short(offer.what),
                    topic=offer.topic or "",
                    cites=(source,),
                )
            )
    if look.ending == "question" and not rows and offered and _EXTRA.search(look.final[-2000:]):
        rows.append(Row("", "offer", "the final text only offers more than was asked for"))
    if look.ending != "question":
        for sentence in admissions(look.final):
            if source := _overlaps(sentence, look, share=0.5):
                text = f'the final text says that a part of {source} is not done: "{_short(sentence)}"'
                rows.append(Row("", "offer", text, open=True, detail=_short(sentence), cites=(source,)))
    return rows


def _asked_for(offer: Offer, look: Look) -> str:
    """The requirement that already asks for what is offered, where nothing shows it as done."""
    found = look.found
    if look.wants == "plan" or look.denied:
        return ""
    if offer.topic:
        asked = offer.topic in look.requested and offer.topic not in look.forbids
        return look.source(offer.topic) if asked and not found.shows(offer.topic) else ""
    if offer.step and not offer.listed:
        steps = [(i, r) for i, r in look.live if r.step == offer.step]
        return steps[0][0] if steps else ""
    if offer.goes_on and not offer.listed:
        change = [i for i, r in look.live if r.change]
        if not found.writes and not found.opaque and not found.delegated and look.wants == "change":
            return change[0]
        whole = [i for i, r in look.live if r.change and _WHOLE.search(r.text)]
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
    row_text = f'the final text says "{_short(claim.text)}": {why}'
    provable = claim.topic in _GATES and outcome == "unknown" and not look.found.shows(claim.topic)
    is_open = (
        provable
        and look.found.code_writes > 0
        and look.ending != "question"
        and claim.topic not in look.forbids
        and claim.topic not in covered
        and not look.denied
    )
    command = _rerun(claim.topic, look)
    detail = _short(claim.text)
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


def _shown(topic: Topic, look: Look) -> tuple[Outcome, str, tuple[str, ...]]:
    """What the rows say about a claim of ``topic``."""
    kind = {"tests": "test", "build": "build", "lint": "lint"}.get(topic)
    if kind:
        runs = [r for r in look.checks if r.check == kind]
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
    return outcome, f"{said} `{_short(done[-1].deed.text)}`", ()


def _short(text: str) -> str:
    text = " ".join(text[:800].split())
    return text if len(text) <= 160 else text[:159] + "…"
