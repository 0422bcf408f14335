"""What the written texts themselves show: a translation that is a copy, values put the wrong way round, a
file of the request that the agent wrote and then took out again.

Compares texts of one task with each other and with the request; never reads a file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import gives_reason_in, sentences
from daemon.core.evidence import Row
from daemon.core.look import Look, short
from daemon.core.moves import base, written
from daemon.core.requirements import words
from daemon.core.weakened import is_test
from daemon.core.writes import is_prose

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINES: Final = 4_000
_LANGUAGE: Final = re.compile(
    r"(?<![A-Za-z])(?P<code>de|en|fr|es|it|pt|nl|pl|sv|da|nb|no|nn|fi|cs|sk|hu|ro|bg|el|tr|ru|uk|ar|he|fa|hi|bn|ta"
    r"|th|vi|id|ms|ja|ko|zh|ca|eu|gl|hr|sr|sl|et|lv|lt|is|ga|cy)(?:[-_]\w{2,4})?(?![A-Za-z])"
)
_TEXT: Final = re.compile(
    r"(?:[:=>][ \t]*[\"'`>]?|[\"'`>])(?P<text>[^\"'`<>\n]{0,200}[^\W\d_]{2,}[ ][^\"'`<>\n]{1,200})"
)
_NUMBERED: Final = re.compile(r"^[ \t]{0,8}\d{1,6}[:|→\t] ?", re.MULTILINE)
_COPY_WANTED: Final = re.compile(
    r"\b(?:cop(?:y|ies)|placeholders?|fallbacks?|skeleton|untranslated"
    r"|duplicate|english (?:text|string)s?|translators?"
    r"|kopie\w*|platzhalter|copie\w*|copia\w*)\b",
    re.IGNORECASE,
)
_COPY_TOLD: Final = re.compile(
    r"\b(?:cop(?:y|ied|ies)|placeholders?|untranslated|still (?:in )?english"
    r"|english|not (?:yet )?translated|translators?"
    r"|fallbacks?|englisch\w*|anglais\w*|inglés\w*)\b",
    re.IGNORECASE,
)
_MIN_TEXTS: Final = 3
_CLAUSE: Final = re.compile(r"[,;\n]| and | und | et | y | e | og | och |、|\uff0c|/ ")
_VALUE: Final = re.compile(r"(?<![\w.-])(\d{1,9}(?:\.\d{1,4})?)(?![\d.]*\d)(?!st\b|nd\b|rd\b|th\b)")
_SENTENCE: Final = re.compile(r"(?<=[.!?])[ \t]+|\n+")
_OUTPUT: Final = re.compile(
    r"(?<![\w/.-])(?:[\w.-]{1,60}/){0,8}(?P<name>[\w-]{2,60}\.(?:png|svg|jpe?g|pdf|csv|tsv|xlsx?|parquet|json|jsonl|html"
    r"|md|txt|zip|tar\.gz|ya?ml|xml|ipynb|pptx?|docx?|sqlite|db|geojson|wav|mp4))(?![\w-])",
    re.IGNORECASE,
)
_NEVER: Final = re.compile(
    r"\b(?:don't|do not|not|never|without|no|nicht|kein\w*|ohne"
    r"|pas|sans|sin|não|sem|non|from|aus|desde|instead)\b[^.;\n]{0,60}$",
    re.IGNORECASE,
)
_SAYS: Final = re.compile(
    r"\b(?:not|n't|no|without|instead|reverted|rolled back|removed"
    r"|dropped|back|nicht|kein\w*|zurück\w*|pas|sin|não)\b",
    re.IGNORECASE,
)
_NEEDS_PERSON: Final = re.compile(
    r"\b(?:permission\w*|credential\w*|denied|approv\w*|password|licen[cs]e|network|offline|your|you)\b",
    re.IGNORECASE,
)


_WITHIN: Final = re.compile(
    r"\b(?:in|into|to|dans|en|em|im|nel|nei|w|на|в|på|til|naar|für|for)[ `\"']+(?:[\w-]{1,30}/){0,8}$",
    re.IGNORECASE,
)


_INTO: Final = re.compile(  # a place in code that the request names
    r"\b(?:in|into|dans|en|em|im|nel|w|в|på|naar) [`\"']?(?:[\w-]{1,30}/){0,8}"
    r"(?P<name>[\w-]{3,60}\.(?:py|[cm]?[jt]sx?|go|rs|java|kt|rb|php|cs|swift|vue|svelte|tf|sql|sh))\b"
)


def texts(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, without ids."""
    if look.found.delegated or not look.found.writes:
        return []
    return [*_copies(look), *_swapped(look), *_withdrawn(look), *_rolled_back(look), *_unopened(look)]


def _row(text: str, detail: str, look: Look, word: str, *, is_open: bool) -> Row:
    source = next((i for i, r in look.live if word and word in r.text), look.first())
    return Row("", "unmet", text, open=is_open, detail=detail, cites=(source,) if source else ())


def _copies(look: Look) -> Iterator[Row]:
    """A file of another language whose texts are those of the first."""
    if _COPY_WANTED.search(look.said):
        return
    known: dict[str, set[str]] = {}
    fresh: dict[str, set[str]] = {}
    for move in look.moves:
        if move.read and _LANGUAGE.search(move.read[-200:]):
            known[move.read] = _lines(_NUMBERED.sub("", move.output))
        for path, old, new in move.edits:
            if _LANGUAGE.search(path[-200:]):
                if old:
                    fresh.pop(path, None)  # put right later, perhaps
                else:
                    known[path] = fresh[path] = _lines(new)
    for path, mine in fresh.items():
        shape, code = _shape(path)
        for other, theirs in known.items():
            like, from_code = _shape(other)
            if other == path or like != shape or code == from_code or len(mine) < _MIN_TEXTS:
                continue
            if len(mine & theirs) * 10 >= len(mine) * 9:
                ran = any(base(path) in m.script for m in look.moves if m.acts)
                told = any(_COPY_TOLD.search(s) and base(path) in s for s in sentences(look.final))
                text = f"the texts of {base(path)} are those of {base(other)}"
                yield _row(text, f"{base(path)} was not translated", look, "", is_open=not told and not ran)
                return


def _lines(text: str) -> set[str]:
    """The texts of more than one word."""
    return {" ".join(m["text"].split()) for m in _TEXT.finditer(text[:MAX_LINES])}


def _shape(path: str) -> tuple[str, str]:
    """A path without its language, and that language."""
    codes = [m["code"] for m in _LANGUAGE.finditer(path[-200:])]
    return _LANGUAGE.sub("*", path[-200:]), codes[-1] if codes else ""


def _swapped(look: Look) -> Iterator[Row]:
    """Two values that the request ties to two words, and that the code ties to them the other way round."""
    for sentence in _SENTENCE.split(look.said)[:60]:
        pairs = _pairs(sentence[:800])
        if len(pairs) < 2:
            continue
        beside = [
            found
            for path, _, new in written(look.moves)
            if not is_prose(path) and not is_test(path)
            for line in new[:MAX_LINES].split("\n")
            if (found := _beside(line, pairs))
        ]
        both = [frozenset[str]().union(*(w for i, w in beside if i == k)) for k in range(len(pairs))]
        common = {
            w for k, ws in enumerate(both) for w in ws if any(w in o for j, o in enumerate(both) if j != k)
        }
        ties = {tie for i, w in beside if (tie := _tie(i, w - common, pairs))}
        for a, b in ties:
            if a < b and (b, a) in ties and (a, a) not in ties and (b, b) not in ties:
                first, second = (f"{pairs[i][0]} for {min(pairs[i][1])}…" for i in (a, b))
                text = f"the request ties {first} and {second}; the code has them the other way round"
                yield _row(text, "Two values are the wrong way round", look, pairs[a][0], is_open=True)
                return


def _pairs(sentence: str) -> list[tuple[str, frozenset[str]]]:
    """(value, the words that only its clause has)."""
    found = [
        (values[0], _stems(clause))
        for clause in _CLAUSE.split(sentence)
        if len(values := [m[1] for m in _VALUE.finditer(clause)]) == 1
    ]
    if len(found) < 2 or len({v for v, _ in found}) < len(found) or len(found) > 8:
        return []
    own = [
        (v, w - frozenset[str]().union(*(o for k, (_, o) in enumerate(found) if k != i)))
        for i, (v, w) in enumerate(found)
    ]
    return [(v, w) for v, w in own if w]


def _stems(clause: str) -> frozenset[str]:
    """The words beside a value, cut short so that inflections and compounds meet."""
    head, _, tail = clause.rpartition(": ")
    near = tail if head and re.search(r"[^\W\d_]{3}", tail) else clause
    near = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", near)
    return frozenset(w[:4].lower() for w in re.findall(r"[^\W\d_]{3,}", near))


def _beside(line: str, pairs: list[tuple[str, frozenset[str]]]) -> tuple[int, frozenset[str]] | None:
    """Which of the values a line has, where it has one, and the words beside it."""
    if len(line) > 160:
        return None
    numbers = {m[1] for m in _VALUE.finditer(line.replace('"', " ").replace("'", " "))}
    values = [i for i, (v, _) in enumerate(pairs) if v in numbers]
    return (values[0], _stems(line)) if len(values) == 1 else None


def _tie(
    value: int, beside: frozenset[str], pairs: list[tuple[str, frozenset[str]]]
) -> tuple[int, int] | None:
    """(word of, value of) a line whose words are those of one clause only."""
    labels = [i for i, (_, w) in enumerate(pairs) if w & beside]
    return (labels[0], value) if len(labels) == 1 else None


def _withdrawn(look: Look) -> Iterator[Row]:
    """A file that the request names, that the agent's own code wrote, and that a later edit took out."""
    for m in _OUTPUT.finditer(look.said[:6000]):
        name = m["name"]
        if _NEVER.search(look.said[max(0, m.start() - 80) : m.start()]):
            continue
        state = ""
        for move in look.moves:
            for _, old, new in move.edits:
                if name in new:
                    state = "in"
                elif name in old and state == "in":
                    state = "out"
            if state == "out" and (
                name in move.script or (move.script and move.acts and name in move.output)
            ):
                state = ""
        if state == "out":
            told = any(name in s and _NEEDS_PERSON.search(s) for s in sentences(look.final))
            text = f"{name} is asked for; the agent's own code wrote it, and an edit took that out"
            yield _row(text, f"{name} was to be made", look, name, is_open=not told)
            return


def _rolled_back(look: Look) -> Iterator[Row]:
    """What the request speaks of and only an edit had that was rolled back later."""
    gone = [e for m in look.moves if m.gave_up for e in m.edits if not is_test(e[0])]
    if not gone:
        return
    asked = words(look.said, 4000)
    kept = [words(f"{path} {old} {new}", MAX_LINES) for path, old, new in written(look.moves)]
    kept += [words(m.script, MAX_LINES) for m in look.moves if m.acts]
    left = frozenset[str]().union(
        *(words(f"{new}", MAX_LINES) - words(old, MAX_LINES) for _, old, new in gone)
    )
    left = (left & asked) - frozenset[str]().union(*kept)
    if left:
        told = any(words(s) & left and (_SAYS.search(s) or gives_reason_in(s)) for s in sentences(look.final))
        name = base(gone[-1][0])
        word = next((w for w in re.findall(r"[^\W_]{4,40}", look.said) if w.lower()[:5] in left), name)
        text = f'the edit of {name} was rolled back; nothing else written has "{word}"'
        yield _row(text, f'"{word}" was rolled back and not written again', look, word, is_open=not told)


def _unopened(look: Look) -> Iterator[Row]:
    """Files that the request names together, that a listing shows, and that nothing opened, wrote or ran."""
    listed = "\n".join(m.output for m in look.moves if m.looks and not m.read)
    names = [m["name"] for m in _OUTPUT.finditer(look.said[:6000]) if m["name"] in listed]
    names += [m["name"] for m in _INTO.finditer(look.said[:6000])]
    if not names:
        return
    seen = " ".join([*(m.script for m in look.moves), *(m.read for m in look.moves), look.final])
    seen += " ".join(f"{p} {new}" for p, _, new in written(look.moves)) + " ".join(
        w.path for w in look.found.writes
    )
    left = [n for n in dict.fromkeys(names) if n not in seen]
    if left:
        text = f"the request names {short(', '.join(left))}; nothing opened or wrote it"
        at = look.said.find(left[0])
        within = bool(_WITHIN.search(look.said[max(0, at - 40) : at]))
        yield _row(
            text,
            f"{short(', '.join(left))} was not touched",
            look,
            left[0],
            is_open=within and len(left) >= 2 and all(n in listed for n in left),
        )
