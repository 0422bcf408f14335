"""The page of one verdict, and the person's word that it was wrong.

It reads the same as ``reflectd why``, and the saved case. ``dispute`` does what ``reflectd dispute`` does.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import BadReply, ReflectdError, Rejected, Unavailable
from ..core.verdict import NO_PROOF
from ..core.words import EXPECTED, OUTCOMES, STATES, UNJUDGED
from ..files.cases import TAUGHT, CaseFolder, read_case, summary
from ..files.cases import dispute as keep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .source import Source

# What a verdict's page shows of a saved case: requirements with what shows each, the log, the changes.
#
# A case file may come with a clone, so any field may be missing or have a wrong type; whatever is no text
# becomes one. Every list and every text is bounded, so that no file makes a page that takes the daemon's
# memory or time; what is cut says so. Pure.

ROWS: Final = 400
REQUESTS: Final = 50
LINES: Final = 4_000  # of all files together
CALLS_SHOWN: Final = 20
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
    replies = [_object(r) for r in _list(found.get("replies"))[:CALLS_SHOWN]]
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
            for p in _list(found.get("prompts"))[:CALLS_SHOWN]
        ],
        "replies": [_reply(r) for r in replies],
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


def _reply(r: Json) -> Json:
    seconds = r.get("seconds")
    fine = isinstance(seconds, int | float) and not isinstance(seconds, bool) and abs(seconds) < 1e9
    return {
        **{k: _text(r.get(k)) for k in ("provider", "model")},
        "text": _text(r.get("text"), LONG),
        "seconds": f"{seconds:.1f} s" if fine else "",
    }


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


MOST_ROUNDS: Final = 1_000_000
CALLS: Final = 50
WHY_CHARS: Final = 2_000
AFTER_MS: Final = 2_000  # the ledger's row of a call and the verdict are not of the same moment
Json = dict[str, Any]


async def read(source: Source, query: Mapping[str, str]) -> Json | None:
    """The verdict of ``session`` and ``round`` (0: the last one); None when there is none."""
    session, number = query["session"], _number(query["round"])
    found = await source.status.why(session, "", number)
    if found is None or not found["verdicts"]:
        return None
    v, *before = found["verdicts"]
    case, missing, problem = await asyncio.to_thread(_case, v["case"], v["missing"])
    kept = await asyncio.to_thread(_kept, source.paths.state_dir, v["case"])
    since = before[0]["timestamp"] + 1 if before else 0
    calls = await source.status.ledger(v["session"], since, CALLS, None, work=False)
    rows = [r for r in calls["rows"] if r["at"] <= v["timestamp"] + AFTER_MS]
    s = found["session"] or {}
    command = f"reflectd why {shlex.quote(v['session'])} --round {v['round']}"
    return {
        "title": s.get("title") or v["session"],
        "v": _verdict(v),
        "session": {"host": s.get("host", ""), "directory": v["directory"] or s.get("directory", "")},
        "rounds_total": found["rounds_total"],
        "before": before[0]["round"] if before else 0,
        "after": v["round"] + 1 if v["round"] < found["rounds_total"] else 0,
        "guard": found["guard"] if v["round"] == found["rounds_total"] else None,
        "missing": missing,
        "case": case,
        "case_file": v["case"],
        "problem": problem,
        "calls": [r for r in rows if r["provider"] != "offline"],
        "sums": found["ledger"]["sums"],
        "agent": found["ledger"]["agent"],
        "kept": kept,
        "expected": EXPECTED,
        "command": command,
    }


def _verdict(v: Json) -> Json:
    state, reason, order = v["state"], v["reason"], v["order"]
    unjudged = reason.startswith(NO_PROOF)
    judge = v["judge"] if v["judge"] and not reason.startswith("guard:") else None
    return {
        **v,
        "severity": "" if v["severity"] == "NONE" else v["severity"],
        "means": UNJUDGED if unjudged else STATES.get(state, ""),
        "reason": "" if reason == "judged" else reason.replace("guard:", "guard "),
        "judge": judge,
        "sent": order["text"] if order else "",
        "outcome": OUTCOMES.get(order["status"], order["status"]) if order else "",
    }


def _case(path: str, missing: Any) -> tuple[Json | None, Any, str]:  # noqa: ANN401 - items of a verdict
    """What the page shows of the case and of what is missing, and why there is no case. It may be large."""
    case, problem = None, ""
    if not path:
        problem = "There is no case file: no judge was asked about this turn, or the file was removed."
    else:
        try:
            case = read_case(Path(path))
        except Unavailable as e:
            problem = str(e)
    return shown(case) if case is not None else None, missing_items(missing, case), problem


def _kept(state_dir: Path, path: str) -> Json | None:
    """The person's own copy of this case with its label; None when there is none."""
    mine = CaseFolder(state_dir).path / Path(path).name
    if not path or not mine.is_file():
        return None
    found = summary(mine)
    return {"path": str(mine), "expect": found.expect, "why": found.why}


async def dispute(source: Source, body: Mapping[str, Any]) -> Json:
    """``{"session", "round", "should_be", "why"}``: the verdict was wrong. Says what was kept."""
    session, should_be, why = (str(body.get(name) or "") for name in ("session", "should_be", "why"))
    number = _number(str(body.get("round")))
    if should_be not in EXPECTED or len(why) > WHY_CHARS or not number:
        raise BadReply(f"a dispute names a round, and what it should be: {', '.join(EXPECTED)}")
    found = await source.status.why(session, "", number)
    if found is None or not found["verdicts"] or found["verdicts"][0]["session"] != session:
        raise BadReply("there is no such verdict")
    path = found["verdicts"][0]["case"]
    if not path:
        raise Rejected("this round has no saved case: no judge was asked, or the file was removed")
    with source.intake.command():
        kept = await asyncio.to_thread(keep, source.paths.state_dir, Path(path), should_be, why)
        if not kept.agrees:
            await _take_back(source, found["verdicts"][0]["session"])
    return {"said": f"Kept as {kept.path.stem}. Undo with: reflectd dispute remove {kept.path.stem}"}


async def _take_back(source: Source, session: str) -> None:
    """What the wrong verdict taught is taken back, by those who taught it."""
    routes = {(feature, route.name): route for feature, route in source.features.routes()}
    for name in TAUGHT:
        if name in routes:
            with suppress(ReflectdError):
                await routes[name].answer({"session": session})


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) <= MOST_ROUNDS):
        raise BadReply("a round is a number")
    return int(text[:9])
