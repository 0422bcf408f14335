"""Reads the task's tool calls once, in order: checks, writes, commits and the like, weakened tests.

Positions count actions, so that "after the last write" can be told. Knows the hosts' tool names and nothing
about what was asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from daemon.core.actions import Check, Deed, Stash, Write
from daemon.core.checks import Run, Runs
from daemon.core.commands import final_cwd, read_script
from daemon.core.deeds import result
from daemon.core.evidence import Outcome
from daemon.core.failures import Failures
from daemon.core.outcomes import Outcome as Result
from daemon.core.outcomes import judge_check
from daemon.core.refusals import looks_up
from daemon.core.remarks import only_remarks
from daemon.core.requirements import keys
from daemon.core.stubs import Stub, hollow, stubs
from daemon.core.weakened import Weakening, edits, has_tests, is_test, weakenings
from daemon.core.writes import WRITE_TOOLS, is_prose, matters, written_by_tool

if TYPE_CHECKING:
    from daemon.core.actions import Action
    from daemon.core.evidence import Topic
    from daemon.core.transcript import ToolCall

MAX_DEEDS: Final = 200
MAX_WEAKENINGS: Final = 50
MAX_TOUCHED: Final = 8_000  # characters of one edit or script
MAX_CACHED: Final = 2_000  # characters of a script whose reading is kept
MAX_COMMAND: Final = 300
MAX_TREES: Final = 4
MAX_SHOWN: Final = 100  # files
MAX_WORDS: Final = 20_000
SHELL_TOOLS: Final = frozenset({"bash", "shell", "execute", "terminal", "run_command"})
LASTING_SHELL: Final = "Bash"  # Claude Code's shell keeps its folder from call to call
TODO_TOOLS: Final = frozenset({"todowrite", "todo_write", "todoread", "taskcreate", "taskupdate", "tasklist"})
_BROWSER: Final = re.compile(r"browser|playwright|puppeteer|chrome|screenshot", re.IGNORECASE)
_TESTISH: Final = re.compile(r"test|spec|check|verif|valid|smoke", re.IGNORECASE)
_TESTS_SHOWN: Final = re.compile(  # a runner behind a target or a script whose name doesn't tell
    r"^[ \t]{0,8}(?:[>$+] )?(?:pytest|go test|cargo test|vitest|jest|mocha|rspec|phpunit|ctest|mvn"
    r"|npm test)\b"
    r"|\b\d{1,9} (?:passed|passing)\b|^ok[ \t]{1,8}\S{1,200}[ \t]{1,8}[\d.]{1,12}s|\bTests run: \d",
    re.MULTILINE,
)
_SEARCH: Final = re.compile(r"^\s*(?:cd \S{1,200} && )?(?:git grep|grep|rg|ag|ack)\b[^;&\n]{1,400}$")
_HUSH: Final = re.compile(
    r"eslint-disable|#\s?noqa|@ts-(?:ignore|expect-error|nocheck)|#\s?type:\s?ignore|pyright:\s?ignore"
    r"|#!?\[allow\(|@SuppressWarnings|@Suppress\(|//\s?nolint|rubocop:disable|NOSONAR|pylint:\s?disable"
    r"|phpcs:(?:ignore|disable)|@phpstan-ignore|#pragma warning disable|swiftlint:disable|biome-ignore"
    r"|shellcheck disable"
)
_TREE: Final = re.compile(  # of a commit that was there before
    r"\bworktree add (?!(?:\S{1,60} ){0,4}-[bB]\b)(?:-{1,2}[\w-]{1,20} ){0,3}"
    r"(?P<path>[~.\w/-][\w./~-]{1,160})"
    r" (?:(?:origin|upstream)/)?(?:main|master|HEAD\S{0,6}|develop|trunk|[0-9a-f]{7,40})\b"
)
_BY_SCRIPT: Final = re.compile(r"^(?:files, by a|a patch|a file$|git )|[*?$]|/$")
_REMOVERS: Final = frozenset({"rm", "unlink", "git rm"})
_TEST_FOLDERS: Final = frozenset({"tests", "test", "spec", "specs", "__tests__"})


@dataclass(frozen=True, slots=True)
class Done:
    """A deed at position ``at``, how it ended, and what its output names."""

    at: int
    deed: Deed
    outcome: Outcome
    named: str = ""


@dataclass(frozen=True, slots=True)
class Weak:
    """A weakening at position ``at``; ``after_failure``: a test run had failed and nothing passed since."""

    at: int
    what: Weakening
    after_failure: bool


@dataclass(slots=True)
class Found:
    """What the calls hold. ``last_code``: position of the last write to code, -1 for none.

    ``opaque``: calls whose work we can't see (sub-agents, unknown tools, scripts that may do anything), by
    position. ``testish``: commands that are no known runner but may well be a test.
    """

    runs: Runs = field(default_factory=Runs)
    writes: list[Write] = field(default_factory=list)
    last_code: int = -1
    code_writes: int = 0
    done: list[Done] = field(default_factory=list)
    weak: list[Weak] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    testish: int = -1
    inline_tests: bool = False
    stubs: dict[str, tuple[Stub, ...]] = field(default_factory=dict)  # stand-ins left in a file
    touched: set[str] = field(default_factory=set)  # content words of what was written and run
    base_failed: dict[str, Result] = field(
        default_factory=dict
    )  # tools that failed on the state without the work
    shown: dict[str, str] = field(default_factory=dict)  # what a file held when it was read
    failures: Failures = field(default_factory=Failures)
    scripts: set[str] = field(default_factory=set)  # what ran, as typed
    proven: set[str] = field(default_factory=set)  # commands that ended with exit code 0, as typed
    hushed: set[str] = field(default_factory=set)  # files in which a checker was silenced
    search: tuple[str, str] = ("", "")  # the last search after the last write, and what it found
    last_failed: str = ""  # the last command of all, where it failed and is no check
    delegated: bool = False
    blind_writes: bool = False

    def did(self, *kinds: str) -> list[Done]:
        """The deeds of these kinds, oldest first."""
        return [d for d in self.done if d.deed.kind in kinds]

    @property
    def wrapped(self) -> bool:
        """Whether a runner that may run any tool passed after the last write: tox, make check."""
        runs = [r for r in self.runs.all if r.check.wrap and r.at > self.last_code]
        return any(r.outcome.result == "passed" for r in runs)

    def mentions(self, word: str) -> bool:
        """Whether a call we can't see into may have done ``word``."""
        return self.delegated or any(word in name for name in self.opaque)

    def shows(self, topic: Topic) -> bool:
        """Whether anything in the calls may have met ``topic``: doubt counts as yes."""
        match topic:
            case "tests" | "build" | "lint":
                kinds = {"tests": {"test"}, "build": {"build", "test"}, "lint": {"lint"}}[topic]
                ran = any(r.at > self.last_code and r.check.kind in kinds for r in self.runs.all)
                return ran or self.testish > self.last_code or self.mentions(topic.rstrip("s"))
            case "new_tests":
                wrote = self.inline_tests or any(
                    is_test(w.path) or _BY_SCRIPT.search(w.path) for w in self.writes
                )
                return wrote or self.delegated
            case "docs":
                return self.blind_writes or self.delegated or any(_documents(w.path) for w in self.writes)
            case "changelog":
                named = any(
                    "change" in w.path.lower() or "history" in w.path.lower() or "news" in w.path.lower()
                    for w in self.writes
                )
                return named or self.blind_writes or self.delegated
            case "commit" | "push":
                kinds = {"commit", "push", "pr"} if topic == "commit" else {"push", "pr"}
                return any(d.outcome != "failed" for d in self.did(*kinds)) or self.mentions(topic)
            case "pr":
                made = any(d.outcome != "failed" for d in self.did("pr"))
                return made or any(self.mentions(word) for word in ("pull", "merge", "gh api", "_pr", "pr_"))
            case "ci" | "deploy":
                last = self.did(topic)[-1:]
                return any(d.outcome != "failed" for d in last) or self.mentions(topic)
            case "browser":
                return bool(self.did("run")) or bool(self.opaque) or self.delegated


def read(calls: tuple[ToolCall, ...], directory: str) -> Found:
    """Everything the finished calls did."""
    found, at, stashed, lasting = Found(), 0, False, directory or None
    created: set[str] = set()
    trees: tuple[str, ...] = ()
    for call in calls:
        shell = call.tool.lower() in SHELL_TOOLS
        actions: tuple[Action, ...] = ()
        script = ""
        if call.status == "completed" or (call.status == "error" and call.tool == LASTING_SHELL):
            script, workdir = text_of(call, "command", "cmd"), text_of(call, "workdir", "cwd")
            if shell:
                start = workdir or (lasting if call.tool == LASTING_SHELL else directory)
                actions = _ran(script, start, found)
                lasting = final_cwd(script, start) if call.tool == LASTING_SHELL else lasting
            else:
                actions = written_by_tool(call.tool, call.input)
                _other_tool(call, at + 1, found)
        found.failures.take(call, script if shell else "", actions)
        checks = [a for a in actions if isinstance(a, Check)]
        remark = not shell and bool(actions) and found.code_writes > 0 and only_remarks(call)
        trees = _trees(script, trees) if shell else trees
        for action in actions:
            at += 1
            if isinstance(action, Stash):
                stashed = action.away
            elif stashed or _in_tree(action, trees):  # a look at the old state, not at this work
                _base(action, call, found)
            elif isinstance(action, Check):
                output = f"{call.output}\n{call.error}" if _speaks_for(checks, action) else ""
                found.runs.add(Run(at, found.last_code, action, judge_check(action, output, call.exit)))
            elif isinstance(action, Deed):
                _deed(action, at, call, found, alone=len(actions) == 1)
            elif matters(action.path, directory):
                _write(action, at, found, created, remark=remark)
        if not shell and actions:
            _edited(call, at, found, created)
        _last(call, script if shell else "", actions, found)
    return found


def _last(call: ToolCall, script: str, actions: tuple[Action, ...], found: Found) -> None:
    """Takes in a search, a command that passed, and whether the latest command failed."""
    if not script:
        if call.tool.lower() == "grep":
            found.search = (text_of(call, "pattern"), call.output)
        return
    if call.exit == 0 and len(found.proven) < MAX_DEEDS:
        found.proven.add(" ".join(script[:MAX_COMMAND].split()))
    if _SEARCH.match(script):
        found.search = (script[:MAX_COMMAND], call.output)
        return
    acts = [a for a in actions if isinstance(a, Deed)]
    differs = call.exit == 2 and "-detailed-exitcode" in script  # it only says that there is a difference
    failed = (
        call.exit not in {0, None} and not differs and bool(acts) and all(a.kind == "unknown" for a in acts)
    )
    found.last_failed = script[:MAX_COMMAND] if failed and len(acts) == len(actions) else ""


def _ran(script: str, start: str | None, found: Found) -> tuple[Action, ...]:
    """The actions of a shell script; its words are taken in once."""
    if script not in found.scripts:
        found.scripts.add(script)
        _touch(found, script[:MAX_TOUCHED])
    return _known(script, start) if len(script) <= MAX_CACHED else read_script(script, start)


@lru_cache(maxsize=256)
def _known(script: str, start: str | None) -> tuple[Action, ...]:
    """``read_script`` for the short commands that agents repeat."""
    return read_script(script, start)


def _write(write: Write, at: int, found: Found, created: set[str], *, remark: bool) -> None:
    found.writes.append(write)
    found.search = ("", "")
    if write.by not in WRITE_TOOLS:  # a script may have put it right
        blind, name = _BY_SCRIPT.search(write.path), write.path.rsplit("/", 1)[-1]
        found.stubs = {p: s for p, s in found.stubs.items() if not blind and not p.endswith(name)}
    found.blind_writes = found.blind_writes or bool(_BY_SCRIPT.search(write.path))
    if not is_prose(write.path) and not (remark and found.code_writes):
        found.last_code, found.code_writes = at, found.code_writes + 1
        found.proven.clear()
    if write.by in _REMOVERS and write.path not in created:
        folder = write.path.rstrip("/").rsplit("/", 1)[-1]
        if (is_test(write.path) or folder in _TEST_FOLDERS) and len(found.weak) < MAX_WEAKENINGS:
            found.weak.append(Weak(at, Weakening("deleted", write.path), found.runs.failing_tests))


def _edited(call: ToolCall, at: int, found: Found, created: set[str]) -> None:
    """What an edit tool's texts say: tests beside the code, tests made weaker."""
    texts = list(edits(call))
    for path, old, new in texts:
        if not old:
            created.add(path)
        found.inline_tests = found.inline_tests or (has_tests(new) and not has_tests(old))
        _touch(found, f"{path} {new[:MAX_TOUCHED]}")
        if old and len(found.hushed) < MAX_WEAKENINGS and _HUSH.search(new[:MAX_TOUCHED]):
            had = sum(1 for _ in _HUSH.finditer(old[:MAX_TOUCHED]))
            if sum(1 for _ in _HUSH.finditer(new[:MAX_TOUCHED])) > had:
                found.hushed.add(path.rsplit("/", 1)[-1])
        _stubs(path, old, new, found)
    room = MAX_WEAKENINGS - len(found.weak)
    found.weak.extend(Weak(at, w, found.runs.failing_tests) for w in weakenings(call)[: max(room, 0)])


def _deed(done: Deed, at: int, call: ToolCall, found: Found, *, alone: bool) -> None:
    if done.kind in {"unknown", "run"}:
        found.opaque.append(done.text.lower())
        if _TESTISH.search(done.text) or _TESTS_SHOWN.search(call.output[-4000:]):
            found.testish = at
    del found.opaque[:-MAX_DEEDS]
    if done.kind == "unknown" or len(found.done) >= MAX_DEEDS:
        return
    outcome, named = result(done, f"{call.output}\n{call.error}", call.exit, alone=alone)
    found.done.append(Done(at, done, outcome, named))


def _other_tool(call: ToolCall, at: int, found: Found) -> None:
    """Tools that neither edit nor look: sub-agents, browsers, other servers' tools."""
    name = call.tool.lower()
    if name in WRITE_TOOLS or name in TODO_TOOLS:
        return
    if name == "read" and len(found.shown) < MAX_SHOWN:
        found.shown.setdefault(text_of(call, "filePath", "file_path", "path"), call.output)
    if name in {"task", "agent"}:
        kind = text_of(call, "subagent_type", "agent", "subagent").lower()
        found.delegated = found.delegated or kind not in {"explore", "plan"}
    elif _BROWSER.search(name):
        if len(found.done) < MAX_DEEDS:
            found.done.append(Done(at, Deed("run", call.tool), "unknown"))
    elif not looks_up(call.tool):
        found.opaque.append(name)
        found.blind_writes = True


def _stubs(path: str, old: str, new: str, found: Found) -> None:
    """Takes in the stand-ins of an edit and drops those it replaced."""
    was, part = found.shown.get(path, ""), old.strip()
    before = [s for s in found.stubs.get(path, ()) if old and s.line not in old and part not in s.line]
    now = (
        *before,
        *(s for s in (*stubs(path, old, new), *hollow(path, old, new)) if f"{s.line}\n" not in was),
    )
    found.stubs = {**found.stubs, path: now} if now else {p: s for p, s in found.stubs.items() if p != path}


def _touch(found: Found, text: str) -> None:
    if len(found.touched) < MAX_WORDS:
        found.touched |= keys(text, MAX_TOUCHED)


def _trees(script: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The folders of other states of the repository, checked out beside the work."""
    if "worktree add" not in script:
        return known
    new = [m["path"].rstrip("/") for m in _TREE.finditer(script[:4000])]
    return (*known, *new)[-MAX_TREES:]


def _in_tree(action: Action, trees: tuple[str, ...]) -> bool:
    """Whether a check ran in one of these folders."""
    cwd = action.cwd if isinstance(action, Check) else None
    return bool(cwd) and any(f"{cwd}/".startswith(f"{t}/") or f"{cwd}/".endswith(f"/{t}/") for t in trees)


def _judged(check: Check, call: ToolCall) -> Result:
    return judge_check(check, f"{call.output}\n{call.error}", call.exit)


def _base(action: Action, call: ToolCall, found: Found) -> None:
    """Takes in a check that failed while the work was stashed away."""
    if isinstance(action, Check) and (base := _judged(action, call)).result == "failed":
        found.base_failed[action.tool] = base


def _speaks_for(checks: list[Check], check: Check) -> bool:
    """Whether a summary in the call's output can only be this check's, of all that the call ran."""
    if len(checks) == 1:
        return True
    later = checks[next(i for i, c in enumerate(checks) if c is check) + 1 :]
    return not check.wrap and all(c.tool != check.tool for c in later)


def _documents(path: str) -> bool:
    return is_prose(path) or "doc" in path.lower()


def text_of(call: ToolCall, *keys: str) -> str:
    """The first of these arguments that is a text."""
    return next((v for k in keys if isinstance(v := call.input.get(k), str) and v), "")
