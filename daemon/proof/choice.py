"""Which checks of a project may be run, and which of them proves a task. Pure.

A check is never made up. It is a command that a person chose, or one that an agent ran in this project as a
check, cut out of its script byte for byte, in the same folder.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..core.evidence import Outcome
from ..core.proof import Known
from ..evidence.actions import SHELL_TOOLS, Check, Deed, Write, text_of
from ..evidence.commands import final_cwd, read_script
from ..evidence.edits import file_name, is_prose, is_test
from ..evidence.outcomes import MAX_OUTPUT
from ..evidence.outputs import failed_tests
from ..evidence.shell import MAX_SCRIPT, Step, steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.transcript import ToolCall
    from ..evidence.actions import Action
    from ..evidence.work import Work

MAX_COMMAND: Final = 500
_ADDRESS: Final = re.compile(
    r"\w://|\b(?!127\.)\d{1,3}(?:\.\d{1,3}){3}\b|\w@(?!\d)[\w-]{1,64}[.:]"
    r"|/dev/(?:tcp|udp)/"
    r"|(?:^|[\s;&|({\\\"'`])(?:\.{0,2}/(?:[\w.-]{1,64}/){0,8})?"
    r"(?:curl|wget|ssh|scp|sftp|rsync|ftp|nc|ncat|telnet)(?=[\s;&|<>)\"'`]|$)"
    r"|(?:(?<![-\w])[A-Z_]{0,32}(?:HOST|ADDR|DSN|UR[IL])=|--host(?:name)?[= ])"
    r"(?!['\"]?(?:localhost|127\.|\[?::1|/|\s|$))",
)
_OTHER_RIGHTS: Final = re.compile(r"(?:^|[\s;&|({/\\\"'`])(?:sudo|doas|su|pkexec)(?=\s|$)")
_DEPLOYS: Final = re.compile(r"(?:^|[\s:])(?:deploy|publish)(?=[\s:;&|)]|$)", re.IGNORECASE)
_REMOTE: Final = frozenset({"aws", "gcloud", "gsutil", "kubectl", "gh"})
_PUSHING: Final = frozenset(
    {"docker", "podman", "helm", "gem", "twine", "eval", "make", "just", "task", "npm", "pnpm", "yarn", "bun"}
)
_NO_CHECK: Final = re.compile(  # it builds only, or makes what is there the expectation
    r"\s(?:-u|-update|--no-run|--update(?:-?snapshots?)?|--updateSnapshot|--snapshot-update|--force-regen"
    r"|--accept|--bless)(?=[\s=]|$)"
)
_MOVES: Final[dict[str, frozenset[str]]] = {
    "": frozenset({"-C", "--directory", "--cwd", "--dir", "--prefix", "--manifest-path", "--rootdir"}),
    "mvn": frozenset({"-f", "--file"}),
    "gradle": frozenset({"-p", "--project-dir"}),
    "gradlew": frozenset({"-p", "--project-dir"}),
    "ctest": frozenset(),
}  # options of a program that say in which folder it works
_PRODUCTION: Final = re.compile(r"(?<![a-z])prod(?:uction)?(?![a-z])", re.IGNORECASE)
_REDIRECTED: Final = re.compile(r"\s{0,4}2>&1$")
_SETS_UP: Final = frozenset({"source", ".", "export"})
_CUTS: Final = frozenset({"tail", "head", "grep", "cat", "sed", "awk", "less", "wc", "sort", "uniq", "cut"})
_BUILDS: Final = frozenset(
    {"mkdir", "javac", "cc", "gcc", "g++", "c++", "clang", "clang++", "rustc", "tsc", "make", "cmake"}
)
_INTERPRETER: Final = re.compile(
    r"(?:ba|da|z)?sh|python[\d.]*|node|deno|bun|perl|ruby|php|tclsh[\d.]*|lua|awk|gawk|java"
)
_TEST_NAMED: Final = re.compile(
    r"^(?:run[_-]?)?(?:all[_-]?)?(?:tests?|specs?|checks?)\b|[._-](?:tests?|spec)\.\w+$|_test$"
)
_FOLDERS: Final = frozenset({"t", "test", "tests", "spec", "specs", "__tests__"})
_ALL: Final = frozenset(
    {
        "",
        "all",
        "run",
        "runner",
        "suite",
        "main",
        "test",
        "tests",
        "check",
        "checks",
        "spec",
        "run_tests",
        "run-tests",
        "runtests",
        "run_all",
        "all_tests",
    }
)
_DEFINED_IN: Final = {  # program -> the file that says what it runs
    re.compile(program): re.compile(name)
    for program, name in (
        (r"g?make", r"(?:gnu)?makefile|[\w-]{1,64}\.mk"), (r"just", r"\.?justfile"),
        (r"task", r"taskfile\.ya?ml"),
        (r"npm|pnpm|yarn|bun", r"package\.json"), (r"tox", r"tox\.ini"), (r"nox", r"noxfile\.py"),
        (r"pytest|py\.test|python[\d.]*", r"pytest\.ini|tox\.ini"), (r"rake", r"rakefile"),
    )
}  # fmt: skip
_NOT_ALONE: Final = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "for", "{", "(", "!", "case"}
)
_RANK: Final = {"test": 0, "build": 1}
_SOURCES: Final[dict[str, int]] = {"person": 0, "project": 1, "agent": 2}


class Ran(Struct, frozen=True):
    """A check that an agent ran in this task, and how it ended. ``before``: before its first edit of code;
    ``fresh``: after its last one. ``sure``: an exit code of 0 shows that it passed.
    """

    known: Known
    outcome: Outcome
    tests: tuple[str, ...] = ()
    before: bool = False
    fresh: bool = False
    sure: bool = False


def refused(command: str) -> str:
    """Why this command is never run, whoever chose it; "" when it may be."""
    if not command.strip() or len(command) > MAX_COMMAND:
        return f"it is empty or longer than {MAX_COMMAND} characters"
    if not command.isprintable():
        return "it has a line break or a control character"
    if "<<" in command:
        return "it has a here-document"
    if "[redacted:" in command:
        return "a secret was taken out of it"
    deeds = {a.kind for a in read_script(command) if isinstance(a, Deed)}
    bad = deeds & {"push", "deploy", "pr", "issue", "commit"}
    if bad or _DEPLOYS.search(command):
        return f"it is a {min(bad)}" if bad else "it names a deployment"
    ran = steps(command)
    if any(step.program in _PUSHING and {"push", "upload"} & set(step.command[1:]) for step in ran):
        return "it names a push"
    if _ADDRESS.search(command) or any(step.program in _REMOTE for step in ran):
        return "it names a network address or a program that needs one"
    if _PRODUCTION.search(command):
        return "it names production"
    if _OTHER_RIGHTS.search(command):
        return "it asks for another user's rights"
    return ""


def check_of(command: str, folder: str = "") -> Check:
    """The command as a check. A person may choose one that no table knows: only its exit code counts then."""
    found = [a for a in read_script(command, folder) if isinstance(a, Check)]
    found = [c for c in found if c.kind == "test"] or found
    if len(found) == 1:
        return found[0]
    last = steps(command)[-1:]
    file = test_file(last[0].text) if last else ""
    return Check("test", "script", "any", command, True, folder, (file,) if file else ())


def run_by_agent(work: Work, directory: str) -> list[Ran]:
    """The checks that the agent ran in this task and that may be run again, oldest first. A call of a
    sub-agent is none, nor one that the host's permission stopped.
    """
    runs = {run.call: run for run in work.runs.all}
    found, last = [], work.last_code_call
    outcome: Outcome
    at = next((i for i, seen in enumerate(work.calls) if seen.number == last), -1)
    first = next((i for i, seen in enumerate(work.calls) if _writes(seen.actions)), len(work.calls))
    for i, seen in enumerate(work.calls):
        script = text_of(seen.call, "command", "cmd")
        if "." in seen.number or seen.call.tool.lower() not in SHELL_TOOLS or len(script) > MAX_SCRIPT:
            continue
        own, run = _own(seen.actions), runs.get(seen.number)
        known = _known(script, own, directory) if own is not None else None
        if known is None or own is None:
            continue
        if isinstance(own, Check) and run is not None:
            outcome, tests = run.outcome.result, run.outcome.tests
            before, fresh = run.code_at < 0, run.code_at == work.last_code
        else:
            outcome, tests = _outcome(own, seen.call)
            before, fresh = i < first, i > at
        found.append(Ran(known, outcome, tests, before=before, fresh=fresh, sure=own.proves_pass))
    return found


def _writes(actions: Sequence[Action]) -> bool:
    return any(isinstance(a, Write) and not is_prose(a.path) for a in actions)


def _outcome(own: Check | Deed, call: ToolCall) -> tuple[Outcome, tuple[str, ...]]:
    """By the exit code where that speaks for the run, else by the failed tests that it names."""
    tests = failed_tests(call.printed[-MAX_OUTPUT:])
    if call.exit == 0 and own.proves_pass:
        return "passed", ()
    failed = tests or (call.exit not in {0, None} and own.proves_fail)
    return ("failed" if failed else "unknown"), tests


def _own(actions: Sequence[Action]) -> Check | Deed | None:
    """The one check of a script: its only test run, its only build, or a test file that it runs by an
    interpreter.
    """
    checks = [a for a in actions if isinstance(a, Check)]
    tests = [a for a in checks if a.kind == "test"]
    if checks:
        only = tests or checks
        return only[0] if len(only) == 1 and all(c.kind == "build" for c in checks if c not in only) else None
    runs = [a for a in actions if isinstance(a, Deed) and test_file(a.text)]
    return runs[0] if len(runs) == 1 else None


def test_file(command: str) -> str:
    """The test file that an interpreter runs (``sh tests/all.sh``, ``node cart.test.js``), "" for none."""
    first = (*steps(command), Step())[0]
    if not _INTERPRETER.fullmatch(first.program):
        return ""
    files = [w for w in first.command[1:] if not w.startswith("-")]
    if first.program == "java":
        return next((w for w in files if re.fullmatch(r"(?:\w+\.)*(?:Test\w*|\w*Tests?)", w)), "")
    return files[0] if files and (is_test(files[0]) or _TEST_NAMED.search(file_name(files[0]))) else ""


def defines(command: str, path: str) -> bool:
    """Says whether a file decides what this check runs: its Makefile, package.json, or a script that it is
    and that is no test.
    """
    name, written = file_name(path).lower(), f"/{posixpath.normpath(path)}"
    for step in steps(command):
        words, program = step.command, step.program
        if any(p.fullmatch(program) and f.fullmatch(name) for p, f in _DEFINED_IN.items()):
            return True
        runs = [w for w in words[1:] if not w.startswith("-")] if _INTERPRETER.fullmatch(program) else words
        script = posixpath.normpath(runs[0]) if runs else ""
        if script and not is_test(path) and written.endswith(f"/{script.lstrip('/')}"):
            return True
    return False


def _known(script: str, own: Check | Deed, directory: str) -> Known | None:
    """The check of this script as it can be run alone: its own step, and before it what sets up the shell or
    builds.
    """
    cwd = own.cwd if isinstance(own, Check) else _cwd(script, own, directory)
    folder = _below(cwd, directory)
    parts = [(step, at) for step, at in _placed(script) if step.words[:1] not in {("cd",), ("pushd",)}]
    text = " ".join(own.text.split())
    at = next((i for i, (step, _) in enumerate(parts) if " ".join(step.text.split()) == text), None)
    if folder is None or at is None or (isinstance(own, Check) and own.kind == "lint"):
        return None
    before, (step, end), after = parts[:at], parts[at], parts[at + 1 :]
    if not all(map(_prepares, (part for part, _ in before))):
        return None
    if step.body or (step.outputs and step.outputs != ("/dev/null",)) or step.after == "&":
        return None
    if step.after == "|" and not (after and _only_cuts(after)):
        return None
    first = (before or [parts[at]])[0]
    command = _REDIRECTED.sub("", script[first[1] : end + len(step.text)])
    if step.words[0] in _NOT_ALONE or re.search(r"[$`\n]", command):  # what it stands for isn't known
        return None
    if _NO_CHECK.search(step.text) or _place(Known(step.text, folder), directory) is None:
        return None
    files = own.paths if isinstance(own, Check) else (test_file(own.text),)
    if any(_below(posixpath.join(directory, folder, path), directory) is None for path in files):
        return None
    changes = any(isinstance(a, Write) for a in read_script(command))
    return None if changes or refused(command) else Known(command, folder)


def _prepares(step: Step) -> bool:
    """Says whether a step sets up the shell or builds, and the check is not run where it fails."""
    if step.outputs or step.body or step.after not in {"&&", ";"}:
        return False
    if step.words[0] in _SETS_UP:
        return True
    builds = step.program in _BUILDS or any(
        isinstance(a, Check) and a.kind == "build" for a in read_script(step.text)
    )
    return builds and step.after == "&&"


def _cwd(script: str, own: Deed, directory: str) -> str | None:
    """Where a deed ran: as far as the script moved before it."""
    at = script.find(own.text[:40])
    return final_cwd(script[: max(at, 0)].rstrip("& ;\n"), directory)


def _placed(script: str) -> list[tuple[Step, int]]:
    """Each step and where its text stands in the script."""
    found, start = [], 0
    for step in steps(script):
        start = script.find(step.text, start)
        if start < 0:
            return []
        found.append((step, start))
        start += len(step.text)
    return found


def _only_cuts(after: Sequence[tuple[Step, int]]) -> bool:
    """Says whether the steps of the pipe behind the check only shorten what it printed."""
    for step, _ in after:
        if not step.words or step.words[0].rsplit("/", 1)[-1] not in _CUTS:
            return False
        if step.after != "|":
            return True
    return True


def _below(cwd: str | None, directory: str) -> str | None:
    """The folder below the project's; None when it lies elsewhere or isn't known."""
    if cwd is None or not directory:
        return None
    path = posixpath.relpath(posixpath.join(directory, cwd or "."), directory)
    return None if path.startswith("..") else "" if path == "." else path


def planned(known: Sequence[Known], ran: Sequence[Ran], work: Work, directory: str) -> tuple[Known, ...]:
    """The checks to run, in this order: a narrow check of this task that is about all the edits, then the
    whole suite; without a suite a narrow one of an earlier task. Empty when no known check covers the edits.
    ``known``: the latest last.
    """
    edited = [w.path for w in work.writes if not is_prose(w.path)]
    places = [p for p in (_below(posixpath.normpath(path), directory) for path in edited) if p is not None]
    there = {
        k: _check(k, directory)
        for k in reversed(known)
        if (place := _place(k, directory)) is not None and all(_within(path, place) for path in places)
    }
    whole = [k for k, check in there.items() if k.source != "agent" or _is_whole(check)]
    whole.sort(key=lambda k: (_SOURCES[k.source], _RANK.get(there[k].kind, len(_RANK)), bool(k.folder)))
    here = {r.known.key for r in ran}
    narrow = [k for k, check in there.items() if k not in whole and _names_edits(check, edited)]
    narrow.sort(key=lambda k: k.key not in here)
    if whole:  # of an earlier task only in its place
        narrow = [k for k in narrow if k.key in here]
    return (*narrow[:1], *whole[:1])


def _place(k: Known, directory: str) -> str | None:
    """The folder that a check is about: its own, or the one that an option names (``make -C web test``).
    None when that is not in the project. A check that a person chose is about the project.
    """
    place = k.folder
    if k.source != "agent":
        return place
    for step in steps(k.command):
        words, moves = step.command, _MOVES.get(step.program, _MOVES[""])
        for i, word in enumerate(words[1:], 1):
            option, has_value, value = word.partition("=")
            if option not in moves:
                continue
            value = value if has_value else "".join(words[i + 1 : i + 2])
            if re.search(r"\.\w+$", value):  # the file of a project, as Cargo.toml
                value = posixpath.dirname(value)
            place = posixpath.normpath(posixpath.join(place, value))
    return None if place.startswith("~") else _below(posixpath.join(directory, place), directory)


def _check(k: Known, directory: str) -> Check:
    return check_of(k.command, posixpath.join(directory, k.folder))


def _within(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _is_whole(check: Check) -> bool:
    return check.kind in _RANK and not check.filters and all(map(_is_all, check.paths))


def _is_all(path: str) -> bool:
    """Says whether a path stands for all tests: a folder of them, or a script named after no part."""
    return path.rstrip("/") in _FOLDERS or (bool(re.search(r"\.\w+$", path)) and _stem(path) in _ALL)


def _names_edits(check: Check, edited: Sequence[str]) -> bool:
    """Says whether a run of some tests is about all files that were edited: it reaches the test that was
    edited, or one that is called after the file.
    """
    if check.kind != "test" or not check.paths or check.filters:
        return False

    def about(path: str) -> bool:
        stem = _stem(path)
        return any(check.reaches(p) for p in (path, file_name(path))) or any(
            path.endswith(f"/{p}") or (not is_test(path) and len(stem) > 2 and _stem(p) == stem)
            for p in check.paths
        )

    return bool(edited) and all(map(about, edited))


_TEST_NAME: Final = re.compile(r"^(?:tests?[_-])|(?:[._-](?:tests?|spec)|(?<=[a-z])Tests?)$")


def _stem(path: str) -> str:
    """``parser`` of ``tests/test_parser.py``, ``parser.test.js``, ``tests.test_parser``, ``src/parser.c``."""
    name = file_name(path.partition("::")[0])
    if "/" not in path and re.fullmatch(r"(?:\w+\.)+(?:test_\w+|[A-Z]\w*)", name):  # a module, a class
        name = f"{name.rpartition('.')[2]}.x"
    return _TEST_NAME.sub("", name.rsplit(".", 1)[0]).lower()


def is_proved(plan: Sequence[Known], ran: Sequence[Ran], work: Work, directory: str) -> bool:
    """Says whether the agent itself ran the last of the plan after its last edit, and it passed by its own
    exit code.
    """
    if not plan or work.blind_writes or work.delegated:
        return False
    wanted = _check(plan[-1], directory)
    return any(
        r.fresh and r.sure and r.outcome == "passed"
        and (r.known.key == plan[-1].key or _check(r.known, directory).covers(wanted))
        for r in ran
    )  # fmt: skip
