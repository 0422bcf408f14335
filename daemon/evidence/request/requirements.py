"""The task's messages, cut into single requirements: list items, sentences, joined imperatives.

Later messages win: a requirement that one takes back or changes is kept and marked. Quoted code and logs are
no requirements. Of a long message only the head and the tail are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ...core.evidence import Topic
from ..words import split_request, words
from .topics import read_clause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...core.evidence import Wants

MAX_READ: Final = 6_000  # characters from each end of a message
MAX_REQUIREMENTS: Final = 24
MAX_TEXT: Final = 300
_FENCE: Final = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})", re.MULTILINE)
_ITEM: Final = re.compile(
    r"^[ \t]{0,12}(?:[-*+•][ \t]{1,4}(?:\[[ xX]\][ \t])?|\(?(\d{1,3}|[a-z])[.):][ \t]{1,4})(?=\S)"
)
_INLINE: Final = re.compile(r"(?:^|(?<=[\s:,;]))\(?(\d{1,2})\)[ \t]")
_LOG: Final = re.compile(r"^(?:>|\||\s{4,}\S|Traceback |\s*at \S+ ?\(|[A-Z]\w*(?:Error|Exception):|\$ |E  )")
_CHANGE_VERBS: Final = (
    r"fix|add|implement|create|write|refactor|rename|update|remove|delete|migrate|convert|replace|extract"
    r"|split"
    r"|move|change|make|improve|optimi[sz]e|simplify|rewrite|generate|port|introduce|bump|upgrade"
    r"|downgrade|handle"
    r"|support|validate|enable|disable|configure|set up|wire|expose|clean up|cleanup|format|translate"
    r"|finish|build"
    r"|complete|integrate|drop|undo|revert|extend|adjust|correct|resolve|solve|repair|restyle|develop|install"
    r"|tag|switch|throttle|log|block|reduce|merge|cache|limit|hide|sort|store|parse|send|skip|strip|swap"
    r"|turn|unify|deduplicate|dedupe"
    r"|rework|reimplement|reorder|patch|localize|internationali[sz]e|normali[sz]e|sanitize|escape|encrypt"
    r"|hash|sync|hook up|polish|trim"
    r"|speed up|get rid of|take|load|register|allow|accept|reject|return|render|pin|cut|mark|inline"
    r"|invert|annotate|type|model|compute|calculate"
    r"|corrige[rz]?|ajoute[rz]?|remplace[rz]?|supprime[rz]?|renomme[rz]?|crée[rz]?|écris|migre[rz]?"
    r"|déplace[rz]?|implémente[rz]?|modifie[rz]?"
    r"|nettoie|traduis|mets à jour|passe|fais|añade|agrega|arregla|corrige|cambia|crea|elimina|borra"
    r"|reemplaza|renombra|mueve|migra|importa"
    r"|implementa|actualiza|traduce|escribe|quita|haz|adiciona|acrescenta|conserta|arruma|muda|altera"
    r"|cria|remove|apaga|substitui|renomeia|move"
    r"|atualiza|traduz|escreve|faz|gera|coloca|passe|stell|mach|räum|zieh|benenn|übersetz|ergänze"
    r"|verschiebe|passe|bau"
    r"|füge|erstelle|behebe|ändere|lösche|entferne|implementiere|aktualisiere|korrigiere|schreib\w?|baue"
    r"|ersetze"
)
_OTHER_VERBS: Final = (
    r"run|test|lint|commit|push|open|merge|deploy|publish|release|document|verify|ensure|check|use|keep"
    r"|put|let"
    r"|investigate|debug|review|look|find|read|list|show|print|describe|summari[sz]e|tell|report|explain|plan"
    r"|propose|outline|design|research|compare|answer|continue|go|try|start|stop|leave|skip|avoid|mention"
    r"|note"
    r"|führe|prüfe|teste|committe|pushe|erkläre|zeige"
)
_LEAD: Final = (
    r"(?:(?:oh|ah|hm+|btw|by the way|one more thing|plus|ps|pls|plz|ach|stp|svp|por favor|ah et|y|e|et"
    r"|auch|noch|please|and|then|also|now|next|finally|first|second|third|lastly|after that|afterwards|so"
    r"|ok(?:ay)?"
    r"|hey|hi|hello|just|but|actually|again|wait|yes|no|great|thanks|bitte|go ahead and|when (?:you're"
    r"|you are) done"
    r"|when done|once done|for that|in addition|instead|(?:can|could|would|will) you|i(?:'d"
    r"| would) (?:like|love)"
    r" (?:you )?to|i (?:want|need)(?: you)? to|you (?:should|must|need to|have to)|we (?:should|must"
    r"|need to)|let's"
    r"|don't forget to|remember to|make sure(?: to| that| you)?|be sure to|try to"
    r"|help me(?: to)?)[,:!]?[ ]{1,20}+){0,6}"
)
_CHANGES: Final = re.compile(rf"{_LEAD}(?:{_CHANGE_VERBS})\b", re.IGNORECASE)
_IMPERATIVE: Final = re.compile(
    rf"{_LEAD}(?:{_CHANGE_VERBS}|{_OTHER_VERBS}|don't|do not|never|make sure|ensure|no|without|use)\b",
    re.IGNORECASE,
)
_MUST: Final = re.compile(
    r"\b(?:must|should|needs? to|has to|have to|want|i'd like|would like|instead)\b", re.IGNORECASE
)
_JOINT: Final = re.compile(
    r"(?:,[ ](?:and |then |and then |also )?|;[ ]|[ ](?:and then|and also|and|then|but|und|danach)[ ])"
    r"(?=(?:please |also |then |finally )?(?:fix|add|implement|create|write|refactor|rename|update"
    r"|remove|delete|migrate"
    r"|convert|replace|run|re-run|commit|push|open a|open the|create a|deploy|publish|document|make sure"
    r"|ensure|verify"
    r"|don't|do not|bump|extract|move|tell me|explain|committe|pushe)\b)",
    re.IGNORECASE,
)
_PLAN: Final = re.compile(
    r"\b(?:(?:make|write|give|draft|propose|create|outline|show)\b[^.\n]{0,20}\b(?:plan|proposal|outline"
    r"|design)"
    r"|plan (?:first|only|how|the|out|for)|(?:only|just) (?:a )?plan|outline|propose|brainstorm"
    r"|(?:how|what) would you|(?:don't|do not) (?:change|edit|implement|write|touch|modify) (?:any|code"
    r"|anything|files?|yet|it)"
    r"|without (?:changing|editing|implementing|touching)|before (?:you )?(?:change|implement|edit)\w*"
    r"|read[- ]only)\b",
    re.IGNORECASE,
)
_ASKING: Final = re.compile(
    rf"{_LEAD}(?:what|why|how|where|which|who|when|is|are|does|do|did|can i|should|explain|describe"
    rf"|tell me|summari[sz]e"
    r"|review|look|run|execute|reproduce|report|just report|investigate|find out|compare|list|show|check"
    r"|read|analy[sz]e|was|wie|warum|wo|welche"
    r"|erkläre|analyse)\b",
    re.IGNORECASE,
)
_ALL_BACK: Final = re.compile(
    r"\b(?:scratch that|never ?mind|forget (?:it|that|about (?:it|that)|everything)|ignore (?:that|my last)"
    r"|cancel that|vergiss es)\b",
    re.IGNORECASE,
)
_TAKES_BACK: Final = re.compile(
    r"\b(?:(?:scratch|never ?mind|forget(?: about)?|ignore|skip|drop|cancel|leave out|leave)\b"
    r"|(?:don't|do not|no longer|not) (?:need|want|have to|bother|do|add|write|create|run|update"
    r"|implement|remove|rename"
    r"|delete|commit|push|open|change|use|touch|include)\b|no need (?:to|for)|without\b|instead\b"
    r"|rather than\b|no more\b)",
    re.IGNORECASE,
)
_IT: Final = re.compile(r"\b(?:it|them|this|that|those|these)\b", re.IGNORECASE)
_CONDITION: Final = re.compile(
    r"(?:if|unless|when|once|should|in case|i|we|he|she|they|wenn|falls|si|se)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that was asked. ``by``: the index of the later requirement that changed it, else -1.

    ``step``: its number in the person's own list. ``change``: it asks to change something. ``negative``: it
    says what not to do.
    """

    text: str
    asks: frozenset[Topic] = frozenset()
    forbids: frozenset[Topic] = frozenset()
    negative: bool = False
    change: bool = False
    step: int = 0
    message: int = 0
    by: int = -1
    words: frozenset[str] = frozenset()


def requirements(messages: Sequence[str]) -> tuple[Requirement, ...]:
    """All requirements of ``messages``, oldest first; the first and the last ones when there are many."""
    found: list[Requirement] = []
    for n, text in enumerate(messages):
        cut = [replace(r, message=n) for r in _of(text)]
        if n:
            found = _superseded(found, cut)
        found.extend(cut)
    if len(found) <= MAX_REQUIREMENTS:
        return tuple(found)
    half = MAX_REQUIREMENTS // 2
    moved = len(found) - MAX_REQUIREMENTS
    kept = found[:half] + found[-half:]
    return tuple(replace(r, by=r.by - moved if r.by >= half + moved else min(r.by, half)) for r in kept)


def topics(found: Iterable[Requirement]) -> tuple[tuple[Topic, ...], tuple[Topic, ...]]:
    """What all requirements ask for and forbid together; the latest word on a topic counts."""
    asks: set[Topic] = set()
    forbids: set[Topic] = set()
    for r in found:
        asks = (asks - r.forbids) | (r.asks if r.by < 0 else frozenset())
        forbids = (forbids - r.asks) | r.forbids
    return tuple(sorted(asks)), tuple(sorted(forbids))


def wants(messages: Sequence[str], found: Sequence[Requirement]) -> Wants:
    """Whether the task asks for a change, an answer or a plan."""
    last = prose(messages[-1]) if messages else ""
    if any(_PLAN.search(r.text) for r in found if r.by < 0) or _PLAN.search(last[:2000]):
        return "plan"
    live = [r for r in found if r.by < 0 and not r.negative]
    if any(r.change for r in live):
        return "change"
    if live and all(r.text.rstrip().endswith("?") or _ASKING.match(r.text) for r in live):
        return "answer"
    return "unclear"


def prose(text: str) -> str:
    """What the person wrote themselves: no code blocks, no quotes, no pasted logs."""
    if len(text) > 2 * MAX_READ:
        text = text[:MAX_READ] + "\n\n" + text[-MAX_READ:]
    kept: list[str] = []
    fence = ""
    for line in text.replace("\u2019", "'").split("\n"):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            kept.append("")
        elif not fence and (_ITEM.match(line) or not _LOG.match(line)):
            kept.append(line)
    return "\n".join(kept)


def _of(text: str) -> list[Requirement]:
    found: list[Requirement] = []
    said = prose(text)
    cut = _paragraphs(said)
    cut = [part for paragraph, step in cut for part in _enumerated(paragraph, step)]
    for (paragraph, step), (_, following) in zip(cut, [*cut, ("", 0)][1:], strict=True):
        if paragraph.endswith(":") and following and not step:
            continue  # it only leads to the list
        for sentence in split_request(paragraph):
            found.extend(_from_sentence(sentence, step))
    if not found and text.strip():  # no wording that we know: every sentence counts
        whole = said.strip() or text[:2000].strip()
        parts = [s for p, _ in _paragraphs(whole) for s in split_request(p)]
        found = [_requirement(p, 0, forbade=False) for s in parts if (p := " ".join(s[:4000].split()))]
    return found


def _paragraphs(text: str) -> list[tuple[str, int]]:
    """List items on their own with their number (bullets: -1), other lines joined until a blank one."""
    found: list[tuple[str, int]] = []
    open_line = False
    for line in text.split("\n"):
        item = _ITEM.match(line)
        if not line.strip():
            open_line = False
        elif item:
            number = int(item[1]) if item[1] and item[1].isdigit() else -1
            found.append((line[item.end() :].strip(), number))
            open_line = True
        elif open_line and found:
            before, step = found[-1]
            found[-1] = (f"{before} {line.strip()}", step)
        else:
            found.append((line.strip().lstrip("#").strip(), 0))
            open_line = True
    return found


def _enumerated(paragraph: str, step: int) -> list[tuple[str, int]]:
    """A lead and its items, as in "Do this: 1) a, 2) b"; other paragraphs as they are."""
    marks = list(_INLINE.finditer(paragraph)) if not step and paragraph.count(")") >= 2 else []
    if len(marks) < 2 or [int(m[1]) for m in marks] != list(range(1, len(marks) + 1)):
        return [(paragraph, step)]
    found = [(paragraph[: marks[0].start()].strip(" :("), 0)] if marks[0].start() else []
    for m, end in zip(marks, [*(n.start() for n in marks[1:]), len(paragraph)], strict=True):
        item, *rest = split_request(paragraph[m.end() : end].strip(" ,;("))
        found.append((item, int(m[1])))
        found.extend((text, 0) for text in rest)
    return found


def _from_sentence(sentence: str, step: int) -> list[Requirement]:
    sentence = " ".join(sentence[:4000].split())
    if not sentence:
        return []
    parts = _JOINT.split(sentence) if _IMPERATIVE.match(sentence) or step else _told_then_asked(sentence)
    found: list[Requirement] = []
    forbade = False
    for part in parts:
        part = part.strip(" ,;")  # noqa: PLW2901 -- the trimmed part
        asks = (
            step
            or _IMPERATIVE.match(part)
            or _MUST.search(part)
            or part.endswith("?")
            or _ALL_BACK.search(part)
        )
        if not asks and not _TAKES_BACK.search(part):
            continue
        r = _requirement(part, step, forbade=forbade)
        forbade = bool(r.forbids & {"commit", "push", "pr", "deploy"})
        found.append(r)
    return found


def _told_then_asked(sentence: str) -> list[str]:
    """In "It is O(n^2), replace it by a hash": what a sentence asks about what it told before."""
    parts = _JOINT.split(sentence)
    asks = len(parts) == 2 and _CHANGES.match(parts[1].strip(" ,;")) and _IT.search(parts[1])
    return parts if asks and not _CONDITION.match(sentence) else [sentence]


def _requirement(text: str, step: int, *, forbade: bool) -> Requirement:
    said = read_clause(text, sentence_forbids=forbade)
    shown = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
    change = not said.negative and bool(_CHANGES.match(text)) and not _PLAN.search(text)
    return Requirement(shown, said.asks, said.forbids, said.negative, change, step, words=words(text))


def _superseded(earlier: list[Requirement], later: list[Requirement]) -> list[Requirement]:
    """``earlier`` with a mark on what ``later`` takes back: the last message, or what shares its words."""
    found = list(earlier)
    for k, new in enumerate(later):
        at = len(earlier) + k
        if _ALL_BACK.search(new.text) and len(new.words) <= 2:
            last = earlier[-1].message if earlier else 0
            found = [replace(r, by=at) if r.message == last and r.by < 0 else r for r in found]
        elif _TAKES_BACK.search(new.text):
            for i, old in enumerate(found):
                shared = old.words & new.words
                same_topic = bool(old.asks & new.forbids)
                if old.by < 0 and (same_topic or len(shared) >= max(1, min(2, len(old.words)))):
                    found[i] = replace(old, by=at)
    return found
