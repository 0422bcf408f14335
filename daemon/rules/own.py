"""What a person wrote themselves in a message, cut into sentences.

Left out is what they pasted or passed on: code, quotes, logs, commands with their output, tags of the host,
and whatever follows a sentence that says "here it is:". Pure, and bounded: of a long message only the head is
read, because people react first and go into detail afterwards.
"""

from __future__ import annotations

import re
from typing import Final

MAX_READ: Final = 4_000
MAX_SENTENCES: Final = 40
MAX_SENTENCE: Final = 400
_TAG: Final = re.compile(
    r"<([a-zA-Z][\w-]{0,40})\b[^<>]{0,200}>(?:[^<]{0,20000}</\1>)?|\[(?:Image|Pasted)\b[^\]\n]{0,300}\]"
)
_SHELL: Final = r"[$%#>»│|+@]{1,3}\s|\S{1,80}[:@]\S{1,200}[$#]\s"
_DIFF: Final = r"[-+]{1,3}\s?[\w{}()\[\]<>]{0,80}[;{}]\s*$"
_STAMPED: Final = r"\[?\d{1,4}[-:/.]\d\d[-:/.T ]\S*\s"
_TRACE: Final = (
    r"(?:at|in|from|file)\s[\"'\w./<(-]{1,300}[:(\"',]\s?(?:\d|line)|[\w.$]{0,80}(?:Error|Exception|Warning):"
)
_LABELLED: Final = (
    r"(?:npm|yarn|pnpm|error|warning|warn|info|debug|fatal|hint|usage|note|fail|failed"
    r"|pass)(?:\[\w*\])?(?::|\s(?:ERR|WARN))"
    r"|(?-i:FAIL|PASS|FAILED|PASSED|ERROR|WARN|INFO|DEBUG|FATAL)\b"
)
_PLACE: Final = r"[\w./\\-]{1,300}:\d+(?::\d+)?[:\s]"
_CODE: Final = (
    r"[{}\[\]();,<>/\\*=_~^-]+\s*$|[\w.-]{1,80}\s*[=:]\s*[\"'{\[(<\d]"
    r"|(?:import|export|const|let|var|def|class|return|function|public|private"
    r"|#include)\s[^\n]{1,300}[;:{(=]\s*$"
)
_MARKED: Final = "[\N{MULTIPLICATION SIGN}✕✗✓✔●]"
_PASTED: Final = re.compile(
    rf"\s*(?:{_SHELL}|{_DIFF}|{_STAMPED}|{_TRACE}|{_LABELLED}|{_PLACE}|{_CODE}|{_MARKED})", re.IGNORECASE
)
_FENCED: Final = re.compile(
    r"^[ \t]{0,3}(```|~~~)[^\n]*\n.*?(?:^[ \t]{0,3}\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL
)
BLOCK: Final = "\0"
_CODE_END: Final = re.compile(r"[;{}]\s*+$|=>\s*+(?:\{\s*+)?$")
_BULLET: Final = re.compile(r"^\s*(?:[-*•+]|\(?\d{1,3}[.)]|[a-z][.)])\s+")
_ENDS: Final = re.compile(
    r"(?<=[.!?…])[\"')\]]?\s+|(?<!\s)\s++[-\u2013—]{1,2}\s+|;\s+|(?<=[a-z])\.{2,}(?=[a-z])"
)
_ABBREVIATED: Final = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|resp|cf)\.$", re.IGNORECASE)
_HANDS_OVER: Final = re.compile(
    r"\b(?:this|these|that|following|below|here(?:'s| is| are)|says?|said|wrote|got|gives?|see|output|log"
    r"|error|message|text"
    r"|sentence|translate|comment|prompt)\b[^:]{0,60}:$"
    r"|^(?:a |the |this |here(?:'s| is) (?:a|the|my) |my )?(?:\w{2,12} ){0,2}(?:comment|feedback|error|log"
    r"|output|message|finding|issue|quote|report|review|ticket)s?"
    r"(?: \w{2,12}){0,3}:"
    r"|^(?:translate|rephrase|proofread|summari[sz]e|explain|review|parse|convert|classify)\b[^:]{0,80}:",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"[\"“«]([^\"“”«»\n]{1,400})[\"”»]|(?<![\w'])'([^'\n]{8,300})'(?!\w)")
_OURS: Final = re.compile(r"^[^\S\n]*+#{1,3} Reflection-\d", re.MULTILINE)
_HEADING: Final = re.compile(r"^#{1,4} \S", re.MULTILINE)
QUOTE: Final = "QUOTED"
CODE: Final = "CODED"
_CLIPPED: Final = re.compile(
    r"\b(are|is|was|were|do|does|did|have|has|had|ca|wo|would|could|should|must|need)nt\b"
)
_JOINED: Final = re.compile(
    r"\b(that|what|there|here|let|it(?=s (?:not|wrong|still|too|the|a|just)))s\b|\b(you|we|they)(re|ve)\b"
    r"|\b(i)(m|ve)\b"
)
_INLINE: Final = re.compile(r"`[^`\n]{1,300}`")


def sentences(text: str) -> list[str]:
    """The sentences that the person wrote themselves, in order. None of them is empty."""
    if _OURS.search(text[:400]) or len(_HEADING.findall(text[: 4 * MAX_READ])) > 1:
        return []  # our own feedback, copied, or a document
    said = (_FENCED.sub(BLOCK, _TAG.sub("\n", text[: 4 * MAX_READ])))[:MAX_READ]
    found: list[str] = []
    lines = [line for line in said.split("\n") if line.strip()]
    pasted = [bool(_PASTED.match(line) or _CODE_END.search(line)) for line in lines]
    for at, line in enumerate(lines):
        # a line between two pasted ones was pasted with them
        inside = 0 < at < len(lines) - 1 and pasted[at - 1] and pasted[at + 1]
        if pasted[at] or inside or line == BLOCK:
            continue
        for part in _cut(_BULLET.sub("", line)):
            over = _HANDS_OVER.search(part)
            found.append(part[: over.end()] if over else part)
            if over and lines[at + 1 : at + 2] != [BLOCK]:
                return found[:MAX_SENTENCES]  # what follows is what was handed over
    return found[:MAX_SENTENCES]


def _cut(line: str) -> list[str]:
    found: list[str] = []
    for part in (p.strip() for p in _ENDS.split(line)):
        if found and _ABBREVIATED.search(found[-1]):
            found[-1] += f" {part}"
        elif any(c.isalnum() for c in part) or "👍" in part or "🎉" in part:
            found.append(part[:MAX_SENTENCE])
    return found


def spoken(sentence: str) -> str:
    """A sentence as rules read it: small letters, plain apostrophes, one mark for what stands in quotes or in
    code. A word or two in quotes may be a name; more are somebody else's.
    """
    text = sentence.replace("\u2019", "'").replace("\u2018", "'")
    text = _INLINE.sub(CODE, text)
    text = _QUOTED.sub(QUOTE, text)
    text = _CLIPPED.sub(r"\1n't", " ".join(text.split()).casefold())
    return _JOINED.sub(_parted, text)


def _parted(found: re.Match[str]) -> str:
    """People leave apostrophes out: "thats", "youre"."""
    head, _, tail = (found[1] or found[2] or found[4]), None, (found[3] or found[5] or "s")
    return f"{head}'{tail}"
