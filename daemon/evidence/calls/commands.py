"""What a shell script does: its test, build and lint runs, what its exit code proves about each, its writes.

Pure text work over ``shell.steps``. A command that is not recognised is neither a check nor a write.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from dataclasses import dataclass, replace
from typing import Final

from ...core.evidence import CheckKind
from .actions import Action, Check, Deed, Stash, Write
from .deeds import deed
from .prefixes import unwrap
from .shell import MAX_SCRIPT, Step, steps
from .writes import changes

# The test, build and lint runners we know: which words of a command start one, and how wide it looks.
#
# Only tables and the lookup; ``commands`` reads the shell around them. A command that is not listed is no
# check: missing one is cheap, taking ``grep`` or a script of the person's for a failed test is not.


@dataclass(frozen=True, slots=True)
class Runner:
    """``tool`` is the family that supersedes itself; ``wrap``: it may run any tool of its ``eco`` system.

    ``bare``: a plain word behind it narrows the scope (``cargo test name``); else only a path.
    """

    kind: CheckKind
    tool: str
    eco: str
    wrap: bool = False
    bare: bool = False


def _r(kind: CheckKind, tool: str, eco: str, *, wrap: bool = False, bare: bool = False) -> Runner:
    return Runner(kind, tool, eco, wrap=wrap, bare=bare)


_DIRECT: Final[dict[str, Runner]] = {
    "pytest": _r("test", "pytest", "python"),
    "py.test": _r("test", "pytest", "python"),
    "unittest": _r("test", "pytest", "python", bare=True),
    "tox": _r("test", "tox", "python", wrap=True),
    "nox": _r("test", "nox", "python", wrap=True),
    "jest": _r("test", "jest", "js", bare=True),
    "vitest": _r("test", "jest", "js", bare=True),
    "mocha": _r("test", "jest", "js"),
    "ava": _r("test", "jest", "js"),
    "nose2": _r("test", "pytest", "python", bare=True),
    "karma": _r("test", "karma", "js", bare=True),
    "wdio": _r("test", "wdio", "js-e2e"),
    "testcafe": _r("test", "testcafe", "js-e2e"),
    "gotestsum": _r("test", "gotestsum", "go"),
    "ginkgo": _r("test", "ginkgo", "go"),
    "minitest": _r("test", "minitest", "ruby"),
    "cucumber": _r("test", "cucumber", "ruby"),
    "prove": _r("test", "prove", "perl"),
    "bats": _r("test", "bats", "any"),
    "busted": _r("test", "busted", "lua"),
    "rspec": _r("test", "rspec", "ruby"),
    "phpunit": _r("test", "phpunit", "php"),
    "pest": _r("test", "phpunit", "php"),
    "ctest": _r("test", "ctest", "c"),
    "tsc": _r("build", "tsc", "js"),
    "vue-tsc": _r("build", "tsc", "js"),
    "webpack": _r("build", "webpack", "js"),
    "rollup": _r("build", "rollup", "js"),
    "tsup": _r("build", "tsup", "js"),
    "sphinx-build": _r("build", "sphinx", "python"),
    "ninja": _r("build", "make", "c"),
    "mypy": _r("lint", "mypy", "python"),
    "pyright": _r("lint", "pyright", "python"),
    "flake8": _r("lint", "flake8", "python"),
    "pylint": _r("lint", "pylint", "python"),
    "basedpyright": _r("lint", "pyright", "python"),
    "xo": _r("lint", "eslint", "js"),
    "standard": _r("lint", "eslint", "js"),
    "standardrb": _r("lint", "rubocop", "ruby"),
    "psalm": _r("lint", "psalm", "php"),
    "phpcs": _r("lint", "phpcs", "php"),
    "swiftlint": _r("lint", "swiftlint", "swift"),
    "ktlint": _r("lint", "ktlint", "jvm"),
    "detekt": _r("lint", "detekt", "jvm"),
    "shellcheck": _r("lint", "shellcheck", "any"),
    "hadolint": _r("lint", "hadolint", "any"),
    "yamllint": _r("lint", "yamllint", "any"),
    "tflint": _r("lint", "tflint", "any"),
    "markdownlint": _r("lint", "markdownlint", "any"),
    "eslint": _r("lint", "eslint", "js"),
    "oxlint": _r("lint", "oxlint", "js"),
    "stylelint": _r("lint", "stylelint", "js"),
    "rubocop": _r("lint", "rubocop", "ruby"),
    "phpstan": _r("lint", "phpstan", "php"),
    "staticcheck": _r("lint", "staticcheck", "go"),
}

# Runners that need a verb: the first words that are not options decide.
_VERBS: Final[dict[str, dict[str, Runner]]] = {
    "cargo": {
        "test": _r("test", "cargo", "rust", bare=True),
        "nextest": _r("test", "cargo", "rust", bare=True),
        "build": _r("build", "cargo", "rust"),
        "check": _r("build", "cargo", "rust"),
        "clippy": _r("lint", "clippy", "rust"),
    },
    "go": {
        "test": _r("test", "go", "go"),
        "build": _r("build", "go", "go"),
        "vet": _r("lint", "vet", "go"),
    },
    "golangci-lint": {"run": _r("lint", "golangci", "go")},
    "ruff": {"check": _r("lint", "ruff", "python")},
    "biome": {
        "check": _r("lint", "biome", "js"),
        "lint": _r("lint", "biome", "js"),
        "ci": _r("lint", "biome", "js"),
    },
    "playwright": {"test": _r("test", "playwright", "js-e2e", bare=True)},
    "cypress": {"run": _r("test", "cypress", "js-e2e")},
    "dotnet": {"test": _r("test", "dotnet", "dotnet"), "build": _r("build", "dotnet", "dotnet")},
    "mix": {"test": _r("test", "mix", "elixir"), "compile": _r("build", "mix", "elixir")},
    "swift": {"test": _r("test", "swift", "swift"), "build": _r("build", "swift", "swift")},
    "flutter": {"test": _r("test", "dart", "dart"), "analyze": _r("lint", "dart", "dart")},
    "dart": {"test": _r("test", "dart", "dart"), "analyze": _r("lint", "dart", "dart")},
    "deno": {
        "test": _r("test", "deno", "js"),
        "lint": _r("lint", "deno", "js"),
        "check": _r("build", "deno", "js"),
    },
    "zig": {"test": _r("test", "zig", "zig"), "build": _r("build", "zig", "zig")},
    "bazel": {"test": _r("test", "bazel", "any"), "build": _r("build", "bazel", "any")},
    "ng": {
        "test": _r("test", "karma", "js"),
        "build": _r("build", "angular", "js"),
        "lint": _r("lint", "eslint", "js"),
    },
    "react-scripts": {"test": _r("test", "jest", "js", bare=True), "build": _r("build", "webpack", "js")},
    "xcodebuild": {"test": _r("test", "xcodebuild", "swift"), "build": _r("build", "xcodebuild", "swift")},
    "meson": {"test": _r("test", "meson", "c"), "compile": _r("build", "make", "c")},
    "sbt": {"test": _r("test", "sbt", "jvm"), "compile": _r("build", "sbt", "jvm")},
    "lein": {"test": _r("test", "lein", "jvm")},
    "stack": {"test": _r("test", "stack", "haskell"), "build": _r("build", "stack", "haskell")},
    "cabal": {"test": _r("test", "stack", "haskell"), "build": _r("build", "stack", "haskell")},
    "dune": {"test": _r("test", "dune", "ocaml"), "runtest": _r("test", "dune", "ocaml")},
    "rebar3": {"eunit": _r("test", "rebar", "erlang"), "ct": _r("test", "rebar", "erlang")},
    "gleam": {"test": _r("test", "gleam", "gleam")},
    "pants": {"test": _r("test", "pants", "any"), "lint": _r("lint", "pants", "any")},
    "mkdocs": {"build": _r("build", "mkdocs", "any")},
    "mdbook": {"build": _r("build", "mdbook", "any"), "test": _r("test", "mdbook", "any")},
    "jekyll": {"build": _r("build", "jekyll", "ruby")},
    "astro": {"build": _r("build", "astro", "js"), "check": _r("lint", "astro", "js")},
    "docusaurus": {"build": _r("build", "docusaurus", "js")},
    "helm": {"lint": _r("lint", "helm", "any")},
    "hatch": {"test": _r("test", "pytest", "python")},
    "ty": {"check": _r("lint", "ty", "python")},
    "terraform": {"validate": _r("lint", "terraform", "any")},
    "buf": {"lint": _r("lint", "buf", "any")},
    "rails": {"test": _r("test", "rails", "ruby")},
    "rake": {"test": _r("test", "rake", "ruby", wrap=True), "spec": _r("test", "rake", "ruby", wrap=True)},
    "artisan": {"test": _r("test", "phpunit", "php")},
    "manage.py": {"test": _r("test", "django", "python", bare=True)},
    "dbt": {"test": _r("test", "dbt", "any"), "build": _r("build", "dbt", "any")},
    "next": {"build": _r("build", "next", "js"), "lint": _r("lint", "eslint", "js")},
    "vite": {"build": _r("build", "vite", "js")},
    "pre-commit": {"run": _r("lint", "pre-commit", "any", wrap=True)},
}
for _tool in ("mvn", "mvnw"):
    _VERBS[_tool] = {
        "test": _r("test", "maven", "jvm"),
        "verify": _r("test", "maven", "jvm"),
        "package": _r("build", "maven", "jvm"),
        "compile": _r("build", "maven", "jvm"),
        "install": _r("build", "maven", "jvm"),
    }
for _tool in ("gradle", "gradlew"):
    _VERBS[_tool] = {
        "test": _r("test", "gradle", "jvm"),
        "check": _r("test", "gradle", "jvm"),
        "build": _r("build", "gradle", "jvm"),
        "assemble": _r("build", "gradle", "jvm"),
        "lint": _r("lint", "gradle", "jvm"),
    }

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
        return _r("test", "script", "any", wrap=True), 1
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
        return _r("build", "make", "c"), len(words)
    return _by_option(name, verb, words, at)


def _by_option(name: str, verb: str, words: tuple[str, ...], at: int) -> tuple[Runner, int] | None:
    """Checks that only an option or a second verb makes one: ``prettier --check``, ``mix credo``."""
    if name == "mix" and verb in {"credo", "dialyzer"}:
        return _r("lint", verb, "elixir"), at + 1
    if name in {"dotnet", "mix", "terraform", "dart"} and verb in {"format", "fmt"}:
        verifies = {"--verify-no-changes", "--check-formatted", "-check", "--set-exit-if-changed"} & set(
            words
        )
        return (_r("lint", f"{name}-format", "any"), at + 1) if verifies else None
    if name == "node" and "--test" in words:
        return _r("test", "node", "js"), words.index("--test") + 1
    if _TEST_SCRIPT.fullmatch(name):
        return _r("test", "script", "any", wrap=True), 1
    checks_format = name in {"prettier", "black", "isort"} and {"--check", "-c", "--check-only"} & set(words)
    if checks_format or (name in {"ruff", "cargo"} and verb in {"format", "fmt"} and "--check" in words):
        return _r("lint", f"{name}-format", "any"), 1
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
        return (_r("test", "bun", "js", bare=True), at + 1) if verb == "test" else None
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
        return (_r("build", "make", "any", wrap=True), len(words)) if name in {"make", "gmake"} else None
    known = [found for w, i in targets if (found := _named(w, i, f"target {w}", "any"))]
    if len(targets) == 1 and targets[0][0] == "all":
        return _r("build", "make", "any", wrap=True), len(words)
    if targets[-1][0] == "check" and name in {"make", "gmake"}:
        return _r("test", "target check", "any", wrap=True), len(words)
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
        return _r("test", tool, f"{eco}-e2e", wrap=True), at + 1
    return Runner(kind, tool, eco, wrap=True, bare=True), at + 1


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
        if find(unwrap(found[i].words)[0]):
            return True
    return False


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
