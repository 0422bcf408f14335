"""Decides whether a verdict is told, and in which words, for speak.py, telegram.py and desktop.py.

Reads the one line of JSON that ``reflectd watch --exec`` gives. Never runs a program and never opens a
connection. A failure is one line on stderr and exit code 1, or 2 for wrong arguments or input.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_INPUT = 4_000_000
MAX_SCANNED = 20_000
NAME_CHARS = 60
LINE_CHARS = 300
ZERO_WIDTH_JOINER = "\u200d"  # holds emoji together

PHRASES = {
    "en": {
        "complete": "done",
        "incomplete": "not finished",
        "sent_back": "not finished, the agent goes on",
        "awaiting_user": "your turn",
        "stopped": "stopped, not finished",
        "aborted": "interrupted",
        "stuck": "stuck",
        "unscored": "the agent stopped, nobody could judge it",
        "error": "stopped by an error",
        "skipped": "not judged",
    },
    "de": {
        "complete": "fertig",
        "incomplete": "nicht fertig",
        "sent_back": "nicht fertig, der Agent macht weiter",
        "awaiting_user": "wartet auf dich",
        "stopped": "angehalten, nicht fertig",
        "aborted": "abgebrochen",
        "stuck": "steckt fest",
        "unscored": "der Agent hat aufgehört, ohne Urteil",
        "error": "durch einen Fehler beendet",
        "skipped": "nicht beurteilt",
    },
    "es": {
        "complete": "terminado",
        "incomplete": "sin terminar",
        "sent_back": "sin terminar, el agente continúa",
        "awaiting_user": "te espera",
        "stopped": "detenido, sin terminar",
        "aborted": "interrumpido",
        "stuck": "atascado",
        "unscored": "el agente paró, sin evaluación",
        "error": "detenido por un error",
        "skipped": "no evaluado",
    },
    "fr": {
        "complete": "terminé",
        "incomplete": "pas terminé",
        "sent_back": "pas terminé, l'agent continue",
        "awaiting_user": "vous attend",
        "stopped": "arrêté, pas terminé",
        "aborted": "interrompu",
        "stuck": "bloqué",
        "unscored": "l'agent s'est arrêté, sans verdict",
        "error": "arrêté par une erreur",
        "skipped": "non évalué",
    },
}
OCCASIONS = tuple(PHRASES["en"])
QUIET = ("sent_back", "aborted", "skipped")  # not told: the agent goes on, or the person is there
TOLD = tuple(o for o in OCCASIONS if o not in QUIET)

_STUCK = re.compile(r"(?:guard:)?(?:stuck|loop)\b")
_REASON = re.compile(r"^(?:guard|unscored|observe|stuck):\s*")


class NotToldError(Exception):
    """The verdict could not be told. The message says why, and what to do."""


@dataclass(frozen=True)
class Message:
    """What is told. ``title``: "project: what happened". ``lines``: what is open, if anything."""

    title: str
    lines: tuple[str, ...] = ()


def clean(text: object, limit: int) -> str:
    """One line of at most ``limit`` characters, without anything that drives a terminal or hides text."""
    kept = (
        c if c == ZERO_WIDTH_JOINER or unicodedata.category(c)[0] != "C" else " "
        for c in str(text)[:MAX_SCANNED]
    )
    found = " ".join("".join(kept).split())
    return found if len(found) <= limit else found[: limit - 1].rstrip() + "…"


def occasion(verdict: dict[str, Any]) -> str:
    """What happened: the verdict's state, or a finer name for some states (``stuck``, ``sent_back`` …)."""
    state, reason = str(verdict["state"]), str(verdict.get("reason", ""))
    if _STUCK.match(reason):
        return "stuck"
    if state == "incomplete" and verdict.get("feedback_sent") is True:
        return "sent_back"
    if state == "stopped" and reason == "guard:aborted":
        return "aborted"
    return state


def message(verdict: dict[str, Any], lang: str, details: str) -> Message:
    """The message in language ``lang``. It names the folder, never its path."""
    about = occasion(verdict)
    name = clean(PurePath(str(verdict.get("directory", ""))).name, NAME_CHARS) or "reflectd"
    lines = _open(verdict, about) if details != "none" else ()
    return Message(f"{name}: {PHRASES[lang][about]}", lines if details == "all" else lines[:1])


def _open(verdict: dict[str, Any], about: str) -> tuple[str, ...]:
    """The missing items; without any, the feedback; without that, why nobody judged."""
    items = verdict.get("missing")
    found = [i.get("item", "") for i in items if isinstance(i, dict)] if isinstance(items, list) else []
    if not found and about != "complete":
        reason = str(verdict.get("reason", ""))
        why = "" if reason == "judged" else _REASON.sub("", reason).replace("_", " ")
        found = [verdict.get("feedback") or why]
    return tuple(line for line in (clean(f, LINE_CHARS) for f in found) if line)


def parser(text: str, limit_s: float) -> argparse.ArgumentParser:
    """The options that all three have."""
    made = argparse.ArgumentParser(description=text.partition("\n")[0])
    made.add_argument(
        "--states",
        type=_states,
        default=TOLD,
        metavar="A,B",
        help=f"which are told: {', '.join(OCCASIONS)} (all but {', '.join(QUIET)})",
    )
    made.add_argument("--lang", choices=sorted(PHRASES), default="en", help="language of the words (en)")
    made.add_argument(
        "--details",
        choices=("none", "first", "all"),
        default="first",
        help="what is said of the open items (first)",
    )
    made.add_argument("--dry-run", action="store_true", help="print it instead")
    made.add_argument(
        "--timeout", type=_seconds, default=limit_s, metavar="S", help=f"at most S seconds ({limit_s:g})"
    )
    return made


def _states(text: str) -> tuple[str, ...]:
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in found if name not in OCCASIONS]
    if unknown or not found:
        raise argparse.ArgumentTypeError(f"{unknown[0] if unknown else 'nothing'} is not one of {OCCASIONS}")
    return found


def _seconds(text: str) -> float:
    found = float(text)
    if not 0 < found <= 600:
        raise argparse.ArgumentTypeError("a number of seconds above 0, at most 600")
    return found


def run(
    made: argparse.ArgumentParser,
    argv: list[str] | None,
    words: Callable[[Message], str],
    tell: Callable[[Message, argparse.Namespace], None],
) -> int:
    """Read the verdict from stdin, and tell or print it if it is wanted. Returns the exit code."""
    args = made.parse_args(argv)
    try:
        verdict = _verdict(sys.stdin.buffer.read(MAX_INPUT + 1))
    except ValueError as e:
        return _fail(made.prog, f"stdin is not a verdict of `reflectd watch --exec`: {e}", 2)
    if occasion(verdict) not in args.states:
        return 0
    what = message(verdict, args.lang, args.details)
    if args.dry_run:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # it is a text file
        print(words(what))
        return 0
    try:
        tell(what, args)
    except NotToldError as e:
        return _fail(made.prog, str(e), 1)
    return 0


def _verdict(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_INPUT:
        raise ValueError(f"longer than {MAX_INPUT} bytes")
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict) or "state" not in found:
        raise ValueError("no JSON object with a state")
    return found


def _fail(prog: str, text: str, code: int) -> int:
    sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # it is a text file
    print(f"{prog}: {clean(text, 500)}", file=sys.stderr)
    return code
