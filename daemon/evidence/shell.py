"""A shell script as a flat list of steps: enough grammar to see the commands and their joints.

Reads quotes, pipes, lists, redirections, comments, here-documents and substitutions (which stay opaque).
Never runs or expands anything. Linear time; unreadable text ends up inside a word, never as an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

# What may stand before a command without changing what runs: ``FOO=1``, ``timeout 60``, ``uv run`` …

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_PREFIXES: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "sudo time nohup exec command env nice stdbuf xvfb-run npx bunx pnpx uvx cross-env builtin then "
        "do else { !"
    ).split()
)
_RUN_PREFIXES: Final = {
    **dict.fromkeys(
        ("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "coverage"), frozenset({"run"})
    ),
    "pnpm": frozenset({"exec", "dlx"}),
    "yarn": frozenset({"exec", "dlx"}),
    "npm": frozenset({"exec", "x"}),
    "bundle": frozenset({"exec"}),
    "mise": frozenset({"exec", "x"}),
    "bun": frozenset({"x"}),
}
_CONTAINERS: Final = frozenset({"docker", "docker-compose", "podman"})
_PREFIX_VALUES: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "-n -k --with --extra --group --python "
        "-p --project --package --env-file --directory -C -e -s -u --name"
    ).split()
)


_SCRIPTS: Final = frozenset(
    ["manage.py", "artisan", "phpunit", "pest", "rspec", "rails", "rake", "prove", "minitest"]
)


def unwrap(words: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """The command without its wrapping (``FOO=1 timeout 60``), and whether a wrapper hides its exit code."""
    i, negated, end = 0, False, len(words)
    while i < end:
        word = words[i].rsplit("/", 1)[-1]
        if _ASSIGNMENT.match(words[i]):
            i += 1
        elif word in {"if", "while", "until", "elif", "!"}:
            i, negated = i + 1, True
        elif word in _CONTAINERS and (inside := _inside(words, i)):
            i = inside
        elif word == "timeout":
            i = _past_options(words, i + 1) + 1
        elif word == "command" and words[i + 1 : i + 2] and words[i + 1] in {"-v", "-V"}:
            return (), True  # only asks whether it exists
        elif word in _PREFIXES:
            i = _past_options(words, i + 1)
        elif i + 1 < end and words[i + 1] in _RUN_PREFIXES.get(word, ()):
            i = _past_options(words, i + 2)
        elif word.startswith(("python", "pypy")) or word in {"py", "php", "ruby", "perl"}:
            module = _module(words, i)
            if not module:
                break
            i = module
        elif word == "-m" and i and words[i - 2 : i] == ("coverage", "run"):
            i += 1
        else:
            break
    return words[i:], negated


def _inside(words: tuple[str, ...], i: int) -> int:
    """Where the command stands in ``docker compose exec -T web pytest`` or ``docker exec box pytest``."""
    verbs = {"exec", "run"} if words[i + 1 : i + 2] == ("compose",) or "-compose" in words[i] else {"exec"}
    for j in range(i + 1, min(i + 4, len(words))):
        if words[j] in verbs:
            return _past_options(words, j + 1) + 1
    return 0


def _past_options(words: tuple[str, ...], i: int) -> int:
    while i < len(words) and words[i].startswith("-") and words[i] != "-m":
        i += 2 if words[i] in _PREFIX_VALUES else 1
    return i


def _module(words: tuple[str, ...], i: int) -> int:
    """Where ``pytest`` stands in ``python -W error -m pytest``, ``artisan`` in ``php artisan test``."""
    for j in range(i + 1, min(i + 6, len(words))):
        if words[j] == "-m":
            return j + 1
        if words[j] == "-c":
            return 0
        if words[j].rsplit("/", 1)[-1] in _SCRIPTS:
            return j
    return 0


MAX_SCRIPT: Final = 50_000
MAX_STEPS: Final = 300
MAX_DEPTH: Final = 3  # of scripts in a script
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash"})
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w{0,60}=\$\((?P<script>.{1,4000})\)$", re.DOTALL)


class Step(Struct, frozen=True):
    """One simple command. ``after`` is the operator behind it: ``&&``, ``||``, ``|``, ``&``, ``;`` or none.

    ``outputs``: files that stdout is redirected to. ``text``: as written. ``body``: its here-documents.
    """

    words: tuple[str, ...] = ()
    text: str = ""
    after: str = ""
    outputs: tuple[str, ...] = ()
    body: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The words without what is wrapped around the command."""
        return unwrap(self.words)[0]

    @property
    def program(self) -> str:
        """The program's name, "" for none."""
        return program(self.command)


def program(words: tuple[str, ...]) -> str:
    """The name of the program that an unwrapped command runs, "" for none."""
    return words[0].rsplit("/", 1)[-1].removesuffix(".exe") if words else ""


def inline(words: tuple[str, ...]) -> str:
    """The script in ``bash -c '…'``, or an empty text."""
    if program(words) in _SHELLS:
        for i, word in enumerate(words[1:], 1):
            if word.startswith("-") and word.endswith("c") and not word.startswith("--"):
                return words[i + 1] if i + 1 < len(words) else ""
    return ""


def commands_in(script: str, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """The words of each simple command, unwrapped and in order, also of those in ``bash -c '…'`` and in
    ``x=$(…)``.
    """
    for step in steps(script)[:MAX_STEPS]:
        assigned = (_ASSIGNED.match(word) for word in step.words if "=$(" in word)
        inside = [found["script"] for found in assigned if found is not None]
        own = inline(step.command)
        for inner in (*inside, own) if depth < MAX_DEPTH else ():
            yield from commands_in(inner, depth + 1)
        if not own or depth >= MAX_DEPTH:
            yield step.command


def git_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words behind ``git`` and its own options; none for another program."""
    if program(words) != "git":
        return ()
    i = 1
    while i < len(words) and words[i].startswith("-"):
        i += 2 if words[i] in {"-C", "-c", "--git-dir", "--work-tree"} else 1
    return words[i:]


_BLANK: Final = re.compile(r"(?:[ \t\r]|\\\r?\n)++")
_HEREDOC: Final = re.compile(r"<<(-?)[ \t]*(['\"]?)([A-Za-z_][\w.-]*)\2")
_REDIRECT: Final = re.compile(r"(\d*|&)(>>|>\||>|<<<|<>|<)(&(?:\d+-?|-)|&(?=\s*[^\s\d-]))?")
_OPERATOR: Final = re.compile(r"&&|\|\||\|&|;;&?|[;|&\n()]")
_PLAIN: Final = re.compile(r"[^ \t\r\n'\"\\;&|<>()`$]++")
_DOUBLE: Final = re.compile(r'[^"\\$`]++')
_INSIDE: Final = re.compile(r"[^'\"\\$`()<#]++")
_BACKTICK: Final = re.compile(r"`(?:[^`\\]|\\.)*+`?", re.DOTALL)
_UNESCAPE: Final = re.compile(r"\\([\"\\$`])")


def steps(script: str) -> list[Step]:
    """The simple commands of ``script`` in order, groups flattened. Reads ``MAX_SCRIPT`` characters."""
    return _Reader(script[:MAX_SCRIPT]).read()


class _Reader:
    def __init__(self, script: str) -> None:
        self.s = script
        self.i = 0
        self.found: list[Step] = []
        self.words: list[str] = []
        self.outputs: list[str] = []
        self.begin = self.end = 0  # of the current step's text
        self.pending: list[str] = []  # here-documents whose bodies start on the next line

    def read(self) -> list[Step]:
        s, end = self.s, len(self.s)
        while self.i < end:
            if blank := _BLANK.match(s, self.i):
                self.i = blank.end()
            elif s[self.i] == "#":
                self.i = _line_end(s, self.i)
            elif doc := _HEREDOC.match(s, self.i):
                self.pending.append(doc[3])
                self.i = doc.end()
            elif arrow := _REDIRECT.match(s, self.i):
                self._start()
                self.i = arrow.end()
                self._redirect(arrow)
                self.end = self.i
            elif operator := _OPERATOR.match(s, self.i):
                self._close(operator[0])
                self.i = operator.end()
                if operator[0] == "\n":
                    self._bodies()
            else:
                self._start()
                self.words.append(self._word())
                self.end = self.i
        self._close("")
        return self.found

    def _redirect(self, arrow: re.Match[str]) -> None:
        if arrow[3] and arrow[3] != "&":
            return  # 2>&1
        if blank := _BLANK.match(self.s, self.i):
            self.i = blank.end()
        target = self._word()
        if arrow[2].startswith(">") and arrow[1] in {"", "1", "&"} and target:
            self.outputs.append(target)

    def _start(self) -> None:
        if not self.words and not self.outputs:
            self.begin = self.i

    def _close(self, operator: str) -> None:
        operator = {"\n": ";", "|&": "|", ";;": ";", ";;&": ";", "(": "", ")": ""}.get(operator, operator)
        if self.words or self.outputs:
            text = self.s[self.begin : self.end]
            self.found.append(Step(tuple(self.words), text, operator, tuple(self.outputs)))
            self.words, self.outputs = [], []
        elif operator and self.found and self.found[-1].after in {"", ";"}:
            # ``( … ) || true`` belongs to what the group ended with
            self.found[-1] = replace(self.found[-1], after=operator)

    def _bodies(self) -> None:
        for name in self.pending:
            start = self.i
            self.i = _heredoc_end(self.s, start, name)
            if self.found:
                body = self.found[-1].body + self.s[start : self.i]
                self.found[-1] = replace(self.found[-1], body=body)
        self.pending.clear()

    def _word(self) -> str:
        s, end, parts = self.s, len(self.s), []
        while self.i < end:
            c = s[self.i]
            if plain := _PLAIN.match(s, self.i):
                parts.append(plain[0])
                self.i = plain.end()
            elif c == "'":
                close = s.find("'", self.i + 1)
                close = end if close < 0 else close
                parts.append(s[self.i + 1 : close])
                self.i = close + 1
            elif c in '"$`':
                start = self.i
                self.i = _skip(s, start)
                text = s[start : self.i]
                parts.append(_UNESCAPE.sub(r"\1", text[1:-1]) if c == '"' else text)
            elif c == "\\":
                if _BLANK.match(s, self.i):
                    break
                parts.append(s[self.i + 1 : self.i + 2])
                self.i += 2
            else:
                break
        return "".join(parts)


def _skip(s: str, i: int) -> int:  # noqa: C901, PLR0912 -- one state machine, read in one piece
    """The end of the quote, substitution or variable that starts at ``i``; a stack instead of recursion."""
    stack: list[str] = []
    end = len(s)
    while i < end:
        mode, c = (stack[-1] if stack else ""), s[i]
        if c == "\\":
            i += 2
        elif c == '"':
            if mode == '"':
                stack.pop()
            else:
                stack.append('"')
            i += 1
        elif c == "`":
            match = _BACKTICK.match(s, i)
            i = match.end() if match else i + 1
        elif c == "$":
            if s.startswith("$(", i):
                stack.append("(")
                i += 2
            else:
                i += 1
        elif mode == "(" and c == "(":
            stack.append("(")
            i += 1
        elif mode == "(" and c == ")":
            stack.pop()
            i += 1
        elif mode == "(" and c == "'":
            close = s.find("'", i + 1)
            i = end if close < 0 else close + 1
        elif mode == "(" and (doc := _HEREDOC.match(s, i)):
            i = _heredoc_end(s, _line_end(s, i), doc[3])
        else:
            plain = (_DOUBLE if mode == '"' else _INSIDE).match(s, i)
            i = plain.end() if plain else i + 1
        if not stack:
            break
    return min(i, end)


def _line_end(s: str, i: int) -> int:
    end = s.find("\n", i)
    return len(s) if end < 0 else end


def _heredoc_end(s: str, i: int, name: str) -> int:
    """Behind the line that ends the here-document, searched from the line end at or before ``i``."""
    found = re.compile(rf"\n[ \t]*{re.escape(name)}[ \t]*(?=\n|\)|$)").search(s, max(i - 1, 0))
    return found.end() if found else len(s)
