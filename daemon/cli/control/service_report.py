"""What ``reflectd service`` did, or would do, and how a person reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..render import plain
from ..terminal import say

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = {"written": "wrote", "removed": "removed"}
_STATES = {
    "missing": "is missing",
    "current": "is as this version writes it",
    "older": "differs from what this version writes",
    "edited": "was edited",
}


@dataclass(slots=True)
class Report:
    """What was done, or would be done. ``--json`` prints these fields."""

    action: str
    manager: str
    dry_run: bool = False
    files: list[dict[str, str]] = field(default_factory=list)
    unreachable: str = ""
    units: dict[str, dict[str, str]] = field(default_factory=dict)
    by_hand: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str = ""


def tell(report: Report) -> None:
    """Print the report for people. What is indented is there to be copied, and is not wrapped."""
    for line in "\n".join(_lines(report)).split("\n"):
        if line.startswith(" "):
            print(line)
        else:
            say(line)


def _lines(report: Report) -> Iterator[str]:
    """Indented: the text of files, and commands."""
    done = not report.dry_run and report.action != "status"
    for entry in report.files:
        path, state = entry["path"], entry["state"]
        if done and state != "current":
            yield f"{_WORDS[state]} {path}"
        elif report.dry_run and report.action == "install":
            yield (
                f"{path} {_STATES[state]}"
                if state == "current"
                else f"would write {path} ({_STATES[state]}):"
            )
            if state != "current":
                yield "".join(f"  {line}\n" for line in entry["text"].splitlines()).rstrip("\n")
        elif report.dry_run:
            yield f"would remove {path}" + (" (edited: it would be renamed)" if state == "edited" else "")
        else:
            yield f"{path} {_STATES[state]}"
        if "kept" in entry:
            yield f"you had edited it; your version is kept as {entry['kept']}"
    for unit, said in report.units.items():
        if report.action == "status":
            words = [said.get(k, "") for k in ("UnitFileState", "ActiveState", "SubState")]
            result = said.get("Result", "success")
            extra = f", pid {said['MainPID']}" if said.get("MainPID", "0") != "0" else ""
            extra += f", {result}" if result != "success" else ""
            yield plain(f"{unit}: {' '.join(w for w in words if w) or 'not loaded'}{extra}")
    yield from map(plain, report.notes)
    if report.by_hand:
        yield (
            "would run:"
            if report.dry_run
            else "run by hand, as yourself (not with sudo), in a login session:"
        )
        yield from (f"  {line}" for line in report.by_hand)
