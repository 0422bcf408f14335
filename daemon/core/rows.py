"""The rows of what the calls did: writes, checks, commits and runs, todos, refusals, errors.

Words only; what counts was decided where the calls were read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.claims import sentences
from daemon.core.evidence import Position, Row
from daemon.core.reading import LASTING_SHELL, TODO_TOOLS, text_of
from daemon.core.refusals import is_denied, looks_up
from daemon.core.weakened import Weakening, describe, is_test

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daemon.core.actions import Check
    from daemon.core.checks import Run
    from daemon.core.reading import Done, Found
    from daemon.core.requirements import Requirement
    from daemon.core.transcript import Todo, ToolCall

MAX_ROWS: Final = 20  # of one kind
MAX_RUNS_SHOWN: Final = 5
_FAILED_COUNT: Final = re.compile(
    r"\b(?:failures|failed|fail|failing)[=: ]{1,3}(\d{1,6})\b|\b(\d{1,6}) (?:tests? )?fail\w*", re.IGNORECASE
)
_PROGRAM: Final = re.compile(r"[\w-]{0,60}[./][\w./-]{2,120}|(?<=-m )[\w.]{2,60}|(?<=run )[\w:-]{2,40}")
_CHANGING_TESTS: Final = re.compile(
    r"\b(?:skip|disable|delete|remove|drop|ignore|xfail|quarantine|mute|comment out|simplify|rewrite"
    r"|refactor|replace|clean)\w*\b",
    re.IGNORECASE,
)

_TESTS: Final = r"(?:tests?|specs?|cases?|suites?|pruebas|testes)"
_SKIPS: Final = (
    r"(?:skip|disable|xfail|ignore|mute|quarantine|deaktivier|überspring|désactiv|desactiv|omit|ignor|pul[ae])"
    r"\w*"
)
_DROPS: Final = r"(?:delete|remove|drop|get rid of|lösch|entfern|supprim|elimin|borr|quit|remov|apag)\w*"
_LOOSENS: Final = r"(?:loosen|relax|simplify|update|adapt|adjust|change|replace|rewrite|snapshot)\w*"
_WANTED_CHANGE: Final = {
    change: re.compile(
        rf"(?<!not )(?<!n't )(?<!never )\b{verb}\b[^.;\n]{{0,60}}\b{_TESTS}\b"
        rf"|\b{_TESTS}\b[^;\n]{{0,120}}(?<!not )(?<!n't )(?<!never )\b{verb} (?:them|it|those|these|this"
        rf"|that|all)\b",
        re.IGNORECASE,
    )
    for change, verb in {
        "skipped": _SKIPS,
        "narrowed": r"only\b[^.;\n]{0,20}\brun\w*",
        "deleted": _DROPS,
        "tests_removed": _DROPS,
        "assertions": _LOOSENS,
        "masked": r"(?:ignore|tolerate|allow)\w*",
        "expected": r"(?:loosen|relax|update|adapt|adjust|change|replace|rewrite|align|snapshot|anpass)\w*",
    }.items()
}
_FIXING_TESTS: Final = re.compile(
    r"\bfix\b[^.;\n]{0,60}\btests?\b|\btests?\b[^.;\n]{0,40}\b(?:pass|green)\b|\bfailing\b", re.IGNORECASE
)
_ABOUT_TESTS: Final = re.compile(r"\b(?:tests?|assert\w*|expect\w*|specs?)\b", re.IGNORECASE)
_REASON: Final = re.compile(
    r"\b(?:because|since|as (?:the|it|they)|obsolete|outdated|no longer|wrong\w*|duplicate\w*|moved"
    r"|covered|replaced|expected)\b",
    re.IGNORECASE,
)


def requirement_rows(found: Sequence[Requirement]) -> list[Row]:
    """``R1`` …, with a mark where a later message changed it."""
    rows: list[Row] = []
    for i, r in enumerate(found, 1):
        by = f"R{r.by + 1}" if r.by >= 0 else ""
        text = f"(changed or taken back by {by}) {r.text}" if by else r.text
        rows.append(Row(f"R{i}", "requirement", text, detail=f"superseded by {by}" if by else ""))
    return rows


def write_rows(found: Found) -> list[Row]:
    """One row: the files, the last of them, and those in which something is left unimplemented."""
    writes = found.writes
    if not writes:
        return []
    paths = list(dict.fromkeys(w.path for w in writes))
    shown = ", ".join(shorten(p, 120) for p in paths[-10:])
    more = f" and {len(paths) - 10} more" if len(paths) > 10 else ""
    text = f"files written: {shown}{more}; last write: {shorten(writes[-1].path, 200)} ({writes[-1].by})"
    left = sorted(path for path, marks in found.stubs.items() if not all(m.hollow for m in marks))
    if left:
        text += f'; left as "not implemented" in {shorten(", ".join(left[:3]), 200)}'
    return [Row("", "write", text, outcome="failed" if left else "", detail=writes[-1].path)]


def weak_rows(found: Found, asked: str, final: str, changes: Sequence[str] = ()) -> list[Row]:
    """Weakened tests. Open only for a skip put in while tests failed and not asked for, or for expectations
    bent in place of a change of the program that was asked for. ``changes``: the changes that were.
    """
    bent = not (found.blind_writes or found.delegated) and all(is_test(w.path) for w in found.writes)
    program = any(not _ABOUT_TESTS.search(text) for text in changes)
    rows: list[Row] = []
    allowed = bool(_CHANGING_TESTS.search(asked[:4000]))
    for weak in dict.fromkeys((w.what, w.after_failure) for w in found.weak):
        what, after_failure = weak
        expected = what.change == "expected"
        if expected and not (after_failure and bent):
            continue  # new behaviour has new values
        failed = after_failure or bool(_FIXING_TESTS.search(asked[:4000]))
        evades = what.change in {"skipped", "narrowed", "masked"}
        wanted = bool(_WANTED_CHANGE[what.change].search(asked[:4000]))
        strong = (
            failed
            and not (wanted if evades else allowed)
            and (not expected or (program and not wanted))
            and (evades or (after_failure and not _explains(final)))
        )
        when = " while a test run had failed" if after_failure else ""
        text = f"{describe(what)}{when}"
        rows.append(
            Row(
                "",
                "tests_changed",
                shorten(text, 300),
                open=strong,
                detail=shorten(describe(what), 200),
                settled=wanted or _goes_along(what, found, asked),
            )
        )
    return rows[-MAX_ROWS:]


def _goes_along(what: Weakening, found: Found, asked: str) -> bool:
    """Whether a test went with the code of the same name, which the request names, and the rest passes."""
    if what.change not in {"deleted", "tests_removed", "assertions"}:
        return False
    gone = {
        w.path.rstrip("/").rsplit("/", 1)[-1].split(".", 1)[0].lower().rstrip("s")
        for w in found.writes
        if w.by in {"rm", "git rm", "unlink"} and not is_test(w.path)
    }
    names = {stem for stem in gone if len(stem) >= 4 and stem in asked.lower()}
    if not names or not any(r.outcome.result == "passed" and r.at > found.last_code for r in found.runs.all):
        return False
    return what.change != "deleted" or any(stem in what.path.lower() for stem in names)


def _explains(final: str) -> bool:
    """Whether the final text gives a reason for a change of the tests: a judge has to weigh that."""
    return any(_ABOUT_TESTS.search(s) and _REASON.search(s) for s in sentences(final))


def check_row(
    run: Run, found: Found, directory: str, *, counts: bool, red: bool = False, clean: bool = True
) -> Row:
    """A test, build or lint run. ``counts``: whether a failure of this task's work can be open at all.

    ``clean``: the request wants no lint findings, not even old ones.
    """
    position: Position = "after_last_write" if run.at > found.last_code else "before_last_write"
    if found.last_code < 0:
        position = ""
    result, summary = run.outcome.result, run.outcome.summary
    old = run.outcome.result == "failed" and run.check.tool in found.base_failed
    elsewhere = not clean and _elsewhere(run, found)
    unanswered = counts and not old and not elsewhere and found.runs.unanswered(run)
    command = _command(run.check, directory)
    said = {"passed": "passed", "failed": "failed", "unknown": "ran, its outcome is not visible,"}[result]
    when = {"": "", "after_last_write": " after the last edit", "before_last_write": " before the last edit"}[
        position
    ]
    again = " and was not run again" if unanswered and position == "before_last_write" else ""
    flaky = f" (flaky: failed {run.flaky}x before, with no edit in between)" if run.flaky else ""
    text = f"{run.check.kind}: `{command}` {said}{when}{again}".rstrip(",") + flaky
    text += " (it failed too with the changes stashed away)" if old else ""
    text += " (only in files that were not written)" if elsewhere else ""
    return Row(
        "",
        "check",
        text + (f": {summary}" if summary else ""),
        outcome=result,
        position=position,
        open=unanswered,
        detail=summary,
        command=command,
        check=run.check.kind,
        settled=result == "failed" and (red or elsewhere or (old and _proven_old(run, found))),
    )


def _elsewhere(run: Run, found: Found) -> bool:
    """Whether all that a style checker found lies in files that this work never wrote."""
    if not run.outcome.places or found.blind_writes or found.delegated:
        return False
    written = {w.path.rsplit("/", 1)[-1] for w in found.writes}
    return not any(place.rsplit("/", 1)[-1] in written for place in run.outcome.places)


def _proven_old(run: Run, found: Found) -> bool:
    """Whether what fails now failed without the work too: as many tests, or the same names."""
    before = found.base_failed[run.check.tool]
    names = set(run.outcome.failing)
    counts = _FAILED_COUNT.search(run.outcome.summary), _FAILED_COUNT.search(before.summary)
    if counts[0] and counts[1]:
        return _count(counts[0]) <= _count(counts[1])
    return bool(names) and names <= set(before.failing)


def _count(found: re.Match[str]) -> int:
    return int(found[1] or found[2])


def deed_rows(found: Found) -> list[Row]:
    """Commits, pushes, pull requests, issues and CI; then the last runs of the program and deployments."""
    repository = found.did("commit", "push", "pr", "issue", "ci")[-MAX_ROWS:]
    others = found.did("deploy", "run")[-MAX_RUNS_SHOWN:]
    return [_deed_row(done, found) for done in (*repository, *others)]


def _overtaken(done: Done, found: Found) -> bool:
    """Whether a later deed of the kind did not fail: of the same program or file where it is a run."""
    later = [d for d in found.did(done.deed.kind) if d.at > done.at and d.outcome != "failed"]
    if done.deed.kind != "run":
        return bool(later)
    names = set(_PROGRAM.findall(done.deed.text))
    return any(names & set(_PROGRAM.findall(d.deed.text)) for d in later)


def _deed_row(done: Done, found: Found) -> Row:
    when = "after" if done.at > found.last_code else "before"
    kind = done.deed.kind
    said = {"passed": "done", "failed": "failed", "unknown": "ran, its outcome is not visible", "": "ran"}[
        done.outcome
    ]
    text = f"{kind}: `{shorten(done.deed.text, 160)}` {said}, {when} the last edit"
    named = f": {shorten(done.named, 200)}" if done.named else ""
    row_kind = "run" if kind in {"run", "deploy"} else "git"
    return Row(
        "",
        "run" if row_kind == "run" else "git",
        text + named,
        outcome=done.outcome,
        detail=shorten(done.named, 200),
        settled=done.outcome == "failed" and _overtaken(done, found),
    )


def _command(check: Check, directory: str) -> str:
    """What to type again, with the folder where it isn't the session's own."""
    command = re.sub(r"\s*(?:2>&1|2>/dev/null)", "", check.text)
    if check.cwd and directory and check.cwd != directory:
        folder = check.cwd.removeprefix(directory.rstrip("/") + "/")
        command = f"cd {folder} && {command}"
    return shorten(command, 300)


def todo_rows(todos: Sequence[Todo], calls: tuple[ToolCall, ...]) -> list[Row]:
    """Open entries of the agent's own list, where this task's work touched the list at all."""
    if not any(c.tool.lower() in TODO_TOOLS and c.status == "completed" for c in calls):
        return []
    left = [t for t in todos if t.status in {"pending", "in_progress"}]
    return [
        Row("", "todo", f"todo, {t.status}: {shorten(t.text, 200)}", open=True, detail=shorten(t.text, 200))
        for t in left[:MAX_ROWS]
    ]


def denied_rows(calls: tuple[ToolCall, ...]) -> list[Row]:
    """What the person refused or stopped, where the same tool had no success after it."""
    found: list[Row] = []
    succeeded: set[str] = set()
    for call in reversed(calls):
        if is_denied(call):
            if call.tool not in succeeded and len(found) < MAX_ROWS:
                found.append(Row("", "denied", f"the person refused or stopped {call.tool}{_target(call)}"))
        elif call.status == "completed":
            succeeded.add(call.tool)
    return found[::-1]


def error_rows(calls: tuple[ToolCall, ...], *, asked: bool) -> list[Row]:
    """The errors that the work ended with. Look-ups don't count, nor does one the person was asked about."""
    found: list[Row] = []
    for call in reversed(calls):
        if call.tool.lower() in TODO_TOOLS and call.status == "completed":
            continue
        if call.status != "error" or len(found) >= MAX_ROWS:
            break
        if not is_denied(call) and not looks_up(call.tool) and call.tool != LASTING_SHELL:
            error = shorten(call.error or call.output, 200)
            text = f"{call.tool}{_target(call)} failed and nothing came after it: {error}"
            found.append(Row("", "tool_error", text, open=not asked, detail=f"{call.tool}{_target(call)}"))
    return found[::-1]


def _target(call: ToolCall) -> str:
    target = text_of(call, "filePath", "file_path", "path", "command", "url", "description")
    return f" ({shorten(target, 120)})" if target else ""


def shorten(text: str, limit: int) -> str:
    """One line of at most ``limit`` characters."""
    text = " ".join(text[: limit * 4].split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
