"""``python -m evals.stuck``: replay labelled streams and say how often the loop detectors were right.

Recall by kind of loop, false alarms at any message of streams without one, and as a check on ordinary work
the sessions of the judge's cases. No model, no cost. Exit code 1 when an aim is missed, 2 for wrong streams.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from daemon.core.errors import UserError
from daemon.core.transcript import Transcript
from daemon.engine.page import Share, wilson
from daemon.stuck.loops import Loop, LoopKind, loop_at_end, loop_in, step_from_digests, steps

if TYPE_CHECKING:
    from collections.abc import Sequence


DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
SPLITS = ("tuning", "heldout")
KINDS: Final[tuple[str, ...]] = get_args(LoopKind)
RECALL, FALSE_ALARMS = 0.85, 0.01


class Label(msgspec.Struct, forbid_unknown_fields=True):
    """What a person says. ``at``: ``end`` where a loop was there before and only the end counts."""

    expect: Literal["loop", "none"]
    why: str
    by: str
    kind: LoopKind | None = None
    at: Literal["any", "end"] = "any"


class Stream(msgspec.Struct, forbid_unknown_fields=True):
    """One labelled file."""

    version: Literal[1]
    label: Label
    split: Literal["tuning", "heldout"]
    tags: list[str]
    transcript: Transcript


class Outcome(Struct, frozen=True):
    """What the detectors said of one stream. ``suspected``: by digests alone, as from a host's events."""

    name: str
    label: Label
    alarm: Loop | None
    suspected: bool


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.stuck", description=__doc__)
    parser.add_argument("--split", default="all", choices=(*SPLITS, "all"), help="which half (both)")
    parser.add_argument("--streams", type=Path, default=DATA / "stuck", metavar="DIR", help="where they are")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    args = parser.parse_args(argv)
    try:
        streams = read_streams(args.streams)
    except UserError as e:
        print(f"evals: {e}", file=sys.stderr)
        return 2
    wanted = SPLITS if args.split == "all" else (args.split,)
    halves = {s: [outcome(n, of) for n, of in streams.items() if of.split == s] for s in wanted}
    missed = [f"{split}: {text}" for split, of in halves.items() for text in aims_missed(of)]
    ordinary = ordinary_sessions()
    if args.json:
        print(
            json.dumps(
                {"splits": {s: as_json(of) for s, of in halves.items()}, "aims_missed": missed}, indent=1
            )
        )
        return 1 if missed else 0
    for split, of in halves.items():
        print("\n".join(table(split, of)), end="\n\n")
    print(f"ordinary sessions (the judge's cases, at every step): {_share(ordinary)} with an alarm")
    print("\n".join(f"AIM MISSED: {text}" for text in missed), end="\n" if missed else "")
    return 1 if missed else 0


def read_streams(folder: Path) -> dict[str, Stream]:
    """The streams of a folder by name. Raises ``UserError`` when one is wrong or none is there."""
    streams = {}
    for path in sorted(folder.glob("*.json")):
        try:
            streams[path.stem] = msgspec.json.decode(path.read_bytes(), type=Stream)
        except (msgspec.MsgspecError, OSError) as e:
            raise UserError(f"{path}: can't be read as a labelled stream: {e}") from None
    if not streams:
        raise UserError(f"no labelled stream in {folder}")
    return streams


def outcome(name: str, stream: Stream) -> Outcome:
    """What the detectors say at the end; of a stream without a loop, the first alarm at any message."""
    alarm = loop_in(stream.transcript)
    if stream.label.expect == "none" and stream.label.at == "any":
        messages = stream.transcript.messages
        cut = (replace(stream.transcript, messages=messages[:n]) for n in range(1, len(messages)))
        alarm = alarm or next((loop for t in cut if (loop := loop_in(t))), None)
    return Outcome(name, stream.label, alarm, _suspected(stream.transcript))


def ordinary_sessions() -> Share:
    """The share of the judge's cases with an alarm at any step. Its held-out part stays closed."""
    alarms = of = 0
    for path in sorted((DATA / "judge").glob("*.json")):
        case = json.loads(path.read_bytes())
        if case["split"] != "tuning":
            continue
        transcript = msgspec.convert(case["transcript"], Transcript)
        row, of = steps(transcript), of + 1
        alarms += any(loop_at_end(row[:n]) for n in range(1, len(row) + 1))
    return wilson(alarms, of)


def aims_missed(outcomes: Sequence[Outcome]) -> list[str]:
    """Where the detectors fall short."""
    recall, alarms = _recall(outcomes), _alarms(outcomes)
    missed = []
    if (recall.value or 0) < RECALL:
        missed.append(f"recall is {recall.value or 0:.2f}, wanted {RECALL:.2f}")
    if alarms.value is None or alarms.value > FALSE_ALARMS:
        missed.append(f"{alarms.hits} false alarms in {alarms.of} streams, wanted at most {FALSE_ALARMS:.0%}")
    return missed


def table(split: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Per kind, then totals, then each mistake with what a person said."""
    loops = [o for o in outcomes if o.label.expect == "loop"]
    none = [o for o in outcomes if o.label.expect == "none"]
    lines = [f"{split}: {len(loops)} loops, {len(none)} streams without one", ""]
    lines.append(f"{'loop':<14}{'streams':>8}{'recall':>26}{'kind right':>12}")
    for kind in (*KINDS, "all"):
        of = [o for o in loops if kind in {"all", o.label.kind}]
        right = sum(o.alarm is not None and o.alarm.kind == o.label.kind for o in of)
        lines.append(f"{kind:<14}{len(of):>8}{_share(_recall(of)):>26}{right:>12}")
    alarms = _alarms(outcomes)
    least = int(1 / FALSE_ALARMS)
    lines += ["", f"false alarms {_share(alarms)}"]
    if alarms.of < least:
        lines.append(f"(of fewer than {least} streams only 0 is at most {FALSE_ALARMS:.0%})")
    by_digest = wilson(sum(o.suspected for o in none), len(none))
    seen = wilson(sum(o.suspected for o in loops), len(loops))
    lines.append(
        f"suspected by digests alone, to be confirmed: {_share(seen)} loops, {_share(by_digest)} others"
    )
    wrong = [o for o in outcomes if (o.alarm is not None) != (o.label.expect == "loop")]
    lines += ["", "wrong:"] if wrong else ["", "nothing wrong"]
    for o in wrong:
        said = f"{o.alarm.kind}, {o.alarm.count} times: {o.alarm.what}" if o.alarm else "nothing"
        lines += [f"  {o.name}: expected {o.label.kind or 'none'}, got {said}", f"    {o.label.why}"]
    return lines


def as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The same, for programs."""
    return {
        "recall": to_builtins(_recall(outcomes)),
        "false_alarms": to_builtins(_alarms(outcomes)),
        "outcomes": [
            {"name": o.name, "expect": o.label.kind or "none", "got": o.alarm.kind if o.alarm else "none"}
            for o in outcomes
        ],
    }


def _suspected(transcript: Transcript) -> bool:
    """Whether digests alone, without texts, names and sorts, raise a suspicion at any step."""
    row = [step_from_digests(s.tool, s.symbol, "", failed=s.failed) for s in steps(transcript)]
    return any(loop_at_end(row[:n]) for n in range(1, len(row) + 1))


def _recall(outcomes: Sequence[Outcome]) -> Share:
    loops = [o for o in outcomes if o.label.expect == "loop"]
    return wilson(sum(o.alarm is not None for o in loops), len(loops))


def _alarms(outcomes: Sequence[Outcome]) -> Share:
    none = [o for o in outcomes if o.label.expect == "none"]
    return wilson(sum(o.alarm is not None for o in none), len(none))


def _share(s: Share) -> str:
    shown = "-" if s.value is None else f"{s.value:.2f} ({s.low:.2f}-{s.high:.2f})"
    return f"{s.hits}/{s.of} {shown}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
