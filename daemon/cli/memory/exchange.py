"""``reflectd memory export`` and ``import``: episodes as JSON, one on each line."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from ...core.errors import Unavailable, UserError, words
from ..progress import Progress
from ..render import count, place, print_json, short
from ..terminal import say
from .shown import Asked

if TYPE_CHECKING:
    import argparse

LIMIT = 256 * 1024 * 1024  # bytes of a file that is taken over
BLOCK = 100  # episodes in one request


def export(args: argparse.Namespace) -> int:
    """Print the episodes, or write them to a new file."""
    asked = Asked(args)
    found = asked.episodes(everywhere=args.all)
    text = "".join(f"{json.dumps(e, ensure_ascii=False)}\n" for e in found)
    if args.out:
        try:
            fd = os.open(args.out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise UserError(f"{args.out} exists already; name another file") from None
        except OSError as error:
            raise Unavailable(f"can't write {args.out}: {words(error)}") from error
    if args.json:
        print_json({"count": len(found), "out": args.out, **({} if args.out else {"episodes": found})})
    elif args.out:
        where = "all projects" if args.all else place(asked.project)
        say(f"{count(len(found), 'episode')} of {where} written to {args.out}")
    else:
        sys.stdout.write(text)
    return 0


def take(args: argparse.Namespace) -> int:
    """Take over exported episodes. Nobody here vouches for them, so they are kept apart."""
    asked = Asked(args)
    given = _read(args.file)
    new, known = 0, 0
    refused: list[dict[str, str]] = []
    progress = Progress(len(given))
    try:
        for at in range(0, len(given), BLOCK):
            body = {"directory": str(asked.project), "episodes": given[at : at + BLOCK]}
            done = asked.post("import", {**body, "dry_run": args.dry_run})
            new, known, refused = new + done["new"], known + done["known"], refused + done["refused"]
            progress.show(min(at + BLOCK, len(given)), "")
    finally:
        progress.clear()
    if args.json:
        print_json({"new": new, "known": known, "refused": refused, "dry_run": args.dry_run})
        return 0
    verb = "would be stored" if args.dry_run else "stored, apart until you confirm them"
    say(f"{count(new, 'episode')} {verb}; {known} here already")
    for one in refused:
        say(f"  left out: {short(one['id'], 40)}: {short(one['why'], 200)}", sys.stderr)
    return 0


def _read(name: str) -> list[dict[str, Any]]:
    """The lines of the file. Raises ``UserError`` with the number of a line that is no episode."""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(LIMIT + 1)
        else:
            with open(name, "rb") as file:  # noqa: PTH123 - as the person typed it
                raw = file.read(LIMIT + 1)
    except OSError as error:
        raise UserError(f"can't read {name}: {words(error)}") from None
    if len(raw) > LIMIT:
        raise UserError(f"{name} is larger than {LIMIT // 1024 // 1024} MB")
    found = []
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
        except (ValueError, RecursionError):
            one = None
        if not isinstance(one, dict):
            raise UserError(f"line {number} of {name} is no episode; nothing was taken over")
        found.append(one)
    return found
