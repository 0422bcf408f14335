"""Reads the task's tool calls once, in order, into one ``Work``: rows, log and changes are views of it."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.evidence import Ending, Evidence, Row, ending
from ..core.transcript import is_denied, looks_up
from .actions import (
    AGENT_TOOLS,
    LASTING_SHELL,
    SHELL_TOOLS,
    TODO_TOOLS,
    WRITE_TOOLS,
    Check,
    Deed,
    Stash,
    Write,
    text_of,
)
from .activity import activity
from .commands import final_cwd, read_script
from .diffs import file_changes
from .edits import (
    Weakening,
    edits,
    file_name,
    is_prose,
    is_test,
    matters,
    may_be_data,
    stubs,
    weakenings,
    written_by_tool,
)
from .gitfiles import taken_in
from .outcomes import judge_check, result
from .rows import (
    check_rows,
    deed_rows,
    denied_rows,
    error_rows,
    leaks,
    todo_rows,
    unfinished_rows,
    weakened_rows,
    write_rows,
)
from .work import BY_SCRIPT, Done, Run, Seen, Weak, Work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.transcript import ToolCall, Transcript
    from .actions import Action

# ``collect``: the evidence of one task, computed from its calls and the form of its last answer, once.
#
# It never reads words of people or agents and never guesses: a row is ``open`` only where it proves by
# itself that something is unfinished, because a false "incomplete" is the costly error.

_ENDINGS: Final[dict[Ending, str]] = {
    "cut_off": "the host cut the last answer off, it had reached its largest size",
    "empty": "there is no final text",
}


def collect(transcript: Transcript) -> Evidence:
    """The evidence of the current task: writes, checks, open work, every call, changes by file."""
    calls = tuple(c for m in transcript.work for c in m.calls)
    final = next((m for m in reversed(transcript.work) if m.role == "assistant"), None)
    end = ending(final.text, final.finish) if final else "empty"
    work = read(calls, transcript.directory)
    denied = denied_rows(calls, work)
    errors = error_rows(calls, asked=end == "question")
    asked = "\n".join(m.text for m in transcript.requests)
    told = "\n".join(m.text for m in transcript.work if m.order)
    rows = [
        *write_rows(work),
        *weakened_rows(work),
        *check_rows(work, transcript.directory),
        *deed_rows(work),
        *leaks(work, asked, told),
        *todo_rows(transcript.todos, calls, work),
        *denied,
        *errors,
        *unfinished_rows(work, [r.detail for r in errors], denied=bool(denied)),
    ]
    if said := _ENDINGS.get(end):
        rows.append(Row("", "ending", said, open=end == "cut_off"))
    return Evidence(
        rows=tuple(replace(row, id=f"E{i}") for i, row in enumerate(rows, 1)),
        ending=end,
        tool_calls=len(calls),
        writes=len(work.writes),
        code_writes=work.code_writes,
        delegated=work.delegated,
        log=activity(transcript, work),
        files=file_changes(work, transcript.directory),
    )


MAX_DEEDS: Final = 200
MAX_WEAKENINGS: Final = 50
MAX_CACHED: Final = 2_000  # characters of a script whose reading is kept
MAX_TREES: Final = 4
MAX_SHOWN: Final = 100  # files
_BROWSER: Final = re.compile(r"browser|playwright|puppeteer|chrome|screenshot", re.IGNORECASE)
_TREE: Final = re.compile(  # of a commit that was there before
    r"\bworktree add (?!(?:\S{1,60} ){0,4}-[bB]\b)(?:-{1,2}[\w-]{1,20} ){0,3}"
    r"(?P<path>[~.\w/-][\w./~-]{1,160})"
    r" (?:(?:origin|upstream)/)?(?:main|master|HEAD\S{0,6}|develop|trunk|[0-9a-f]{7,40})\b"
)
_REMOVERS: Final = frozenset({"rm", "unlink", "git rm"})
_MAKERS: Final = frozenset({"cat", "tee", "touch", "echo", "printf", "cp", "shell"})
_BINARY: Final = re.compile(
    r"\.(?:zip|tar|tgz|gz|bz2|xz|zst|whl|egg|jar|war|deb|rpm|dmg|apk|exe|dll|dylib|so|o|a|class|wasm|bin|db|sqlite3?)$"
)
_TEST_FOLDERS: Final = frozenset({"tests", "test", "spec", "specs", "__tests__"})


def read(calls: tuple[ToolCall, ...], directory: str) -> Work:
    """The actions of all finished calls."""
    work, at, deed_at, stashed, lasting = Work(), 0, -1, False, directory or None
    created = _Created(directory)
    trees: tuple[str, ...] = ()
    for number, call in numbered(calls):
        shell = call.tool.lower() in SHELL_TOOLS
        actions: tuple[Action, ...] = ()
        script = ""
        if _ran(call):
            script, workdir = text_of(call, "command", "cmd"), text_of(call, "workdir", "cwd")
            if shell:
                start = workdir or (lasting if call.tool == LASTING_SHELL else directory)
                actions = _known(script, start) if len(script) <= MAX_CACHED else read_script(script, start)
                lasting = final_cwd(script, start) if call.tool == LASTING_SHELL else lasting
            else:
                actions = written_by_tool(call.tool, call.input)
                _other_tool(number, call, at + 1, work, created)
        work.calls.append(Seen(number, call, actions))
        work.failures.take(call, script if shell else "", actions)
        checks = [a for a in actions if isinstance(a, Check)]
        trees = _trees(script, trees) if shell else trees
        for action in actions:
            at += 1
            if isinstance(action, Stash):
                stashed = action.away
            elif stashed or _in_tree(action, trees):  # a look at the old state, not at this work
                _base(action, call, work)
            elif isinstance(action, Check):
                output = call.printed if _speaks_for(checks, action) else ""
                outcome = judge_check(action, output, call.exit)
                run = Run(
                    at, work.last_code, action, outcome, number, edit_at=work.last_edit, deed_at=deed_at
                )
                work.runs.add(run)
            elif isinstance(action, Deed):
                deed_at = at
                _deed(action, at, number, call, work, alone=len(actions) == 1)
            elif matters(action.path, directory):
                _write(action, at, number, work, created)
        if shell:
            taken_in(script, call.printed, call.exit, number, at - len(actions), work)
        elif actions:
            _edited(call, at, work, created)
    return work


def numbered(calls: tuple[ToolCall, ...]) -> Iterator[tuple[str, ToolCall]]:
    """The calls with their numbers in the activity log: ``A12``, and ``A12.3`` inside a sub-agent."""
    for i, call in enumerate(calls, 1):
        if call.inner:
            yield from ((f"A{i}.{j}", inner) for j, inner in enumerate(call.inner, 1))
        yield f"A{i}", call


def _ran(call: ToolCall) -> bool:
    """Says whether the call ran. In Claude Code's shell an error may be one of the command; a refusal is
    none.
    """
    return call.status == "completed" or (
        call.status == "error" and call.tool == LASTING_SHELL and not is_denied(call)
    )


_known = lru_cache(maxsize=256)(read_script)  # for the short commands that agents repeat


class _Created(Struct):
    """The files that this task made itself: deleting one of them is no loss."""

    directory: str
    paths: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)  # files that a call read or changed before

    def name(self, path: str) -> str:
        return posixpath.normpath(
            path.removeprefix(f"{self.directory.rstrip('/')}/") if self.directory else path
        )

    def touch(self, path: str, *, whole: bool) -> None:
        """A call read or changed ``path``. ``whole``: it wrote the whole text of it."""
        name = self.name(path)
        if whole and name not in self.known:
            self.paths.add(name)
        self.known.add(name)

    def holds(self, path: str) -> bool:
        """Says whether ``path`` is such a file, or a folder that holds only such files as far as known."""
        name = self.name(path)
        inside = [n for n in self.known if n.startswith(f"{name}/")]
        return name in self.paths or (bool(inside) and all(n in self.paths for n in inside))


def _write(write: Write, at: int, call: str, work: Work, created: _Created) -> None:
    removed = write.by in _REMOVERS
    if not removed and write.by not in WRITE_TOOLS:
        created.touch(write.path, whole=write.by in _MAKERS)
    if removed and _BINARY.search(write.path):
        return  # a build product that is cleared away changes no code
    work.writes.append(write)
    work.last_edit = at
    if may_be_data(write.path):
        work.last_data = at
    if write.by not in WRITE_TOOLS:  # a script may have put it right
        blind, name = BY_SCRIPT.search(write.path), file_name(write.path)
        work.stubs = {p: s for p, s in work.stubs.items() if not blind and not p.endswith(name)}
    work.blind_writes = work.blind_writes or bool(BY_SCRIPT.search(write.path))
    if not is_prose(write.path):
        work.last_code, work.last_code_call, work.code_writes = at, call, work.code_writes + 1
    if removed and not created.holds(write.path):
        folder = file_name(write.path)
        if (is_test(write.path) or folder in _TEST_FOLDERS) and len(work.weak) < MAX_WEAKENINGS:
            work.weak.append(Weak(at, Weakening("deleted", write.path), work.runs.failing_tests))


def _edited(call: ToolCall, at: int, work: Work, created: _Created) -> None:
    """The findings in an edit tool's texts: stand-ins for code, tests made weaker."""
    for path, old, new in edits(call):
        created.touch(path, whole=not old)
        _stubs(path, old, new, work)
    room = MAX_WEAKENINGS - len(work.weak)
    made = (w for w in weakenings(call) if not created.holds(w.path))
    work.weak.extend(Weak(at, w, work.runs.failing_tests) for w in list(made)[: max(room, 0)])


def _deed(done: Deed, at: int, number: str, call: ToolCall, work: Work, *, alone: bool) -> None:
    if done.kind == "unknown" or len(work.done) >= MAX_DEEDS:
        return
    outcome, named = result(done, call.printed, call.exit, alone=alone)
    work.done.append(Done(at, number, done, outcome, named))


def _other_tool(number: str, call: ToolCall, at: int, work: Work, created: _Created) -> None:
    """Tools that neither edit nor look: sub-agents, browsers, other servers' tools."""
    name = call.tool.lower()
    if name in WRITE_TOOLS or name in TODO_TOOLS:
        return
    if name == "read":
        path = text_of(call, "filePath", "file_path", "path")
        created.touch(path, whole=False)
        if len(work.shown) < MAX_SHOWN:
            work.shown.setdefault(path, call.output)
    if name in AGENT_TOOLS:
        kind = text_of(call, "subagent_type", "agent", "subagent").lower()
        seen = bool(call.inner) and not call.inner_cut
        work.delegated = work.delegated or not (seen or kind in {"explore", "plan"})
    elif _BROWSER.search(name):
        if len(work.done) < MAX_DEEDS:
            work.done.append(Done(at, number, Deed("run", call.tool), "unknown"))
    elif not looks_up(call.tool):
        work.blind_writes = True


def _stubs(path: str, old: str, new: str, work: Work) -> None:
    """Takes in the stand-ins of an edit and drops those it replaced."""
    was, part = work.shown.get(path, ""), old.strip()
    before = [s for s in work.stubs.get(path, ()) if old and s.line not in old and part not in s.line]
    now = (*before, *(s for s in stubs(path, old, new) if f"{s.line}\n" not in was))
    work.stubs = {**work.stubs, path: now} if now else {p: s for p, s in work.stubs.items() if p != path}


def _trees(script: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The folders of other states of the repository, checked out beside the work."""
    if "worktree add" not in script:
        return known
    new = [m["path"].rstrip("/") for m in _TREE.finditer(script[:4000])]
    return (*known, *new)[-MAX_TREES:]


def _in_tree(action: Action, trees: tuple[str, ...]) -> bool:
    """Says whether a check ran in one of these folders."""
    cwd = action.cwd if isinstance(action, Check) else None
    return bool(cwd) and any(f"{cwd}/".startswith(f"{t}/") or f"{cwd}/".endswith(f"/{t}/") for t in trees)


def _base(action: Action, call: ToolCall, work: Work) -> None:
    """Takes in a check that failed while the work was stashed away."""
    if isinstance(action, Check):
        outcome = judge_check(action, call.printed, call.exit)
        if outcome.result == "failed":
            work.base_failed[action.tool] = outcome


def _speaks_for(checks: list[Check], check: Check) -> bool:
    """Says whether a summary in the call's output can only be this check's, of all that the call ran."""
    if len(checks) == 1:
        return True
    later = checks[next(i for i, c in enumerate(checks) if c is check) + 1 :]
    return not check.wrap and all(c.tool != check.tool for c in later)
