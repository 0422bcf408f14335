"""Project rules: what a project's AGENTS.md or CLAUDE.md says must be run, updated or left alone before work
counts as done (I26).

Pure text selection over untrusted Markdown, in linear time. It keeps lines that demand something (must,
always, never, before …) about tests, lint, build, CI, commits, pull requests, changelog or docs, and the
commands under headings such as "Testing" or "Before you commit". Everything else stays out, above all what
the text says to whoever judges. What is kept is still data, which the prompt fences. A mere list of useful
commands is not a rule: asking for a run that nobody demanded is the costly error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final, Literal

from ..calls.actions import Check
from ..calls.commands import read_script

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT: Final = 1_500  # characters of the result
LINE: Final = 300  # characters of one line
SENTENCES_FROM: Final = 200  # a longer paragraph is taken apart
LINES_READ: Final = 2_000
LINE_READ: Final = 1_000
PARAGRAPH: Final = 30  # lines
TEXT_READ: Final = 64 * 1024
COMMANDS: Final = 100  # looked at in one text; each takes 0.1 ms

Area = Literal["", "testing", "checklist"]
Kind = Literal["heading", "text", "item", "code"]


@dataclass(frozen=True, slots=True)
class _Block:
    kind: Kind
    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class _Line:
    heading: str
    text: str
    asks: bool  # demands something; the others are commands under a fitting heading


@dataclass(slots=True)
class _Commands:
    """Knows a test, build or lint run; a page with hundreds of them is not read to its end."""

    left: int = COMMANDS

    def check(self, command: str) -> bool:
        script = command.strip().removeprefix("$ ").removeprefix("% ")
        self.left -= 1
        if self.left < 0 or not 0 < len(script) <= LINE:
            return False
        return any(isinstance(action, Check) for action in read_script(script))

    def in_spans(self, text: str) -> bool:
        return any(self.check(span) for span in _SPAN.findall(text)[:10])


def _words(pattern: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", flags)


_FORCE = _words(
    r"must|always|never|before|after (?:each|every|any|all|making|you)|ensure|make sure|required?|requires"
    r"|mandatory|needs? to|ha(?:ve|s) to|do not|don['\u2019]t|until|without|forbidden|not allowed|every"
    r"|each time|whenever|verify|confirm|remember to|only (?:when|after|if)"
    r"|no (?:\w+ ){1,3}(?:without|until)|cannot"
)
_SHOULD = _words(
    r"should (?:all )?(?:pass|run|be (?:run|updated|added|green|covered)|include|have|come with)"
)
_IMPERATIVE = _words(r"(?:please )?(?:run|add|update|write|include|keep|fix|use conventional)")
_TOPIC = _words(
    r"tests?|tested|testing|pytest|vitest|jest|lint(?:s|er|ers|ing)?|type[- ]?check(?:s|er|ing|ed)?"
    r"|mypy|tsc|clippy|ruff|eslint|coverage|commit(?:s|ted|ting)?|push(?:es|ed|ing)?|pull requests?"
    r"|merg(?:e|ing)|pre-commit|change ?log|release notes?|snapshots?"
)
_SHORT = _words(r"CI|PRs?", re.NOFLAG)  # in capitals only
_WEAK = _words(
    r"builds?|building|compil(?:e|es|ing)|checks?|format(?:ted|ting|ter)?|deploy(?:s|ed|ing)?|hooks?"
)
_OUTCOME = _words(
    r"pass(?:es|ing)?|succeeds?|green|breaks?|broken|fail(?:s|ing)?|errors?|warnings?|clean|run|done|finish(?:ed|ing)?"
    r"|before|after"
)
_DOCS = re.compile(
    r"\b(?:updat|writ|add|keep|maintain|sync|document|reflect)\w{0,8}\b[^.]{0,80}?"
    r"\b(?:docs?|documentation|readme|docstrings?)\b"
    r"|\b(?:docs?|documentation|readme)\b[^.]{0,40}?\b(?:updated|written|added|kept|in sync|up to date)\b",
    re.IGNORECASE,
)
_CHECKLIST = _words(
    r"before (?:you )?(?:commit\w*|push\w*|submit\w*|finish\w*|merg\w+|opening|completing|handing"
    r"|you'?re done|(?:a |each |every |any |the )?(?:commit|push|pr|pull request|release|merge))"
    r"|(?:after|when|once) (?:you(?:'re| are)? )?(?:\w+ ){0,3}(?:chang\w+|edit\w*|done|finish\w*|complet\w+)"
    r"|definition of done|done when|quality gates?|gates?|check-?list|required checks?|pre-?commit"
    r"|verif(?:y|ication|ying)|mandatory|must pass|completion criteria|acceptance criteria|finishing"
)
_TESTING = _words(
    r"tests?|testing|checks?|linting|lint|validation|type[- ]?check(?:s|ing)?|quality|ci"
    r"|continuous integration|pull requests?|prs?|commits?|committing|contributing"
)
_ITEM = re.compile(r"[ \t]{0,40}(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+)$")
_UNDERLINE = re.compile(r" {0,3}(?:={2,200}|-{2,200})$")
_LABEL = re.compile(r"(?:\*\*|__)([^*_]{1,80})(?:\*\*|__):?$")
_TAG = re.compile(r"<(/?)([A-Za-z][\w -]{0,60})>$")
_FENCE = re.compile(r"[ \t]{0,40}(`{3,20}|~{3,20})[ \t]*([\w+-]{0,20})")
_SHELL = frozenset({"", "sh", "bash", "shell", "zsh", "console", "fish", "text", "txt", "terminal"})
_SPAN = re.compile(r"`([^`\n]{2,200})`")
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+(?=[A-Z`*])")
_SPACE = re.compile(r"\s+")
_NO_LETTER = re.compile(r"[^\w]+")


def select(*texts: str, limit: int = LIMIT) -> str:
    """The project rules in the texts, in order, each once, under the headings they stand under.

    Never longer than ``limit``. When not all of them fit, demands go before mere commands.
    """
    found: list[_Line] = []
    demands = 0
    seen: set[str] = set()
    for text in texts:
        for line in _rules(_blocks(text)):
            demands += len(line.text) if line.asks else 0
            if demands > limit:
                break
            key = _NO_LETTER.sub(" ", line.text.casefold()).strip()
            if key and key not in seen:
                seen.add(key)
                found.append(line)
    return _show(_fitting(found, limit))


def _fitting(found: list[_Line], limit: int) -> list[_Line]:
    """As many as fit, demands first, in the document's order."""
    kept: set[int] = set()
    shown: set[int] = set()  # the runs of lines whose heading is paid for
    runs = [0]
    for before, line in pairwise(found):
        runs.append(runs[-1] + (before.heading != line.heading))
    left = limit
    for asks in (True, False):
        for i, line in enumerate(found):
            if line.asks is not asks:
                continue
            heading = len(line.heading) + 3 if line.heading and runs[i] not in shown else 0
            left -= heading + len(line.text) + 3
            if left < 0:
                return [line for i, line in enumerate(found) if i in kept]
            kept.add(i)
            shown.add(runs[i])
    return [line for i, line in enumerate(found) if i in kept]


def _show(lines: list[_Line]) -> str:
    parts: list[str] = []
    for heading, group in groupby(lines, key=lambda line: line.heading):
        parts += [f"[{heading}]"] if heading else []
        parts += [f"- {line.text}" for line in group]
    return "\n".join(parts)


def _rules(blocks: Iterator[_Block]) -> Iterator[_Line]:
    """Walks the document: which heading holds, and what stands under it."""
    above: list[tuple[int, str, Area]] = []  # the headings that hold, outermost first
    commands = _Commands()
    opened: tuple[str, Area] = ("", "")  # "Before you commit:" and what it opens
    for block in blocks:
        if block.kind == "heading":
            while above and above[-1][0] >= block.level:
                above.pop()
            inherited: Area = above[-1][2] if above else ""
            above.append((block.level, block.text, _area(block.text) or inherited))
            opened = ("", "")
            continue
        heading, area = (above[-1][1], above[-1][2]) if above else ("", "")
        if block.kind == "text":
            opened = ("", "")
            if block.text.endswith(":") and (_area(block.text) == "checklist" or _asks(block.text, commands)):
                opened = (_clean(block.text[:-1], 80), "checklist")
                continue
        if opened[1]:
            heading, area = opened
        for text in _parts(block):
            asks = block.kind != "code" and _asks(text, commands)
            if asks or _fits(text, block.kind, area, commands):
                shown = _clean(text, LINE)
                yield _Line(_clean(heading, 80) if area else "", shown, asks or area == "checklist")


def _fits(text: str, kind: Kind, area: Area, commands: _Commands) -> bool:
    """Under a fitting heading: commands; under a checklist also its points."""
    if not area:
        return False
    if kind == "code":
        return commands.check(text)
    if commands.in_spans(text):
        return True
    if area == "checklist":
        return kind == "item" or _on_topic(text)
    return _on_topic(text) and bool(_SHOULD.search(text) or _IMPERATIVE.match(text))


def _asks(text: str, commands: _Commands) -> bool:
    """Whether a text demands something of the kinds above."""
    if _FORCE.search(text):
        if _on_topic(text) or _DOCS.search(text):
            return True
        return commands.in_spans(text)
    return bool(_SHOULD.search(text)) and _on_topic(text)


def _on_topic(text: str) -> bool:
    return bool(_TOPIC.search(text) or _SHORT.search(text) or (_WEAK.search(text) and _OUTCOME.search(text)))


def _area(heading: str) -> Area:
    return "checklist" if _CHECKLIST.search(heading) else "testing" if _TESTING.search(heading) else ""


def _parts(block: _Block) -> list[str]:
    """A long paragraph as its sentences."""
    if block.kind == "text" and len(block.text) > SENTENCES_FROM:
        return _SENTENCE.split(block.text)
    return [block.text]


def _clean(text: str, limit: int) -> str:
    """One line, nothing unprintable, not too long."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    shown = _SPACE.sub(" ", shown.replace("**", "")).strip()
    return shown if len(shown) <= limit else shown[: limit - 1].rstrip() + "…"


def _blocks(text: str) -> Iterator[_Block]:
    """Headings, paragraphs and list items (wrapped lines joined) and lines of code. No comments."""
    kind: Kind = "text"
    parts: list[str] = []
    for line, code in _lines(_visible(text[:TEXT_READ])):
        if code:
            yield _Block("code", line.strip())
            continue
        if _UNDERLINE.match(line) and kind == "text" and len(parts) == 1:
            yield _Block("heading", parts.pop(), 1 if "=" in line else 2)
            continue
        heading, item = _heading(line), _ITEM.match(line)
        row = line.lstrip().startswith("|")
        if parts and (not line or heading or item or row or len(parts) >= PARAGRAPH):
            yield _Block(kind, " ".join(parts))
            parts = []
        if heading:
            yield heading
        elif line:
            if not parts:
                kind = "item" if item or row else "text"
            parts.append(line[item.end() :] if item else line.strip(" \t|>"))
    if parts:
        yield _Block(kind, " ".join(parts))


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is code for a shell. Other code is left out; a fence ends a paragraph."""
    fence, shell = "", False
    for raw in text.split("\n")[:LINES_READ]:
        line = raw[:LINE_READ].rstrip()
        mark = _FENCE.match(line)
        if not fence and mark:
            fence, shell = mark[1], mark[2].lower() in _SHELL
            yield "", False
        elif not fence:
            yield line, False
        elif mark and mark[1].startswith(fence):
            fence = ""
        elif shell and line and not line.lstrip().startswith(("#", "//")):
            yield line, True


def _heading(line: str) -> _Block | None:
    """``## Title``, ``**Title**`` alone on a line, ``<title>``; a closing tag ends what it opened."""
    if found := _HEADING.match(line):
        return _Block("heading", found[2].strip(" #*_"), len(found[1]))
    bare = line.strip()
    if found := _LABEL.match(bare):
        return _Block("heading", found[1].strip(" :"), 7)
    if found := _TAG.match(bare):
        return _Block("heading", "" if found[1] else found[2].replace("_", " ").replace("-", " "), 7)
    return None


def _visible(text: str) -> str:
    """Without HTML comments: what a reader of the page does not see is not the project's word."""
    parts: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        parts.append(text[at:start])
        end = text.find("-->", start)
        if end < 0:
            return "".join(parts)
        at = end + 3
    return "".join([*parts, text[at:]])
