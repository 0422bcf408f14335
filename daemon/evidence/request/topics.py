"""What a clause of a request asks for or rules out: tests, a commit, a pull request …

Works on one clause at a time (``requirements`` cuts them) and believes only plain wording. A clause that is
conditional, optional or a question asks for nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ...core.evidence import CheckKind, Topic
from ..calls.actions import Check
from ..calls.commands import read_script
from .topic_words import ASKS, FORBIDS, ORDERED, TEST

MAX_CLAUSE: Final = 400  # characters
_FOREIGN_NOT: Final = re.compile(
    r"\b(?:nichts?|kein\w{0,2}|ohne|ne|pas|sans|rien|sin|não|nem|sem)\b|\bn'\w", re.IGNORECASE
)
_REMINDER: Final = re.compile(
    r"\b(?:don'?t|do not|never)\s+(?:forget|skip|omit|miss|leave out)\b", re.IGNORECASE
)
_PROHIBITS: Final = re.compile(
    r"^(?:please |and |but |also |just |so |then )*(?:don'?t|do not|never|no |without|avoid|skip|you must not"
    r"|nicht|kein|ohne|ne\b|sans\b|sin\b|sem\b|não\b|nem\b|no (?:hagas|toques|cambies|subas)\b|leave\b"
    r"|stop\b)",
    re.IGNORECASE,
)
_WITHHELD: Final = re.compile(  # asked only under a condition, as a wish, or said about someone else
    r"^(?:and |but |then )?(?:if|unless|maybe|perhaps|ideally|optionally|later|eventually)\b"
    r"|\b(?:you (?:may|can|could)"
    r"|feel free|if you (?:want|like|have time)|if possible|optional(?:ly)?|nice to have|i(?:'ll| will)"
    r"|we(?:'ll| will)"
    r"|unless|already|i've|i have|yesterday|you (?:just )?(?:said|ran|did|committed|pushed))\b",
    re.IGNORECASE,
)
_DESCRIBES: Final = re.compile(
    r"(?:the|a|an|this|it|our|my|its|each|every|there|all|users?|(?!(?:you|we|i|please|always|then"
    r"|and)\b)[\w-]{1,30}"
    r" (?:should|must|needs? to|has to|will|can))\b(?! (?:you|done|ready)\b)",
    re.IGNORECASE,
)
_TESTS_MUST_PASS: Final = re.compile(
    rf"\b{TEST}\b[^.;\n]{{0,20}}\b(?:must|should|ha(?:ve|s) to|needs? to)\b[^.;\n]{{0,20}}"
    rf"\b(?:pass|(?:be|stay|remain|keep|are) (?:\w{{1,10}} )?green|succeed)",
    re.IGNORECASE,
)
_ASKS_POLITELY: Final = re.compile(
    r"^(?:please |and |then |also |now |ok(?:ay)?,? )*(?:can|could|would|will) you\b", re.IGNORECASE
)
_EXCEPTION: Final = re.compile(
    r"\s(?:unless|until|without)\s(?:i\b|asked|explicit\w*|my\b|permission|asking|approval|being|told"
    r"|you(?:'re| are)"
    r"|the user|it is|requested|instructed).*$",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"`([^`\n]{1,200})`")
_WANTS_RUN: Final = re.compile(
    rf"{ORDERED}(?:run|execute)\b|\b(?:must|should|ha(?:s|ve) to|needs? to) (?:still |all |always )?"
    rf"(?:pass|succeed|(?:be|stay|remain) (?:green|clean))\b"
    rf"|\b(?:keep|until|so that)\b[^;\n]{{0,60}}\b(?:pass(?:es)?|green|clean|succeeds?)\b",
    re.IGNORECASE,
)
_MUST_PASS: Final = re.compile(  # "dotnet test must stay green": a command typed without quotes
    r"(?:^|[.;,:(] ?|\b(?:and|but|that|while|und|et|y|e|mais|aber) )(?:the |our |das |der |die )?"
    r"(?P<cmd>[\w./:@-]{2,40}(?: [\w./:=@-]{1,30}){0,3}?) (?:must|should|ha(?:s|ve) to|needs? to|muss"
    r"|müssen|soll\w{0,2}|doi(?:t|vent)|deben?|tienen? que|devem?|tem que)\b[^.;\n]{0,24}?"
    r"\b(?:pass|succeed|green|clean|exit 0|grün|durchlaufen|durchgehen|bestehen|passer|verte?s?|pasar"
    r"|verdes?|passar)\b",
    re.IGNORECASE,
)
_TOPIC_OF: Final[dict[CheckKind, Topic]] = {"test": "tests", "build": "build", "lint": "lint"}


@dataclass(frozen=True, slots=True)
class Said:
    """The topics of one clause. ``negative``: the clause says what not to do."""

    asks: frozenset[Topic] = frozenset()
    forbids: frozenset[Topic] = frozenset()
    negative: bool = False


@lru_cache(maxsize=512)
def read_clause(clause: str, *, sentence_forbids: bool = False) -> Said:
    """What ``clause`` asks for and rules out. ``sentence_forbids``: the words before it, joined by "and",
    forbade something, so that a bare "push" may still belong to them.
    """
    text = _EXCEPTION.sub("", " ".join(clause[:MAX_CLAUSE].replace("\u2019", "'").split()))
    reminded = bool(_REMINDER.search(text))
    forbids = {t for t, pattern in FORBIDS.items() if not reminded and pattern.search(text)}
    negative = not reminded and bool(_PROHIBITS.search(text))
    if negative or (text.endswith("?") and not _ASKS_POLITELY.search(text)) or _WITHHELD.search(text):
        return Said(frozenset(), frozenset(forbids), negative)
    if _DESCRIBES.match(text):  # says what the program does, not what to do
        must_pass = "tests" not in forbids and _TESTS_MUST_PASS.search(text)
        obliged = _commanded(text)
        if must_pass:
            obliged.add("tests")
        return Said(frozenset(obliged - forbids), frozenset(forbids), negative)
    asks = {t for t, pattern in ASKS.items() if t not in forbids and pattern.search(text)}
    asks |= _commanded(text) - forbids
    if _FOREIGN_NOT.search(text):  # what it rules out is known only for the plainest wordings
        asks = set()
    if sentence_forbids and len(text.split()) <= 3:
        return Said(frozenset(), frozenset(forbids | (asks & {"commit", "push", "pr", "deploy"})), negative)
    return Said(frozenset(asks), frozenset(forbids), negative)


def _commanded(text: str) -> set[Topic]:
    """The kinds of the commands that the clause wants run: "run `make check`"."""
    scripts = [m["cmd"] for m in _MUST_PASS.finditer(text)]
    if _WANTS_RUN.search(text):
        scripts += [m[1] for m in _QUOTED.finditer(text)]
    kinds = {a.kind for script in scripts for a in read_script(script) if isinstance(a, Check)}
    return {_TOPIC_OF[kind] for kind in kinds}


def wording(topic: Topic) -> str:
    """The topic as a request names it."""
    return {
        "tests": "to run the tests",
        "new_tests": "for tests",
        "build": "for a build",
        "lint": "for a lint or type check",
        "commit": "for a commit",
        "push": "for a push",
        "pr": "for a pull request",
        "ci": "for CI to pass",
        "deploy": "for a deployment",
        "docs": "for documentation",
        "changelog": "for a changelog entry",
        "browser": "for a try by hand",
    }[topic]
