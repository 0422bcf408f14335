"""``reflectd examples [FOLDER]``: the scripts that come with reflectd, or a copy of them in a new folder.

They tell what an agent did: aloud, by a Telegram bot, as a notification.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import UserError
from ...paths import shipped
from ..render import print_json

if TYPE_CHECKING:
    import argparse


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("examples")
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="copy them into this new folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List them, or copy them. Raises ``UserError``."""
    source = shipped("examples/consumers")
    scripts = {file.name: _summary(file) for file in sorted(source.glob("*.py")) if _runs(file)}
    found = source
    if args.folder:
        found = Path(args.folder).absolute()
        try:
            shutil.copytree(source, found, ignore=shutil.ignore_patterns("__pycache__"))
        except FileExistsError:
            raise UserError(f"{found} exists already; name a new folder") from None
        except OSError as e:
            raise UserError(f"can't copy the examples to {found}: {e.strerror}") from None
    if args.json:
        print_json({"folder": str(found), "scripts": scripts})
        return 0
    print(f"{'copied to' if args.folder else 'in'} {found}")
    for name, summary in scripts.items():
        print(f"  {name:<12} {summary}")
    print(f"Try one: reflectd watch --all --exec 'python3 {found}/desktop.py'")
    return 0


def _runs(file: Path) -> bool:
    """Says whether it is a script, and no module of one."""
    return file.read_text("utf-8").startswith("#!")


def _summary(file: Path) -> str:
    """The script's first words on itself."""
    return (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition(":")[0]
