"""What a verdict's page shows of a saved case: requirements with what shows each, the log, the changes.

A case file may come with a clone, so any field may be missing or have a wrong type; whatever is no text
becomes one. Every list and every text is bounded, so that no file makes a page that takes the daemon's memory
or time; what is cut says so. Pure.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from ..core.errors import BadReply
from ..core.llm import Reply
from ..judge.parse import parse, parse_defence

Json = dict[str, Any]
ROWS: Final = 400
REQUESTS: Final = 50
LINES: Final = 4_000  # of all files together
CALLS: Final = 20
CITES: Final = 20
PRINTED: Final = 40  # lines of a call's output
SHORT, MIDDLE, LONG = 300, 2_000, 100_000  # characters: of a reference or a line, of a row, of a message
_CITED: Final = re.compile(r"\b([REAM]\d{1,4})\b", re.ASCII)
_SEVERAL: Final = re.compile(r"A(\d{1,4})-A(\d{1,4})", re.ASCII)


class _Cited:
    """What may be cited, by its id. A line of the log may stand for several calls: ``A3-A9``."""

    def __init__(self, found: list[tuple[str, str]]) -> None:
        self._texts = {name: _cut(text, SHORT) for name, text in found if name}
        self._keys = {name: name for name in self._texts}
        for name in self._texts:
            if several := _SEVERAL.fullmatch(name):
                first, last = map(int, several.groups())
                for number in range(first, min(last, first + ROWS) + 1):
                    self._keys.setdefault(f"A{number}", name)

    def in_text(self, text: str) -> list[Json]:
        """What the text cites, once each."""
        names = islice(dict.fromkeys(_CITED.findall(text[:LONG])), CITES)
        keys = dict.fromkeys(key for name in names if (key := self._keys.get(name)))
        return [{"id": key, "text": self._texts[key]} for key in keys]


def shown(found: Json) -> Json:
    """The parts of a case for its page."""
    case = _object(found.get("case"))
    evidence = _object(case.get("evidence"))
    rows = [_row(_object(r)) for r in _list(evidence.get("rows"))[:ROWS]]
    log = [_act(_object(a)) for a in _list(evidence.get("log"))[:ROWS]]
    requests = [_text(r, LONG) for r in _list(case.get("requests"))[:REQUESTS]]
    said = [(f"M{n}", text) for n, text in enumerate(requests, 1)]
    cited = _Cited([*((r["id"], r["text"]) for r in rows), *((a["id"], a["text"]) for a in log), *said])
    replies = [_object(r) for r in _list(found.get("replies"))[:CALLS]]
    return {
        "requests": requests,
        "final": _text(case.get("final"), LONG),
        "requirements": _by_judge(replies, cited),
        "rows": rows,
        "log": log,
        "log_more": max(0, len(_list(evidence.get("log"))) - ROWS),
        "files": _files(_list(evidence.get("files"))[:ROWS]),
        "git": [_text(n) for n in _list(_object(case.get("changed")).get("names"))[:ROWS]],
        "prompts": [
            {
                "purpose": _text(_object(p).get("purpose")),
                **{k: _text(_object(p).get(k), LONG) for k in ("system", "text")},
            }
            for p in _list(found.get("prompts"))[:CALLS]
        ],
        "replies": [_reply(r, _text(case.get("nonce"))) for r in replies],
        "why": _text(found.get("why")),
    }


def missing_items(missing: list[Json], found: Json | None) -> list[Json]:
    """The open items of a verdict, each with the row, log line or words that it cites."""
    evidence = _object(_object((found or {}).get("case")).get("evidence"))
    each = (*_list(evidence.get("rows"))[:ROWS], *_list(evidence.get("log"))[:ROWS])
    cited = _Cited([(_text(_object(e).get("id")), _text(_object(e).get("text"))) for e in each])
    return [
        {
            "item": _text(m.get("item")),
            "refs": cited.in_text(_text(m.get("cites"))),
            "cites": _text(m.get("cites")),
        }
        for m in missing[:ROWS]
    ]


def _by_judge(replies: list[Json], cited: _Cited) -> list[Json]:
    """What the judge said of each thing that was asked, in its newest reply that has such a list."""
    for reply in reversed(replies):
        said = _list(_object(reply.get("data")).get("requirements"))
        if said:
            texts = [_text(s) for s in said[:ROWS]]
            return [{"id": "", "text": t, "open": None, "refs": cited.in_text(t)} for t in texts]
    return []


def _row(r: Json) -> Json:
    found: Json = {k: _text(r.get(k)) for k in ("id", "kind", "text", "outcome", "command")}
    return {**found, "open": r.get("open") is True}


def _act(a: Json) -> Json:
    return {
        "id": _text(a.get("id")),
        "text": _text(a.get("text")),
        "said": [_text(s, SHORT) for s in (_list(a.get("raw")) or _list(a.get("said")))[:PRINTED]],
    }


def _files(files: list[Any]) -> list[Json]:
    """Those of the first ones have lines, as many as there is room for."""
    found, left = [], LINES
    for f in map(_object, files):
        lines = [_text(line, MIDDLE) for line in _list(f.get("lines"))[:left]]
        left -= len(lines)
        found.append({
            **{k: _text(f.get(k)) for k in ("path", "how", "added", "removed")},
            "by": [_text(b, SHORT) for b in _list(f.get("by"))[:CITES]],
            "lines": lines,
            "more": len(_list(f.get("lines"))) - len(lines),
        })  # fmt: skip
    return found


def _reply(r: Json, nonce: str) -> Json:
    """A reply, and what the judge's parser reads in it."""
    data = r.get("data")
    reply = Reply(_text(r.get("text"), LONG), "", data=data if isinstance(data, dict) else None)
    seconds = r.get("seconds")
    fine = isinstance(seconds, int | float) and not isinstance(seconds, bool) and abs(seconds) < 1e9
    return {
        **{k: _text(r.get(k)) for k in ("provider", "model")},
        "text": reply.text,
        "seconds": f"{seconds:.1f} s" if fine else "",
        "read": _read(reply, nonce),
    }


def _read(reply: Reply, nonce: str) -> str:
    with suppress(BadReply):
        defence = parse_defence(reply, nonce)
        return f"second look: the stop can {'' if defence.defended else 'not '}be defended"
    try:
        found = parse(reply, nonce)
    except BadReply as e:
        return f"could not be used: {e}"
    grade = "" if str(found.severity) == "NONE" else f", {found.severity}"
    state = "complete" if found.complete else "incomplete"
    person = ", only a person can go on" if found.requires_human_action else ""
    return f"first look: {state}{grade}, {len(found.missing)} missing{person}"


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object, most: int = MIDDLE) -> str:
    return "" if value is None else _cut(str(value), most)


def _cut(text: str, most: int) -> str:
    return (
        text
        if len(text) <= most
        else f"{text[:most]} [… {len(text) - most:,} characters more in the case file]"
    )
