"""What a shell script does: its test, build and lint runs, what its exit code proves about each, its writes.

Pure text work over ``shell.steps``. A command that is not recognised is neither a check nor a write.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from dataclasses import replace
from typing import Final

from . import runners
from .actions import Action, Check, Deed, Stash, Write
from .deeds import deed
from .prefixes import unwrap
from .shell import MAX_SCRIPT, Step, steps
from .writes import changes

MAX_DEPTH: Final = 3
MAX_STEPS: Final = 300
_CLOSERS: Final = frozenset({"fi", "done", "}", "esac"})

_HARMLESS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "cd pushd popd export source . set echo printf true mkdir sleep unset alias : pwd date clear "
        "which ulimit"
    ).split()
)
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash"})
_NO_RUN: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "--version -V --help -h --collect-only --co --fixtures --markers --listTests --list --list-tests "
        "--init --show-config --showConfig --print-config --setup-plan --watch --watchAll --dry-run"
    ).split()
)
_FILTER: Final = re.compile(
    r"(?:-k|-t|-g|-R|-L|-E|-run|--run|--grep|--filter|--tests|--test|--lf|--last-failed|--sw"
    r"|--testNamePattern|--testPathPattern"
    r"|--skip|--exclude|--grep-invert|--testPathIgnorePatterns|-LE"
    r"|--project|--package|--deselect|--ignore|--only|--bin|--lib|--doc|-Dtest|--example"
    r"|--workspace)(?:=.*)?$"
)
_LONE: Final = frozenset(["--lf", "--last-failed", "--sw", "--lib", "--doc", "--workspace"])
_VALUE: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "-n -o -c -W -r -j -C --tb --maxfail --durations --junitxml --rootdir --timeout --color --config "
        "--reporter --log-level --confcutdir --cov-report --cov --features --target --profile "
        "--manifest-path -count --config-file --output-format --ext --max-warnings --format -f --dir "
        "--root --configuration --verbosity -v:q"
    ).split()
)
_WHOLE: Final = frozenset(
    {".", "./", "tests", "test", "src", "./...", "...", "spec", "*", "all", "discover", "run"}
)
_PATHY: Final = re.compile(r"[/]|::|\.\w+$")


def read_script(script: str, cwd: str | None = "", *, depth: int = 0) -> tuple[Action, ...]:
    """The checks, writes and stashes of a script, in order. ``cwd`` is where it starts."""
    found = steps(script)
    whole = len(script) <= MAX_SCRIPT and len(found) <= MAX_STEPS
    del found[MAX_STEPS:]
    actions: list[Action] = []
    options: set[str] = set()
    for i, step in enumerate(found):
        words, negated = unwrap(step.words)
        name = words[0].rsplit("/", 1)[-1] if words else ""
        if name in {"cd", "pushd"}:
            cwd = _move(cwd, words)
        elif name == "set":
            options = _set_options(words, options)
        elif depth < MAX_DEPTH and (inner := inline(words)):
            sure = _proof(found, i, options)
            actions.extend(
                action if isinstance(action, Write | Stash) else _weaken(action, *sure)
                for action in read_script(inner, cwd, depth=depth + 1)
            )
        elif check := _check(words, step, cwd):
            sure = (False, False) if negated or not whole else _proof(found, i, options)
            actions.append(_weaken(check, *sure))
        else:
            actions.extend(changes(words, step, log=_fed_by_check(found, i)))
            if done := deed(words, step.text):
                actions.append(_weaken(done, *_proof(found, i, options)))
    return tuple(actions)


def final_cwd(script: str, cwd: str | None) -> str | None:
    """Where a script leaves the shell, for hosts whose shell lives on between calls."""
    for step in steps(script):
        words, _ = unwrap(step.words)
        if words and words[0] in {"cd", "pushd"}:
            cwd = _move(cwd, words)
    return cwd


def _weaken(action: Check | Deed, passes: bool, fails: bool) -> Check | Deed:
    return replace(
        action, proves_pass=action.proves_pass and passes, proves_fail=action.proves_fail and fails
    )


def inline(words: tuple[str, ...]) -> str:
    """The script in ``bash -c '…'``, or an empty text."""
    if words and words[0].rsplit("/", 1)[-1] in _SHELLS:
        for i, word in enumerate(words[1:], 1):
            if word.startswith("-") and word.endswith("c") and not word.startswith("--"):
                return words[i + 1] if i + 1 < len(words) else ""
    return ""


def _move(cwd: str | None, words: tuple[str, ...]) -> str | None:
    target = next((w for w in words[1:] if not w.startswith("-")), "")
    if not target or target.startswith(("$", "~", "`")) or "$" in target:
        return None
    if cwd is None and not target.startswith("/"):
        return None
    return posixpath.normpath(posixpath.join(cwd or "", target))


def _set_options(words: tuple[str, ...], before: set[str]) -> set[str]:
    found = before - ({"e"} if "+e" in words else set()) | ({"pipefail"} if "pipefail" in words else set())
    if any(w.startswith("-") and "e" in w for w in words[1:]) or "errexit" in words:
        found.add("e")
    return found


def _proof(found: list[Step], i: int, options: set[str]) -> tuple[bool, bool]:
    """What the script's exit code proves about step ``i``: (0 means passed, another means failed)."""
    passes = fails = True
    if found[i].after == "|":
        passes = fails = "pipefail" in options
        while i < len(found) and found[i].after == "|":
            i += 1
            fails = fails and i < len(found) and _name(found[i]) in {"tail", "head", "tee", "cat", "sed"}
    last = len(found) - 1
    for j in range(i, last):
        after, then = found[j].after, _name(found[j + 1])
        goes_on = after in {"|", "&&"} or (after == ";" and ("e" in options or then in _CLOSERS))
        if not goes_on:
            return False, False
        fails = fails and then in _HARMLESS
    if last >= 0 and found[last].after == "&":
        return False, False
    for j in range(i - 1, -1, -1):
        if found[j].after == "||":
            return False, False
        if found[j].after in {";", "&", ""} and "e" not in options:
            break
        fails = fails and (_name(found[j]) in _HARMLESS or found[j].after == "|")
    return passes, fails


def _name(step: Step) -> str:
    words, _ = unwrap(step.words)
    return words[0].rsplit("/", 1)[-1] if words else (step.words[0] if step.words else ":")


def _fed_by_check(found: list[Step], i: int) -> bool:
    """Whether step ``i`` only keeps the output of a check in its pipe (``pytest | tee log``)."""
    while i and found[i - 1].after == "|":
        i -= 1
        if runners.find(unwrap(found[i].words)[0]):
            return True
    return False


def _check(words: tuple[str, ...], step: Step, cwd: str | None) -> Check | None:
    found = runners.find(words)
    if not found or _NO_RUN & set(words):
        return None
    runner, start = found
    kind = "build" if _only_builds(words) else runner.kind
    paths, filters = _scope(words[start:], cwd, bare=runner.bare)
    filters = tuple(sorted({*filters, *_part(words[1:start])}))
    if runner.eco == "jvm":
        paths = tuple(w for w in words[1:] if w.startswith(":"))
    text = " ".join(step.text.split()).removeprefix("then ").removeprefix("do ").removeprefix("if ")
    return Check(kind, runner.tool, runner.eco, text, runner.wrap, cwd, paths, filters)


def _part(before: tuple[str, ...]) -> tuple[str, ...]:
    """The package that a package manager's options before the verb choose: ``pnpm --filter web test``."""
    pairs = itertools.pairwise(before)
    return tuple(
        f"{word} {value}" for word, value in pairs if word in {"--filter", "-F", "--workspace", "-w"}
    )


def _only_builds(words: tuple[str, ...]) -> bool:
    """``cargo test --no-run``, ``mvn verify -DskipTests``, ``gradlew check -x test``."""
    skips = any(
        w.startswith(("-DskipTests", "-Dmaven.test.skip")) and not w.endswith("=false") for w in words
    )
    return "--no-run" in words or skips or any(words[i : i + 2] == ("-x", "test") for i in range(len(words)))


def _scope(rest: tuple[str, ...], cwd: str | None, *, bare: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths and the filters among a runner's arguments."""
    paths: list[str] = []
    filters: list[str] = []
    i = 0
    while i < len(rest):
        word = rest[i]
        i += 1
        if word.startswith("-") and word != "--":
            narrows = _FILTER.fullmatch(word) or (word == "-m" or word.startswith(("-m=", "-p=")))
            valued = "=" not in word and word not in _LONE and i < len(rest) and not rest[i].startswith("-")
            if narrows:
                filters.append(f"{word} {rest[i]}" if valued else word)
                i += valued
            elif word in _VALUE and valued:
                i += 1
            elif word == "-p" and valued:  # a plug-in for pytest, a package or a project for all others
                if not rest[i].startswith("no:"):
                    filters.append(f"-p {rest[i]}")
                i += 1
        elif (
            word not in _WHOLE
            and word.rstrip("/") not in _WHOLE
            and word != "--"
            and (bare or _PATHY.search(word))
        ):
            paths.append(posixpath.normpath(word).removesuffix("/...").removeprefix(f"{cwd}/"))
    return tuple(paths), tuple(sorted(filters))
