"""``reflectd reflect classify``: what the rules say of messages, one JSON object a line in and out. Needs no
project, asks no model and changes nothing.

In: ``{"text", "prior_assistant"}``. Out: ``{"type", "content", "severity", "confidence"}``. A line that can't
be read is answered too, as ``none`` with ``error``, and the exit code is 2 then.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..render import print_json, short

if TYPE_CHECKING:
    import argparse


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    text = "what messages are: one JSON object on each line of standard input"
    parser = what.add_parser("classify", help=text, description=text)
    parser.add_argument("--json", action="store_true", help="answer with one JSON object a line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Answer each line."""
    wrong = 0
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        found = _read(line)
        wrong += "error" in found
        if args.json:
            print_json(found, line=True)
        else:
            told = found.get("error") or found["content"]
            print(f"{found['type']:<12} {found['severity']:<7} {found['confidence']:.2f}  {short(told, 200)}")
    return 2 if wrong else 0


def _read(line: bytes) -> dict[str, Any]:
    import json

    from ...api.rules import classify

    try:
        given = json.loads(line)
        text, prior = given["text"], given.get("prior_assistant") or ""
        if not isinstance(text, str) or not isinstance(prior, str):
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        why = 'the line is no {"text": …, "prior_assistant": …}'
        return {"type": "none", "content": "", "severity": "low", "confidence": 0.0, "error": why}
    found = classify(text, prior)
    return {
        "type": found.type,
        "content": found.content,
        "severity": found.severity,
        "confidence": found.confidence,
    }
