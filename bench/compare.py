"""The numbers of a run in a JSON file, and the ratio new/old of each number that two runs have."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import to_builtins

from bench.stand import Json, Table

if TYPE_CHECKING:
    from pathlib import Path

FORM = "reflectd bench 1"
"""The first entry of each file, so that another JSON is not taken for one."""


class BadFile(Exception):
    """A file that can't be compared with; the message says why."""


@dataclass(frozen=True, slots=True)
class Run:
    """``machine``: facts by name. ``benchmarks``: numbers by benchmark, nested as its table has them."""

    machine: Json
    quick: bool
    benchmarks: dict[str, Json]

    def save(self, path: Path) -> None:
        """Write the file."""
        path.write_text(json.dumps({"form": FORM, **to_builtins(self)}, indent=1) + "\n", "utf-8")


def load(path: Path) -> Run:
    """Read a file that ``save`` wrote; ``BadFile`` for anything else."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as e:
        raise BadFile(f"{path} can't be read: {e.strerror}") from None
    except (ValueError, RecursionError):
        raise BadFile(f"{path} holds no JSON") from None
    if not isinstance(found, dict) or found.get("form") != FORM:
        raise BadFile(f"{path} holds no numbers of `python -m bench --json`: there is no {FORM!r} in it")
    machine, benchmarks = found.get("machine"), found.get("benchmarks")
    if not isinstance(machine, dict) or not isinstance(benchmarks, dict):
        raise BadFile(f"{path} is damaged: `machine` and `benchmarks` must be objects")
    if any(not isinstance(values, dict) for values in benchmarks.values()):
        raise BadFile(f"{path} is damaged: a benchmark's numbers must be an object")
    return Run(machine, found.get("quick") is True, benchmarks)


def numbers(values: Json) -> dict[str, float]:
    """The finite numbers of a benchmark, each with its path in the table: ``64: daemon: p50``."""
    found: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= {f"{name}: {path}": number for path, number in numbers(value).items()}
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            found[name] = value
    return found


def compared(old: Json, new: Json) -> Table:
    """The numbers that both have, old, new and new/old; the notes say how many only one has."""
    before, after = numbers(old), numbers(new)
    table = Table("  compared", ("", "old", "new", "new/old"))
    for path, number in after.items():
        if path in before:
            ratio = number / before[path] if before[path] else None
            shown = "-" if ratio is None else f"{ratio:.2f}"
            table.rows.append((path, _short(before[path]), _short(number), shown))
            table.values[path] = ratio
    for which, only in (("old", before.keys() - after.keys()), ("new", after.keys() - before.keys())):
        if only:
            table.notes.append(f"only in the {which} run: {len(only)} numbers")
    return table


def differences(old: Run, new: Run) -> list[str]:
    """The reasons for which ratios of these two runs say little: another machine, other sizes."""
    found = [
        f"{name} was {old.machine.get(name, 'unknown')}, is {new.machine.get(name, 'unknown')}"
        for name in ("system", "processor", "cores", "python", "loop")
        if old.machine.get(name) != new.machine.get(name)
    ]
    if old.quick != new.quick:
        kinds = {True: "quick", False: "full"}
        found.append(f"the old run was a {kinds[old.quick]} one, this is a {kinds[new.quick]} one")
    return found


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
