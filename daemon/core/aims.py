"""What the request aims at, against the last word of the calls: a command that failed and was left, a figure
or a status that was missed, a deed no command did, a file of the same name elsewhere.

Rows only. Where a later call may have put it right, or the text speaks of it, a row is closed or away.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import gives_reason_in, sentences
from daemon.core.evidence import Row
from daemon.core.look import Look, short
from daemon.core.moves import base, written
from daemon.core.requirements import words

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPEAKS: Final = re.compile(
    r"\b(?:fail\w*|errors?|could(?:n't| not)|can(?:'t|not)|unable"
    r"|did(?:n't| not)|does(?:n't| not)|not|only|still"
    r"|instead|fehl\w*|nicht|échou\w*|pas|falla\w*|falló|não|erro)\b",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(
    r"\b(?:don't|do not|not|never|without|if|when|unless|i(?:'ll"
    r"| will)|nicht|ohne|wenn|pas|sans|sin|cuando|não|sem"
    r"|fails?|failed|failing|crash\w*|errors?|why|reproduce)\b",
    re.IGNORECASE,
)
_SPLIT: Final = re.compile(r"(?<=[.!?;])[ \t]+|\n+")
_WORKS: Final = re.compile(r"[a-z][\w./-]{1,40} [a-z:][\w:./-]{1,40}")
_STATUS: Final = re.compile(
    r"(?<![\w.:])(?P<code>[1-5]\d\d)(?![\w.:%]|[ ]?(?:ms|s|rows?|items?|lines?|users?|times)\b)"
)
_HTTP: Final = re.compile(r"\b(?:curl|http|https|wget|xh|httpie)\b")
_ANSWERS: Final = re.compile(
    r"\b(?:returns?|answers?|respond\w*|gives?|status|liefert|antwortet|renvoie|devuelve|responde|retorna|HTTP)"
    r" (?:with |a |an |code |mit )?(?:HTTP )?(?P<code>[1-5]\d\d)\b",
    re.IGNORECASE,
)
_COVER: Final = re.compile(
    r"\b(?:coverage|abdeckung|couverture|cobertura|copertura|покрыти\w*|カバレッジ)", re.IGNORECASE
)
_PERCENT: Final = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d{1,2})?) ?%")
_SHOWN_COVER: Final = re.compile(
    r"(?:^TOTAL\b[^\n%]{0,80}|^All files[ |][^\n%]{0,10}|coverage: "
    r"|Lines +: |Statements +: |\btotal:[^\n%]{0,40})"
    r"\s{0,8}(?P<value>\d{1,3}(?:\.\d{1,2})?)(?: ?%|[ |])",
    re.MULTILINE,
)
_DEEDS: Final = (  # a word for a deed right before its object, and what commands that do it are called
    (
        re.compile(r"\b(?:reload|restart|neu starten|neustart\w*|redémarre[rz]?"
        r"|reinici[ae]r?|recharge[rz]?|riavvia)\b", re.IGNORECASE),
        re.compile(r"reload|restart|\bstart\b|\bup\b|rollout|\bkill|-HUP|\bHUP\b"
        r"|service|systemctl|pm2|supervisor", re.IGNORECASE),
    ),
    (
        re.compile(r"\b(?:and|then|,|und|et|y|e) (?:apply|run) (?:the migrations?"
        r"|a migration|migrations)\b|\bapply (?:a|the) migration", re.IGNORECASE),
        re.compile(r"migrat|upgrade|apply|psql|mysql|sqlite3|\bdb\b|sqlx|flyway"
        r"|liquibase|prisma|knex|\.sql|manage\.py|python|node|\./|sh ", re.IGNORECASE),
    ),
    (
        re.compile(r"\b(?:bench\w*|before/after (?:numbers|figures|timings)|measure (?:it"
        r"|the|before))\b", re.IGNORECASE),
        re.compile(r"bench|hyperfine|\btime\b|timeit|criterion|perf|wrk|\bab\b"
        r"|k6|pprof|profil|measure|load|python|node|\./|sh ", re.IGNORECASE),
    ),
)  # fmt: skip
_PLAIN_LIST: Final = re.compile(
    r"(?<![\w-])(?P<names>[a-zà-ÿ]{4,24}(?:, [a-zà-ÿ]{4,24}){1,8},? (?:and"
    r"|und|et|y|e|og|och|en) [a-zà-ÿ]{4,24}) (?P<noun>[a-zà-ÿ]{4,24}s"
    r"|[A-ZÀ-Ý]?[a-zà-ÿ]{4,24}(?:en|er|e|s))\b"
)
_PATH: Final = re.compile(r"(?<![\w/.-])(?P<path>(?:[\w.-]{1,60}/){1,8}[\w-]{1,60}\.\w{1,8})(?![\w-])")


def aims(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, without ids."""
    if look.found.delegated:
        return []
    return [
        *_left_failed(look),
        *_not_installed(look),
        *_status(look),
        *_coverage(look),
        *_deeds(look),
        *_elsewhere(look),
        *_plain_lists(look),
    ]


def _row(text: str, detail: str, look: Look, word: str, *, is_open: bool) -> Row:
    source = next((i for i, r in look.live if word and word in r.text), look.first())
    return Row("", "unmet", text, open=is_open, detail=detail, cites=(source,) if source else ())


def _told(look: Look, *names: str) -> bool:
    """Whether a sentence that names one of these says what came of it."""
    low = [n.lower() for n in names if n]
    return any(
        any(n in s.lower() for n in low) and (_SPEAKS.search(s) or gives_reason_in(s))
        for s in sentences(look.final)
    )


def _left_failed(look: Look) -> Iterator[Row]:
    """A command that the request names, whose last run failed, and that is not run again."""
    clauses = [s for s in _SPLIT.split(look.said.replace("`", ""))[:60] if not _ASIDE.search(s)]
    if not clauses:
        return
    last: dict[str, int] = {}
    for i, move in enumerate(look.moves):
        if move.script and not move.looks:
            for form in {m[0] for m in _WORKS.finditer(move.script[:1000])}:
                if any(form in s for s in clauses):
                    last[form] = i
    for form, at in last.items():
        move = look.moves[at]
        known = any(form in r.command for r in look.checks)
        differs = "-detailed-exitcode" in move.script or "diff" in form
        if move.ok or known or differs or form.split()[0] in {"grep", "rg", "test", "git", "cd"}:
            continue
        after = look.moves[at + 1 :]
        if any(m.ok and m.acts and form.split()[0] in m.script for m in after):
            continue
        told = any(_SPEAKS.search(s) for s in sentences(look.final))
        yield _row(
            f"`{short(form)}` failed when it ran last",
            f"`{short(form)}` failed",
            look,
            form,
            is_open=not told,
        )
        return


_INSTALLS: Final = re.compile(
    r"\b(?:pip3?|uv|poetry|pdm|npm|pnpm|yarn|bun|cargo|composer|bundle|gem|apt(?:-get)?|brew|dotnet|go|mix|conda)"
    r"(?: \S+){0,2} (?:install|add|update|upgrade|require|get|-U)\b"
)


def _not_installed(look: Look) -> Iterator[Row]:
    """A package that the request names, whose only install failed."""
    asked = words(look.said, 6000)
    for i, move in enumerate(look.moves):
        if move.ok or not move.script or not _INSTALLS.search(move.script[:600]):
            continue
        mine = words(_INSTALLS.sub(" ", move.script[:600])) & asked
        later = [words(m.script, 4000) for m in look.moves[i + 1 :] if m.acts and m.ok]
        later += [words(f"{p} {new}", 8000) for m in look.moves[i + 1 :] for p, _, new in m.edits]
        if not mine or any(mine & found for found in later):
            continue
        told = any(_SPEAKS.search(s) for s in sentences(look.final))
        text = f"`{short(move.script)}` failed and nothing after it names the same"
        yield _row(text, f"`{short(move.script)}` failed", look, "", is_open=not told)
        return


def _status(look: Look) -> Iterator[Row]:
    """An HTTP status that the request wants to see, and another one as the last that a request got."""
    wanted = {m["code"] for m in _ANSWERS.finditer(look.said[:6000])}
    if not wanted:
        return
    last = max((i for i, m in enumerate(look.moves) if m.edits), default=-1)
    shown = [m for m in look.moves[last + 1 :] if m.script and _HTTP.search(m.script)]
    codes = [{c["code"] for c in _STATUS.finditer(m.output[-1500:])} for m in shown]
    codes = [found for found in codes if found]
    if codes and not codes[-1] & wanted and all(c >= "400" for c in codes[-1]):
        seen = min(codes[-1])
        text = f"{min(wanted)} was to be answered; the last answer seen is {seen}"
        yield _row(text, f"The answer is {seen}", look, "", is_open=not _told(look, seen))


def _coverage(look: Look) -> Iterator[Row]:
    """A share of covered code that the last run shows as not reached."""
    clause = next((s for s in _SPLIT.split(look.said) if _COVER.search(s) and _PERCENT.search(s)), "")
    figures = [float(n) for n in _PERCENT.findall(clause)]
    if not figures:
        return
    shown = [m for move in look.moves if move.script for m in _SHOWN_COVER.finditer(move.output[-4000:])]
    if shown and float(shown[-1]["value"]) < max(figures) and float(shown[-1]["value"]) not in figures:
        value = shown[-1]["value"]
        text = f"{max(figures):g} % of coverage were asked for; the last run shows {value} %"
        told = _told(look, value, value.split(".")[0]) or any(
            _COVER.search(s) and gives_reason_in(s) for s in sentences(look.final)
        )
        yield _row(text, "The coverage asked for is not reached", look, "", is_open=not told)


def _deeds(look: Look) -> Iterator[Row]:
    """A deed that only a command can do, and no command that may have done it."""
    if look.found.blind_writes:
        return
    scripts = [m.script[:4000] for m in look.moves if m.script and not m.looks]
    for said, does in _DEEDS:
        m = next(
            (m for s in _SPLIT.split(look.said)[:60] if not _ASIDE.search(s) for m in said.finditer(s)), None
        )
        if m is None or any(does.search(s) for s in scripts) or look.found.done:
            continue
        stem = m[0].split()[-1][:5].lower()
        told = _told(look, stem, m[0].lower())
        text = f'the request says "{short(m[0])}"; no command did that'
        yield _row(
            text, f'"{short(m[0])}" was not done', look, m[0], is_open=not told and bool(look.found.writes)
        )
        return


def _elsewhere(look: Look) -> Iterator[Row]:
    """A file that the request names with its folder, where only its namesake elsewhere was written."""
    if look.found.blind_writes:
        return
    done = [w.path for w in look.found.writes]
    for m in _PATH.finditer(look.said[:6000]):
        path = m["path"]
        same = [d for d in done if base(d) == base(path) and "/" in d]
        if not same or any(
            d == path or d.endswith(f"/{path}") or path.endswith(f"/{d.lstrip('./')}") for d in done
        ):
            continue
        if any(path in move.script or path in move.read for move in look.moves) or any(
            p in look.said for p in same
        ):
            continue
        folders = path.rsplit("/", 1)[0].split("/")
        if all(f"/{f}/" in f"/{same[0]}" for f in folders) or path in look.final:
            continue
        text = f"the request names {short(path)}; {short(same[0])} was written instead"
        yield _row(text, f"{short(path)} was not written", look, path, is_open=True)
        return


def _plain_lists(look: Look) -> Iterator[Row]:
    """The one word of a list that nothing written, run, shown or said has, where one edit has all others."""
    if look.found.blind_writes:
        return
    for m in _PLAIN_LIST.finditer(look.said[:6000]):
        names = [n for n in re.split(r",? (?:and|und|et|y|e|og|och|en) |, ", m["names"]) if n]
        stems = {n: n[:5].lower() for n in names}
        if len(names) < 3 or len(set(stems.values())) < len(names):
            continue
        news = [words(f"{p} {new}", 20_000) - words(old, 20_000) for p, old, new in written(look.moves)]
        news.append(frozenset[str]().union(*(words(m.script, 2000) for m in look.moves if m.acts)))
        for new in news:
            left = [n for n in names if stems[n] not in new]
            if len(left) != 1:
                continue
            word = left[0].lower()
            said = [look.final.lower(), *(x.lower() for _, _, x in written(look.moves))]
            said += [f"{x.script} {x.output}".lower() for x in look.moves]
            if not any(word[:4] in text for text in said):
                text = f"of {short(m['names'])} nothing has {left[0]}"
                yield _row(text, f"{left[0]} was asked for and is nowhere", look, left[0], is_open=True)
                return
