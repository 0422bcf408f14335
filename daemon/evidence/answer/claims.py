"""What the final text says was done: "all tests pass", "committed", "opened PR #12" …, and what it admits.

Reads the end of the text, sentence by sentence. Wishes, conditions, plans, questions and negations are no
claims. Today only ``admissions`` makes rows; no rule compares the claims with the calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ...core.evidence import Topic
from ..words import gives_reason, sentences

MAX_CLAIMS: Final = 10
_TESTS: Final = r"(?:tests?|test ?suite|suite|specs?|pytest|jest|vitest)"
_WORDINGS: Final[tuple[tuple[Topic, str], ...]] = (
    (
        "tests",
        rf"\b{_TESTS}\b[^.;\n]{{0,30}}?\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|(?:is|are|all) green"
        rf"|run(?:s)? green)\b"
        rf"|\b(?:all|\d+(?:/\d+)?) (?:\w+ ){{0,2}}?{_TESTS} (?:now )?(?:pass|green|passed|ok)\b"
        r"|\b\d+ (?:tests? )?pass(?:ed|ing)\b|\ball green\b|\btests?:? ?✅|✅ ?(?:all )?tests?\b"
        r"|\bran (?:all )?(?:the )?(?:full )?(?:unit )?(?:tests?|test suite)\b"
        r"|\b(?:alle )?tests? (?:laufen|bestehen|sind grün)\b|\btests passent\b"
        r"|\b(?:tests|pruebas) pasan\b",
    ),
    (
        "build",
        r"\bbuild\b[^.;\n]{0,20}?\b(?:pass(?:es|ed)?|succeed(?:s|ed)?|is (?:green|clean|fine)|works)\b"
        r"|\b(?:builds|compiles)\b[^.;\n]{0,20}?\b(?:clean(?:ly)?|fine|successfully"
        r"|without (?:errors|warnings))\b",
    ),
    (
        "lint",
        r"\b(?:lint(?:er|ing)?|eslint|ruff|mypy|clippy|pyright|tsc|type[- ]?check\w*)\b[^.;\n]{0,30}?"
        r"\b(?:pass(?:es|ed)?|(?:is|are|comes back|runs) (?:clean|green|happy)|clean)\b"
        r"|\bno (?:lint|type|linting) errors\b",
    ),
    (
        "commit",
        r"\b(?:i(?:'ve| have)? |changes? (?:are|were|have been) |and |all |everything )committed\b"
        r"|^committed\b|\bcommit(?:ted)? (?:as )?`?[0-9a-f]{7,40}\b",
    ),
    ("push", r"\b(?:i(?:'ve| have)? |are |were |been |and )pushed\b|^pushed\b"),
    (
        "pr",
        r"\b(?:opened|created|submitted|raised|updated)\b[^.;\n]{0,20}\b(?:PR|pull request|MR"
        r"|merge request)\b"
        r"|\b(?:PR|pull request|merge request)\b[^.;\n]{0,30}\b(?:is (?:open|up|ready)|(?:has been"
        r"|was) (?:opened|created))\b",
    ),
    (
        "ci",
        r"\b(?:CI|pipeline|all checks|workflow)\b[^.;\n]{0,20}\b(?:pass(?:es|ed)?|(?:is|are) green"
        r"|succeeded)\b",
    ),
    (
        "deploy",
        r"\b(?:i(?:'ve| have)? |is |was |been |and |now )(?:deployed|published)\b|^(?:deployed"
        r"|published)\b",
    ),
    (
        "browser",
        r"\b(?:verified|checked|tested|confirmed)\b[^.;\n]{0,40}\b(?:in (?:the|a|my) browser"
        r"|manually|by hand|end[- ]to[- ]end|locally)\b",
    ),
)
_CLAIMS: Final = tuple((topic, re.compile(pattern, re.IGNORECASE)) for topic, pattern in _WORDINGS)
_NO_CLAIM: Final = re.compile(
    r"\b(?:should|would|could|might|may|will|cannot|can't|couldn't|didn't|wasn't|weren't|haven't|hasn't|isn't|aren't"
    r"|not|never|once|unless|until|after you|before you|to (?:verify|check|confirm|run)|please|you can"
    r"|let me|i'll"
    r"|if|whether|when|expect(?:ed)? to|fail(?:s|ed|ing)?|except|but \d|make sure|ensure|needs? to|nicht"
    r"|previously)\b"
    r"|\b[1-9]\d* fail|\?$",
    re.IGNORECASE,
)
_ADMITS: Final = re.compile(
    r"\b(?:(?:i )?(?:haven't|have not|didn't|did not|hasn't been|have not been|has not been|wasn't"
    r"|was not)(?: \w+){0,1} "
    r"(?:yet )?(?:implement\w*|add\w*|writ\w+|wrote|run|ran|updat\w+|finish\w*|complet\w+|get to"
    r"|gotten to|got to|done|do|creat\w+"
    r"|test\w*|commit\w*|push\w*|migrat\w+|convert\w*|fix\w*|touch\w* on|start\w*|wired?|port\w*)"
    r"|(?:is|are) (?:still )?(?:not|only) (?:yet )?(?:implemented|done|finished|converted|migrated"
    r"|complete|partially|wired)"
    r"|(?:still|yet) (?:to do|to be done|needs? to be|need to be|missing|open|outstanding|pending|left)"
    r"|remains? (?:to be done|to do|open|unfinished)|left (?:to do|undone|out|as (?:a )?(?:todo|stub"
    r"|placeholder|exercise))"
    r"|(?:a |just a |only a )(?:placeholder|stub)|stubbed(?: out)?|not (?:yet )?(?:implemented|started|done)"
    r"|(?:in|for|as) a follow-?up|for a (?:later|future|second|separate) (?:step|pass|pr|session|iteration)"
    r"|(?:will|can|could) (?:do|be done|follow|come|tackle)[^.\n]{0,30}\b(?:later|next|afterwards"
    r"|separately|in the next)"
    r"|(?:raises?|throws?|returns?) `?(?:a )?(?:NotImplementedError|unimplemented)|for the time being"
    r"|go(?:es)? beyond what is|noch nicht|nicht (?:umgesetzt|implementiert|erledigt|fertig))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement about the work; ``text`` is its sentence."""

    topic: Topic
    text: str


def claims(text: str) -> tuple[Claim, ...]:
    """The claims, one per topic, the first wording of each."""
    found: dict[Topic, Claim] = {}
    for sentence in sentences(text):
        if _NO_CLAIM.search(sentence):
            continue
        for topic, pattern in _CLAIMS:
            if topic not in found and pattern.search(sentence):
                found[topic] = Claim(topic, sentence)
    return tuple(found.values())[:MAX_CLAIMS]


def admissions(text: str) -> tuple[str, ...]:
    """Sentences that say that a part is not done and give no reason for it."""
    found = [s for s in sentences(text) if _ADMITS.search(s) and not gives_reason(s) and not s.endswith("?")]
    return tuple(found[:MAX_CLAIMS])
