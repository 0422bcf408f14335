"""``python -m evals.redact``: how many secrets the redaction finds, by kind, and how much ordinary text it
changes.

A folder of cases has ``secrets.jsonl`` and ``ordinary.jsonl``. A line has ``id``, ``kind`` and ``parts``:
text, and as a list each secret, in pieces that no scanner takes for a leak. Or it has ``text`` and
``secret``, and ``--pack`` makes parts of them. No model, no cost. Exit code 1 when an aim is missed, 2 for
wrong cases.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, to_builtins

from daemon.core.errors import UserError
from daemon.engine.page import Share, wilson
from daemon.redact import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "redaction"
FILES: Final = ("secrets", "ordinary")
RECALL, FALSE = 0.97, 0.02
PIECE: Final = 10  # characters of a secret that stand together


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One line."""

    id: str | int
    kind: str
    parts: list[str | list[str]] = []
    text: str = ""
    secret: list[str] = []

    def whole(self) -> str:
        """What is redacted."""
        return self.text or "".join(p if isinstance(p, str) else "".join(p) for p in self.parts)

    def secrets(self) -> set[str]:
        """What must not be left."""
        return set(self.secret) | {"".join(p) for p in self.parts if not isinstance(p, str)}


class Outcome(Struct, frozen=True):
    """What became of one case. ``right``: no secret is left, or nothing was changed where none was."""

    id: str | int
    kind: str
    secret: bool
    right: bool
    clean: str


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.redact", description=__doc__)
    parser.add_argument("--cases", type=Path, default=DATA / "tuning", metavar="DIR", help="where they are")
    parser.add_argument("--pack", type=Path, metavar="DIR", help="write the cases there as parts, and stop")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    args = parser.parse_args(argv)
    try:
        cases = {name: read(args.cases / f"{name}.jsonl") for name in FILES}
    except UserError as e:
        print(f"evals: {e}", file=sys.stderr)
        return 2
    if args.pack:
        for name, of in cases.items():
            lines = (json.dumps(packed(case), ensure_ascii=False) + "\n" for case in of)
            (args.pack / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        return 0
    outcomes = [outcome(case, secret=name == "secrets") for name, of in cases.items() for case in of]
    missed = aims_missed(outcomes)
    if args.json:
        print(json.dumps(as_json(outcomes, missed), indent=1))
    else:
        print("\n".join(table(outcomes)))
        print(f"1 MB of this text takes {megabyte([c.whole() for of in cases.values() for c in of]):.0f} ms")
        print("\n".join(f"AIM MISSED: {text}" for text in missed), end="\n" if missed else "")
    return 1 if missed else 0


def read(path: Path) -> list[Case]:
    """The cases of one file. Raises ``UserError`` when one is wrong or none is there."""
    try:
        lines = path.read_bytes().splitlines()
        cases = [msgspec.json.decode(line, type=Case) for line in lines if line.strip()]
    except (msgspec.MsgspecError, OSError) as e:
        raise UserError(f"{path}: can't be read as cases: {e}") from None
    if not cases:
        raise UserError(f"no case in {path}")
    return cases


def outcome(case: Case, *, secret: bool) -> Outcome:
    """Redact one text and look."""
    text = case.whole()
    clean = redact(text)
    right = not any(s in clean for s in case.secrets()) if secret else clean == text
    return Outcome(case.id, case.kind, secret, right, clean)


def packed(case: Case) -> dict[str, object]:
    """The case with each secret in pieces."""
    parts: list[str | list[str]] = [case.whole()]
    for secret in sorted(case.secrets(), key=len, reverse=True):
        pieces = [secret[i : i + PIECE] for i in range(0, len(secret), PIECE)]
        split: list[str | list[str]] = []
        for part in parts:
            if isinstance(part, str):
                for number, text in enumerate(part.split(secret)):
                    split += [pieces, text] if number else [text]
            else:
                split.append(part)
        parts = [part for part in split if part]
    return {"id": case.id, "kind": case.kind, "parts": parts}


def aims_missed(outcomes: Sequence[Outcome]) -> list[str]:
    """Where the redaction falls short."""
    found, changed = _recall(outcomes), _changed(outcomes)
    missed = []
    if (found.value or 0) < RECALL:
        missed.append(f"recall is {found.value or 0:.3f}, wanted {RECALL}")
    if (changed.value or 0) > FALSE:
        missed.append(
            f"{changed.hits} of {changed.of} ordinary texts were changed, wanted at most {FALSE:.0%}"
        )
    return missed


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Totals, the kinds that were not all found, then each mistake."""
    kinds: dict[str, list[bool]] = defaultdict(list)
    for o in outcomes:
        if o.secret:
            kinds[o.kind].append(o.right)
    whole = sum(all(of) for of in kinds.values())
    lines = [f"recall {_share(_recall(outcomes))}", f"kinds found whole {whole}/{len(kinds)}"]
    lines += [f"  {kind}: {sum(of)}/{len(of)}" for kind, of in sorted(kinds.items()) if not all(of)]
    lines.append(f"ordinary texts changed {_share(_changed(outcomes))}")
    for o in outcomes:
        if not o.right:
            lines.append(f"  {'missed' if o.secret else 'changed'} {o.id} ({o.kind}): {o.clean[:300]!r}")
    return lines


def as_json(outcomes: Sequence[Outcome], missed: Sequence[str]) -> dict[str, Any]:
    """The same, for programs."""
    return {
        "recall": to_builtins(_recall(outcomes)),
        "changed": to_builtins(_changed(outcomes)),
        "aims_missed": list(missed),
        "wrong": [{"id": o.id, "kind": o.kind, "secret": o.secret} for o in outcomes if not o.right],
    }


def megabyte(texts: Sequence[str]) -> float:
    """Milliseconds of the processor for 1,000,000 characters of these texts."""
    size = sum(map(len, texts))
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        for text in texts:
            redact(text)
        best = min(best, time.process_time() - started)
    return best * 1e3 * 1_000_000 / size


def _recall(outcomes: Sequence[Outcome]) -> Share:
    secrets = [o for o in outcomes if o.secret]
    return wilson(sum(o.right for o in secrets), len(secrets))


def _changed(outcomes: Sequence[Outcome]) -> Share:
    ordinary = [o for o in outcomes if not o.secret]
    return wilson(sum(not o.right for o in ordinary), len(ordinary))


def _share(s: Share) -> str:
    return "-" if s.value is None else f"{s.hits}/{s.of} {s.value:.3f} ({s.low:.3f}-{s.high:.3f})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
