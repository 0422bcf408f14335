"""Which files a command or a tool call changes, and which of them are part of the work: no log, no cache."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .actions import Action, Stash, Write
from .tools import WRITE_TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .shell import Step

_PATH_KEYS: Final = ("filePath", "file_path", "path", "notebook_path", "filename", "file")
_PATCH_KEYS: Final = ("patchText", "patch", "input", "diff")
_PATCHED: Final = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)([^\n\t]{1,300})", re.MULTILINE
)
_SCRIPTED: Final = re.compile(
    r"\.write_(?:text|bytes)\(|\bwriteFile(?:Sync)?\("
    r"|\bopen\([^()\n]{1,200},\s*(?:mode=)?['\"][wax]b?\+?['\"]"
)
_IN_PLACE: Final = re.compile(r"-[a-zA-Z]*i(?:\..*)?$|--in-place")
_GIT_WRITES: Final = frozenset(
    ["apply", "am", "revert", "merge", "rebase", "cherry-pick", "pull", "mv", "rm", "restore"]
)
_GIT_NAMES_FILES: Final = frozenset(["mv", "rm", "restore", "apply"])  # the others name branches and commits
_JS_VERBS: Final = frozenset(["add", "install", "i", "remove", "uninstall", "up", "update", "upgrade"])
_MANIFESTS: Final[dict[str, tuple[frozenset[str], str]]] = {
    "go": (frozenset(["get"]), "go.mod"),
    "cargo": (frozenset(["add", "remove"]), "Cargo.toml"),
    "npm": (_JS_VERBS, "package.json"),
    "pnpm": (_JS_VERBS, "package.json"),
    "yarn": (_JS_VERBS, "package.json"),
    "bun": (_JS_VERBS, "package.json"),
    "uv": (frozenset(["add", "remove"]), "pyproject.toml"),
    "poetry": (frozenset(["add", "remove"]), "pyproject.toml"),
    "pdm": (frozenset(["add", "remove"]), "pyproject.toml"),
    "composer": (frozenset(["require", "remove"]), "composer.json"),
}
_TEMPORARY: Final = ("/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/dev/", "/proc/")  # noqa: S108 -- compared
_BY_PRODUCT: Final = re.compile(
    r"(?:^|/)(?:node_modules|__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|htmlcov|coverage|dist"
    r"|build|target"
    r"|\.next|\.cache|\.coverage|\.venv|\.git)(?:/|$)|\.(?:log|tmp|pyc|out|pid)$"
)
_PROSE: Final = re.compile(
    r"\.(?:md|mdx|rst|txt|adoc|org)$|(?:^|/)(?:license|changelog|readme|notice|authors|\.gitignore)$",
    re.IGNORECASE,
)
_BUILDS: Final = re.compile(
    r"(?:^|/)(?:[\w.-]{0,60}requirements[\w.-]{0,60}|constraints[\w.-]{0,60}|cmakelists)\.txt$"
    r"|(?:^|/)requirements/[^/]{1,80}\.txt$",
    re.IGNORECASE,
)
_DATA: Final = re.compile(r"\.txt$", re.IGNORECASE)


def changes(words: tuple[str, ...], step: Step, *, log: bool) -> tuple[Action, ...]:
    """The writes of one simple command. ``log``: it only keeps a check's output, which is no change."""
    name = words[0].rsplit("/", 1)[-1] if words else ""
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
    verbs, path = _MANIFESTS.get(name, (frozenset[str](), ""))
    if (
        rest[:1]
        and rest[0] in verbs
        and len(rest) > 1
        and not {"-g", "--global", "--dry-run", "--no-save"} & set(words)
    ):
        return path
    return ""


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


def written_by_tool(tool: str, arguments: Mapping[str, object]) -> tuple[Write, ...]:
    """The files an edit tool changes; empty for every other tool."""
    name = tool.lower()
    if name not in WRITE_TOOLS:
        return ()
    for key in _PATH_KEYS:
        path = arguments.get(key)
        if isinstance(path, str) and path:
            return (Write(path, name),)
    for key in _PATCH_KEYS:
        patch = arguments.get(key)
        if isinstance(patch, str) and (paths := _PATCHED.findall(patch)):
            return tuple(Write(p.strip(), name) for p in paths[:100])
    return (Write("a file", name),)


def matters(path: str, directory: str) -> bool:
    """Whether a written path is part of the work: not a scratch file, a cache or a build product."""
    inside = path
    if directory and path.startswith(directory.rstrip("/") + "/"):
        inside = path[len(directory.rstrip("/")) + 1 :]
    elif path.startswith(_TEMPORARY) or path in {"/dev/null", "/tmp"}:  # noqa: S108 -- only compared
        return False
    return (
        bool(path) and not path.startswith(("$TMP", "${TMP", "$(mktemp")) and not _BY_PRODUCT.search(inside)
    )


def is_prose(path: str) -> bool:
    """Documents, which no test has to run after. What a build reads is none, whatever its ending."""
    return bool(_PROSE.search(path)) and not _BUILDS.search(path)


def may_be_data(path: str) -> bool:
    """Whether the file may be read by the program or its tests, as a text file may."""
    return not is_prose(path) or bool(_DATA.search(path))


def file_name(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rsplit("/", 1)[-1]
