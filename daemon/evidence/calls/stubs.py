"""Written code that stands in for work: "not implemented", empty bodies, "… rest of the file unchanged".

Looks at one edit at a time. Whether such a stand-in was asked for, a model reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from .weakened import is_test
from .writes import is_prose

MAX_TEXT: Final = 20_000  # characters of one edit
MAX_MARKS: Final = 20  # of one edit
_COMMENT: Final = r"(?:#|//|--|;|%|/\*|<!--|\{/\*|\"\"\"|\*)"
_STUB: Final = re.compile(
    r"raise NotImplementedError|\b(?:todo|unimplemented)!\("
    r"|throw new (?:Error\(['\"`](?:not (?:yet )?implemented|TODO)"
    r"|NotImplemented\w*|UnsupportedOperationException\()|panic\(\"(?:not implemented|TODO)"
    r"|\bTODO\(\"|\bfatalError\(\"(?:not|un)[ -]?implemented"
    r"|\b(?:TODO|FIXME)\b[^\n\w]{0,6}(?:\(\w{1,20}\)[: ]{0,2})?[^\n]{0,40}?\b(?:implement|finish|handl"
    r"|support|wire|complete"
    r"|fill in|umsetzen|implementieren|implémenter|implementar)\w*"
    rf"|{_COMMENT}[ ]?(?:this is )?(?:an? |just a )?(?:placeholder|stub\b|dummy implementation"
    rf"|not (?:yet )?implemented"
    r"|noch nicht implementiert|pas encore implémenté|sin implementar|ainda não implementado)"
    r"|\"(?:not (?:yet )?implemented|coming soon)\"",
    re.IGNORECASE,
)
_EMPTY_BODY: Final = re.compile(
    r"^[ \t]{0,24}(?:async )?def (?!__)\w{1,60}\([^()\n]{0,200}\)[^:\n]{0,60}:[ ]?\n"
    r"(?:[ \t]{1,32}(?:#[^\n]{0,120}|\"\"\"[^\"\n]{0,200}\"\"\")\n){0,2}[ \t]{1,32}(?:pass"
    r"|\.\.\.)[ \t]{0,4}(?:#[^\n]{0,120})?$",
    re.MULTILINE,
)
_ELIDED: Final = re.compile(
    rf"^[ \t]{{0,40}}{_COMMENT}[ \t]{{0,4}}(?:(?:\.\.\.|…)[^\n]{{0,40}}?\b(?:rest|existing|remaining"
    rf"|remainder|other|previous|unchanged"
    r"|same as|as before|omitted|truncated|original|unverändert|bisherig\w*|reste|existant|inchangé|resto"
    r"|existente)\b"
    r"|(?:rest|remainder|remaining (?:code|functions|methods|part))\b[^\n]{0,40}\b(?:unchanged|same"
    r"|omitted|as before|stays)\b"
    r"|(?:existing|previous|original) (?:code|functions|methods|content"
    r"|implementation)\b[^\n]{0,30}(?:\.\.\.|…|\bhere\b|unchanged|\bstays\b))"
    r"[^\n]{0,60}$",
    re.MULTILINE | re.IGNORECASE,
)
_HOLLOW: Final = re.compile(  # a function whose body is a remark, with or without an empty answer
    r"\b(?:func|fn|fun|function|public|private|protected|internal|static|async|suspend|export|void)\b[^\n{};=]{0,120}?"
    r"\b(?P<name>[A-Za-z_]\w{1,60})\s{0,2}\([^()\n{}]{0,200}\)[^\n{};=]{0,80}\{[ \t]{0,8}\n?"
    r"(?:[ \t]{0,40}(?://|#|/\*)[^\n]{3,160}\n){1,3}"
    r"[ \t]{0,40}(?:(?:return )?(?:nil|null|None|undefined|false"
    r"|0|\"\"|''|\[\]|\{\}|Ok\(\(\)\)|Optional\.empty\(\))?;?\s{0,40})\}"
)
_HOLLOW_PY: Final = re.compile(
    r"^[ \t]{0,24}(?:async )?def (?P<name>\w{2,60})\([^()\n]{0,200}\)[^:\n]{0,60}:[ ]?\n"
    r"(?:[ \t]{1,32}\"\"\"[^\"\n]{0,200}\"\"\"\n)?(?:[ \t]{1,32}#[^\n]{3,160}\n){1,3}"
    r"[ \t]{1,32}return(?: (?:None|0|0\.0|\"\"|''|\[\]|\{\}|False|True|\(\)))?[ \t]{0,8}(?:\n|$)",
    re.MULTILINE,
)
_MEANT: Final = re.compile(  # empty on purpose
    r"\b(?:no-?op|nothing|intentional\w*|deliberate\w*|on purpose"
    r"|ignor\w*|unused|empty|default|not (?:needed|found|used"
    r"|supported|applicable)|never|no longer|absichtlich|leer|rien|vide|nada|vacío)\b",
    re.IGNORECASE,
)
_MARKS: Final = (
    "mplement", "MPLEMENT", "todo!", "TODO", "Unsupported", "FIXME", "laceholder", "stub", "Stub", "dummy",
    "pass\n", "...", "…", "oming soon", "est of", "xisting code", "nchanged",
)  # fmt: skip
_ABSTRACT: Final = re.compile(
    r"\bABC\b|abstractmethod|\babstract\b|\bProtocol\b|@overload|\binterface\b|class \w{0,40}(?:Base"
    r"|Abstract|Mock|Fake"
    r"|Dummy|Null|Noop)|class (?:Base|Abstract|Mock|Fake|Dummy|Null|Noop|I[A-Z])|subclass|override"
)


@dataclass(frozen=True, slots=True)
class Stub:
    """One stand-in: ``line`` as written. ``elided``: code was cut away. ``hollow``: a body that is a
    remark.
    """

    path: str
    line: str
    elided: bool = False
    hollow: bool = False


def stubs(path: str, old: str, new: str) -> tuple[Stub, ...]:
    """The stand-ins that an edit put in; none in documents and tests, nor in abstract classes."""
    if is_prose(path) or is_test(path) or not any(mark in new for mark in _MARKS):
        return ()
    text = new[:MAX_TEXT]
    found: list[Stub] = []
    for pattern, elided in ((_ELIDED, True), (_STUB, False), (_EMPTY_BODY, False)):
        if not elided and _ABSTRACT.search(text):
            break
        for m in pattern.finditer(text):
            start = text.rfind("\n", 0, m.start()) + 1 if m[0][:1] != "\n" else m.start()
            end = text.find("\n", m.end())
            line = text[start : end if end >= 0 else len(text)].strip()[:200]
            if line and line not in old and len(found) < MAX_MARKS:
                found.append(Stub(path, line, elided))
    return tuple(found)


def hollow(path: str, old: str, new: str) -> tuple[Stub, ...]:
    """Functions whose whole body is a remark."""
    if is_prose(path) or is_test(path) or not any(mark in new for mark in ("//", "#", "/*")):
        return ()
    text, found = new[:MAX_TEXT], list[Stub]()
    if _ABSTRACT.search(text):
        return ()
    for m in (*_HOLLOW.finditer(text), *_HOLLOW_PY.finditer(text)):
        line = next((part.strip() for part in m[0].split("\n")[1:] if part.strip()), m["name"])[:200]
        if not _MEANT.search(m[0]) and line not in old and len(found) < MAX_MARKS:
            found.append(Stub(path, line, hollow=True))
    return tuple(found)
