"""The page of one verdict, and the person's word that it was wrong.

It reads the same as ``reflectd why``, and the saved case. ``dispute`` does what ``reflectd dispute`` does.
"""

from __future__ import annotations

import asyncio
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import BadReply, ReflectdError, Rejected, Unavailable
from ..core.verdict import NO_PROOF
from ..core.words import EXPECTED, OUTCOMES, STATES, UNJUDGED
from ..files.disputes import TAUGHT
from ..files.disputes import dispute as keep
from ..files.labelled_cases import CaseFolder, summary
from ..files.saved_cases import read_case
from .case import missing_items, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .source import Source

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
    return {"said": f"Kept as {kept.path.stem}. Undo with: reflectd case remove {kept.path.stem}"}


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
