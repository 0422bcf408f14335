"""What a verdict's page shows of a saved case: requirements with what shows each, the log, the changes.

A case file may come with a clone, so any field may be missing or have a wrong type; whatever is no text
becomes one. Pure.
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
LINES: Final = 400
CALLS: Final = 20
CITES: Final = 100
_CITED: Final = re.compile(r"\b([REAM]\d{1,4})\b")
_ASKED: Final = frozenset({"requirement", "project_rule"})


def shown(found: Json, missing: list[Json]) -> Json:
    """The parts of a case for its page. ``missing``: the verdict's open items, ``{"item", "cites"}``."""
    case = _object(found.get("case"))
    evidence = _object(case.get("evidence"))
    rows = [_row(_object(r)) for r in _list(evidence.get("rows"))[:ROWS]]
    log = [_act(_object(a)) for a in _list(evidence.get("log"))[:ROWS]]
    requests = [_text(r) for r in _list(case.get("requests"))[:ROWS]]
    lines = {r["id"]: r["text"] for r in rows} | {a["id"]: a["text"] for a in log if a["id"]}
    lines |= {f"M{n}": text for n, text in enumerate(requests, 1)}
    replies = [_object(r) for r in _list(found.get("replies"))[:CALLS]]
    changed = _object(case.get("changed"))
    return {
        "requests": requests,
        "final": _text(case.get("final")),
        "requirements": _by_judge(replies, lines) or _by_rows(rows, missing, lines),
        "rows": [r for r in rows if r["kind"] not in _ASKED],
        "log": log,
        "log_more": max(0, len(_list(evidence.get("log"))) - ROWS),
        "files": [_file(_object(f)) for f in _list(evidence.get("files"))[:ROWS]],
        "git": [_text(n) for n in _list(changed.get("names"))[:ROWS]],
        "prompts": [
            {k: _text(_object(p).get(k)) for k in ("purpose", "system", "text")}
            for p in _list(found.get("prompts"))[:CALLS]
        ],
        "replies": [_reply(r, _text(case.get("nonce"))) for r in replies],
        "why": _text(found.get("why")),
    }


def missing_items(missing: list[Json], found: Json | None) -> list[Json]:
    """The open items of a verdict, each with the row, log line or words that it cites."""
    lines: dict[str, str] = {}
    if found is not None:
        evidence = _object(_object(found.get("case")).get("evidence"))
        for each in (*_list(evidence.get("rows"))[:ROWS], *_list(evidence.get("log"))[:ROWS]):
            lines[_text(_object(each).get("id"))] = _text(_object(each).get("text"))
    return [
        {
            "item": _text(m.get("item")),
            "refs": _refs(_text(m.get("cites")), lines),
            "cites": _text(m.get("cites")),
        }
        for m in missing
    ]


def _by_judge(replies: list[Json], lines: dict[str, str]) -> list[Json]:
    """What the judge said of each thing that was asked, in its newest reply that has such a list."""
    for reply in reversed(replies):
        said = _list(_object(reply.get("data")).get("requirements"))
        if said:
            texts = [_text(s) for s in said[:ROWS]]
            return [{"id": "", "text": t, "open": None, "refs": _refs(t, lines)} for t in texts]
    return []


def _by_rows(rows: list[Json], missing: list[Json], lines: dict[str, str]) -> list[Json]:
    """Each thing that was asked, with the rows that rest on it, and whether one of them is open."""
    cited = {name for m in missing for name in _CITED.findall(_text(m.get("cites")))}
    found = []
    for asked in (r for r in rows if r["kind"] in _ASKED):
        by = [r for r in rows if _is_about(r, asked)]
        is_open = asked["open"] or asked["id"] in cited or any(r["open"] for r in by)
        refs = [{"id": r["id"], "text": lines[r["id"]]} for r in by]
        found.append({"id": asked["id"], "text": asked["text"], "open": is_open, "refs": refs})
    return found


def _is_about(r: Json, asked: Json) -> bool:
    """Whether one of them cites the other, or the row is of a check that the request names."""
    named = r["kind"] == "check" and r["command"] and r["command"] in asked["text"]
    return bool(named) or asked["id"] in r["cites"] or r["id"] in asked["cites"]


def _refs(text: str, lines: dict[str, str]) -> list[Json]:
    """The rows and log lines that are cited, once each. One line of the log may stand for several calls."""
    found: dict[str, str] = {}
    for name in islice(dict.fromkeys(_CITED.findall(text)), CITES):
        line = next((key for key in lines if key == name or _covers(key, name)), "")
        if line:
            found[line] = lines[line]
    return [{"id": name, "text": line} for name, line in found.items()]


def _covers(key: str, name: str) -> bool:
    first, _, last = key.partition("-")
    if not (last and key[0] == name[0] == "A" and first[1:].isdigit() and last[1:].isdigit()):
        return False
    return int(first[1:]) <= int(name[1:]) <= int(last[1:])


def _row(r: Json) -> Json:
    found: Json = {k: _text(r.get(k)) for k in ("id", "kind", "text", "outcome", "command")}
    cites = [_text(c) for c in _list(r.get("cites"))[:CITES]]
    return {**found, "kind": found["kind"], "open": r.get("open") is True, "cites": cites}


def _act(a: Json) -> Json:
    return {
        "id": _text(a.get("id")),
        "text": _text(a.get("text")),
        "said": [_text(s) for s in _list(a.get("said"))[:CITES]],
    }


def _file(f: Json) -> Json:
    lines = [_text(line) for line in _list(f.get("lines"))]
    return {
        **{k: _text(f.get(k)) for k in ("path", "how", "added", "removed")},
        "by": [_text(b) for b in _list(f.get("by"))[:20]],
        "lines": lines[:LINES],
        "more": max(0, len(lines) - LINES),
    }


def _reply(r: Json, nonce: str) -> Json:
    """A reply, and what the judge's parser reads in it."""
    data = r.get("data")
    reply = Reply(_text(r.get("text")), "", data=data if isinstance(data, dict) else None)
    seconds = r.get("seconds")
    return {
        **{k: _text(r.get(k)) for k in ("provider", "model", "text")},
        "seconds": f"{seconds:.1f} s" if isinstance(seconds, int | float) else "",
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


def _text(value: object) -> str:
    return "" if value is None else str(value)
