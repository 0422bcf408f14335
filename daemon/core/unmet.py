"""What was asked for and nothing shows as done: a topic, a change, a named file, an item of a list.

A row is ``open`` only where the request names the thing, nothing in the calls may have done it, and the final
text gives no reason. Everything doubtful stays a closed row or no row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import sentences
from daemon.core.evidence import Row, Topic
from daemon.core.look import GATES, Look, short
from daemon.core.requirements import keys
from daemon.core.topics import ORDERED, wording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.core.requirements import Requirement

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
_REASON: Final = re.compile(
    r"\b(?:can(?:'t|not)|could(?:n't| not)|unable|not (?:available|installed|possible|needed|necessary"
    r"|required|configured|a git)"
    r"|no (?:remote|network|access|git|tests?|test suite|readme|changelog|docs|build|linter|need)\b"
    r"|already|nothing to|isn't|is not|doesn't|does not"
    r"|there (?:is|are) no|requires?|blocked|denied|fail(?:s|ed|ing)?|because|you (?:asked"
    r"|said)|as (?:you )?(?:requested|asked)|skipped"
    r"|authenticat\w+|credential\w*|permission\w*|up[- ]to[- ]date|unchanged|covered)\b",
    re.IGNORECASE,
)
_TASK_LIST: Final = re.compile(  # the line above a list says that its items are to be done
    r"\b(?:please|pls|plz|do|need\w*|want|tasks?|to-?dos?|changes?|add|implement|fix|following|stuff"
    r"|requirements?|must|should|make"
    r"|bitte|aufgaben?|anforderungen|folgende\w*|mach\w?|stp|svp|tâches|suivant\w*|à faire|fais|por favor"
    r"|tareas|siguiente\w*|haz"
    r"|tarefas|seguinte\w*|faz)\b[^\n]{0,60}:?[ \t]*\n{1,2}[ \t]*(?:[-*+•]|\(?\d{1,2}[.)])",
    re.IGNORECASE,
)
_STORY: Final = re.compile(  # a list that tells what happens is no list of tasks
    r"\b(?:repro\w*|steps? to|happens|crash\w*|expected|actual\w*|currently|environment|context"
    r"|background|for example|e\.g\."
    r"|stack ?trace|logs?:|symptoms?|observed)\b",
    re.IGNORECASE,
)
_COUNTER: Final = re.compile(
    r"\b(?:0|no|zero) (?:\w{1,12} )?(?:fail\w*|errors?|skipped)\b|\bfail\w*:? 0\b", re.IGNORECASE
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
_OBLIGES: Final = re.compile(  # of the work, not of a person: "I have to leave soon"
    r"^(?!(?:(?:and|but|so|also|btw|oh|ah) ){0,2}(?:i|we|you|he|she|they|it)\b)"
    r".{0,120}\b(?:must|should|needs? to|ha(?:s|ve) to)\b",
    re.IGNORECASE,
)
_INFLECTED: Final = "eisdrnaoyu"  # the fifth letters of a stem that may belong to an ending
_IF_NEEDED: Final = re.compile(
    r"\b(?:(?:if|where|when|as|wenn|falls|wo|si|se) (?:(?:it(?:'s| is)?|that(?:'s| is)?|they|there|you|this"
    r"|really|es|il"
    r"|est|es|é) ){0,3}(?:needed|necessary|required|applicable|appropriate|relevant|makes? sense|think|nötig"
    r"|notwendig|nécessaire|necesario|hace falta|necessário|preciso|needs?)|maybe|perhaps|optionally"
    r"|feel free)\b",
    re.IGNORECASE,
)
_KEPT: Final = re.compile(r"\b(?:no|not|nothing|without|none|left|kept|stays?)\b", re.IGNORECASE)
_EXT: Final = (
    r"(?:py|[cm]?[jt]sx?|rs|go|java|kt|rb|php|cs|swift|cc?|cpp|hpp|h|exs?|mdx?|rst|txt|json|ya?ml|toml"
    r"|ini|cfg|sh|sql|html|s?css|vue"
    r"|svelte|xml|gradle|tf|proto|graphql|ipynb|dart|lua|scala)"
)
_FILE: Final = rf"[`\"']?(?P<path>(?![A-Z][a-z]+\.js\b)[\w@-][\w./@-]{{0,120}}\.{_EXT})\b"
_NEW: Final = re.compile(  # "a script scripts/backfill.py that …": what isn't there yet
    r"(?:^(?:(?:and|then|also|finally|please|plus|und|et|y|e) ){0,2}"
    r"|\b(?:add|create|write|provide|include|generate|need|want|put|plus|into|erstell\w*|schreib\w*|leg\w*"
    r"|ajoute[rz]?|crée[rz]?|écri\w{1,3}|añad\w+|crea|escrib\w+|adicion\w+|cri[ae]|escrev\w+)\b"
    r"[^.;:\n]{0,40}? )"
    r"(?:an?|another|one|new|eine?|einen|une?|una|uma?|neue[ns]?|nouve\w{1,3}|nuev[oa]|nov[oa]) "
    r"(?!existing|bestehend|exist[ae]nt)(?:[\w-]{1,24}[- ]){0,2}"
    r"(?:script|file|module|page|migration|component|helper|class|workflow|makefile|document|skript|datei"
    r"|modul|seite|fichier|module|archivo|fichero|guión|guion|arquivo|módulo|página)s? "
    rf"(?:(?:called|named|at|in|under|namens|nommé|llamado|chamado|en|em|dans|à) )?\(?{_FILE}",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(rf"{_FILE}[`\"']?(?=[,;]? |[.,;:]?$)", re.IGNORECASE)
_CAUSE: Final = re.compile(  # it may be mended in one of them
    r"\b(?:fix|debug|solve|resolve|repair|bug|crash\w*|fail\w*|errors?|cycle|conflicts?|mismatch|consistent"
    r"|duplicat\w*|shar\w+|between|merge|extract|from|see|like)\b",
    re.IGNORECASE,
)
_APART: Final = re.compile(
    r"\b(?:using|with|than|per|via|by|zwischen|aus|von|entre|avec|con|com)[ `\"']+$", re.IGNORECASE
)
_WITHIN: Final = re.compile(r"\b(?:in|of|for|on|to|into|dans|en|em|für)[ `\"']+(?:the )?$", re.IGNORECASE)
_JOINER: Final = re.compile(r"^[`\"']?(?:, (?:and |und |et |y |e )?| and | und | et | y | e | & )[`\"']?$")
_NAMED: Final = (
    re.compile(
        rf"{ORDERED}(?:create|write|generate) (?:(?:a|an|the|new|file|called|named|it|as) ){{0,5}}{_FILE}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"{ORDERED}(?:update|edit|modify|adjust|extend) (?:(?:the"
        rf"|file) ){{0,2}}{_FILE}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"{ORDERED}(?:add|put|note|document|mention|describe)\b(?:(?!\b(?:that|which|to|so|for|in"
        rf"|into)\b)[^.;\n]){{0,80}}"
        rf"\b(?:to|in|into) (?:(?:the|file) ){{0,2}}{_FILE}",
        re.IGNORECASE,
    ),
)


def unmet(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, without ids; closed where the text gives a reason."""
    found = look.found
    rows: list[Row] = []
    if look.wants == "change" and (row := _nothing_written(look)):
        return [row]
    for topic in _PROVABLE:
        requested = topic in look.requested
        gate = topic in look.gates and topic in GATES and found.code_writes > 0
        worked = found.writes or topic == "tests" or found.did("commit", "push", "pr", "ci")
        if not (requested or gate) or topic in look.forbids or not worked or found.shows(topic):
            continue
        if any(topic in r.asks and _IF_NEEDED.search(r.text) for _, r in look.live):
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
                command=look.rerun(topic),
                topic=topic,
                cites=(source,) if source else (),
            )
        )
    if files := list(_files(look)):
        rows = [*(r for r in rows if r.topic not in {"docs", "changelog"}), *files]
    if row := _untouched(look):
        rows.append(row)
    return rows


def _untouched(look: Look) -> Row | None:
    """The one item of a list, or the later message, that nothing written, run or said speaks of."""
    found = look.found
    if found.blind_writes or found.delegated or not found.writes or look.wants in {"plan", "answer"}:
        return None
    live = [(i, r, keys(r.text)) for i, r in look.live if not r.text.endswith("?")]
    if len(live) < 2:
        return None
    said, done = keys(look.final, 4_000), found.touched
    met = mine_all = 0  # words of the other items of the list that the work has, and all of them
    near = {w[:4] for w in (*done, *said) if len(w) >= 5 and w[4] in _INFLECTED}
    left: list[tuple[str, Requirement, bool]] = []
    for source, r, mine in live:
        own = mine - frozenset[str]().union(*(k for _, other, k in live if other is not r))
        unseen = frozenset(w for w in own - done - said if not _met(w, near))
        must = not (r.change or r.step) and bool(_OBLIGES.search(r.text))
        later = r.message > 0 and not own & said and 3 * len(unseen) >= 2 * len(own)
        later = later and (r.change or bool(r.step) or must) and len(unseen) >= (4 if must else 3)
        shared = any(len(k & (said | done)) >= 2 for _, other, k in live if other.message < r.message)
        most = r.step and len(unseen) >= 3 and 3 * len(unseen) >= 2 * len(own)
        if (r.step and own and unseen == own and len(own) >= 2) or (later and shared) or most:
            left.append((source, r, len(unseen) >= 3 and (unseen == own or not r.step)))
        elif r.step:
            met, mine_all = met + len(own & (done | said)), mine_all + len(own)
    if len(left) != 1 or len(left) == len([r for _, r, _ in live if r.step or r.message]) > 1:
        return None  # none, or words that this work's language doesn't share
    source, r, clear = left[0]
    tasks = r.message > 0 or (not _STORY.search(look.said) and (r.change or _TASK_LIST.search(look.said)))
    text = f"{source} is not spoken of in anything written, run or said"
    return Row(
        "",
        "unmet",
        text,
        open=bool(clear and tasks and (not r.step or 2 * met >= mine_all)),
        detail=f'"{short(r.text)}" was not done',
        cites=(source,),
    )


def _met(word: str, near: set[str]) -> bool:
    """Whether a longer word is an inflection of one that was written or said: "loading", "loader"."""
    return len(word) >= 5 and word[4] in _INFLECTED and word[:4] in near


def _sure(topic: Topic, look: Look) -> bool:
    """CI and deployments happen in too many ways to prove that they didn't; only a red CI seen does."""
    if topic == "ci":
        return bool(look.found.did("ci"))
    return topic != "deploy"


def _not_seen(topic: Topic, look: Look) -> str:
    kind = GATES.get(topic)
    if stale := look.runs(topic):
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
        "ci": "no passing pipeline was seen",
        "deploy": "no deployment was seen",
    }.get(topic, f"no {kind} run was seen")


def _explained(topic: Topic, final: str) -> bool:
    """Whether a sentence of the final text gives a reason for the missing thing."""
    noun = _NOUN[topic]
    return any(noun.search(s) and _REASON.search(_COUNTER.sub("", s)) for s in sentences(final))


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
        detail=f'The request "{short(r.text)}" asks for a change',
        cites=(source,),
    )


def _named(r: Requirement) -> list[str]:
    return [m["path"] for p in _NAMED if (m := p.search(r.text))]


def _siblings(r: Requirement, written: set[str]) -> list[str]:
    """The files of a list that a change is asked of, where others of the list were written."""
    if not r.change or _CAUSE.search(r.text):
        return []
    run: list[str] = []
    end, single = 0, False
    for m in _LISTED.finditer(r.text):
        if run and not _JOINER.match(r.text[end : m.start()]):
            break  # one list only: what else is named may be a hint
        if not run and _APART.search(r.text[: m.start()]):
            return []
        single = single or bool(not run and _WITHIN.search(r.text[: m.start()]))
        run.append(m["path"])
        end = m.end("path")
    done = [p for p in run if p.rsplit("/", 1)[-1].lower() in written]
    return run if len(run) >= (3 if single else 2) and done and len(done) < len(run) else []


def _files(look: Look) -> Iterator[Row]:
    """Files that the request names as to be written, and that nothing wrote."""
    found = look.found
    if found.blind_writes or found.delegated or not found.writes:
        return
    written = {w.path.rstrip("/").rsplit("/", 1)[-1].lower() for w in found.writes}
    for source, r in look.live:
        if _IF_NEEDED.search(r.text):
            continue
        new = [m["path"] for m in _NEW.finditer(r.text)] if r.change or r.step else []
        for path in dict.fromkeys([*new, *_siblings(r, written), *_named(r)]):
            name = path.rsplit("/", 1)[-1]
            said = any(
                name.lower() in s.lower() and (_REASON.search(s) or _NO_CHANGE.search(s) or _KEPT.search(s))
                for s in sentences(look.final)
            )
            ran = any(name.lower() in text for text in found.opaque)
            if name.lower() not in written and not said and not ran:
                text = f"{source} names {path}; it was not written"
                yield Row("", "unmet", text, open=True, detail=f"{path} was to be written", cites=(source,))
