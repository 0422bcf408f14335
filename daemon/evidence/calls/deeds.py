"""What a command does besides checks and writes: commits, pushes, pull requests, deployments, runs.

``deed`` reads the words of a command, ``result`` what came of it from the call's output. A command that
neither this module nor ``runners`` knows is ``unknown``. It may have done anything, so no rule says that
nothing was done.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .actions import Deed, DeedKind

if TYPE_CHECKING:
    from ...core.evidence import Outcome

MAX_TEXT: Final = 200
MAX_OUTPUT: Final = 6_000
_READS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "ls cat head tail grep egrep rg ag find fd wc sort uniq diff cmp stat file which whereis echo "
        "printf pwd cd tree less more cut awk jq yq tr test [ [[ true false : sleep date env printenv "
        "export set unset source . mkdir touch rm mv cp ln chmod sed perl tee xargs basename dirname "
        "realpath readlink du df ps kill pkill type command id whoami uname hostname read wait trap exit "
        "return for while if do done then fi case esac function local declare pip pip3 apt apt-get brew "
        "npm pnpm yarn bun cargo go uv poetry tar unzip zip gunzip base64 md5sum sha256sum patch rsync "
        "pushd popd alias ulimit nl column comm paste fold rev seq prettier black isort gofmt rustfmt "
        "ruff git gh glab docker "
    ).split()
)
_GIT_OPTIONS: Final = frozenset(["-C", "-c", "--git-dir", "--work-tree"])
_DEPLOYS: Final[dict[str, frozenset[str]]] = {
    "vercel": frozenset(["", "deploy", "--prod"]),
    "netlify": frozenset(["deploy"]),
    "fly": frozenset(["deploy"]),
    "flyctl": frozenset(["deploy"]),
    "wrangler": frozenset(["deploy", "publish"]),
    "firebase": frozenset(["deploy"]),
    "serverless": frozenset(["deploy"]),
    "sls": frozenset(["deploy"]),
    "cdk": frozenset(["deploy"]),
    "kubectl": frozenset(["apply", "rollout"]),
    "helm": frozenset(["upgrade", "install"]),
    "terraform": frozenset(["apply"]),
    "tofu": frozenset(["apply"]),
    "gcloud": frozenset(["app", "run", "functions"]),
    "railway": frozenset(["up"]),
    "heroku": frozenset(["container:release"]),
    "twine": frozenset(["upload"]),
    "npm": frozenset(["publish"]),
    "pnpm": frozenset(["publish"]),
    "yarn": frozenset(["publish"]),
    "cargo": frozenset(["publish"]),
    "poetry": frozenset(["publish"]),
    "uv": frozenset(["publish"]),
}
_RUNS: Final[dict[str, frozenset[str]]] = {
    "npm": frozenset(["start"]),
    "yarn": frozenset(["start", "dev"]),
    "pnpm": frozenset(["start", "dev"]),
    "cargo": frozenset(["run"]),
    "go": frozenset(["run"]),
    "dotnet": frozenset(["run"]),
    "mix": frozenset(["run", "phx.server"]),
    "flask": frozenset(["run"]),
    "rails": frozenset(["server", "s", "runner"]),
    "manage.py": frozenset(["runserver", "shell", "migrate"]),
    "php": frozenset([]),
}
_INTERPRETERS: Final = re.compile(r"(?:python[\d.]*|node|deno|ruby|php|perl|tsx|ts-node|java|Rscript|lua)$")
_DEPLOY_SCRIPT: Final = re.compile(r"(?:^|[/:_-])(?:deploy|publish|release)(?:[.:_-][\w.:-]{0,100}+)?$")
_COMMITTED: Final = re.compile(r"^\[([^\]\n]{1,100})\] ?([^\n]{0,100})$", re.MULTILINE)
_NOT_COMMITTED: Final = re.compile(
    r"nothing to commit|no changes added to commit|nothing added to commit|Aborting commit|^error: |^fatal: "
    r"|hook .{0,40}failed|husky - pre-commit",
    re.MULTILINE,
)
_PUSHED: Final = re.compile(
    r"^ {0,3}[*+ ]? {0,3}\S[^\n]{0,120} -> [^\n]{1,120}$|Everything up-to-date|^To \S+", re.MULTILINE
)
_NOT_PUSHED: Final = re.compile(
    r"! \[(?:remote )?rejected\]|^error: failed to push|^fatal: |Permission denied|Authentication failed"
    r"|hook declined"
    r"|could not read Username",
    re.MULTILINE,
)
_LINK: Final = re.compile(
    r"https://[\w.:-]{1,80}/[\w./~-]{1,160}/(pull|merge_requests|pull-requests|issues)/(\d{1,9})"
)
_GH_FAILED: Final = re.compile(
    r"^(?:GraphQL: |error: |failed to |could not |pull request create failed"
    r"|To get started with GitHub CLI|gh: |HTTP \d{3})"
    r"|^fatal: |already exists:",
    re.MULTILINE | re.IGNORECASE,
)
_CI_FAILED: Final = re.compile(
    r"^(?:X |.{0,80}\t(?:fail|failure|cancelled)\b)|\b[1-9]\d* failing\b|completed with 'failure'",
    re.MULTILINE,
)
_CI_PASSED: Final = re.compile(
    r"All checks were successful|0 failing\b|^\S.{0,80}\tpass\b|completed with 'success'", re.MULTILINE
)
_CI_PENDING: Final = re.compile(r"\bpending\b|in progress|Some checks are still", re.IGNORECASE)


def deed(words: tuple[str, ...], text: str) -> Deed | None:
    """What the command ``words`` does, or None for a look, a check or plain housekeeping."""
    if not words:
        return None
    name = words[0].rsplit("/", 1)[-1]
    rest = [w for w in words[1:] if not w.startswith("-")]
    kind = _kind(name, words, rest)
    return Deed(kind, " ".join(text[: MAX_TEXT * 2].split())[:MAX_TEXT]) if kind else None


def _kind(name: str, words: tuple[str, ...], rest: list[str]) -> DeedKind | None:
    verb = rest[0] if rest else ""
    if "--help" in words or "--dry-run" in words:
        return None
    if name == "git":
        return _git(words)
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


def _git(words: tuple[str, ...]) -> DeedKind | None:
    i = 1
    while i < len(words) and words[i].startswith("-"):
        i += 2 if words[i] in _GIT_OPTIONS else 1
    verb = words[i] if i < len(words) else ""
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
        return (
            "pr"
            if verb in {"create", "edit", "comment", "merge", "ready", "new", "update"} or name == "hub"
            else None
        )
    if noun == "issue":
        return "issue" if verb in {"create", "edit", "comment", "close", "note", "update"} else None
    if noun in {"run", "ci", "pipeline"}:
        return "ci" if verb in {"watch", "view", "list", "status"} else None
    if noun == "release" and verb == "create":
        return "deploy"
    return "unknown" if noun == "api" else None


def result(done: Deed, output: str, exit_code: int | None, *, alone: bool) -> tuple[Outcome, str]:
    """How it ended and what its output names (a commit, a link). ``alone``: the output is all its own."""
    tail = output[-MAX_OUTPUT:]
    failed = exit_code not in {0, None} and done.proves_fail
    passed = exit_code == 0 and done.proves_pass
    named = ""
    match done.kind:
        case "commit":
            found = _COMMITTED.search(tail)
            named = f"[{found[1]}] {found[2]}".strip() if found else ""
            passed, failed = (
                passed or bool(found),
                failed or (not found and bool(_NOT_COMMITTED.search(tail))),
            )
        case "push":
            failed = failed or bool(_NOT_PUSHED.search(tail))
            passed = passed or bool(_PUSHED.search(tail))
        case "pr" | "issue":
            wanted = {"pr": ("pull", "merge_requests", "pull-requests"), "issue": ("issues",)}[done.kind]
            link = next((m for m in _LINK.finditer(tail) if m[1] in wanted), None)
            named = f"#{link[2]} {link[0]}" if link else ""
            failed = failed or (not link and bool(_GH_FAILED.search(tail)))
            passed = passed or bool(link)
        case "ci":
            failed = bool(_CI_FAILED.search(tail))
            passed = not failed and not _CI_PENDING.search(tail) and bool(_CI_PASSED.search(tail))
        case _:
            if not alone:
                failed = False
    return ("failed" if failed else "passed" if passed else "unknown"), named
