"""What was asked of several things, against the things that were touched: lists of names, counts, old names.

"A, B and C", "all three crates", "X everywhere": the work shows which of them it reached. A row is ``open``
only where the others of the same list were reached in the same way, and the text says nothing about the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import gives_reason_in, sentences
from daemon.core.evidence import Row
from daemon.core.left import WHOLE
from daemon.core.look import Look, short
from daemon.core.moves import base, written
from daemon.core.writes import is_prose

if TYPE_CHECKING:
    from collections.abc import Iterator


MAX_ROWS: Final = 3
MAX_NAMES: Final = 12
_CODE: Final = (  # what looks like a name in code: a hump, an underscore, a dot or a slash inside
    r"[A-Za-z][a-z0-9]*[A-Z]\w*|[A-Za-z]\w*_\w+|[./]{0,3}[\w@-]+(?:[./-][\w@-]+)+|[./][\w@-]{2,}|--[\w-]{2,}|#\d+|[A-Z][a-z]+\d*"
)

_ONE: Final = r"`?(?:(?:--?|#)?[\w@./][\w@./-]{1,60})`?"
_AND: Final = r"(?:and|und|et|y|e|og|och|en|ve|i|oraz|и|та|és|și)"
_JOIN: Final = rf"(?:, (?:{_AND} )?| ?(?:、|と|和|及) ?| (?:{_AND}|&|\+) )"
_LIST: Final = re.compile(rf"(?<![\w./@-]){_ONE}(?:{_JOIN}{_ONE}){{1,{MAX_NAMES - 1}}}(?![\w/@-])")
_NAMES: Final = re.compile(rf"^(?:{_CODE})$")
_JOINS: Final = re.compile(_JOIN)
_SHARED: Final = re.compile(  # one of them may be enough
    r"\b(?:or|oder|ou|either|between|cycle|conflict\w*|mismatch|circular|race|bug|crash\w*|error\w*|fail\w*|see"
    r"|like|use|uses|look|reads?|loads?|imports?|parses?|calls?|review|compare|merge|fix|e\.g|such as"
    r"|based on|according|as in|instead of|than|using|with|from"
    r"|via|by|not|except|without|don't"
    r"|never|zwischen|von|aus|mit|wie|ohne|nicht|entre|avec|comme|sauf|con|como|sin|sem|exceto)\b[^.;:\n]{0,40}$",
    re.IGNORECASE,
)
_SAYS: Final = re.compile(
    r"\b(?:not|n't|no|none|already|left|kept|only|except|still|skipped|unchanged|stays?|instead|without|nicht"
    r"|bereits|schon|kein\w*|bleib\w*|pas|déjà|ya|já|sin|sauf|outside|remain\w*)\b",
    re.IGNORECASE,
)
_NUMBERS: Final = {
    word: n
    for n, group in enumerate(
        (
            "two beide beiden zwei deux dos dois due twee both",
            "three drei trois tres três tre drie",
            "four vier quatre cuatro quatro quattro",
            "five fünf cinq cinco cinque vijf",
            "six sechs seis sei zes",
            "seven sieben sept siete sete sette zeven",
            "eight acht huit ocho oito otto",
            "nine neun neuf nueve nove negen",
            "ten zehn dix diez dez dieci tien",
        ),
        2,
    )
    for word in group.split()
}
_COUNT: Final = re.compile(
    rf"\b(?P<n>{'|'.join(_NUMBERS)})\b(?P<what>(?: [\w`-]{{2,30}}){{0,3}})", re.IGNORECASE
)
_PATH: Final = re.compile(r"^(?P<path>(?:[\w.@+-]{1,80}/|/|\./){0,20}[\w.@+-]{1,80}\.\w{1,8})(?=$|:)")
_IDENTIFIER: Final = re.compile(
    r"(?<![\w./-])(?:[A-Za-z]\w{0,60}_\w{1,60}|[a-z]{2,30}\.[a-z]{2,30}(?=\(| calls?| usages?| statements?)"
    r"|[a-z]{1,30}[A-Z]\w{1,60}|[A-Z][a-z]{1,30}[A-Z]\w{1,60})(?![\w-])"
)
_LISTS: Final = re.compile(
    r"^(?:cd \S+ && )?(?:rg|grep|git grep|ag)\b[^|;&\n]{0,200} (?:-\w*l\w*|--files-with-matches)\b"
)
_KEPT_PATHS: Final = re.compile(
    r"change-?log|history|migrat|/db/|\.lock$|legacy|archive|snap$", re.IGNORECASE
)


def parts(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, without ids."""
    found = look.found
    if found.delegated or not (found.writes or found.done or found.opaque):
        return []
    return [*_lists(look), *_counts(look), *_old_names(look)][:MAX_ROWS]


def _row(text: str, detail: str, look: Look, word: str, *, is_open: bool) -> Row:
    source = next((i for i, r in look.live if word in r.text), look.first())
    return Row("", "unmet", text, open=is_open, detail=detail, cites=(source,) if source else ())


def _excused(look: Look, name: str) -> bool:
    """Whether a sentence of the final text says why ``name`` was left."""
    low, flat = name.lower(), _flat(name)
    return any(
        (low in s.lower() or flat in _flat(s)) and (_SAYS.search(s) or gives_reason_in(s))
        for s in sentences(look.final)
    )


def _flat(text: str) -> str:
    """Letters and digits only, so that ``useTotal``, ``use-total`` and ``USE_TOTAL`` meet."""
    return re.sub(r"[\W_]+", "", text.lower())


def _lists(look: Look) -> Iterator[Row]:
    """A name of a list that nothing reached, where all others were written to, or given to commands."""
    if look.found.blind_writes:
        return
    lists = [names for m in _LIST.finditer(look.said[:6000]) if (names := _names(m, look.said))]
    if not lists:
        return
    paths = "\n".join(_flat(path) for path, _, _ in written(look.moves)) + "\n"
    paths += "\n".join(_flat(w.path) for w in look.found.writes)
    scripts = "\n".join(_flat(m.script[:4000]) for m in look.moves if m.acts)
    texts = "\n".join(_flat(f"{old} {new}") for _, old, new in written(look.moves))
    everywhere = f"{paths}\n{scripts}\n{texts}"
    for names in lists:
        left = [n for n in names if _flat(n) not in everywhere]
        if len(left) != 1:
            continue  # none, or words that stand for something else
        done = [n for n in names if n not in left]
        alike = any(all(_flat(n) in where for n in done) for where in (paths, scripts))
        told = _excused(look, left[0]) or _excused(look, base(left[0]))
        text = f"of {short(', '.join(names))} nothing written or run touches {left[0]}"
        counted = len(names) in {_NUMBERS[m["n"].lower()] for m in _COUNT.finditer(look.said[:6000])}
        files = all("." in n[1:] or "/" in n[1:] for n in names)
        fresh = (
            len(done) >= 2
            and _together(done, look)
            and not any(left[0] in text for m in look.moves for text in (m.output, m.script))
        )
        sure = (
            (fresh and not files)
            or (alike and (len(done) >= 2 or counted or files))
            or (counted and len(done) >= 2)
        )
        yield _row(text, f"{left[0]} was asked for and not touched", look, left[0], is_open=sure and not told)


def _together(names: list[str], look: Look) -> bool:
    """Whether one edit put all of ``names`` in."""
    return any(all(n in new and n not in old for n in names) for _, old, new in written(look.moves))


def _names(m: re.Match[str], said: str) -> list[str]:
    """The names of a list, where all of them look alike."""
    names = [n.strip("`").rstrip(".") for n in _JOINS.split(m[0])]
    while names and not _NAMES.match(names[0]):
        del names[0]
    while names and not _NAMES.match(names[-1]):
        del names[-1]
    before = said[max(0, m.start() - 60) : m.start()]
    same = len(names) >= 2 and all(len(n) >= 2 and _NAMES.match(n) for n in names)
    plain = all(re.match(r"^[A-Z][a-z]+\d*$", n) for n in names)
    if all(n[0] == "#" for n in names):
        before = ""
    if not same or (plain and len(names) < 3) or _SHARED.search(before) or len(set(names)) < len(names):
        return []
    return names


def _counts(look: Look) -> Iterator[Row]:
    """Files that a look listed, as many as the request counts, of which some were never written."""
    counts = [(_NUMBERS[m["n"].lower()], _stems(m["what"])) for m in _COUNT.finditer(look.said[:6000])]
    if not counts or look.found.blind_writes:
        return
    done = [path for path, _, _ in written(look.moves)] + [w.path for w in look.found.writes]
    for move in look.moves:
        if not move.looks or move.read:
            continue
        lines = [m["path"] for line in move.output[:6000].split("\n") if (m := _PATH.match(line.strip()))]
        listed = list(dict.fromkeys(lines))
        kinds = {base(p) for p in listed}, {p.rsplit(".", 1)[-1] for p in listed}
        named = [n for n, stems in counts if any(all(stem in p.lower() for p in listed) for stem in stems)]
        if len(listed) not in named or not (len(kinds[0]) == 1 or len(kinds[1]) == 1):
            continue
        several = len(kinds[0]) == 1  # a bare name may be any of them, or another
        left = [p for p in listed if not any(_same(p, d) for d in done if "/" in d or not several)]
        if not 0 < len(left) < len(listed):
            continue
        name = left[0]
        folder = name.rsplit("/", 2)[-2] if name.count("/") >= 1 else ""
        ran = any((folder or base(name)) in m.script for m in look.moves if m.acts)
        told = _excused(look, base(name)) or (folder and _excused(look, folder))
        text = f"of the {len(listed)} files that the request counts {short(', '.join(left))} was not written"
        yield _row(text, f"{short(name)} was not changed", look, "", is_open=not told and not ran)
        return


def _stems(what: str) -> list[str]:
    """The words behind a count, short enough that plural and singular meet."""
    return [w[:-1] if len(w) > 4 else w for w in re.findall(r"[^\W_]{4,}", what.lower())]


def _same(listed: str, done: str) -> bool:
    a, b = listed.removeprefix("./"), done.removeprefix("./")
    return a == b or a.endswith(f"/{b}") or b.endswith(f"/{a}")


def _old_names(look: Look) -> Iterator[Row]:
    """A name of the request that edits took out, and that the last search after them still finds in code."""
    script, output = look.found.search
    for name in dict.fromkeys(_IDENTIFIER.findall(look.said[:6000])):
        if name not in script or not output:
            yield from _unfinished(name, look)
            continue
        whole = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        gone = sum(1 for _, old, new in written(look.moves) if whole.search(old) and not whole.search(new))
        if not gone or not (gone >= 2 or WHOLE.search(look.said)):
            continue
        files = _still(output, whole)
        if files and not any(_excused(look, base(p)) for p in files) and not _excused(look, name):
            some = short(", ".join(sorted(files)[:4]))
            text = f"edits took {name} out, and the last search still finds it in {some}"
            yield _row(text, f"{name} is still used in {some}", look, name, is_open=True)
            return


def _unfinished(name: str, look: Look) -> Iterator[Row]:
    """Files that a list of all that hold ``name`` shows and that were never written, where others were."""
    listing = next((m for m in look.moves if m.looks and name in m.script and _LISTS.search(m.script)), None)
    if listing is None or look.found.blind_writes or not WHOLE.search(look.said):
        return
    later = look.moves[look.moves.index(listing) + 1 :]
    paths = [line.strip() for line in listing.output[:6000].split("\n") if _PATH.match(line.strip())]
    paths = [p for p in paths if not is_prose(p) and not _KEPT_PATHS.search(p)]
    gone = [p for m in later for p, old, new in m.edits if name in old and name not in new]
    done = [w.path for w in look.found.writes]
    left = [p for p in paths if not any(_same(p, d) for d in done)]
    ran = any(base(p) in m.script for p in left for m in later if m.acts)
    if not gone or not 0 < len(left) < len(paths) or ran or any(name in m.script for m in later):
        return
    told = any(_excused(look, base(p)) for p in left)
    sure = bool(re.search(r"\\b| -\w*w", listing.script))
    text = f"{short(', '.join(left))} has {name} and was not written"
    yield _row(text, f"{short(left[0])} still has {name}", look, name, is_open=sure and not told)


def _still(output: str, whole: re.Pattern[str]) -> set[str]:
    """The code files in the lines of a search that hold a name."""
    lines = [line for line in output[:20_000].split("\n") if whole.search(line)]
    paths = [m["path"] for line in lines if (m := _PATH.match(line.strip()))]
    return {p for p in paths if not is_prose(p) and not _KEPT_PATHS.search(p)}
