"""Asks the person at the terminal before something is trusted or removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import UserError
from ..terminal import attended

if TYPE_CHECKING:
    import argparse


UNTRUSTED = "there is no terminal to ask on: look with --show, then add --yes. Nothing was trusted"


def agreed(args: argparse.Namespace, question: str, refusal: str = UNTRUSTED) -> bool:
    """Whether the person says yes, or said ``--yes``. Raises ``UserError`` with ``refusal`` without
    a terminal.
    """
    if args.yes:
        return True
    if args.json:
        raise UserError(refusal)
    return asked(question, refusal)


def asked(question: str, refusal: str) -> bool:
    """Whether the person says yes; the end of input is a no. Raises ``UserError`` with ``refusal`` without a
    terminal.
    """
    if not attended():
        raise UserError(refusal)
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:
        print()
        return False
    return answer.strip().lower() in {"y", "yes"}
