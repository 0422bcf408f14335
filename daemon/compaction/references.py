"""Finds pull requests and issues that a text names: ``#123``, ``PR #34``, ``PR34``, ``issue #42``.

In doubt it is no reference: headings, colours, code, anchors, rankings, list numbers and the tickets of other
trackers are left out. The model reads what is found here; nothing is ever posted there because of it. Takes
linear time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["pr", "issue", "unknown"]
Source = Literal["tool", "text"]

MAX_TEXT: Final = 200_000
MAX_FOUND: Final = 50
QUOTE_CHARS: Final = 120
SMALL: Final = 10  # "#1" is mostly a rank or a list number
LOOK_BEHIND: Final = 40


@dataclass(frozen=True, slots=True)
class Reference:
    """One pull request or issue. ``number`` is 0 where only "pull request" is said.

    ``repo``: ``owner/name``, with the host before it where that is not github.com; empty when not named.
    """

    kind: Kind
    number: int
    source: Source
    quote: str = ""
    repo: str = ""

    @property
    def name(self) -> str:
        """``PR #12``, ``issue #4``, ``#7``."""
        number = f"#{self.number}" if self.number else ""
        return f"{ {'pr': 'PR', 'issue': 'issue', 'unknown': ''}[self.kind] } {number}".strip()


URL: Final = re.compile(
    r"(?<![\w/])https?://(?P<host>[\w.-]{1,100}+)(?P<port>:\d{1,5})?"
    r"/(?P<owner>[\w.-]{1,60}+)/(?P<repo>[\w.-]{1,100}+)/(?P<what>pull|issues)/(?P<number>\d{1,9})(?![\w-])"
)
_ANY_URL: Final = re.compile(
    r"(?<![A-Za-z])(?:https?|ftp|ssh|git|file)://[^\s<>]{0,2000}+|\bwww\.[^\s<>]{1,2000}+"
)
_HINT: Final = re.compile(r"#[ \t]?\d|PR[ \t]{0,2}\d|pull[ -]request|/(?:pull|issues)/\d", re.IGNORECASE)
_FENCE: Final = re.compile(r"^ {0,3}(?:[-*+>] {1,3})?(`{3,}+|~{3,}+)")
_CODE: Final = re.compile(r"``[^\n]{1,400}?``|`[^`\n]{1,400}+`")
_MARKUP: Final = re.compile(r"</?[a-zA-Z][^<>\n]{0,400}+>")
_STOP: Final = r"(?![\w#]|[-.,:/]\d|-\w|/\w)"
_PR: Final = re.compile(
    rf"(?<![\w#&/.@$-])(?:PR|pull[ -]requests?)(?:[ \t]{{0,2}}#[ \t]?|[ \t]{{0,2}})(?P<n>\d{{1,7}}){_STOP}",
    re.IGNORECASE,
)
_COUNTED: Final = re.compile(
    r"[ \t](?:of|out|(?:small|big|new|old|open|separate|more) |(?:days?|hours?|hrs?|mins?|minutes?|weeks?"
    r"|months?|years?|times?|lines?|files?|commits?|reviews?|reviewers?|comments?|people|points?|percent"
    r"|seconds?)\b)|[ \t]?%",
    re.IGNORECASE,
)
_ISSUE: Final = re.compile(rf"(?<![\w#&/.@$-])issues?[ \t]{{0,2}}#(?P<n>\d{{1,7}}){_STOP}", re.IGNORECASE)
_BARE: Final = re.compile(rf"(?<![\w#&/.@$\\:=%-])#(?P<n>[1-9]\d{{0,4}}){_STOP}")
_SAID: Final = re.compile(r"(?<![\w#&/.@$-])pull[ -]request\b(?!s\b|[ \t]?#?\d)", re.IGNORECASE)
_DENIED: Final = re.compile(
    r"(?:\b(?:no|not|never|without|dont|cannot|nor|avoid|skip|instead of)|n['\u2019]t)\b[^.;\n]{0,25}$",
    re.IGNORECASE,
)
_KEYWORD: Final = re.compile(
    r"(?:\b(?:fix(?:e[sd]|ing)?|clos(?:e[sd]?|ing)|resolv(?:e[sd]?|ing)|address(?:e[sd])?|implements?|see"
    r"|refs?|references?|re|bugs?|gh|github|merged?|reopen(?:ed)?|prs?|issues?|pull[ -]requests?|duplicates?"
    r"|supersedes)(?: of| by| in| for| to)?:?[ \t]|#\d{1,6}(?:,| and| or| &)[ \t])$",
    re.IGNORECASE,
)
_OTHER: Final = re.compile(
    r"(?:\b(?:tickets?|orders?|invoices?|cases?|steps?|tests?|lines?|rows?|columns?|attempts?|rounds?|runs?"
    r"|builds?|jobs?|items?|pages?|chapters?|channels?|versions?|tasks?|workers?|threads?|frames?|slides?"
    r"|figures?|tables?|examples?|questions?|options?|rooms?|users?|customers?|players?|numbers?|no|ranked"
    r"|rank|phases?|parts?|points?|rules?|sections?|findings?|entry|entries|records?|batch|samples?|nodes?"
    r"|gpus?|cpus?|shards?|partitions?|epochs?|iterations?|join|irc|jira|apartment|suite|flight|track"
    r"|comments?|errors?|problems?|todos?)[ \t]|[\"'\[{=:][ \t]?)$",
    re.IGNORECASE,
)
_COLOUR: Final = re.compile(
    r"colou?r|background|\bbg\b|border|\bfill\b|stroke|shadow|\bhex\b|\brgb|\btint\b|\bshade\b|palette|gradient"
    r"|\bcss\b|\btheme\b|accent",
    re.IGNORECASE,
)
_COLOUR_DIGITS: Final = frozenset({3, 4})
_BLOCK: Final = re.compile(r"[ \t]{0,4}\{")
_NUMBERED: Final = re.compile(r"(?:\*\*|__)?[ \t]?:")


def kind_of(what: str) -> Kind:
    """The kind for ``pull`` or ``issues`` in an address."""
    return "pr" if what == "pull" else "issue"


def from_url(found: re.Match[str], source: Source) -> Reference:
    """The reference of an address. A host other than github.com becomes a part of ``repo``."""
    host, repo = found["host"].lower(), f"{found['owner']}/{found['repo']}"
    if host not in {"github.com", "www.github.com"}:
        repo = f"{host}{found['port'] or ''}/{repo}"
    return Reference(kind_of(found["what"]), int(found["number"]), source, found[0][:QUOTE_CHARS], repo)


def text_references(text: str) -> tuple[Reference, ...]:
    """The references in ``text``, in order, each once; at most ``MAX_FOUND``."""
    found: dict[tuple[Kind, int], Reference] = {}
    for reference in _scan(text[-MAX_TEXT:]):
        found.setdefault((reference.kind, reference.number), reference)
        if len(found) >= MAX_FOUND:
            break
    return tuple(found.values())


def _scan(text: str) -> Iterator[Reference]:
    closing = ""
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if closing:
            if fence and fence[1].startswith(closing) and not line[fence.end() :].strip():
                closing = ""
        elif fence:
            closing = fence[1]
        elif _HINT.search(line):
            yield from _line(line)


def _line(line: str) -> Iterator[Reference]:
    prose = _CODE.sub(_blank, line)
    places = [(m.start(), from_url(m, "text")) for m in URL.finditer(prose)]
    prose = _MARKUP.sub(_blank, _ANY_URL.sub(_blank, prose))

    def add(match: re.Match[str], kind: Kind, number: int) -> None:
        quote = line[max(match.start() - LOOK_BEHIND, 0) : match.end() + LOOK_BEHIND].strip()
        places.append((match.start(), Reference(kind, number, "text", quote[:QUOTE_CHARS])))

    def named(match: re.Match[str]) -> str:
        kind: Kind = "pr" if match.re is _PR else "issue"
        hashed = "#" in match[0]
        if (hashed or not _COUNTED.match(prose, match.end())) and not _is_list_number(prose, match):
            add(match, kind, int(match["n"]))
        return _blank(match)

    rest = _ISSUE.sub(named, _PR.sub(named, prose))
    for match in _BARE.finditer(rest):
        if _is_reference(prose, match):
            add(match, "unknown", int(match["n"]))
    for match in _SAID.finditer(rest):
        if not _DENIED.search(rest, max(match.start() - LOOK_BEHIND, 0), match.start()):
            add(match, "pr", 0)
    yield from (reference for _, reference in sorted(places, key=lambda place: place[0]))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _is_list_number(prose: str, match: re.Match[str]) -> bool:
    """Whether it is like ``Issue #1: …`` at the start of a line, which numbers the findings of a list."""
    small = int(match["n"]) <= 2 * SMALL
    return (
        small and not prose[: match.start()].strip(" \t-*_>#") and bool(_NUMBERED.match(prose, match.end()))
    )


def _is_reference(prose: str, match: re.Match[str]) -> bool:
    """Whether a bare ``#123`` means an issue or a pull request, by the words before it."""
    before = prose[max(match.start() - LOOK_BEHIND, 0) : match.start()]
    if _KEYWORD.search(before):
        return True
    if int(match["n"]) <= SMALL or _OTHER.search(before):
        return False
    if _BLOCK.match(prose, match.end()):
        return False
    return not (len(match["n"]) in _COLOUR_DIGITS and _COLOUR.search(before))
