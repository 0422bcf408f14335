"""Values that the request names, against the values written: a setting with another number, a run beside the
new tests.

Only what is plain: a name as it stands in code, one number asked of it, another one written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import gives_reason_in, sentences
from daemon.core.evidence import Row
from daemon.core.look import Look, short
from daemon.core.moves import base, written
from daemon.core.weakened import is_test
from daemon.core.writes import is_prose

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINES: Final = 8_000
_ASKED: Final = re.compile(
    r"(?<![\w./-])(?P<name>[A-Za-z]\w{0,60}_\w{1,60}|[a-z]{1,30}[A-Z]\w{1,60}|[A-Z]{2}[A-Z_]{1,60})`?"
    r"(?: ?[=:] ?| (?:to|auf|à|a|at|на|op|til) | (?:should|must|soll|doit|debe) (?:be|sein|être|ser) )`?"
    r"(?P<value>\d{1,9}(?:\.\d{1,4})?)(?![\w.]*\w)",
)
_RANGE: Final = re.compile(
    r"\b(?:least|most|max|min|minimum|maximum|up|between|from|mindestens|höchstens|moins|plus|menos|más|around|about|ca)\b",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\d_]{0,11}(?:\.\d{1,4})?(?![\w.]*\w)")


def values(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, without ids."""
    if look.found.delegated or not look.found.writes:
        return []
    return [*_other_value(look), *_tests_beside(look)]


def _other_value(look: Look) -> Iterator[Row]:
    """A setting for which one number was asked and only another one was written."""
    asked = list(_ASKED.finditer(look.said[:6000]))
    if not asked:
        return
    texts = [(p, new[:MAX_LINES]) for p, _, new in written(look.moves) if not is_prose(p)]
    numbers = {_plain(n) for n in _NUMBER.findall(look.said[:6000])}
    everywhere = {_plain(n) for _, new in texts for n in _NUMBER.findall(new)}
    everywhere |= {_plain(n) for m in look.moves if m.acts for n in _NUMBER.findall(m.script[:4000])}
    for m in asked:
        value = _plain(m["value"])
        around = look.said[max(0, m.start() - 25) : m.end() + 12]
        if value in everywhere or _RANGE.search(around) or look.found.blind_writes:
            continue
        name = re.compile(
            rf"(?<![\w-]){re.escape(m['name'])}(?![\w-])[\"'`]?[^\n\w]{{1,6}}(?P<value>{_NUMBER.pattern})",
            re.IGNORECASE,
        )
        found = {_plain(hit["value"]) for _, new in texts for hit in name.finditer(new)}
        if not found or found & numbers or any(_unit(value, other) for other in found):
            continue
        told = any(m["name"] in s and gives_reason_in(s) for s in sentences(look.final))
        text = f"the request wants {short(m[0])}; {m['name']} was written as {min(found):g}"
        source = next((i for i, r in look.live if m["name"] in r.text), look.first())
        yield Row(
            "",
            "unmet",
            text,
            open=not told,
            detail=f"{short(m[0])} was asked for",
            cites=(source,) if source else (),
        )
        return


def _plain(number: str) -> float:
    return float(number.replace("_", "") or 0)


def _unit(a: float, b: float) -> bool:
    """Whether one may be the other in another unit."""
    low, high = sorted((a, b))
    return low == 0 or high % low == 0


def _tests_beside(look: Look) -> Iterator[Row]:
    """New tests, written last, where every run after them names other files."""
    if not {"tests", "new_tests"} & set(look.requested):
        return
    new = [p for p, old, text in written(look.moves) if is_test(p) and not old and text]
    runs = [r for r in look.found.runs.all if r.check.kind == "test" and r.at > look.found.last_code]
    if not new or not runs or look.found.testish > look.found.last_code:
        return
    paths = [p.split("::", 1)[0] for r in runs for p in r.check.paths]
    if not all(r.check.paths for r in runs) or not all("/" in p or "." in p for p in paths):
        return
    missed = [p for p in new if not any(_reaches(scope, p) for scope in paths)]
    if len(missed) == len(new):
        name = base(new[-1])
        text = f"the new tests in {name} are in the scope of no run after them"
        told = any(name in s and gives_reason_in(s) for s in sentences(look.final))
        yield Row(
            "", "unmet", text, open=not told, detail=f"The new tests in {name} were not run", topic="tests"
        )


def _reaches(scope: str, path: str) -> bool:
    scope = scope.removeprefix("./").removesuffix("/...").rstrip("/*")
    return (
        not scope
        or scope == "."
        or f"/{scope}/" in f"/{path}/"
        or path.endswith(scope)
        or base(path).startswith(base(scope))
    )
