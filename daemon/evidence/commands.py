"""Reads a shell script: its test, build and lint runs, the proof of its exit code about each, its writes, and
its other deeds: commits, pushes, pull requests, deployments, runs.

Pure text work over ``shell.steps``. A command that no table has is ``unknown``: it may have done anything, so
no rule claims that nothing was done. It is no check: a missed check costs little, a ``grep`` taken for a
failed test costs more.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from ..core.evidence import CheckKind
from ..tables import Tables
from .actions import Action, Check, Deed, DeedKind, Stash, Write
from .shell import MAX_DEPTH, MAX_SCRIPT, MAX_STEPS, Step, git_words, inline, program, steps, unwrap


class Runner(Struct, frozen=True):
    """``tool`` is the family that supersedes itself; ``wrap``: it may run any tool of its ``eco`` system.

    ``bare``: a plain word behind it narrows the scope (``cargo test name``); else only a path.
    """

    kind: CheckKind
    tool: str
    eco: str
    wrap: bool = False
    bare: bool = False


_TABLES: Final = Tables(__package__)


def _runner(kind: str, tool: str, eco: str, flags: str) -> Runner:
    return Runner(cast("CheckKind", kind), tool, eco, wrap="w" in flags, bare="b" in flags)


def _runners() -> tuple[dict[str, Runner], dict[str, dict[str, Runner]]]:
    """The runners by program, and those that need a verb by program and verb."""
    direct, verbs = dict[str, Runner](), dict[str, dict[str, Runner]]()
    for *runner, names in _TABLES.rows("commands.checks", 5):
        direct |= dict.fromkeys(names.split(), _runner(*runner))
    for *runner, programs, names in _TABLES.rows("commands.verbs", 6):
        for runs in programs.split("/"):
            verbs.setdefault(runs, {}).update(dict.fromkeys(names.split(), _runner(*runner)))
    return direct, verbs


_DIRECT, _VERBS = _runners()
_DEPLOYS: Final = {
    name: {"" if verb == "-" else verb for verb in verbs} for name, *verbs in _TABLES.rows("commands.deploys")
}
_RUNS: Final = {name: verbs for name, *verbs in _TABLES.rows("commands.runs")}
_MANIFESTS: Final = {name: (path, verbs) for name, path, *verbs in _TABLES.rows("commands.manifests")}
_READS: Final = frozenset(_TABLES.words("commands.reads"))
_HARMLESS: Final = frozenset(_TABLES.words("commands.harmless"))
_NO_RUN: Final = frozenset(_TABLES.words("commands.no_run"))
_VALUE: Final = frozenset(_TABLES.words("commands.valued"))


# --- a script ----------------------------------------------------------------------------------------------

_CLOSERS: Final = frozenset({"fi", "done", "}", "esac"})
_FILTER: Final = re.compile(
    r"(?:-k|-t|-g|-R|-L|-E|-run|--run|--grep|--filter|--tests|--test|--lf|--last-failed|--sw"
    r"|--testNamePattern|--testPathPattern"
    r"|--skip|--exclude|--grep-invert|--testPathIgnorePatterns|-LE"
    r"|--project|--package|--deselect|--ignore|--only|--bin|--lib|--doc|-Dtest|--example"
    r"|--workspace)(?:=.*)?$"
)
_LONE: Final = frozenset(["--lf", "--last-failed", "--sw", "--lib", "--doc", "--workspace"])
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
        name = program(words)
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
        if step.command[:1] in {("cd",), ("pushd",)}:
            cwd = _move(cwd, step.command)
    return cwd


def _weaken(action: Check | Deed, passes: bool, fails: bool) -> Check | Deed:
    return replace(
        action, proves_pass=action.proves_pass and passes, proves_fail=action.proves_fail and fails
    )


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
    """The proof of the script's exit code about step ``i``: (0 means passed, another means failed)."""
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
    return step.program or (step.words[0] if step.words else ":")


def _fed_by_check(found: list[Step], i: int) -> bool:
    """Says whether step ``i`` only keeps the output of a check in its pipe (``pytest | tee log``)."""
    while i and found[i - 1].after == "|":
        i -= 1
        if find(found[i].command):
            return True
    return False


# --- checks -------------------------------------------------------------------------------------------------


def _check(words: tuple[str, ...], step: Step, cwd: str | None) -> Check | None:
    found = find(words)
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
    """The package that options before a package manager's verb choose: ``pnpm --filter web test``."""
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


_SCRIPT: Final = re.compile(
    r"(?:(?P<test>tests?|spec|e2e|ci|verify|validate)|(?P<build>build|compile)"
    r"|(?P<lint>lint|eslint|typecheck|type-check|types|check-types|tsc|check))(?P<more>[:._-][\w:.-]+)?$"
)
_NOT_A_CHECK: Final = re.compile(
    r"watch|clean|fix|snap|update|debug|ui$|setup|install|server|serve|image|docker|deps"
)
_TARGET_WRAPPERS: Final = frozenset({"make", "gmake", "just", "task", "invoke", "inv"})
_PACKAGE_MANAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
_TASK_RUNNERS: Final = frozenset({"poe", "composer", "turbo", "nx", "lerna", "rushx", "moon"})
_TEST_SCRIPT: Final = re.compile(
    r"(?:run[-_]?tests?|tests?|run[-_]all[-_]tests|ci|verify)\.(?:sh|py|js|rb|bash)$"
)
_TEST_PROGRAM: Final = re.compile(r"(?:run[-_]?)?(?:tests?|specs?|ci(?:build)?|checks?|verify)$")


def find(words: tuple[str, ...]) -> tuple[Runner, int] | None:
    """The runner that the command ``words`` starts (prefixes are gone), and how many words name it."""
    if not words:
        return None
    name = words[0].rsplit("/", 1)[-1].split("@", 1)[0].removesuffix(".exe")
    if "/" in words[0] and _TEST_PROGRAM.fullmatch(name):  # ``bin/test``, not the builtin ``test``
        return Runner("test", "script", "any", wrap=True), 1
    verb, at = _verb(words, 1)
    if name in _DIRECT:
        return _DIRECT[name], 1
    if name in _VERBS:
        runner = _VERBS[name].get(verb) or _last_verb(name, words)
        return (runner, at + 1) if runner else _by_option(name, verb, words, at)
    if name in _PACKAGE_MANAGERS:
        return _package_script(name, words)
    if name in _TARGET_WRAPPERS:
        return _target(name, words)
    if name in _TASK_RUNNERS:
        return _task(words)
    if name == "cmake" and "--build" in words:
        return Runner("build", "make", "c"), len(words)
    return _by_option(name, verb, words, at)


def _by_option(name: str, verb: str, words: tuple[str, ...], at: int) -> tuple[Runner, int] | None:
    """Checks that only an option or a second verb makes one: ``prettier --check``, ``mix credo``."""
    if name == "mix" and verb in {"credo", "dialyzer"}:
        return Runner("lint", verb, "elixir"), at + 1
    if name in {"dotnet", "mix", "terraform", "dart"} and verb in {"format", "fmt"}:
        verifies = {"--verify-no-changes", "--check-formatted", "-check", "--set-exit-if-changed"} & set(
            words
        )
        return (Runner("lint", f"{name}-format", "any"), at + 1) if verifies else None
    if name == "node" and "--test" in words:
        return Runner("test", "node", "js"), words.index("--test") + 1
    if _TEST_SCRIPT.fullmatch(name):
        return Runner("test", "script", "any", wrap=True), 1
    checks_format = name in {"prettier", "black", "isort"} and {"--check", "-c", "--check-only"} & set(words)
    if checks_format or (name in {"ruff", "cargo"} and verb in {"format", "fmt"} and "--check" in words):
        return Runner("lint", f"{name}-format", "any"), 1
    return None


def _verb(words: tuple[str, ...], start: int) -> tuple[str, int]:
    """The first word that is no option (nor a cargo ``+toolchain``), and where it stands."""
    for i in range(start, len(words)):
        if not words[i].startswith(("-", "+")):
            return words[i], i
    return "", len(words)


def _last_verb(name: str, words: tuple[str, ...]) -> Runner | None:
    """Maven and Gradle take several goals (``clean test``, ``:app:test``): the last known one counts."""
    if name not in {"mvn", "mvnw", "gradle", "gradlew"}:
        return None
    goals = [w.rsplit(":", 1)[-1] for w in words[1:] if not w.startswith("-")]
    return next((_VERBS[name][g] for g in reversed(goals) if g in _VERBS[name]), None)


def _package_script(name: str, words: tuple[str, ...]) -> tuple[Runner, int] | None:
    """``npm test``, ``pnpm -r run build``, ``yarn lint``, ``bun test``."""
    verb, at = _verb(words, 1)
    while words[at - 1] in {"-C", "--prefix", "--filter", "-F", "-w", "--workspace", "--cwd"} and at < len(
        words
    ):
        verb, at = _verb(words, at + 1)  # the word was the option's value
    if verb == "workspace":
        verb, at = _verb(words, at + 2)
    if verb in {"run", "run-script"}:
        verb, at = _verb(words, at + 1)
    elif name == "bun":
        return (Runner("test", "bun", "js", bare=True), at + 1) if verb == "test" else None
    elif name == "npm" and verb not in {"test", "t", "tst"}:
        return None  # ``npm build`` and the like are not scripts
    if name in {"yarn", "pnpm"} and (verb in _DIRECT or verb in _VERBS):
        found = find(words[at:])
        return (found[0], found[1] + at) if found else None
    script = "test" if verb in {"t", "tst"} else verb
    return _named(script, at, f"script {script}", "js")


def _target(name: str, words: tuple[str, ...]) -> tuple[Runner, int] | None:
    """``make``, ``make -j4 test``, ``just lint``. Plain ``make`` builds."""
    if {"-n", "--dry-run", "--just-print"} & set(words):
        return None
    targets = [(w, i) for i, w in enumerate(words) if i and not w.startswith("-") and "=" not in w]
    targets = [(w, i) for w, i in targets if words[i - 1] not in {"-C", "-f", "-j", "--directory", "--file"}]
    if not targets:
        return (Runner("build", "make", "any", wrap=True), len(words)) if name in {"make", "gmake"} else None
    known = [found for w, i in targets if (found := _named(w, i, f"target {w}", "any"))]
    if len(targets) == 1 and targets[0][0] == "all":
        return Runner("build", "make", "any", wrap=True), len(words)
    if targets[-1][0] == "check" and name in {"make", "gmake"}:
        return Runner("test", "target check", "any", wrap=True), len(words)
    return (known[-1][0], len(words)) if known else None


def _task(words: tuple[str, ...]) -> tuple[Runner, int] | None:
    """``poe test``, ``composer test``, ``turbo run test``, ``nx test app``, ``nx run app:test``."""
    verb, at = _verb(words, 1)
    if verb in {"run", "run-script", "run-many"}:
        verb, at = _verb(words, at + 1)
    if verb.startswith(("-t", "--target")) or not verb:
        return None
    return _named(verb.rsplit(":", 1)[-1], at, f"script {verb}", "any")


def _named(script: str, at: int, tool: str, eco: str) -> tuple[Runner, int] | None:
    match = _SCRIPT.fullmatch(script)
    if not match or _NOT_A_CHECK.search(script):
        return None
    kind: CheckKind = "test" if match["test"] else "build" if match["build"] else "lint"
    if kind == "test" and re.search(r"e2e|integration|playwright|cypress", script):
        return Runner("test", tool, f"{eco}-e2e", wrap=True), at + 1
    return Runner(kind, tool, eco, wrap=True, bare=True), at + 1


# --- writes and other deeds ---------------------------------------------------------------------------------

_SCRIPTED: Final = re.compile(
    r"\.write_(?:text|bytes)\(|\bwriteFile(?:Sync)?\("
    r"|\bopen\([^()\n]{1,200},\s*(?:mode=)?['\"][wax]b?\+?['\"]"
)


_IN_PLACE: Final = re.compile(r"-[a-zA-Z]*i(?:\..*)?$|--in-place")


_GIT_WRITES: Final = frozenset(
    ["apply", "am", "revert", "merge", "rebase", "cherry-pick", "pull", "mv", "rm", "restore"]
)


_GIT_NAMES_FILES: Final = frozenset(["mv", "rm", "restore", "apply"])  # the others name branches and commits


def changes(words: tuple[str, ...], step: Step, *, log: bool) -> tuple[Action, ...]:
    """The writes of one simple command. ``log``: it only keeps a check's output, which is no change."""
    name = program(words)
    rest = [w for w in words[1:] if not w.startswith("-")]
    found = [] if log else list(step.outputs)
    if name == "tee" and not log:
        found += rest
    elif name in {"sed", "gsed", "perl"} and any(_IN_PLACE.match(w) for w in words[1:]):
        found += rest[-1:]
    elif name in {"mv", "rm", "touch", "truncate", "unlink"}:
        found += rest
    elif name in {"cp", "ln", "rsync"}:
        found += rest[-1:]
    elif name == "patch":
        found += rest[:1] or ["a patch"]
    elif name == "git" and rest:
        return _git(words, rest)
    elif manifest := _manifest(name, words, rest):
        found.append(manifest)
    elif (name.startswith("python") or name in {"node", "ruby"}) and _SCRIPTED.search(
        step.body[:20_000] or " ".join(words[1:])[:20_000]
    ):
        found.append(f"files, by a {name} script")
    return tuple(Write(path, name or "shell") for path in found)


def _manifest(name: str, words: tuple[str, ...], rest: list[str]) -> str:
    """The file in which a package manager notes what it adds, updates or removes, or an empty text."""
    path, verbs = _MANIFESTS.get(name, ("", []))
    noted = not {"-g", "--global", "--dry-run", "--no-save"} & set(words)
    return path if len(rest) > 1 and rest[0] in verbs and noted else ""


def _git(words: tuple[str, ...], rest: list[str]) -> tuple[Action, ...]:
    verb = rest[0]
    if verb == "stash":
        what = rest[1] if len(rest) > 1 else "push"
        if what in {"push", "save"}:
            return (Stash(away=True),)
        return (Stash(away=False),) if what in {"pop", "apply"} else ()
    back = verb == "checkout" and "--" in words
    named = back or verb in _GIT_NAMES_FILES
    if (
        back
        or (verb == "reset" and "--hard" in words)
        or (verb in _GIT_WRITES and not {"--check", "--cached", "--staged", "--abort"} & set(words))
    ):
        if verb == "rm" and len(rest) > 1:
            return tuple(Write(path, "git rm") for path in rest[1:])
        path = rest[-1] if len(rest) > 1 and named else f"git {verb}"
        other = back and words[words.index(verb) + 1] != "--"  # the state of another commit
        return (Write(path, f"git {verb} of a commit" if other else f"git {verb}"),)
    return ()


MAX_DEED_TEXT: Final = 200
_INTERPRETERS: Final = re.compile(r"(?:python[\d.]*|node|deno|ruby|php|perl|tsx|ts-node|java|Rscript|lua)$")
_DEPLOY_SCRIPT: Final = re.compile(r"(?:^|[/:_-])(?:deploy|publish|release)(?:[.:_-][\w.:-]{0,100}+)?$")


def deed(words: tuple[str, ...], text: str) -> Deed | None:
    """The deed of the command ``words``, or None for a look, a check or housekeeping."""
    if not words:
        return None
    rest = [w for w in words[1:] if not w.startswith("-")]
    kind = _deed_kind(program(words), words, rest)
    return Deed(kind, " ".join(text[: MAX_DEED_TEXT * 2].split())[:MAX_DEED_TEXT]) if kind else None


def _deed_kind(name: str, words: tuple[str, ...], rest: list[str]) -> DeedKind | None:
    verb = rest[0] if rest else ""
    if "--help" in words or "--dry-run" in words:
        return None
    if name == "git":
        return _git_deed(words)
    if name in {"gh", "glab", "hub"}:
        return _forge(name, verb, rest[1] if len(rest) > 1 else "")
    if verb in _DEPLOYS.get(name, ()) and not (name == "gcloud" and "deploy" not in rest):
        return "deploy"
    script = rest[1] if verb in {"run", "run-script"} and len(rest) > 1 else verb
    if name in {"npm", "pnpm", "yarn", "bun", "make", "just", "task"} and _DEPLOY_SCRIPT.search(script):
        return "deploy"
    if name in {"npm", "pnpm", "yarn", "bun"} and verb == "run":
        return "run"
    if _DEPLOY_SCRIPT.search(words[0].removesuffix(".sh")) and "/" in words[0]:
        return "deploy"
    if (
        verb in _RUNS.get(name, ())
        or _INTERPRETERS.match(name)
        or name in {"curl", "wget", "http", "uvicorn"}
    ):
        return "run"
    if name == "docker" and verb in {"compose", "run", "build"}:
        return "run"
    if words[0].startswith(("./", "../")) or (name not in _READS and "/" in words[0]):
        return "run"
    return None if name in _READS or name.startswith(("$", "(", "{", "#")) else "unknown"


def _git_deed(words: tuple[str, ...]) -> DeedKind | None:
    verb = (*git_words(words), "")[0]
    if verb in {"commit", "cherry-pick", "revert", "am"} or (verb == "merge" and "--no-commit" not in words):
        return "commit"
    if verb == "push":
        return "deploy" if {"heroku", "dokku"} & set(words) else "push"
    return None


def _forge(name: str, noun: str, verb: str) -> DeedKind | None:
    """``gh pr create``, ``gh run watch``, ``glab mr create``; looks are None."""
    if noun in {"pr", "mr", "pull-request"}:
        if verb == "checks":
            return "ci"
        writes = verb in {"create", "edit", "comment", "merge", "ready", "new", "update"}
        return "pr" if writes or name == "hub" else None
    if noun == "issue":
        return "issue" if verb in {"create", "edit", "comment", "close", "note", "update"} else None
    if noun in {"run", "ci", "pipeline"}:
        return "ci" if verb in {"watch", "view", "list", "status"} else None
    if noun == "release" and verb == "create":
        return "deploy"
    return "unknown" if noun == "api" else None
