"""The GitHub work of a task: which commands ran, and which pull request or issue they were about.

A command that failed does not count. The **target** is the pull request or issue that an update may be posted
to. It comes only from the arguments or the output of a command, so that no text of an agent, a person or a
web page can choose it. In doubt there is no target.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ..evidence.calls.actions import Deed, DeedKind
from ..evidence.calls.deeds import result
from ..evidence.calls.prefixes import unwrap
from ..evidence.calls.shell import steps
from ..evidence.calls.tools import SHELL_TOOLS
from .references import QUOTE_CHARS, URL, Kind, Reference, from_url, text_references

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.transcript import ToolCall, Transcript

# Finds the ``git`` and ``gh`` commands of a script that matter after a compaction.
#
# Only commands that really run count: not ``echo "gh pr create"``, a comment, a here-document or a dry run.
# Whether they succeeded is not said here.

MAX_DEPTH: Final = 3
MAX_STEPS: Final = 300
_VERBS: Final[dict[str, tuple[str, ...]]] = {
    "pr": (
        *("create", "comment", "edit", "review", "ready", "merge", "close", "reopen"),
        *("view", "checks", "checkout", "diff"),
    ),
    "issue": ("create", "comment", "edit", "develop", "close", "delete", "reopen", "view"),
}
_ALIASES: Final = {"new": "create", "co": "checkout", "show": "view"}
_GIT_VALUES: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree"})
_GH_VALUES: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "-b --body -F --body-file -t --title -B --base -H --head -l --label -a --assignee -p --project -T "
        "--template -R --repo -q --jq --json -r --reviewer -m --milestone --subject -A --author-email "
        "--reason -i --interval --color --add-label --remove-label --add-assignee --remove-assignee "
        "--add-reviewer --remove-reviewer"
    ).split()
)
_BARE_OPTIONS: Final = {"merge": frozenset({"-m", "-r"}), "review": frozenset({"-a", "-r"})}
_LAST_WORDS: Final = frozenset({"-c", "--comment"})  # the value of ``gh pr close -c "superseded"``
_NO_RUN: Final = frozenset({"--help", "-h", "--dry-run"})
_BRANCH_LOOKS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "-a --all -r --remotes -l --list --show-current --contains --no-contains --merged --no-merged "
        "--points-at --sort --format"
    ).split()
)
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash"})
_INLINE: Final = re.compile(r"-[a-z]{0,5}c$")
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w{0,60}=\$\((?P<script>.{1,4000})\)$", re.DOTALL)
_REPO: Final = re.compile(r"(?:[\w.-]{1,100}(?::\d{1,5})?/)?[\w.-]{1,60}/[\w.-]{1,100}")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One command. ``tool``: for example ``gh pr create``. ``words``: all its words."""

    tool: str
    words: tuple[str, ...]

    @property
    def kind(self) -> Kind | None:
        """Whether a ``gh`` command is about a pull request or an issue; None for ``git``."""
        noun = self.tool.split(" ")[1]
        return "pr" if noun == "pr" else "issue" if noun == "issue" else None

    @property
    def argument(self) -> str:
        """The first word of a ``gh`` command that is no option: a number, an address or a branch."""
        return next(iter(_arguments(self.words[1:])[2:]), "")

    @property
    def repo(self) -> str:
        """The value of ``-R`` if it is the name of a repository, else empty."""
        for word, value in pairwise((*self.words, "")):
            named = value if word in {"-R", "--repo"} else word.removeprefix("--repo=")
            named = "" if named == word else named
            named = named.removeprefix("https://").removeprefix("github.com/")
            if named and _REPO.fullmatch(named):
                return named
        return ""


def invocations(script: str, *, depth: int = 0) -> Iterator[Invocation]:
    """The commands of ``script`` that matter here, in order."""
    for step in steps(script)[:MAX_STEPS]:
        for word in step.words:
            inside = _ASSIGNED.match(word) if "=$(" in word else None
            if inside and depth < MAX_DEPTH:
                yield from invocations(inside["script"], depth=depth + 1)
        words, _ = unwrap(step.words)
        name = words[0].rsplit("/", 1)[-1].removesuffix(".exe") if words else ""
        if name in _SHELLS and depth < MAX_DEPTH:
            yield from invocations(_inline(words), depth=depth + 1)
        elif tool := _git(words) if name == "git" else _gh(words) if name == "gh" else "":
            yield Invocation(tool, words)


def _inline(words: tuple[str, ...]) -> str:
    """The script of ``bash -lc '…'``."""
    return next((script for option, script in pairwise(words[1:]) if _INLINE.match(option)), "")


def _git(words: tuple[str, ...]) -> str:
    i = 1
    while i < len(words) and words[i].startswith("-"):
        i += 2 if words[i] in _GIT_VALUES else 1
    verb, rest = (words[i], words[i + 1 :]) if i < len(words) else ("", ())
    plain = any(not w.startswith("-") for w in rest)
    options = {w.split("=")[0] for w in rest if w.startswith("-")}
    if _NO_RUN & options:
        return ""
    match verb:
        case "commit":
            return "git commit"
        case "push":
            return "" if "-n" in options else "git push"
        case "branch":
            return "git branch" if plain and not _BRANCH_LOOKS & options else ""
        case "checkout" | "switch":
            return "git branch" if plain and {"-b", "-B", "-c", "-C", "--create"} & options else ""
        case _:
            return ""


def _gh(words: tuple[str, ...]) -> str:
    plain = _arguments(words[1:])
    if len(plain) < 2 or (_NO_RUN | {"--web", "-w"}) & set(words):
        return ""
    noun, verb = plain[0], _ALIASES.get(plain[1], plain[1])
    return f"gh {noun} {verb}" if verb in _VERBS.get(noun, ()) else ""


def _arguments(words: tuple[str, ...]) -> list[str]:
    """The words of a ``gh`` command that are neither options nor their values."""
    found: list[str] = []
    values, skip = _GH_VALUES, False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in values
        else:
            found.append(word)
            if len(found) == 2:
                values = _GH_VALUES - _BARE_OPTIONS.get(word, frozenset())
                values |= _LAST_WORDS if word in {"close", "reopen"} else frozenset()
    return found


MAX_REFERENCES: Final = 20
REQUESTS: Final = 5
TEXTS: Final = 60  # newest messages of the task whose text is read
TEXT_CHARS: Final = 20_000  # of each
ALL_CHARS: Final = 200_000
OUTPUT_CHARS: Final = 6_000
WORK: Final = frozenset(
    {
        *("gh pr create", "gh pr comment", "gh pr edit", "gh pr review", "gh pr ready", "gh pr reopen"),
        *("gh issue create", "gh issue comment", "gh issue edit", "gh issue develop", "gh issue reopen"),
        *("git commit", "git push", "git branch"),
    }
)
"""Commands that change something on GitHub or prepare it. The other commands only read."""
CLOSING: Final = frozenset({"gh pr merge", "gh pr close", "gh issue close", "gh issue delete"})
_NUMBER: Final = re.compile(r"#?(?P<n>[1-9]\d{0,8})$")
_PRINTED: Final = re.compile(r"^[ \t]{0,8}(?=https?://)", re.MULTILINE)
_SHOWN: Final = re.compile(
    r"^url:[ \t]{1,4}(?=https?://)|\"url\": ?\"(?=https?://)|\A\s{0,8}(?=https?://\S{1,300}\s{0,8}\Z)",
    re.MULTILINE,
)
_FIELD: Final = re.compile(r"^number:[ \t]{1,4}(\d{1,9})[ \t]*$|\"number\":\s?(\d{1,9})\b", re.MULTILINE)
_ANSWER: Final = re.compile(
    r"(?:pull request|issue) (?:[\w./-]{1,160})?#(\d{1,9})\b(?: \(|$| is )()", re.IGNORECASE | re.MULTILINE
)
_REFUSED: Final = re.compile(
    r"^no (?:open )?(?:pull requests?|issues?) (?:found|associated)|Could not resolve to"
    r"|none of the git remotes|already exists:|^accepts (?:at most|\d)|^unknown (?:command|flag|shorthand)",
    re.IGNORECASE | re.MULTILINE,
)
_KINDS: Final[dict[str, DeedKind]] = {"git commit": "commit", "git push": "push"}


@dataclass(frozen=True, slots=True)
class GithubWork:
    """``tools``: the commands that ran, each once. ``references``: those in texts, then those of commands.

    ``active``: a command of ``WORK`` ran, or a pull request or issue is named. ``target``: the newest pull
    request or issue that a command changed and did not close; if there is none, the newest that a command
    read.
    """

    tools: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    active: bool = False
    target: Reference | None = None


def github_work(transcript: Transcript) -> GithubWork:
    """The GitHub work of the transcript's task."""
    tools: dict[str, None] = {}
    named: list[Reference] = []
    written: list[Reference] = []
    for call in transcript.calls:
        script = call.input.get("command") if call.tool.lower() in SHELL_TOOLS else None
        found = _done(call, script) if isinstance(script, str) else []
        for done in found:
            tools[done.tool] = None
            for reference in _references(done, call, found):
                named = _without(named, reference)
                written = _without(written, reference) if done.tool in CLOSING | WORK else written
                if done.tool not in CLOSING:
                    named.append(reference)
                    written += [reference] if done.tool in WORK else []
    told = _told(transcript)
    return GithubWork(
        tools=tuple(tools),
        references=(*told, *named)[-MAX_REFERENCES:],
        active=bool(told or named or WORK & tools.keys()),
        target=next(reversed(written or named), None),
    )


def _without(references: list[Reference], other: Reference) -> list[Reference]:
    """The references that are surely not the same as ``other``."""

    def same(r: Reference) -> bool:
        repo = r.repo == other.repo or not (r.repo and other.repo)
        return repo and (r.kind, r.number) == (other.kind, other.number)

    return [r for r in references if not same(r)]


def _told(transcript: Transcript) -> list[Reference]:
    """The references in the task's texts, in the order of their newest mention."""
    left, texts = ALL_CHARS, []
    for m in reversed([m for m in transcript.work[-TEXTS:] if not m.human]):
        texts.append(m.text[-min(TEXT_CHARS, left) :] if left > 0 else "")
        left -= len(texts[-1])
    texts += [m.text[-TEXT_CHARS:] for m in reversed(transcript.requests[-REQUESTS:])]
    found: dict[tuple[Kind, int, str], Reference] = {}
    for text in reversed(texts):
        for reference in text_references(text):
            key = (reference.kind, reference.number, reference.repo)
            found.pop(key, None)
            found[key] = reference
    return [*found.values()][-MAX_REFERENCES:]


def _done(call: ToolCall, script: str) -> list[Invocation]:
    """The commands of a call that succeeded."""
    if call.status != "completed" or not ("git" in script or "gh" in script):
        return []
    found = list(invocations(script))
    return [done for done in found if _worked(done, call, alone=len(found) == 1)]


def _worked(done: Invocation, call: ToolCall, *, alone: bool) -> bool:
    """Whether the command succeeded. With exit code 0 it did unless the output says otherwise; with another
    exit code only if the output proves it.
    """
    output, ok = call.output[-OUTPUT_CHARS:], _passed(call)
    if done.tool == "git branch":
        return ok and not (alone and output.lstrip().startswith(("fatal:", "error:")))
    if done.kind and _REFUSED.search(output):
        return False
    kind: DeedKind = _KINDS.get(done.tool) or ("pr" if done.kind == "pr" else "issue")
    outcome, _ = result(Deed(kind, "", proves_pass=False, proves_fail=False), output, call.exit, alone=alone)
    proven = outcome == "passed" and (done.kind is None or done.tool.endswith((" create", " comment")))
    return proven or (ok and outcome != "failed")


def _passed(call: ToolCall) -> bool:
    return call.exit in {0, None} and not call.error


def _references(done: Invocation, call: ToolCall, all_done: list[Invocation]) -> list[Reference]:
    """The pull request or issue that a ``gh`` command was about, by its argument, else by its output."""
    kind = done.kind
    if kind is None or not _passed(call):
        return []
    output = call.output[-OUTPUT_CHARS:]
    if done.tool.endswith(" view"):  # a body or a comment of others may follow
        output = call.output[:OUTPUT_CHARS].partition("\n--\n")[0]
    urls = [url for url in _addresses(done, output) if url.kind == kind]
    if done.tool.endswith(" create"):
        creates = sum(other.tool == done.tool for other in all_done)
        return urls if len({(u.repo, u.number) for u in urls}) <= creates else []
    if url := URL.match(done.argument):
        return [from_url(url, "tool")]
    if number := _NUMBER.match(done.argument):
        return [_numbered(done, kind, int(number["n"]), " ".join(done.words), urls)]
    found = (_FIELD if done.tool.endswith(" view") else _ANSWER).search(output)
    if found:
        return [_numbered(done, kind, int(found[1] or found[2]), found[0].strip(), urls)]
    if {"-q", "--jq"} & set(done.words) and (alone := _NUMBER.match(output.strip())):
        return [_numbered(done, kind, int(alone["n"]), output.strip(), urls)]
    return urls if len(urls) == 1 else []


def _numbered(done: Invocation, kind: Kind, number: int, quote: str, urls: list[Reference]) -> Reference:
    """The reference with this number, in the repository that the output or the command names."""
    known = next((u for u in urls if u.number == number), None)
    return known or Reference(kind, number, "tool", quote[:QUOTE_CHARS], done.repo)


def _addresses(done: Invocation, output: str) -> list[Reference]:
    """The addresses that ``gh`` itself printed, without those in the text of a pull request or issue."""
    places = (_SHOWN if done.tool.endswith(" view") else _PRINTED).finditer(output)
    return [from_url(url, "tool") for place in places if (url := URL.match(output, place.end()))]
