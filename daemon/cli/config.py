"""``reflectd config``: every setting, its value, and who set it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from daemon import config
from daemon.cli.settings import add_flags, load

if TYPE_CHECKING:
    import argparse


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("config", help="show every setting, its value and where it comes from")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.add_argument("--dir", metavar="DIR", help="with the project file of this folder (the current one)")
    add_flags(parser, all_settings=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the settings in force in a folder, and what is wrong with its project file."""
    settings, _ = load(args)
    settings, problems = config.load_project(settings, Path(args.dir or ".").absolute())
    rows = config.explain(settings)
    if args.json:
        print(json.dumps({"settings": [r._asdict() for r in rows], "problems": problems}, indent=1))
        return 0
    width = max(len(r.key) for r in rows)
    for r in rows:
        print(f"{r.key:{width}}  {json.dumps(r.value):12}  {r.source:12}  {r.doc}")
    for problem in problems:
        print(f"! {problem}")
    return 0
