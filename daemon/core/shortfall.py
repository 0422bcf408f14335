"""Where the work falls short of what the request measures or names: limits, old names, commands, findings.

Rows only; never reads a file. A row is ``open`` only where the request is plain and the text gives no reason.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import gives_reason_in, sentences
from daemon.core.evidence import Row
from daemon.core.look import Look, short
from daemon.core.requirements import keys
from daemon.core.writes import is_prose

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNITS: Final = {
    "%": ("%", 1.0),
    "percent": ("%", 1.0),
    "prozent": ("%", 1.0),
    "ms": ("time", 1.0),
    "s": ("time", 1e3),
    "sec": ("time", 1e3),
    "second": ("time", 1e3),
    "seconds": ("time", 1e3),
    "sekunden": ("time", 1e3),
    "kb": ("size", 1.0),
    "mb": ("size", 1e3),
    "gb": ("size", 1e6),
    "fps": ("fps", 1.0),
}
_FIGURE: Final = (
    rf"(\d{{1,9}}(?:[.,]\d{{1,4}})?) ?({'|'.join(sorted(_UNITS, key=len, reverse=True))})(?![\w])"
)
_FIGURES: Final = re.compile(_FIGURE, re.IGNORECASE)
_AT_MOST: Final = re.compile(
    r"(?:\b(?:under|below|less than|at most|no more than|max(?:imum)?(?: of)?|within|unter|höchstens|maximal"
    rf"|sous|moins de|menos de|abaixo de|no máximo)|<=?|≤) ?{_FIGURE}",
    re.IGNORECASE,
)
_AT_LEAST: Final = re.compile(
    r"(?:\b(?:at least|above|over|more than|minimum(?: of)?|mindestens|über|au moins|plus de|al menos"
    rf"|más de|pelo menos|mais de)|>=?|≥) ?{_FIGURE}",
    re.IGNORECASE,
)
_OLD_NAME: Final = re.compile(
    r"\b(?i:rename|replace|get rid of|remove|umbenenn\w*|benenn\w*|ersetz\w*|entfern\w*|renomm\w*|remplac\w*"
    r"|supprim\w*|renombr\w*|reemplaz\w*|elimin\w*|renomei\w*|substitu\w*)\b"
    r"(?: (?:the|all|every|old|legacy|deprecated|function|class|method|type|variable|calls?(?: to)?|of|uses?"
    r"|usages?|occurrences?|die|den|das|alle|la|le|les|el|los|las|os?|as|tod[oa]s|toutes|tous|appels?)){0,4} "
    r"(?:`(?P<quoted>[\w.-]{3,60})`|\b(?P<bare>[a-z]+[A-Z]\w{1,50}|[A-Za-z]+_\w{1,50}"
    r"|[A-Z][a-z]+[A-Z]\w{1,50}))",
)
_STAYS: Final = re.compile(
    r"\b(?:still|left|kept|keep|remain\w*|only|except|apart|besides|other than|stays?|alias\w*|deprecat\w*"
    r"|histor\w*|comment\w*|noch|bleib\w*|reste\w*|queda\w*|fica\w*)\b",
    re.IGNORECASE,
)
_HIT: Final = re.compile(r"^(?P<path>[\w./@+-]{1,200}\.\w{1,8}):(?:\d{1,6}:)?", re.MULTILINE)
_COMMAND: Final = re.compile(
    r"\b(?:run|execute|call|führe?|lance[rz]?|exécute[rz]?|ejecuta|corre|execut[ae]|rod[ae])\b"
    r"[^.;`\n]{0,20}`(?P<command>[^`\n]{3,120})`",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(r"\b(?:if|when|whenever|after i|wenn|falls|si|se|quand)\b", re.IGNORECASE)
_CLEAN: Final = re.compile(
    r"\b(?:lint\w*|eslint|ruff|mypy|pyright|tsc|clippy|rubocop|phpstan|pylint|flake8|typ(?:e|ing)[- ]?\w*"
    r"|warnings?|findings?|errors?)\b",
    re.IGNORECASE,
)
_HUSH_WANTED: Final = re.compile(
    r"\b(?:ignor\w*|suppress\w*|silenc\w*|disabl\w*|noqa|allow\w*|baseline|unterdrück\w*|supprim\w*)\b",
    re.IGNORECASE,
)
_HUSH_TOLD: Final = re.compile(
    r"ignor|suppress|silenc|disabl|noqa|nolint|allow|baseline|unterdrück", re.IGNORECASE
)


def shortfall(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, without ids."""
    if look.wants in {"plan", "answer"} or look.denied or look.ending == "question":
        return []
    return [*_limits(look), *_hits(look), *_commands(look), *_hushed(look), *_last_failed(look)][:6]


def _row(text: str, detail: str, source: str = "", *, is_open: bool = True) -> Row:
    return Row("", "unmet", text, open=is_open, detail=detail, cites=(source,) if source else ())


def _limits(look: Look) -> Iterator[Row]:
    """A limit in figures that every figure of the final text misses."""
    for source, r in look.live:
        for pattern, most in ((_AT_MOST, True), (_AT_LEAST, False)):
            if not (m := pattern.search(r.text)) or not look.found.writes:
                continue
            kind, limit = _value(m[1], m[2])
            told = [
                (value, s)
                for s in sentences(look.final)
                for found in _FIGURES.finditer(s)
                for k, value in (_value(found[1], found[2]),)
                if k == kind and value != limit
            ]
            if told and all((v > limit) if most else (v < limit) for v, _ in told):
                text = f'{source} asks for "{short(m[0])}"; the final text says "{short(told[-1][1])}"'
                reason = any(gives_reason_in(s) for _, s in told)
                yield _row(text, f'"{short(m[0])}" was not reached', source, is_open=not reason)


def _value(number: str, unit: str) -> tuple[str, float]:
    kind, factor = _UNITS[unit.lower()]
    return kind, float(number.replace(",", ".")) * factor


def _hits(look: Look) -> Iterator[Row]:
    """An old name that the last search, after the last write, still found in code."""
    script, output = look.found.search
    for source, r in look.live:
        m = _OLD_NAME.search(r.text)
        name = (m["quoted"] or m["bare"]) if m else ""
        if not name or name not in script:
            continue
        whole = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        lines = [line for line in output[:20_000].split("\n") if whole.search(line)]
        files = {m["path"] for line in lines if (m := _HIT.match(line)) and not is_prose(m["path"])}
        if files:
            told = any(_STAYS.search(s) for s in sentences(look.final))
            text = f"the last search still finds {name} in {short(', '.join(sorted(files)[:4]))}"
            yield _row(
                text,
                f"{name} is still used in {short(', '.join(sorted(files)[:4]))}",
                source,
                is_open=not told,
            )


def _commands(look: Look) -> Iterator[Row]:
    """A command that the request quotes and wants run, and of which nothing that ran holds a word."""
    found = look.found
    if found.delegated:
        return
    for source, r in look.live:
        m = _COMMAND.search(r.text)
        if not m or _CONDITION.search(r.text) or r.asks:
            continue
        named = keys(m["command"])
        if len(m["command"].split()) >= 2 and named and not named & found.touched:
            told = bool(named & keys(look.final, 4000))
            command = short(m["command"])
            text = f"{source} asks to run `{command}`; it was not seen"
            yield _row(text, f"`{command}` was to be run", source, is_open=not told)


def _hushed(look: Look) -> Iterator[Row]:
    """Findings of a checker that were silenced where they were to be mended."""
    wanted = [i for i, r in look.live if _CLEAN.search(r.text) and (r.change or "lint" in r.asks)]
    if not look.found.hushed or not wanted or _HUSH_WANTED.search(look.said):
        return
    files = short(", ".join(sorted(look.found.hushed)[:4]))
    told = any(_HUSH_TOLD.search(s) for s in sentences(look.final))
    yield _row(
        f"findings were silenced in {files}",
        f"Findings were silenced in {files}",
        wanted[0],
        is_open=not told,
    )


def _last_failed(look: Look) -> Iterator[Row]:
    """The last command of all failed: closed, for nobody knows whether it had to work."""
    if script := look.found.last_failed:
        yield _row(f"the last command, `{short(script)}`, failed", f"`{short(script)}` failed", is_open=False)
