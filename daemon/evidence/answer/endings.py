"""How the final text of a turn ends: said, asked, listed as next steps, announced, or cut off.

``announced`` and ``cut_off`` make work look unfinished, so a doubtful text is a ``statement``. So is a text
in a language whose wording isn't known here. Only the last ``MAX_TAIL`` characters are read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..words import last_match, split_line

if TYPE_CHECKING:
    from ...core.evidence import Ending

MAX_TAIL: Final = 4000
MAX_WHOLE: Final = 15_000  # a host cuts longer texts in the middle, so their fences can't be counted

_FENCE: Final = re.compile(r"^[ \t>]{0,12}(`{3,}|~{3,})([^\n`]{0,80})$", re.MULTILINE)
_CLOSER: Final = re.compile(
    r"(?:please )?(?:just )?(?:let me know|feel free|don't hesitate|do not hesitate|happy to|glad to"
    r"|i'm here|i am here"
    r"|hope this helps|enjoy\b|happy coding|good luck|thanks|thank you|anything else|is there anything else)",
    re.IGNORECASE,
)
_OFFER: Final = re.compile(
    r"^(?:please )?(?:just )?let me know if (?:you|there|anything|that|this|it|i\b|any|something)"
    r"|^if you (?:have|need|run into)"
    r"|^(?:is there )?anything else\b|^let me know what you think",
    re.IGNORECASE,
)
_NEEDS_PERSON: Final = re.compile(
    r"\b(?:(?:tell me|let me know|ping me) (?:when|once|as soon as) (?!you(?:'d| would) like"
    r"|you want)[^.\n]{1,80},? (?:and )?i(?:'ll| will|'m)"
    r"|let me know (?:which|how|whether|when|once|what (?:you(?:'d| would)|to)|your|the)"
    r"|let me know if (?:i should|you want me"
    r"|you(?:'d| would) (?:like|prefer) me)|please (?:confirm|provide|specify|clarify|choose|select"
    r"|advise|approve|tell me|share)"
    r"|i(?:'ll)? (?:still )?need (?:the|an?|access to|two|some) [^.;\n]{1,60}\bfrom (?:you|your)\b"
    r"|(?:has|have|needs?) to be (?:given|granted|approved|unlocked|enabled|invited|renewed|signed)\b"
    r"[^.;\n]{0,60}\bby (?:you|an? (?:admin\w*|owner|maintainer|reviewer|person|human))\b"
    r"|please (?:run|do|execute|log in|sign in|approve|accept|enter)\b[^.;\n]{0,80}\b(?:and|then) "
    r"(?:start|ask|tell|ping|call|message|prompt|write|let|say|come|send|answer|reply|rerun|resume)\b"
    r"|waiting for your|awaiting your|i need (?:your|you to)|could you (?:please )?(?:confirm|provide"
    r"|clarify|tell|share|specify)"
    r"|before i (?:proceed|continue|start|go on)|your (?:approval|confirmation|decision|go-ahead)"
    r"|(?:j'ai|aurais) besoin (?:de (?:ta|ton|votre|tes|vos)|que (?:tu|vous))|(?:brauche"
    r"|benötige) ich (?:noch |erst |dafür )?(?:deine?|ihre?|von (?:dir|ihnen)|eine entscheidung)"
    r"|necesito (?:tu|su|que (?:me|tú|decidas)|saber|\w{1,6} decisi\w+)|preciso (?:que (?:você|me)|saber"
    r"|da sua|de uma decis)|(?:dis|dites)-moi (?:lequel|laquelle|si|quel)"
    r"|(?:tell|ping|message|notify|remind) me (?:as soon as|when|once|after) "
    r"(?!you(?:'d| would)? (?:like|want))"
    r"|(?:then|afterwards|once done|when done),? (?:just )?(?:say|tell me|type|reply|write|send|answer"
    r"|ping)\b"
    r"[^.\n]{1,50}\bi(?:'ll| will| can)\b"
    r"|(?:sag|gib) (?:mir )?bescheid,? (?:wenn|sobald) (?!du (?:willst|magst|möchtest))|melde dich,? (?:wenn"
    r"|sobald)|(?:dis|dites)-moi (?:quand|dès que)|préviens-moi (?:quand|dès)|(?:avísame|dime) (?:cuando"
    r"|en cuanto)|me avis[ae] (?:quando|assim que)"
    r"|sag mir,? (?:welche|ob|wie)|dime (?:cuál|si|qué)|me diga (?:qual|se)|need (?:a|one|two|some"
    r"|three) decisions? from you"
    r"|(?:or|and|just) (?:give|send|tell|hand) me|please have (?:someone|an? \w+|your))\b",
    re.IGNORECASE,
)
_CHOOSE: Final = re.compile(  # above a list of ways to go on
    r"\b(?:please (?:decide|choose|pick)|your (?:call|choice)|bitte entscheide\w*"
    r"|décide[zr]?)\b[^.\n]{0,60}:\s{0,4}\n"
    r"\s{0,6}(?:[-*]|\(?[\da-zA-Z][.)]) ",
    re.IGNORECASE,
)
_ASKS_IN_JAPANESE: Final = re.compile(r"(?:ましょうか|でしょうか|ですか|ますか)(?:。|$)")
_DIRECTED: Final = re.compile(
    r"\b(?:should i|shall i|may i|can i|would you|do you want|do you prefer|would it|could you|can you"
    r"|want me to"
    r"|which (?:one|option|of|approach|version)|what would you|how would you|is that (?:ok|okay|right)"
    r"|are you)\b[^?\n]{0,300}\?",
    re.IGNORECASE,
)
_NEXT_PHRASE: Final = (
    r"(?:[^\w\n]{1,4})?(?:(?:suggested|recommended|possible|optional|your|immediate|remaining|the) )?"
    r"(?:next (?:steps?|actions?)|remaining (?:work|tasks|steps|items)|what(?:'s| is) (?:left|next)"
    r"|still to do|to[- ]?dos?|follow[- ]?ups?|not (?:yet )?done|outstanding)\b"
)
_NEXT_STEPS: Final = re.compile(  # marked as a heading, or a line of its own with a colon
    rf"^[ \t]{{0,3}}(?:(?:#{{1,6}}[ \t]+|[*_]{{2}}){_NEXT_PHRASE}[^\n]{{0,80}}"
    rf"|{_NEXT_PHRASE}(?:[ ]?\([^)\n]{{0,40}}\))?[ ]*(?::[^\n]{{0,300}})?)$",
    re.IGNORECASE | re.MULTILINE,
)
_LEAD: Final = (
    r"(?:(?:ok(?:ay)?|great|good|perfect|alright|right|now|next|so|first|excellent|done)[,.!:]?[ ]+"
    r"|and[ ]+(?=now|next)){0,3}"
)
_VERB: Final = (
    r"(?:run|re-?run|check|verify|fix|update|add|create|implement|write|test|look|read|examine"
    r"|investigate|continue|proceed"
    r"|start|begin|apply|edit|modify|refactor|remove|delete|install|build|commit|push|search|find"
    r"|explore|open|inspect|try"
    r"|make|move|rename|review|analy[sz]e|debug|finish|complete|execute|see|replace|set up|clean up"
    r"|double-check|confirm|get)"
)
_ANNOUNCED: Final = re.compile(
    rf"{_LEAD}(?:let me|let's|i'll|i will|i'm going to|i am going to|i'm about to|i need to|time to)[ ]+"
    rf"(?:now |next |then |also |first |quickly |just |go ahead and |start by \w+ing |begin by \w+ing "
    rf"|move on to |take a ){{0,3}}"
    rf"(?:{_VERB}|\w+ing|look)\b",
    re.IGNORECASE,
)
_ANNOUNCED_ELSEWHERE: Final = re.compile(
    r"(?:agora|em seguida|a seguir|ahora|a continuación|luego|maintenant|ensuite|à présent|jetzt|nun"
    r"|als nächstes"
    r"|anschließend|danach|ora|adesso|poi|quindi|nu|vervolgens|dan|teraz|następnie),? "
    r"(?:eu |yo |io |ik )?(?:(?:só |solo |sólo |juste |noch |nog )?"
    r"(?:vou|vamos|voy a|vamos a|je vais|on va|je passe|je m'occupe|je lance|j'ajoute|j'écris|je modifie"
    r"|werde ich|passe ich|schreibe ich|baue ich|mache ich|ergänze ich|füge ich|prüfe ich|führe ich"
    r"|starte ich"
    r"|stelle ich|kümmere ich|kommt der|vado a|passo a|aggiungo|aggiorno|scrivo|modifico|sistemo|eseguo"
    r"|lancio"
    r"|creo|corrijo|añado|actualizo|escribo|ejecuto|paso a|adiciono|atualizo|escrevo|rodo|executo"
    r"|ga ik|voeg ik|pas ik|dodam|uruchomię|zaktualizuję|poprawię))(?= )",
    re.IGNORECASE,
)
_WAITS_ELSEWHERE: Final = re.compile(
    r"\b(?:wenn|falls|sobald|bis|warte|dein\w?|ihr\w?|du|sie|si|quand|dès|attends?|ton|ta|tes|votre|vos|tu"
    r"|vous"
    r"|cuando|hasta|espero|esperar|tus?|usted|quando|assim que|até|aguard\w+|você|seu|sua|se|appena|aspetto"
    r"|tuo|tua"
    r"|als je|zodra|wacht|jouw|jeśli|gdy|fertig|terminé|listo|pronto|klaar)\b",
    re.IGNORECASE,
)
_NOT_ANNOUNCED: Final = re.compile(
    r"\b(?:if|once|unless|whenever|when you|after you|until|as soon as|let you|let me know|next time"
    r"|from now on|going forward"
    r"|in (?:the|a) future|in a follow-up|later|tomorrow|next session|add that|note that|see you|wait\w*"
    r"|your|leave|stop|not"
    r"|for you|you)\b|\b(?:done|fixed|passed|passes|passing|works|green|complete|completed|finished)[.!)]*$",
    re.IGNORECASE,
)
_DANGLING: Final = re.compile(
    r"(?:[ ](?:and|or|but|because|the|an|whose|although)|[ ](?:and|with|to|in|of|for|as|is|using|add"
    r"|create|into|by) a)$"
)
_CHOICE: Final = re.compile(r"^[ \t]*(?:[-*+•][ \t]|\(?(?:\d{1,2}|[a-zA-Z])[.)][ \t]|¿)")
_TRIM: Final = " \t*_\"'”’)`~"  # noqa: RUF001 -- closing quotes
_LIST_ITEM: Final = re.compile(r"^[ \t]*(?:[-*+•][ \t]|\d{1,3}[.)][ \t]|\||>|#{1,6}[ \t])")


def ending(text: str, finish: str = "") -> Ending:
    """How ``text`` ends. ``finish`` is why the model stopped, as the host says."""
    tail = text.replace("\u2019", "'").rstrip()
    if not tail.strip():
        return "empty"
    if finish in {"length", "max_tokens"}:
        return "cut_off"
    if len(text) < MAX_WHOLE and _unclosed(tail):
        return "cut_off"
    prose, after_code = _prose(tail[-MAX_TAIL:])
    lines = [line.rstrip() for line in prose.split("\n") if line.strip()]
    if not lines:
        return "statement"
    kept, polite = _without_closers(lines)
    if _asks(kept):
        return "question"
    if _next_steps("\n".join(kept)):
        return "next_steps"
    if polite or after_code:
        return "statement"
    return _broken_off(lines[-1])


def _prose(tail: str) -> tuple[str, bool]:
    """The text without its code blocks, and whether it ends with one."""
    kept: list[str] = []
    fence, coded = "", False
    for line in tail.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and fence and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
            fence, coded = "", True
        elif not fence:
            kept.append(line)
            coded = coded and not line.strip()
    return "\n".join(kept), coded


def _unclosed(text: str) -> bool:
    """An open code block at the end. Nested fences confuse every reader, so only an odd count is believed."""
    marks = list(_FENCE.finditer(text))
    if len(marks) % 2 == 0:
        return False
    last = marks[-1]
    open_fence = ""
    for mark in marks:
        if not open_fence:
            open_fence = mark[1]
        elif mark[1][0] == open_fence[0] and len(mark[1]) >= len(open_fence) and not mark[2].strip():
            open_fence = ""
    return bool(open_fence) and (last.end() < len(text) or bool(last[2].strip()))


def _sentences(line: str) -> list[str]:
    return [s for s in split_line(line.strip()) if s.strip(_TRIM)]


def _without_closers(lines: list[str]) -> tuple[list[str], bool]:
    """The lines without polite last sentences ("Let me know if you need anything else!"), at most three."""
    lines, polite = list(lines), False
    for _ in range(3):
        sentences = _sentences(lines[-1]) if lines else []
        if not sentences:
            break
        last = sentences[-1].strip(_TRIM)
        if not _CLOSER.match(last) and not _OFFER.search(last):
            break
        if _NEEDS_PERSON.search(last) or (last.endswith("?") and "anything else" not in last.lower()):
            break
        polite = True
        rest = lines[-1].strip()[: -len(sentences[-1])].rstrip()
        lines[-1:] = [rest] if rest else []
    return lines, polite


def _asks(lines: list[str]) -> bool:
    """Whether the end asks the person: a question, a question above a list of choices, a request."""
    if not lines:
        return False
    end = lines[-1].strip()
    bare = end.rstrip(_TRIM + "🙂😊🚀✨")
    if bare.endswith(("?", "\uff1f", "?:")) and not end.startswith("|"):
        return True
    if any(_ASKS_IN_JAPANESE.search(line[-400:]) for line in lines[-2:]):
        return True
    if _question_listed(lines):
        return True
    close = "\n".join(lines[-6:])[-700:]
    return bool(
        _CHOOSE.search(close) or _NEEDS_PERSON.search("\n".join(lines[-3:])[-400:]) or _DIRECTED.search(close)
    )


def _question_listed(lines: list[str]) -> bool:
    """A list item that asks, with at most one short remark behind it."""
    for line in lines[-1:-3:-1]:
        bare = line.strip().rstrip(_TRIM)
        if _CHOICE.match(line) and (bare.endswith("?") or re.search(r"¿[^?\n]{1,300}\?", bare)):
            return True
        if len(line) > 200 or _LIST_ITEM.match(line):
            return False
    return False


def _next_steps(prose: str) -> bool:
    """A heading such as "Next steps" with nothing behind its list but the end of the text."""
    last = last_match(_NEXT_STEPS, prose[-2500:])
    if last is None:
        return False
    behind = prose[-2500:][last.end() :]
    return not re.search(r"^#{1,6}[ \t]", behind, re.MULTILINE)


def _broken_off(line: str) -> Ending:
    """The last line, when it is a plain paragraph: an announcement nothing follows, or half a sentence."""
    if _LIST_ITEM.match(line):
        return "statement"
    sentences = _sentences(line)
    last = (sentences[-1] if sentences else line).strip(" \t*_")
    head, _, said = last.partition(": ")
    if (
        _ANNOUNCED.match(last)
        and not said.strip()
        and not _NOT_ANNOUNCED.search(head.rstrip(".:… "))
        and "?" not in last
    ):
        return "announced"
    if _ANNOUNCED_ELSEWHERE.match(last) and not (
        _WAITS_ELSEWHERE.search(last) or said.strip() or "?" in last
    ):
        return "announced"
    if last.endswith((",", ":", " (", " -", " —")):
        return "cut_off"
    return "cut_off" if len(line.split()) >= 4 and _DANGLING.search(last) else "statement"
