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
from ..evidence.commands import read_script
from ..evidence.edits import file_name, is_prose, is_test
from ..evidence.shell import MAX_SCRIPT, steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..evidence.shell import Step
    from ..evidence.work import Run, Work

MAX_COMMAND: Final = 500
_ADDRESS: Final = re.compile(
    r"\w://|\b(?!127\.)\d{1,3}(?:\.\d{1,3}){3}\b|\w@[\w-]{1,64}[.:]"
    r"|(?:^|[\s;&|(/])(?:curl|wget|ssh|scp|sftp|rsync|ftp|nc|ncat|telnet)(?=\s|$)"
)
_PRODUCTION: Final = re.compile(r"(?<![a-z])prod(?:uction)?(?![a-z])", re.IGNORECASE)
_REDIRECTED: Final = re.compile(r"\s{0,4}2>&1$")
_SETS_UP: Final = frozenset({"source", ".", "export"})
_CUTS: Final = frozenset({"tail", "head", "grep", "cat", "sed", "awk", "less", "wc", "sort", "uniq", "cut"})
_NOT_ALONE: Final = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "for", "{", "(", "!", "case"}
)
_RANK: Final = {"test": 0, "build": 1}
_SOURCES: Final[dict[str, int]] = {"person": 0, "project": 1, "agent": 2}


class Ran(Struct, frozen=True):
    """A check that an agent ran in this task, how it ended, and whether that was before its first edit."""

    known: Known
    outcome: Outcome
    tests: tuple[str, ...] = ()
    before: bool = False


def refused(command: str) -> str:
    """Why this command is never run, whoever chose it; "" when it may be."""
    if not command.strip() or len(command) > MAX_COMMAND:
        return f"it is empty or longer than {MAX_COMMAND} characters"
    if not command.isprintable():
        return "it has a line break or a control character"
    if "[redacted:" in command:
        return "a secret was taken out of it"
    if _ADDRESS.search(command):
        return "it names a network address or a program that needs one"
    if _PRODUCTION.search(command):
        return "it names production"
    deeds = {a.kind for a in read_script(command) if isinstance(a, Deed)}
    bad = deeds & {"push", "deploy", "pr", "issue", "commit"}
    return f"it is a {min(bad)}" if bad else ""


def check_of(command: str, folder: str = "") -> Check:
    """The command as a check. A person may choose one that no table knows: only its exit code counts then."""
    found = [a for a in read_script(command, folder) if isinstance(a, Check)]
    return found[0] if len(found) == 1 else Check("test", "script", "any", command, wrap=True, cwd=folder)


def run_by_agent(work: Work, directory: str) -> list[Ran]:
    """The checks that the agent ran in this task and that may be run again, oldest first. A call of a
    sub-agent is none, nor one that the host's permission stopped.
    """
    runs: dict[str, list[Run]] = {}
    for run in work.runs.all:
        runs.setdefault(run.call, []).append(run)
    found = []
    for seen in work.calls:
        checks = [a for a in seen.actions if isinstance(a, Check)]
        if "." in seen.number or seen.call.tool.lower() not in SHELL_TOOLS or len(checks) != 1:
            continue
        known = _known(text_of(seen.call, "command", "cmd"), checks[0], directory)
        if known is None:
            continue
        ended = runs.get(seen.number, [])[-1:]
        outcome: Outcome = ended[0].outcome.result if ended else "unknown"
        tests = ended[0].outcome.tests if ended else ()
        found.append(Ran(known, outcome, tests, before=bool(ended) and ended[0].code_at < 0))
    return found


def _known(script: str, check: Check, directory: str) -> Known | None:
    """The check of this script as it can be run alone: its own step, and before it what sets up the shell."""
    if len(script) > MAX_SCRIPT or check.kind == "lint":
        return None
    folder = _below(check.cwd, directory)
    parts = [(step, at) for step, at in _placed(script) if step.words[:1] not in {("cd",), ("pushd",)}]
    text = " ".join(check.text.split())
    at = next((i for i, (step, _) in enumerate(parts) if " ".join(step.text.split()) == text), None)
    if folder is None or at is None:
        return None
    before, (own, end), after = parts[:at], parts[at], parts[at + 1 :]
    alone = all(step.words[:1] and step.words[0] in _SETS_UP and not step.outputs for step, _ in before)
    if not alone or own.body or (own.outputs and own.outputs != ("/dev/null",)) or own.after == "&":
        return None
    if own.after == "|" and not (after and _only_cuts(after)):
        return None
    first = (before or [parts[at]])[0]
    command = _REDIRECTED.sub("", script[first[1] : end + len(own.text)])
    if own.words[0] in _NOT_ALONE or re.search(r"[$`\n]", command):  # what it stands for isn't known
        return None
    changes = any(isinstance(a, Write) for a in read_script(command))
    return None if changes or refused(command) else Known(command, folder)


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
    """Whether the steps of the pipe behind the check only shorten what it printed."""
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
    """What to run, in this order: the narrowest check of this task that is about the edits, then the whole
    suite. Empty when no known check covers them. ``known``: the latest last.
    """
    edited = [w.path for w in work.writes if not is_prose(w.path)]
    places = [p for p in (_below(posixpath.normpath(path), directory) for path in edited) if p is not None]
    there = [k for k in known if all(_within(path, k.folder) for path in places)]
    whole = [k for k in there if _is_whole(k, directory)]
    whole.sort(key=lambda k: (_SOURCES[k.source], _RANK[_check(k, directory).kind], bool(k.folder)))
    here = [r.known for r in reversed(ran)]
    narrow = [k for k in here if k in there and _names_edits(_check(k, directory), edited)]
    narrow.sort(key=lambda k: -len(_check(k, directory).paths) - len(_check(k, directory).filters))
    first, last = narrow[:1], whole[:1]
    return tuple(dict.fromkeys((*first, *last)))


def _check(k: Known, directory: str) -> Check:
    return check_of(k.command, posixpath.join(directory, k.folder))


def _within(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _is_whole(k: Known, directory: str) -> bool:
    check = _check(k, directory)
    return k.source != "agent" or (check.kind in _RANK and not (check.paths or check.filters))


def _names_edits(check: Check, edited: Sequence[str]) -> bool:
    """Whether a run of some tests is about all files that were edited: it reaches the test that was edited,
    or one that is called after the file.
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
    """``parser`` of ``tests/test_parser.py``, ``parser.test.js`` and ``src/parser.c``."""
    name = file_name(path.partition("::")[0])
    return _TEST_NAME.sub("", name.rsplit(".", 1)[0]).lower()


def is_proved(plan: Sequence[Known], work: Work, directory: str) -> bool:
    """Whether the agent itself ran the last of the plan after its last edit, and it passed by its own exit
    code.
    """
    if not plan or work.blind_writes or work.delegated:
        return False
    wanted = _check(plan[-1], directory)
    return any(
        run.code_at == work.last_code
        and run.outcome.result == "passed"
        and run.check.proves_pass
        and run.check.covers(wanted)
        for run in work.runs.all
    )
