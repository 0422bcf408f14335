"""What the calls left undone, whatever the text says: stand-ins, failed edits, killed commands.

Rows only; never reads a file. Where the text may explain what it left, a row is closed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import sentences
from daemon.core.evidence import Row
from daemon.core.look import Look, short
from daemon.core.requirements import words

if TYPE_CHECKING:
    from collections.abc import Iterator

_WANTS_STUBS: Final = re.compile(
    r"\b(?:skeleton|scaffold\w*|stubs?|stubbed|placeholders?|interfaces?|abstract|not[ _]?implemented\w*"
    r"|signatures?|boilerplate"
    r"|dummy|mock(?:ed|s)?|todos?|leave (?:it|them|the body) (?:empty|open)|no-?op|grundgerüst"
    r"|platzhalter|squelette|esqueleto)\b",
    re.IGNORECASE,
)
_TELLS: Final = re.compile(
    r"\b(?:fail\w*|could(?:n't| not)|can(?:'t|not)|unable|not (?:found|there|present|needed|necessary"
    r"|changed|touched)|reject\w*|error\w*"
    r"|already|skipped|left|unchanged|wasn't|did(?:n't| not)|doesn't|is(?:n't| not)|no longer|instead"
    r"|no change"
    r"|konnte|nicht|fehl\w*|impossible|échou\w*|n'a pas|no se pudo|falló|não|falhou)\b",
    re.IGNORECASE,
)
_STOPPED: Final = re.compile(
    r"\b(?:time[sd]?[- ]?out|killed|interrupted|terminated|abort\w*|cut short|stopped|limit|incomplete"
    r"|partial\w*|not finish\w*|did(?:n't| not)"
    r"|could(?:n't| not)|unable|epoch \d+ of|background|zeitlimit|abgebrochen|interrompu\w*"
    r"|interrumpid\w*|interrompid\w*|too long|still running)\b",
    re.IGNORECASE,
)


def undone(look: Look) -> list[Row]:
    """The rows of kind ``unmet`` that the calls prove, without ids; closed where the text may explain."""
    if look.denied:
        return []
    return [*_stubs(look), *_failed_edits(look), *_killed(look)][:6]


def _stubs(look: Look) -> Iterator[Row]:
    asked = words(look.said, 4000)
    wanted = bool(_WANTS_STUBS.search(look.said)) or look.wants == "plan"
    for path, marks in look.found.stubs.items():
        for mark in sorted(marks, key=lambda s: not s.elided)[:1]:
            sure = not wanted and (mark.elided or bool(mark.words & asked))
            what = "in place of the code" if mark.elided else "in place of what was asked for"
            name = path.rsplit("/", 1)[-1]
            text = f'{name} was written with "{short(mark.line)}" {what}'
            if sure:
                yield Row("", "unmet", text, open=True, detail=text)


def _failed_edits(look: Look) -> Iterator[Row]:
    """An edit that failed, and its file was never changed after it; closed where the text speaks of it."""
    found = look.found
    if found.delegated or found.blind_writes or look.ending == "question":
        return
    for edit in {e.path: e for e in found.failures.edits}.values():
        name = edit.path.rsplit("/", 1)[-1]
        if any(name in error for error in look.errors):
            continue  # the row of that call says it
        told = any(_TELLS.search(s) for s in sentences(look.final))
        sure = not told and not edit.doubtful and bool(found.writes)
        yield Row(
            "",
            "unmet",
            f"the edit of {short(edit.path)} failed and was not done again",
            open=sure,
            detail=f"The edit of {name} failed and was not done again",
        )


def _killed(look: Look) -> Iterator[Row]:
    """A command that was killed and not run again; open where the request names it and the text doesn't."""
    asked = words(look.said, 4000)
    told = any(_STOPPED.search(s) for s in sentences(look.final))
    for script in look.found.failures.killed[-2:]:
        shared = len(words(script) & asked)
        yield Row(
            "",
            "unmet",
            f"`{short(script)}` was stopped before its end and not run again",
            open=shared >= 2 and not told and look.ending != "question",
            detail=f"`{short(script)}` was stopped before its end",
        )
