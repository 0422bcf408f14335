"""The GitHub work of a task: which commands ran, what texts name, and where an update may go.

A command that failed does not count. The target is taken only from the arguments of a ``gh`` command, or from
the address that ``gh … create`` printed, so no text of an agent, a person or a web page can choose it (I27).
In doubt there is none. Linear time.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from ..evidence.actions import SHELL_TOOLS, Deed, DeedKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.transcript import ToolCall, Transcript

Kind = Literal["pr", "issue"]

MAX_NAMED: Final = 20
REQUESTS: Final = 5
TEXTS: Final = 60  # newest messages of the task whose text is read
TEXT_CHARS: Final = 20_000  # of each
ALL_CHARS: Final = 200_000
OUTPUT_CHARS: Final = 6_000
_WRITES: Final = frozenset({"create", "comment", "edit", "review", "ready", "reopen", "develop"})
_READS: Final = frozenset({"view", "checks", "checkout", "diff"})
_CLOSES: Final = frozenset({"merge", "close", "delete"})
_ALIASES: Final = {"new": "create", "co": "checkout", "show": "view"}
_NO_RUN: Final = frozenset({"--help", "-h", "--dry-run", "--web", "-w"})
_BRANCHES: Final = frozenset({"-d", "-D", "-m", "-M", "-f"})
_REPO: Final = re.compile(r"(?:[\w.-]{1,100}(?::\d{1,5})?/)?[\w.-]{1,60}/[\w.-]{1,100}")
_NUMBER: Final = re.compile(r"#?([1-9]\d{0,8})")
_URL: Final = re.compile(
    r"https?://(?P<host>[\w.-]{1,100}+(?::\d{1,5})?)/(?P<repo>[\w.-]{1,60}+/[\w.-]{1,100}+)"
    r"/(?P<what>pull|issues)/(?P<number>[1-9]\d{0,8})(?![\w-])"
)
_PRINTED: Final = re.compile(r"^[ \t]{0,8}(?=https?://)", re.MULTILINE)
_REFUSED: Final = re.compile(
    r"^no (?:open )?(?:pull requests?|issues?) (?:found|associated)|Could not resolve to"
    r"|none of the git remotes|already exists:|^accepts (?:at most|\d)|^unknown (?:command|flag|shorthand)",
    re.IGNORECASE | re.MULTILINE,
)
_NAMED: Final = re.compile(  # the forms that the seed names; the model reads them as context
    r"(?<![\w#&/.-])(?:(?:PR|pull[ -]request)s?[ ]?#?(?P<pr>\d{1,7})\b|issues?[ ]?#(?P<issue>\d{1,7})\b"
    r"|#(?P<any>\d{1,7})\b|(?P<said>pull[ -]request)\b)"
    r"|/pull/(?P<pull>\d{1,7})\b|/issues/(?P<issues>\d{1,7})\b",
    re.IGNORECASE,
)
_KINDS: Final[dict[str, DeedKind]] = {"git commit": "commit", "git push": "push"}


class Target(Struct, frozen=True):
    """One pull request or issue. ``repo``: ``owner/name``, with the host before it where that is not
    github.com; empty when no command named it.
    """

    kind: Kind
    number: int
    repo: str = ""

    @property
    def name(self) -> str:
        """``PR #12``, ``issue #4``."""
        return f"{'PR' if self.kind == 'pr' else 'issue'} #{self.number}"


class GithubWork(Struct, frozen=True):
    """``tools``: the commands that ran, each once. ``named``: what texts name, the newest last. ``target``:
    the newest that a command changed and did not close; if there is none, the newest that a command read.
    """

    tools: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    target: Target | None = None


class Command(Struct, frozen=True):
    """``tool``: for example ``gh pr create``. ``argument``: the word behind that. ``repo``: the value of
    ``-R``.
    """

    tool: str
    argument: str = ""
    repo: str = ""


def github_work(transcript: Transcript) -> GithubWork:
    """The GitHub work of the transcript's task."""
    tools: dict[str, None] = {}
    written: list[Target] = []
    read: list[Target] = []
    for call in transcript.calls:
        done = _done(call)
        tools.update(dict.fromkeys(command.tool for command in done))
        for command in done:
            verb, target = command.tool.rsplit(" ", 1)[-1], _target(command, call, done)
            if target is None:  # of the branch that is checked out: nobody wants an update on what is merged
                if verb in _CLOSES:
                    written, read = [], []
                continue
            same = {(target.kind, target.number)}
            written, read = ([t for t in row if (t.kind, t.number) not in same] for row in (written, read))
            if verb in _WRITES:
                written.append(target)
            elif verb in _READS:
                read.append(target)
    return GithubWork(tuple(tools), _named(transcript), next(reversed(written or read), None))


def commands(script: str) -> Iterator[Command]:
    """The ``git`` and ``gh`` commands of a script that matter here and really run, in order."""
    from ..evidence.shell import commands_in, git_words, program  # hundreds of patterns, which no start needs

    for words in commands_in(script):
        name = program(words)
        found = _git(git_words(words)) if name == "git" else _gh(words[1:]) if name == "gh" else None
        if found is not None:
            yield found


def _git(words: tuple[str, ...]) -> Command | None:
    verb, rest = words[:1], words[1:]
    first = rest[0] if rest else ""
    match verb:
        case ("commit" | "push",) if not _NO_RUN & set(rest) and not (verb == ("push",) and "-n" in rest):
            return Command(f"git {verb[0]}")
        case ("branch",) if first and (first in _BRANCHES or not first.startswith("-")):
            return Command("git branch")
        case ("checkout" | "switch",) if {"-b", "-B", "-c", "-C", "--create"} & set(rest):
            return Command("git branch")
        case _:
            return None


def _gh(words: tuple[str, ...]) -> Command | None:
    plain: list[str] = []
    repo, skip = "", False
    for word, value in pairwise((*words, "")):
        named = value if word in {"-R", "--repo"} else word.removeprefix("--repo=")
        if skip or named != word:
            repo, skip = (repo, False) if skip else (named, word in {"-R", "--repo"})
        else:
            plain.append(word)
    noun, verb = (*plain, "", "")[:2]
    verb = _ALIASES.get(verb, verb)
    if noun not in {"pr", "issue"} or verb not in _WRITES | _READS | _CLOSES or _NO_RUN & set(plain):
        return None
    repo = repo.removeprefix("https://").removeprefix("github.com/")
    return Command(f"gh {noun} {verb}", (*plain, "")[2], repo if _REPO.fullmatch(repo) else "")


def _done(call: ToolCall) -> list[Command]:
    """The commands of a call that worked: with exit code 0 unless the output says otherwise, with another
    exit code only if the output proves it.
    """
    script = call.input.get("command") if call.tool.lower() in SHELL_TOOLS else None
    if not isinstance(script, str) or call.status != "completed" or not ("git" in script or "gh" in script):
        return []
    from ..evidence.outcomes import result  # as above

    output, ran = call.output[-OUTPUT_CHARS:], list(commands(script))

    def worked(command: Command) -> bool:
        if command.tool == "git branch":
            return _passed(call) and not (len(ran) == 1 and output.lstrip().startswith(("fatal:", "error:")))
        on_github = command.tool.startswith("gh")
        if on_github and _REFUSED.search(output):
            return False
        kind: DeedKind = _KINDS.get(command.tool) or ("pr" if " pr " in command.tool else "issue")
        deed = Deed(kind, "", proves_pass=False, proves_fail=False)
        outcome, _ = result(deed, output, call.exit, alone=len(ran) == 1)
        proven = outcome == "passed" and (not on_github or command.tool.endswith((" create", " comment")))
        return proven or (_passed(call) and outcome != "failed")

    return [command for command in ran if worked(command)]


def _passed(call: ToolCall) -> bool:
    return call.exit in {0, None} and not call.error


def _target(command: Command, call: ToolCall, done: list[Command]) -> Target | None:
    """The pull request or issue that a ``gh`` command was about."""
    if not command.tool.startswith("gh") or not _passed(call):
        return None
    kind: Kind = "pr" if " pr " in command.tool else "issue"
    if command.tool.endswith(" create"):
        output = call.output[-OUTPUT_CHARS:]
        urls = [url for at in _PRINTED.finditer(output) if (url := _URL.match(output, at.end()))]
        created = {target for url in urls if (target := _from(url)).kind == kind}
        one = len(created) == 1 and sum(other.tool == command.tool for other in done) == 1
        return created.pop() if one else None
    if url := _URL.match(command.argument):
        return _from(url)
    number = _NUMBER.fullmatch(command.argument)
    return Target(kind, int(number[1]), command.repo) if number else None


def _from(url: re.Match[str]) -> Target:
    host = "" if url["host"].lower() in {"github.com", "www.github.com"} else f"{url['host'].lower()}/"
    return Target("pr" if url["what"] == "pull" else "issue", int(url["number"]), host + url["repo"])


def _named(transcript: Transcript) -> tuple[str, ...]:
    """The names in the task's texts, in the order of the newest mention."""
    left, texts = ALL_CHARS, list[str]()
    for message in reversed(transcript.work[-TEXTS:]):
        texts.append(message.text[-min(TEXT_CHARS, left) :] if left > 0 else "")
        left -= len(texts[-1])
    texts += [m.text[-TEXT_CHARS:] for m in reversed(transcript.requests[-REQUESTS:])]
    named: dict[str, None] = {}
    for match in (m for text in reversed(texts) for m in _NAMED.finditer(text)):
        kind = match.lastgroup or ""
        word = {"pr": "PR ", "pull": "PR ", "issue": "issue ", "issues": "issue "}.get(kind, "")
        name = "a pull request" if kind == "said" else f"{word}#{int(match[kind])}"
        named.pop(name, None)
        named[name] = None
    return tuple(named)[-MAX_NAMED:]
