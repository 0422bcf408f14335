"""The page of one verdict, and the person's word that it was wrong.

It reads the data of ``reflectd why``, and the saved case. ``dispute`` does the work of ``reflectd dispute``.
A case file may come with a clone: texts and lists are bounded, so that no file makes a page that takes the
daemon's memory or time, and a file of another form is not shown.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from ..core.errors import BadReply, ReflectdError, Rejected, Unavailable
from ..core.proof import in_words
from ..core.verdict import NO_PROOF
from ..core.words import EXPECTED, OUTCOMES, STATES, UNJUDGED
from ..files.cases import TAUGHT, CaseFolder, read_case, summary
from ..files.cases import dispute as keep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .reads import Source

Json = dict[str, Any]
ITEMS: Final = 400  # of each list
TEXT: Final = 20_000  # characters of each text
WHOLE: Final = 4_000_000  # of all texts together
REFERENCE: Final = 300  # of the text of a row that is cited
CITES: Final = 20
MOST_ROUNDS: Final = 1_000_000
CALLS: Final = 50
WHY_CHARS: Final = 2_000
AFTER_MS: Final = 2_000  # the ledger's row of a call and the verdict are not of the same moment
_CITED: Final = re.compile(r"\b([REAM]\d{1,4})\b", re.ASCII)
_SEVERAL: Final = re.compile(r"A(\d{1,4})-A(\d{1,4})", re.ASCII)


# --- the case -----------------------------------------------------------------------------------------------


class Row(Struct):
    """A row of the evidence."""

    id: str = ""
    kind: str = ""
    text: str = ""
    outcome: str = ""
    open: bool = False


class Act(Struct):
    """A line of the activity log. ``raw``: its output as printed, else ``said``: the lines that decide."""

    id: str = ""
    text: str = ""
    said: list[str] = []
    raw: list[str] = []


class Change(Struct):
    """The changes of the calls in one file."""

    path: str = ""
    how: str = ""
    by: list[str] = []
    added: int = 0
    removed: int = 0
    lines: list[str] = []


class Evidence(Struct):
    """The evidence of the case."""

    rows: list[Row] = []
    log: list[Act] = []
    files: list[Change] = []


class Judged(Struct):
    """The judged turn."""

    requests: list[str] = []
    final: str = ""
    evidence: Evidence = msgspec.field(default_factory=Evidence)


class Prompt(Struct):
    """A prompt of a judge."""

    purpose: str = ""
    system: str = ""
    text: str = ""


class Said(Struct):
    """A reply with its requirements and the proof of each."""

    requirements: list[str] = []


class Reply(Struct):
    """A reply of a judge."""

    provider: str = ""
    model: str = ""
    text: str = ""
    seconds: float | None = None
    data: Said | None = None


class Case(Struct):
    """The parts of a case file that the page shows."""

    case: Judged = msgspec.field(default_factory=Judged)
    prompts: list[Prompt] = []
    replies: list[Reply] = []
    why: str = ""


class References:
    """The names for cites in a case: rows, log lines and requests, by their ids. A line of the log may stand
    for several calls: ``A3-A9``.
    """

    def __init__(self, case: Case) -> None:
        evidence = case.case.evidence
        self._texts = {r.id: r.text for r in evidence.rows} | {a.id: a.text for a in evidence.log}
        self._texts |= {f"M{n}": request for n, request in enumerate(case.case.requests, 1)}
        self._keys = {name: name for name in self._texts}
        for name in self._texts:
            if several := _SEVERAL.fullmatch(name):
                first, last = map(int, several.groups())
                for number in range(first, min(last, first + ITEMS) + 1):
                    self._keys.setdefault(f"A{number}", name)

    def in_text(self, text: str) -> list[Json]:
        """The cites in the text, once each."""
        names = islice(dict.fromkeys(_CITED.findall(text)), CITES)
        keys = dict.fromkeys(key for name in names if (key := self._keys.get(name)))
        return [{"id": key, "text": cut(self._texts[key], REFERENCE)} for key in keys]


def requirements(case: Case, references: References) -> list[Json]:
    """The judge's requirements, in its newest reply that has such a list, with the rows that each sentence
    cites.
    """
    said = (r.data.requirements for r in reversed(case.replies) if r.data and r.data.requirements)
    return [{"text": text, "refs": references.in_text(text)} for text in next(said, [])]


def as_case(found: Json) -> Case:
    """The case of a file. Raises ``Unavailable`` for one of another form."""
    try:
        return msgspec.convert(_Bounds().bounded(found), Case)
    except (msgspec.ValidationError, RecursionError) as error:
        raise Unavailable(f"The case file can't be shown: {error}") from error


class _Bounds:
    """Cuts texts and lists, the later ones more when those before took the room."""

    def __init__(self) -> None:
        self._left = WHOLE

    def bounded(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, str):
            text = cut(value, min(TEXT, max(self._left, REFERENCE)))
            self._left -= len(text)
            return text
        if isinstance(value, list):
            kept = [self.bounded(item) for item in value[: ITEMS if self._left > 0 else 1]]
            if len(kept) < len(value):
                note = f"[… {len(value) - len(kept):,} more in the case file]"
                kept.append({"text": note, "path": note} if isinstance(value[-1], dict) else note)
            return kept
        return {k: self.bounded(v) for k, v in value.items()} if isinstance(value, dict) else value


def cut(text: str, most: int) -> str:
    """The text, with a note of how much of it is not shown."""
    if len(text) <= most:
        return text
    return f"{text[:most]} [… {len(text) - most:,} characters more in the case file]"


# --- the page -----------------------------------------------------------------------------------------------


async def read(source: Source, query: Mapping[str, str]) -> Json | None:
    """The verdict of ``session`` and ``round`` (0: the last one); None when there is none."""
    session, number = query["session"], _number(query["round"])
    why = await source.status.why(session, "", number)
    if why is None or not why["verdicts"]:
        return None
    v, *before = why["verdicts"]
    case, problem = await asyncio.to_thread(_case, v["case"])
    references = await asyncio.to_thread(References, case or Case())
    since = before[0]["timestamp"] + 1 if before else 0
    calls = await source.status.ledger(v["session"], since, CALLS, None, work=False)
    rows = [r for r in calls["rows"] if r["at"] <= v["timestamp"] + AFTER_MS]
    s = why["session"] or {}
    return {
        "title": s.get("title") or v["session"],
        "v": _verdict(v),
        "session": {"host": s.get("host", ""), "directory": v["directory"] or s.get("directory", "")},
        "rounds_total": why["rounds_total"],
        "before": before[0]["round"] if before else 0,
        "after": v["round"] + 1 if v["round"] < why["rounds_total"] else 0,
        "guard": why["guard"] if v["round"] == why["rounds_total"] else None,
        "missing": [{**m, "refs": references.in_text(m["cites"])} for m in v["missing"]],
        "case": case,
        "requirements": requirements(case, references) if case else [],
        "case_file": v["case"],
        "problem": problem,
        "calls": [r for r in rows if r["provider"] != "offline"],
        "sums": why["ledger"]["sums"],
        "agent": why["ledger"]["agent"],
        "kept": await asyncio.to_thread(_kept, source.paths.state_dir, v["case"]),
        "expected": EXPECTED,
        "command": f"reflectd why {shlex.quote(v['session'])} --round {v['round']}",
    }


def _verdict(v: Json) -> Json:
    state, reason, order = v["state"], v["reason"], v["order"]
    unjudged = reason.startswith(NO_PROOF)
    return {
        **v,
        "severity": "" if v["severity"] == "NONE" else v["severity"],
        "means": UNJUDGED if unjudged else STATES.get(state, ""),
        "reason": "" if reason == "judged" else reason.replace("guard:", "guard "),
        "proof": in_words(v["proof"]),
        "judge": None if reason.startswith("guard:") else v["judge"],
        "sent": order["text"] if order else "",
        "outcome": OUTCOMES.get(order["status"], order["status"]) if order else "",
    }


def _case(path: str) -> tuple[Case | None, str]:
    """The case, and why there is none to show. It may be large."""
    if not path:
        return None, "There is no case file: no judge was asked about this turn, or the file was removed."
    try:
        return as_case(read_case(Path(path))), ""
    except Unavailable as e:
        return None, str(e)


def _kept(state_dir: Path, path: str) -> Json | None:
    """The person's own copy of this case with its label; None when there is none."""
    mine = CaseFolder(state_dir).path / Path(path).name
    if not path or not mine.is_file():
        return None
    kept = summary(mine)
    return {"path": str(mine), "expect": kept.expect, "why": kept.why}


async def dispute(source: Source, body: Mapping[str, Any]) -> Json:
    """``{"session", "round", "should_be", "why"}``: the verdict was wrong. Names the case that was kept."""
    session, should_be, why = (str(body.get(name) or "") for name in ("session", "should_be", "why"))
    number = _number(str(body.get("round")))
    if should_be not in EXPECTED or len(why) > WHY_CHARS or not number:
        raise BadReply(f"a dispute names a round, and what it should be: {', '.join(EXPECTED)}")
    about = await source.status.why(session, "", number)
    if about is None or not about["verdicts"] or about["verdicts"][0]["session"] != session:
        raise BadReply("there is no such verdict")
    path = about["verdicts"][0]["case"]
    if not path:
        raise Rejected("this round has no saved case: no judge was asked, or the file was removed")
    with source.intake.command():
        kept = await asyncio.to_thread(keep, source.paths.state_dir, Path(path), should_be, why)
        if not kept.agrees:
            routes = {(feature, route.name): route for feature, route in source.features.routes()}
            for name in TAUGHT:
                if name in routes:
                    with suppress(ReflectdError):
                        await routes[name].answer({"session": session})
    return {"said": f"Kept as {kept.path.stem}. Undo with: reflectd dispute remove {kept.path.stem}"}


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) <= MOST_ROUNDS):
        raise BadReply("a round is a number")
    return int(text[:9])
