"""What the calls themselves left unfinished: stand-ins for code, failed edits, killed commands.

Never reads a file. Where the final text may explain what it left, the row is closed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...core.evidence import Row
from ..calls.writes import file_name
from ..words import sentences, shorten, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts import Facts

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


def unfinished_calls(facts: Facts) -> list[Row]:
    """The rows of kind ``unmet`` that the calls prove, without ids; closed where the text may explain."""
    if facts.denied:
        return []
    return [*_stubs(facts), *_failed_edits(facts), *_killed(facts)][:6]


def _stubs(facts: Facts) -> Iterator[Row]:
    asked = words(facts.said, 4000)
    wanted = bool(_WANTS_STUBS.search(facts.said)) or facts.wants == "plan"
    for path, marks in facts.work.stubs.items():
        for mark in sorted(marks, key=lambda s: not s.elided)[:1]:
            sure = not wanted and (mark.elided or bool(mark.words & asked))
            what = "in place of the code" if mark.elided else "in place of what was asked for"
            name = file_name(path)
            text = f'{name} was written with "{shorten(mark.line)}" {what}'
            if sure:
                yield Row("", "unmet", text, open=True, detail=text)


def _failed_edits(facts: Facts) -> Iterator[Row]:
    """An edit that failed, and its file was never changed after it; closed where the text speaks of it."""
    work = facts.work
    if work.delegated or work.blind_writes or facts.ending == "question":
        return
    for edit in {e.path: e for e in work.failures.edits}.values():
        name = file_name(edit.path)
        if any(name in error for error in facts.errors):
            continue  # the row of that call says it
        told = any(_TELLS.search(s) for s in sentences(facts.final))
        sure = not told and not edit.doubtful and bool(work.writes)
        yield Row(
            "",
            "unmet",
            f"the edit of {shorten(edit.path)} failed and was not done again",
            open=sure,
            detail=f"The edit of {name} failed and was not done again",
        )


def _killed(facts: Facts) -> Iterator[Row]:
    """A command that was killed and not run again; open where the request names it and the text doesn't."""
    asked = words(facts.said, 4000)
    told = any(_STOPPED.search(s) for s in sentences(facts.final))
    for script in facts.work.failures.killed[-2:]:
        shared = len(words(script) & asked)
        yield Row(
            "",
            "unmet",
            f"`{shorten(script)}` was stopped before its end and not run again",
            open=shared >= 2 and not told and facts.ending != "question",
            detail=f"`{shorten(script)}` was stopped before its end",
        )
