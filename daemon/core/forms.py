"""Commands that the request spells out, and whether anything ran in that form: its flags, its tasks.

"go test -race ./..." is not answered by "go test ./...", nor ":app:lint" by ":app:assemble". Which tool runs
under a script's name can't be seen, so that names alone prove nothing; flags and task paths do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from daemon.core.claims import sentences
from daemon.core.evidence import Row
from daemon.core.look import Look, short
from daemon.core.moves import written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.core.moves import Move

MAX_ROWS: Final = 3
MAX_SAID: Final = 60  # sentences
_PROGRAMS: Final = (
    r"(?:\./)?(?:gradlew?|mvnw?|bin/[\w-]{2,30}|node_modules/\.bin/[\w-]{2,30})"
    r"|go|cargo|npm|pnpm|yarn|bun|npx|make|just|task|dotnet|pytest|tox|nox|ruff|mypy|pyright|terraform|tofu"
    r"|helm|kubectl|docker|podman|docker-compose|ansible-playbook|alembic|flask|uv|poetry|python3?|node|deno"
    r"|swift|xcodebuild|fastlane|bundle|rails|rake|rspec|phpunit|composer|php|artisan|mix|sbt|bazel|bazelisk"
    r"|cmake|ctest|meson|ninja|zig|dart|flutter|vitest|jest|playwright|cypress|eslint|tsc|golangci-lint"
    r"|govulncheck|staticcheck|shellcheck|ansible-lint|kubeconform|buf|sqlfluff|dbt|nx|turbo|lerna|trivy"
    r"|semgrep|bandit|pre-commit|actionlint|hadolint|yamllint|vale|hugo|mkdocs|sphinx-build|psql|sqlx|prisma"
)
_COMMAND: Final = re.compile(
    rf"(?<![\w./-])(?P<program>{_PROGRAMS})(?P<args>(?:[ ](?:(?:with"
    rf"|mit|avec|con|com) (?=-|[A-Z]+=))?[\w@:./*=+%^-]{{1,60}}){{1,10}})"
)
_ARGUMENT: Final = re.compile(r"^(?:--?[A-Za-z]|[\w.-]*[:/=*@])|^[\w.-]{1,30}\.\w{1,6}$")
_SUB: Final = re.compile(r"^[a-z][a-z0-9:_-]{1,24}$")
_FLAG: Final = re.compile(r"^--?(?P<name>[A-Za-z][\w-]{2,40}|W)(?:=|$)")
_TASK: Final = re.compile(r"^:(?:[\w-]{1,40}:){0,4}[\w-]{2,40}$")
_LOOSE: Final = frozenset(  # they change what is shown, or are met in other ways
    (  # noqa: SIM905 -- a word list
        "quiet verbose all workspace silent color no-color progress reporter format watch watchAll run "
        "yes force help version exact maxfail tb fail-fast short bail timeout parallel jobs output out "
        "prod production config env project package features all-features all-targets locked frozen-lockfile "
        "no-cov detach build rm interactive tty name filter target no-install"
    ).split()
)
_ASIDE: Final = re.compile(  # the command is told about, or somebody else's
    r"\b(?:don't|do not|not|never|without|no need|instead of|if|when|whenever|unless|after i|i(?:'ll| will)?"
    r" (?:run|apply|do|ran|see|get)|we (?:run|use)|our|ci|currently"
    r"|already|like|e\.g|such as|or|than|people|users?"
    r"|(?:fail\w*|crash\w*|broken|hangs?|errors?) (?:on|with|in|when|during|for)"
    r"|nicht|ohne|wenn|falls|kein\w*|oder|ne|pas|sans|si|ou|sin|cuando|o|sem|quando|não|non|senza|se)\b[^|]{0,60}\|"
    r"|\|[^|]{0,12}\b(?:fails?|failed|crash\w*|hangs?|prints?|gives|shows|says|throws|complains|errors?|takes|schlägt"
    r"|échoue|falla|or)\b",
    re.IGNORECASE,
)
_TELLS: Final = re.compile(
    r"\b(?:not|n't|no|can(?:'t|not)|unable|fail\w*|instead|because|since|without|nicht|kein\w*|pas|sans|no se"
    r"|não|non|missing|needs?|requires?|unavailable|skipped|only)\b",
    re.IGNORECASE,
)
_SPLIT: Final = re.compile(r"(?<=[.!?;])[ \t]+|\n+")


@dataclass(frozen=True, slots=True)
class _Form:
    """A command as asked for. ``marks``: the parts that tell this form from others."""

    program: str
    sub: str
    marks: tuple[str, ...]
    text: str
    around: str


def forms(look: Look) -> list[Row]:
    """The rows of kind ``unmet``, without ids."""
    found = look.found
    if found.delegated or not (found.writes or found.scripts):
        return []
    rows: list[Row] = []
    for form in _asked(look.said):
        if len(rows) < MAX_ROWS and (row := _short_of(form, look)):
            rows.append(row)
    return rows or list(_scripts(look))


def _asked(said: str) -> Iterator[_Form]:
    for sentence in _SPLIT.split(said)[:MAX_SAID]:
        text = sentence.replace("`", " ")[:1200]
        if "-" not in text and ":" not in text:
            continue
        for m in _COMMAND.finditer(" ".join(text.split())):
            args = [a for a in m["args"].split() if a not in {"with", "mit", "avec", "con", "com"}]
            kept: list[str] = []
            for i, raw in enumerate(args):
                arg = raw.rstrip(".,:")
                valued = bool(kept) and len(kept[-1]) == 2 and kept[-1][0] == "-"
                if not (
                    _ARGUMENT.match(arg)
                    or (
                        _SUB.match(arg)
                        and (i == 0 or valued or (args[i + 1 : i + 2] and args[i + 1][0] == "-"))
                    )
                ):
                    break
                kept.append(arg)
                if arg != raw:
                    break
            marks = tuple(dict.fromkeys(mark for a in kept if (mark := _mark(a))))
            if marks:
                sub = kept[0] if kept and _SUB.match(kept[0]) else ""
                shown = f"{m['program']} {' '.join(kept)}"
                behind = m.string[m.start() + len(shown) :][:30]
                around = f"{m.string[: m.start()][-60:]} | {behind}"
                yield _Form(m["program"].rsplit("/", 1)[-1], sub, marks, shown, around)


def _mark(argument: str) -> str:
    if _TASK.match(argument):
        return argument
    if argument[:1].isupper() and (inner := argument.partition("=")[2]).startswith("-"):
        argument = inner  # CFLAGS=-fsanitize=address
    m = _FLAG.match(argument)
    return "" if m is None or m["name"] in _LOOSE else argument.split("=", 1)[0]


def _scripts(look: Look) -> Iterator[Row]:
    """A package script that the request names ("npm run e2e"), where only other scripts ran."""
    for m in _SCRIPT.finditer(look.said[:6000]):
        name = m["name"].rstrip(".,:")
        after = look.said[m.end() : m.end() + 30]
        if _ASIDE.search(f"{look.said[max(0, m.start() - 60) : m.start()].rsplit(chr(10), 1)[-1]} | {after}"):
            continue
        acts = [s for s in look.moves if s.script and not s.looks]
        if not acts or any(name in s.script or name in s.output[:600] for s in acts):
            continue
        checks = [r for r in look.checks if r.position == "after_last_write"]
        others = bool(checks) and all(_PACKAGE_RUN.match(r.command) for r in checks)
        told = any(name in s and _TELLS.search(s) for s in sentences(look.final))
        text = f"the request names `{short(m[0])}`; it was not run"
        yield Row(
            "", "unmet", text, open=others and not told, detail=f"`{short(m[0])}` was to be run", cites=()
        )
        return


_SCRIPT: Final = re.compile(r"(?<![\w./-])(?:npm|pnpm|yarn|bun) run (?P<name>[\w:.-]{2,40})")
_PACKAGE_RUN: Final = re.compile(r"(?:cd \S{1,100} && )?(?:npm|pnpm|yarn|bun) (?:run |test\b|t\b)")


def _short_of(form: _Form, look: Look) -> Row | None:
    """A form that never ran, or never ended well while a looser one did."""
    if _ASIDE.search(form.around):
        return None
    ran = [m for m in look.moves if m.script and not m.looks and form.program in m.script]
    missing = [
        mark
        for mark in form.marks
        if not any(_holds(m, mark) for m in look.moves) and not _set_in_file(mark, look)
    ]
    told = any(
        any(mark.lstrip("-:") in s for mark in form.marks) and _TELLS.search(s) for s in sentences(look.final)
    )
    if missing:
        text = f"the request spells out `{short(form.text)}`; nothing ran with {missing[0]}"
        return _row(text, form, look, is_open=bool(ran) and not told)
    whole = [i for i, m in enumerate(ran) if all(_holds(m, mark) for mark in form.marks)]
    if not whole or any(ran[i].ok for i in whole):
        return None
    looser = [m for m in ran[whole[-1] + 1 :] if m.ok and form.sub in m.script]
    if not looser:
        return None
    lost = next(mark for mark in form.marks if not _holds(looser[-1], mark))
    text = f"`{short(form.text)}` never passed; what passed ran without {lost}"
    return _row(text, form, look, is_open=not told)


def _holds(move: Move, mark: str) -> bool:
    """Whether a script, or what it echoed first, has ``mark`` as a word of its own. A task path may lack its
    first colon.
    """
    if not move.script or move.looks:
        return False
    text = f"{move.script[:4000]}\n{move.output[:600]}"
    return mark.lstrip(":") in text and bool(
        re.search(rf"(?<![\w-]){re.escape(mark.lstrip(':'))}(?![\w-])", text)
    )


def _set_in_file(mark: str, look: Look) -> bool:
    """Whether a written text has the name of a flag: a configuration may set it."""
    name = mark.lstrip("-")
    return mark.startswith("-") and len(name) > 2 and any(name in new for _, _, new in written(look.moves))


def _row(text: str, form: _Form, look: Look, *, is_open: bool) -> Row:
    source = next((i for i, r in look.live if form.text.split()[-1] in r.text), "")
    detail = f"`{short(form.text)}` was to be run"
    return Row("", "unmet", text, open=is_open, detail=detail, cites=(source,) if source else ())
