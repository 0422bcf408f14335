"""Playbooks in and out: all points as JSON, and the points of another playbook taken over."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import Unavailable, UserError
from ...core.learned import folded
from ...files.bounded import reason
from ...files.playbook import LIMIT, dumped, load, parsed
from ...learning.playbook.points import SECTION_SLUGS, each, migrated, parts
from ..render import count, place, print_json
from ..terminal import say
from .changes import changed
from .shown import opened, tell

if TYPE_CHECKING:
    import argparse

    from ...learning.playbook.points import Names, Playbook


def export(args: argparse.Namespace) -> int:
    """Print the playbook, or write it to a new file."""
    project, book = opened(args)
    found = book.read()
    if found.problem:
        raise UserError(found.problem)
    data = dumped(found.playbook)
    number = sum(1 for _ in each(found.playbook))
    if args.out:
        try:
            fd = os.open(args.out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
        except FileExistsError:
            raise UserError(f"{args.out} exists already; name another file") from None
        except OSError as error:
            raise Unavailable(f"can't write {args.out}: {reason(error)}") from error
    if args.json:
        fields = {"points": number, "out": args.out, **({} if args.out else {"playbook": found.playbook})}
        print_json({"project": str(project), "file": str(book.path), **fields})
    elif args.out:
        say(f"{count(number, 'point')} of {place(project)} written to {args.out}")
    else:
        sys.stdout.write(data.decode())
    return 0


def take(args: argparse.Namespace) -> int:
    """Take over the points of another playbook that say something new. They are not approved by that."""
    theirs = _theirs(args.file)

    def edit(playbook: Playbook, names: Names) -> list[dict[str, Any]]:
        said = {folded(p["text"]) for _, p in each(playbook)}
        taken = []
        for section, p in each(theirs):
            if folded(p["text"]) in said:
                continue
            said.add(folded(p["text"]))
            known = parts(p["name"])
            slug = known[0] if known else SECTION_SLUGS[section]
            point = {**p, "name": names.keep(p["name"]) if known else names.take(slug)}
            playbook["sections"][section].append(point)
            taken.append(point)
        return taken

    return changed(args, edit, "imported", nothing="nothing new to import")


def _theirs(file: str) -> Playbook:
    """The playbook in the file. Raises ``UserError`` and ``Unavailable``."""
    if file == "-":
        raw = sys.stdin.buffer.read(LIMIT + 1)
        try:
            if len(raw) > LIMIT:
                raise ValueError(f"it is larger than {LIMIT} bytes")
            found = migrated(parsed(raw))
        except (ValueError, RecursionError) as error:
            raise UserError(f"stdin is no playbook that can be used: {error}") from None
        tell(found.told)
        return found.playbook
    if not Path(file).exists():
        raise UserError(f"there is no file {file}")
    loaded = load(file)
    if loaded.problem:
        raise UserError(loaded.problem)
    tell(loaded.told)
    return loaded.playbook
