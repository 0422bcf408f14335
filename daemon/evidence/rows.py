"""The rows: checks, secrets, writes, weakened tests, commits and runs, todos, refusals, errors, unfinished
work.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from ..core.evidence import Position, Row
from ..core.transcript import is_denied, looks_up
from .actions import LASTING_SHELL, SHELL_TOOLS, TODO_TOOLS, Deed, Write, text_of
from .commands import read_script
from .edits import describe, file_name, is_test, written_by_tool
from .gitfiles import forgotten
from .outputs import shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ..core.transcript import Todo, ToolCall
    from .actions import Action, Check
    from .outcomes import Ended
    from .work import Commit, Done, Run, Work

# Test, build and lint runs: how each ended, and whether a failure proves that work is left (I24).

MAX_TESTS: Final = 6  # names in one row
_FAILED_COUNT: Final = re.compile(
    r"\b(?:failures|failed|fail|failing)[=: ]{1,3}(\d{1,6})\b|\b(\d{1,6}) (?:tests? )?fail\w*", re.IGNORECASE
)
_REDIRECTED: Final = re.compile(r"\s{0,4}(?:2>&1|2>/dev/null)")


def check_rows(work: Work, directory: str) -> list[Row]:
    """The test, build and lint runs that no later run replaced or answered, without ids.

    A failure is open only after a change of code, and only where no run shows that it is older than the work.
    A model reads whether the person wanted or excluded it.
    """
    shown = [run for run in work.runs.current if not work.runs.settled(run)][-MAX_ROWS:]
    return [_row(run, work, directory) for run in shown]


def _row(run: Run, work: Work, directory: str) -> Row:
    result, summary = run.outcome.result, run.outcome.summary
    last = work.last_code  # a pass stays one when documents are written, a failure may be mended by any file
    if result == "failed":
        last = work.last_edit if run.check.kind == "lint" else work.last_data
    position: Position = "after_last_write" if run.at > last else "before_last_write"
    if work.last_code < 0 and (result != "failed" or last < 0):
        position = ""
    old = result == "failed" and _is_old(run, work)
    elsewhere = _elsewhere(run, work)
    unanswered = work.last_code >= 0 and not (old or elsewhere) and work.runs.unanswered(run)
    command = _command(run.check, directory)
    said = {"passed": "passed", "failed": "failed", "unknown": f"ran (see {run.call}),"}[result]
    when = {"": "", "after_last_write": " after the last edit", "before_last_write": " before the last edit"}[
        position
    ]
    again = " and was not run again" if unanswered and position == "before_last_write" else ""
    if position == "after_last_write" and result == "failed" and work.last_edit > run.at:
        when = " after the last edit of code"
    flaky = f" (flaky: failed {run.flaky}x before, with no edit in between)" if run.flaky else ""
    text = f"{run.check.kind} at {run.call}: `{command}` {said}{when}{again}".rstrip(",") + flaky
    text += " (it failed too without the changes)" if old else ""
    text += " (only in files that were not written)" if elsewhere else ""
    return Row(
        "",
        "check",
        text + (f": {summary}" if summary else "") + _tests(run, work),
        outcome=result,
        position=position,
        open=unanswered,
        detail=summary,
        command=command,
        check=run.check.kind,
        settled=old or elsewhere,
    )


def _tests(run: Run, work: Work) -> str:
    """The names of the tests that failed, and which of them had failed before the first edit."""
    names = run.outcome.tests
    if not names:
        return ""
    before = {
        name
        for r in work.runs.all
        if r.code_at < 0 and r.at < run.at
        for name in r.outcome.tests
        if name in names
    }
    shown = "; ".join(names[:MAX_TESTS]) + (
        f" and {len(names) - MAX_TESTS} more" if len(names) > MAX_TESTS else ""
    )
    old = [name for name in names if name in before][:MAX_TESTS]
    same = "all of them" if len(before) == len(names) else "; ".join(old)
    return f"; failed tests: {shown}" + (f"; failed before the first edit too: {same}" if before else "")


def _elsewhere(run: Run, work: Work) -> bool:
    """Says whether all findings of a style checker lie in files that this work never wrote."""
    if not run.outcome.places or work.blind_writes or work.delegated:
        return False
    written = {file_name(w.path) for w in work.writes}
    return not any(file_name(place) in written for place in run.outcome.places)


def _is_old(run: Run, work: Work) -> bool:
    """Says whether the same check failed without the work too (stashed away, or before the first edit), with
    as many failures or with the same names.
    """
    before = [
        r.outcome for r in work.runs.all if r.code_at < 0 and r.at < run.at and r.check.covers(run.check)
    ]
    if run.check.tool in work.base_failed:
        before.append(work.base_failed[run.check.tool])
    return any(_no_worse(run.outcome, outcome) for outcome in before if outcome.result == "failed")


def _no_worse(now: Ended, before: Ended) -> bool:
    counts = _FAILED_COUNT.search(now.summary), _FAILED_COUNT.search(before.summary)
    if counts[0] and counts[1] and _count(counts[0]) > _count(counts[1]):
        return False
    if now.tests and before.tests:
        return set(now.tests) <= set(before.tests)
    if counts[0] and counts[1]:
        return True
    if now.failing and before.failing:
        return set(now.failing) <= set(before.failing)
    return not (now.tests or now.failing)  # in doubt it is no proof


def _count(found: re.Match[str]) -> int:
    return int(found[1] or found[2])


def _command(check: Check, directory: str) -> str:
    """The command to type again, with the folder where it isn't the session's own."""
    command = _REDIRECTED.sub("", check.text)
    if check.cwd and directory and check.cwd != directory:
        folder = check.cwd.removeprefix(directory.rstrip("/") + "/")
        command = f"cd {folder} && {command}"
    return shorten(command, 300)


# Secrets in a commit, and files in it that nobody asked for.
#
# Which files a commit took in is read from git's own output (``create mode 100644 .env``) and from the
# paths of ``git add``. Templates (``.env.example``) and files that the request names are no secrets.

MAX_NAMES: Final = 6
_SECRET: Final = re.compile(
    r"(?:^|/)(?:[^/]{0,60}\.env(?:\.[\w-]{1,40}){0,3}|\.netrc|\.pgpass|\.pypirc|\.git-credentials"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]{1,100}\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)"
    r"|credentials(?:\.json|\.csv)?|(?:client_?)?secrets?\.(?:json|ya?ml|toml|env|txt|properties)"
    r"|[^/]{0,60}service[-_]?account[^/]{0,60}\.json|[^/]{1,60}-adminsdk-[^/]{1,60}\.json"
    r"|terraform\.tfstate(?:\.backup)?|kubeconfig|[^/]{1,80}\.(?:dump|pgdump)"
    r"|[^/]{0,80}(?:dump|backup)[^/]{0,60}\.(?:sql|sql\.gz|gz|bak|dump|tar|zip))$",
    re.IGNORECASE,
)
_HARMLESS_NAME: Final = re.compile(
    r"(?:^|[._-])(?:examples?|samples?|templates?|dist|tpl|defaults?|schema|seeds?|pub|public|tests?|ci|dev"
    r"|development|vault|enc|encrypted|list|debug|mock|dummy|table)(?=[._-]|$)"
    r"|(?:^|[._-])(?:certs?|ca|chain)(?=[._-]).{0,200}\.pem$",  # with other endings they hold the key
    re.IGNORECASE,
)
_HARMLESS_FOLDER: Final = re.compile(
    r"(?:^|/)(?:tests?|testdata|fixtures?|mocks?|specs?|stubs?|examples?|vendor|node_modules)/", re.IGNORECASE
)
_LOCKS: Final = re.compile(
    r"(?:^|/)(?:[^/]{1,60}[.-]lock(?:\.\w{1,5}|b)?|package-lock\.json|go\.sum|[^/]{1,40}\.snap|Gemfile\.lock)$"
)


def is_secret(path: str) -> bool:
    """Says whether a file of this name usually holds secrets or a copy of data."""
    name = file_name(path)
    harmless = _HARMLESS_NAME.search(name) or _HARMLESS_FOLDER.search(path)
    return bool(_SECRET.search(path)) and not harmless


def leaks(work: Work, asked: str, told: str) -> list[Row]:
    """The rows of kind ``leak``, without ids: at most one for secrets and one for other files.

    The row of secrets is open until git was told to forget the files; ``detail`` is ``pushed`` where a push
    followed. It is closed where the request names the file, and where the agent was told once (``told``: the
    feedback of this task), since its answer may not be readable. The row of other files is closed too.
    """
    rows: list[Row] = []
    said = asked.lower()
    secret = [(c, p) for c in work.commits for p in c.files if is_secret(p)]
    if secret:
        rows.append(_secret_row(secret, work, said, told))
    if work.commits and not (work.blind_writes or work.delegated):
        rows += _stranger_rows(work, said)
    return rows


def _secret_row(found: Sequence[tuple[Commit, str]], work: Work, said: str, told: str) -> Row:
    last = {path: commit.at for commit, path in found}  # the last commit that holds it
    pushed = any(d.at > min(c.at for c, _ in found) and d.outcome != "failed" for d in work.did("push"))
    tracked = [p for p, at in last.items() if not forgotten(p, at, work)]
    shown = (tracked or list(last))[:MAX_NAMES]
    names = ", ".join(f"`{shorten(p, 100)}`" for p in shown)
    text = f"{names} {'was committed and pushed' if pushed else 'was committed'}"
    if not tracked:
        text += "; it is no longer tracked"
        text += (
            ", but what it held is public to all who can read the remote: the person has to rotate it"
            * pushed
        )
    if any(_names(said, p) for p in shown):
        text += " (the request names it)"
    wanted = [p for p in tracked if not _names(said, p) and not _names(told, p)]
    return Row(
        "", "leak", text, outcome="failed", open=bool(wanted), detail="pushed" if pushed else "committed",
        command=shlex.join(shown), settled=not tracked and not pushed,
    )  # fmt: skip


def _stranger_rows(work: Work, said: str) -> list[Row]:
    written = {file_name(w.path) for w in work.writes}
    strangers = [
        path
        for path in dict.fromkeys(p for c in work.commits for p in c.created)
        if file_name(path) not in written and not _LOCKS.search(path) and not _names(said, path)
        and not is_secret(path)
    ]  # fmt: skip
    if not strangers or not written:
        return []
    names = ", ".join(shorten(p, 100) for p in strangers[:MAX_NAMES])
    more = f" and {len(strangers) - MAX_NAMES} more" if len(strangers) > MAX_NAMES else ""
    text = f"the commit adds files that no call wrote and the request does not name: {names}{more}"
    return [Row("", "leak", text, detail="strangers")]


def _names(said: str, path: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){re.escape(file_name(path).lower())}(?![\w.])", said.lower()))


_NAME: Final = re.compile(r"[\w-]{1,80}+\.\w{1,20}")
MAX_ROWS: Final = 20  # of one kind
MAX_UNFINISHED: Final = 6
MAX_RUNS_SHOWN: Final = 5
_PROGRAM: Final = re.compile(r"[\w-]{0,60}[./][\w./-]{2,120}|(?<=-m )[\w.]{2,60}|(?<=run )[\w:-]{2,40}")


def write_rows(work: Work) -> list[Row]:
    """One row: the files, the last of them, and those with a stand-in left."""
    writes = work.writes
    if not writes:
        return []
    paths = list(dict.fromkeys(w.path for w in writes))
    shown = ", ".join(shorten(p, 120) for p in paths[-10:])
    more = f" and {len(paths) - 10} more" if len(paths) > 10 else ""
    text = f"files written: {shown}{more}; last write: {shorten(writes[-1].path, 200)} ({writes[-1].by})"
    if left := sorted(work.stubs):
        text += f'; left as "not implemented" in {shorten(", ".join(left[:3]), 200)}'
    return [Row("", "write", text, outcome="failed" if left else "", detail=writes[-1].path)]


def deed_rows(work: Work) -> list[Row]:
    """Commits, pushes, pull requests, issues and CI; then the last runs of the program and deployments."""
    repository = work.did("commit", "push", "pr", "issue", "ci")[-MAX_ROWS:]
    others = work.did("deploy", "run")[-MAX_RUNS_SHOWN:]
    return [_deed_row(done, work) for done in (*repository, *others)]


def _overtaken(done: Done, work: Work) -> bool:
    """Says whether a later deed of the kind did not fail: of the same program or file where it is a run."""
    later = [d for d in work.did(done.deed.kind) if d.at > done.at and d.outcome != "failed"]
    if done.deed.kind != "run":
        return bool(later)
    names = set(_PROGRAM.findall(done.deed.text))
    return any(names & set(_PROGRAM.findall(d.deed.text)) for d in later)


def _deed_row(done: Done, work: Work) -> Row:
    when = "after" if done.at > work.last_code else "before"
    kind = done.deed.kind
    said = {"passed": "done", "failed": "failed", "unknown": f"ran (see {done.call})", "": "ran"}[
        done.outcome
    ]
    text = f"{kind} at {done.call}: `{shorten(done.deed.text, 160)}` {said}, {when} the last edit"
    named = f": {shorten(done.named, 200)}" if done.named else ""
    return Row(
        "",
        "run" if kind in {"run", "deploy"} else "git",
        text + named,
        outcome=done.outcome,
        detail=shorten(done.named, 200),
        settled=done.outcome == "failed" and _overtaken(done, work),
    )


def todo_rows(todos: Sequence[Todo], calls: tuple[ToolCall, ...], work: Work) -> list[Row]:
    """Unticked entries of the agent's own list, where this task's work touched the list.

    A row is closed where a later write overtook the list, and the entry was in progress or names a written
    file.
    """
    touched = [i for i, c in enumerate(calls, 1) if c.tool.lower() in TODO_TOOLS and c.status == "completed"]
    if not touched:
        return []
    last = work.last_code_call.partition(".")[0].removeprefix("A")
    later = bool(last) and int(last) > touched[-1]
    names = {file_name(w.path) for w in work.writes}
    rows = []
    for t in [t for t in todos if t.status in {"pending", "in_progress"}][:MAX_ROWS]:
        text = shorten(t.text, 200)
        overtaken = later and (t.status == "in_progress" or bool(names & set(_NAME.findall(t.text))))
        note = f" (the list was last changed at A{touched[-1]}, before later writes)" if later else ""
        rows.append(Row("", "todo", f"todo, {t.status}: {text}{note}", open=not overtaken, detail=text))
    return rows


def denied_rows(calls: tuple[ToolCall, ...], work: Work) -> list[Row]:
    """The calls that the person refused or stopped, where the same tool had no success after it, or where
    another call did the same after it.
    """
    found: list[Row] = []
    succeeded: set[str] = set()
    done: dict[str, str] = {}
    actions = work.actions
    for i, call in reversed([*enumerate(calls, 1)]):
        aims = _aims(actions.get(f"A{i}") or _wanted(call))
        if is_denied(call):
            again = next((done[aim] for aim in aims if aim in done), "")
            if (again or call.tool not in succeeded) and len(found) < MAX_ROWS:
                way = f", and {again} then did it another way" if again else ""
                found.append(
                    Row("", "denied", f"the person refused or stopped {call.tool}{_target(call)}{way}")
                )
        elif call.status == "completed":
            succeeded.add(call.tool)
            done |= dict.fromkeys(aims, f"A{i}")
    return found[::-1]


def _wanted(call: ToolCall) -> Sequence[Action]:
    """The deeds of a call that did not run."""
    if call.tool.lower() in SHELL_TOOLS:
        return read_script(text_of(call, "command", "cmd"))
    return written_by_tool(call.tool, call.input)


def _aims(actions: Sequence[Action]) -> set[str]:
    """Names for the aims of actions: a written file, a push, a deployment."""
    deeds = {a.kind for a in actions if isinstance(a, Deed) and a.kind not in {"run", "unknown"}}
    return {*deeds, *(a.path for a in actions if isinstance(a, Write))}


def error_rows(calls: tuple[ToolCall, ...], *, asked: bool) -> list[Row]:
    """The errors at the end of the work, without look-ups and those that the person was asked about."""
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


def weakened_rows(work: Work) -> list[Row]:
    """Tests that the work made weaker. Closed: a model reads whether that was wanted."""
    bent = not (work.blind_writes or work.delegated) and all(is_test(w.path) for w in work.writes)
    rows: list[Row] = []
    for what, after_failure in dict.fromkeys((w.what, w.after_failure) for w in work.weak):
        if what.change == "expected" and not (after_failure and bent):
            continue  # new behaviour has new values
        said = describe(what)
        when = " while a test run had failed" if after_failure else ""
        rows.append(Row("", "tests_changed", shorten(f"{said}{when}", 300), detail=shorten(said, 200)))
    return rows[-MAX_ROWS:]


def unfinished_rows(work: Work, errors: Collection[str], *, denied: bool) -> list[Row]:
    """Stand-ins for code, failed edits, killed commands. ``errors``: the calls that failed at the very end,
    which have rows of their own.
    """
    if denied:
        return []
    return [*_stubs(work), *_failed_edits(work, errors), *_killed(work)][:MAX_UNFINISHED]


def _stubs(work: Work) -> Iterator[Row]:
    for path, marks in work.stubs.items():
        mark = next((m for m in marks if m.elided), marks[0])
        what = "in place of the code" if mark.elided else "in it"
        text = f'{file_name(path)} was written with "{shorten(mark.line)}" {what}'
        yield Row("", "unmet", text, open=mark.elided, detail=text)


def _failed_edits(work: Work, errors: Collection[str]) -> Iterator[Row]:
    if work.delegated or work.blind_writes:
        return
    for path in dict.fromkeys(work.failures.edits):
        name = file_name(path)
        if any(name in error for error in errors):
            continue
        text = f"the edit of {shorten(path)} failed and was not done again"
        yield Row("", "unmet", text, detail=f"The edit of {name} failed and was not done again")


def _killed(work: Work) -> Iterator[Row]:
    for script in work.failures.killed[-2:]:
        text = f"`{shorten(script)}` was stopped before its end and not run again"
        yield Row("", "unmet", text, detail=f"`{shorten(script)}` was stopped before its end")


def _target(call: ToolCall) -> str:
    target = text_of(call, "filePath", "file_path", "path", "command", "url", "description")
    return f" ({shorten(target, 120)})" if target else ""
