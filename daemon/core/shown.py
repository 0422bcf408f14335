"""What outputs show though the call ended well: errors behind exit code 0, a part that is down, a dry run.

Reads the end of the work only: what a later run answers is gone. Rows only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import sentences
from daemon.core.evidence import Row
from daemon.core.look import Look, short
from daemon.core.moves import base
from daemon.core.requirements import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.core.moves import Move

_BROKEN: Final = re.compile(  # at the start of a line, as programs print what stopped them
    r"^(?:Traceback \(most recent call last\)|panic: |fatal: |FATAL\b|Unhandled (?:exception|rejection)"
    r"|(?:[\w.]{1,60}\.)?[A-Z]\w{0,40}(?:Error|Exception|Violation|Failure)\b: "
    r"|[\w.]{1,60}\.errors\.\w{1,40}: |[\w.:]{2,60}: ERROR\b|ERROR[: ] ?\S"
    r"|error(?:\[\w{1,8}\])?: \S|npm ERR! |SQLSTATE\[)",
    re.MULTILINE,
)
_KNOWN_TOOLS: Final = re.compile(  # checks, whose outcome is read elsewhere, and what quotes errors
    r"\b(?:pytest|jest|vitest|mocha|phpunit|rspec|cargo|go (?:test"
    r"|vet|build)|mvn|gradlew?|ctest|tox|nox|test|tests"
    r"|e2e|lint|check|ruff|eslint|mypy|tsc|\w+ logs|journalctl|git|grep|rg|repro\w*|\|\| ?(?:true|:))\b|\|\|"
)
_DOWN: Final = re.compile(
    r"(?<![\w-])(?:unhealthy|CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|Evicted|CreateContainerError"
    r"|Restarting \(\d|Exited \([1-9]\d{0,2}\)|failed \(Result:"
    r"|inactive \(dead\)|NotReady|UNHEALTHY|DEGRADED)"
)
_UP: Final = re.compile(
    r"(?<![\w-])(?:healthy|Running|Up \d|Ready|active \(running\)|Started|Completed|ok|OK|200)(?![\w-])"
)
_STARTS: Final = re.compile(r"\b(?:restart|reload|start|up|rollout|apply|deploy|upgrade|wait|delete)\b")
_DRY: Final = re.compile(
    r"(?<![\w-])--?(?:dry-?run|what-?if|simulate|pretend|noop|no-act)\b"
    r"|\bDRY_?RUN=(?:1|true)|(?<=[\w/] )--check(?= --diff\b)",
    re.IGNORECASE,
)
_DRY_WANTED: Final = re.compile(
    r"\bdry|what-?if|simul|pretend|no-?op|preview|trocken|probelauf|à blanc|à vide|en seco|prueba|rehears",
    re.IGNORECASE,
)
_ORDERS_RUN: Final = re.compile(
    r"\b(?:run|execute|apply|start|launch|import|load|backfill|migrate|sync|send|convert|führ\w*|lass\w*|lance[rz]?"
    r"|exécute[rz]?|ejecut\w+|lánza\w*|corr[ae]|rod[ae]|execut\w+|esegui\w*|uruchom\w*|kör|kjør|draai)\b|実行|запусти",
    re.IGNORECASE,
)
_FILE: Final = re.compile(
    r"(?:[\w.-]{1,60}/){0,8}[\w-]{2,60}\.(?:py|[cm]?[jt]s|rb|sh|pl|php|sql|ps1|exs?|R|lua)\b"
)
_NEVER: Final = re.compile(
    r"\b(?:don't|do not|not|never|without|no|nicht|kein\w*|ohne"
    r"|ne|pas|sans|sin|não|sem|non|i(?:'ll| will))\b",
    re.IGNORECASE,
)
_ADMITS: Final = re.compile(
    r"\b(?:fail\w*|error\w*|could(?:n't| not)|can(?:'t|not)|unable"
    r"|unhealthy|down|crash\w*|not|n't|broken|still"
    r"|exit\w*|nicht|fehl\w*|échou\w*|erreur|falla\w*|falló|erro|não|warning\w*|traceback)\b",
    re.IGNORECASE,
)
_SPEAKS: Final = re.compile(  # of an error
    r"\b(?:fail\w*|errors?|exceptions?|traceback|could(?:n't| not)"
    r"|unable|did(?:n't| not)|warnings?|fehler\w*|fehlg\w*"
    r"|échou\w*|erreurs?|falla\w*|falló|erro[rs]?\w*)\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,40}")
_SPLIT: Final = re.compile(r"(?<=[.!?])[ \t]+|\n+")


def shown(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, without ids."""
    if look.found.delegated:
        return []
    return [*_hidden(look), *_down(look), *_dry(look)]


def _row(text: str, detail: str, look: Look, word: str, *, is_open: bool) -> Row:
    source = next((i for i, r in look.live if word and word in r.text), look.first())
    return Row("", "unmet", text, open=is_open, detail=detail, cites=(source,) if source else ())


def _files(script: str) -> set[str]:
    return {base(m[0]) for m in _FILE.finditer(script[:2000])}


def _told(look: Look) -> bool:
    return any(_SPEAKS.search(s) for s in sentences(look.final))


def _hidden(look: Look) -> Iterator[Row]:
    """A script of the request that printed what stopped it, ended with 0, and never ran again."""
    names = _files(look.said)
    if not names:
        return
    last: dict[str, Move] = {}
    for move in look.moves:
        if move.acts and move.ok:
            last.update(dict.fromkeys(_files(move.script) & names, move))
    for name, move in last.items():
        m = _BROKEN.search(move.output)
        if m is None or _KNOWN_TOOLS.search(move.script[:600]):
            continue
        end = move.output.find("\n", m.start())
        line = short(move.output[m.start() : end if end >= 0 else m.start() + 200])
        if m[0].rstrip(": ") in look.said:
            continue  # the error is what the request is about
        text = f"`{short(move.script)}` ended with 0 and printed: {line}"
        yield _row(text, f"`{short(move.script)}` printed an error", look, name, is_open=not _told(look))
        return


def _down(look: Look) -> Iterator[Row]:
    """A part that the request names, and whose last line in any output says that it is down."""
    asked = {w.lower() for w in _WORD.findall(look.said[:6000])}
    states: dict[str, tuple[bool, str]] = {}
    at = -1  # the last look that showed one down
    for i, move in enumerate(look.moves):
        if move.read or not move.script or not (_DOWN.search(move.output) or states):
            continue
        above = ""
        for line in move.output.split("\n")[-200:]:
            above = above if line.startswith((" ", "\t")) else line
            if down := _DOWN.search(line):
                names = {w for w in _WORD.findall(line[:200].lower()) if w in asked}
                names = names or {w for w in _WORD.findall(above[:200].lower()) if w in asked}
                at = i if names else at
                states.update(dict.fromkeys(names - {down[0].lower()}, (True, line.strip())))
            elif states and _UP.search(line):
                low = line.lower()
                states = {n: (b and n not in low, text) for n, (b, text) in states.items()}
        if move.ok and states and len(move.output) < 200 and _UP.search(move.output):
            states = {n: (b and n not in move.script.lower(), text) for n, (b, text) in states.items()}
    down_now = [(n, text) for n, (b, text) in states.items() if b]
    if down_now and not any(
        n in s.lower() and _ADMITS.search(s) for n, _ in down_now for s in sentences(look.final)
    ):
        name, line = down_now[0]
        mended = any(m.edits or _STARTS.search(m.script) for m in look.moves[at + 1 :])  # and not looked at
        text = f"the last state shown of {name}: {short(line)}"
        yield _row(text, f"{name} is down", look, name, is_open=not mended)


def _dry(look: Look) -> Iterator[Row]:
    """A command that only ever ran dry, where the request wants it run and speaks of no rehearsal."""
    if _DRY_WANTED.search(look.said):
        return
    dry = [m for m in look.moves if m.script and m.ok and _DRY.search(m.script[:2000])]
    for move in dry[-1:]:
        core = _files(move.script) or set()
        real = [m for m in look.moves if m.script and not _DRY.search(m.script[:2000])]
        if core and any(core & _files(m.script) and not m.looks for m in real):
            return
        if not core and any(words(m.script) >= words(_DRY.sub("", move.script)) for m in real):
            return
        said = [s for s in _SPLIT.split(look.said) if not _NEVER.search(s)]
        bare = " ".join(re.sub(r" --?\S+", "", move.script).split()[:3])
        whole = bare.count(" ") >= 1 and any(bare in s for s in said)
        ordered = whole or any(any(n in look.said for n in core) and _ORDERS_RUN.search(s) for s in said)
        told = any(
            re.search(r"\bdry|simul|preview|trocken|à blanc|en seco|rehears|\bnot\b", s, re.IGNORECASE)
            for s in sentences(look.final)
        )
        text = f"`{short(move.script)}` ran dry only, and never for real"
        yield _row(text, f"`{short(move.script)}` ran dry only", look, "", is_open=ordered and not told)
