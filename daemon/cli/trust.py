"""``reflectd trust``: look at the prompts that a project brings, and say whether they may be used.

Owns: what is shown, the question, and the exit code. What is stored is the digest of exactly the texts that
were shown. Control characters and invisible ones are shown as escapes, so that a text can't hide a part of
itself. Without a terminal to ask on, nothing is trusted unless ``--yes`` is given.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from daemon.core.errors import UserError

if TYPE_CHECKING:
    from daemon.files.trust import Trust

ABOUT = """A project may bring its own prompts for the judge in .reflection/prompts. They are used only after
you looked at them here. Any change to them asks for your trust again. Your own prompts, in
~/.config/reflectd/prompts, need none of this."""
EPILOG = """examples:
  reflectd trust                   show this project's prompts and ask
  reflectd trust --show            show them, ask nothing
  reflectd trust --remove          use them no longer
  reflectd trust --list            every project that you trust

exit codes: 0 done, or nothing to do; 1 you said no, or the file system did; 2 wrong arguments, prompts that
can't be used, or no terminal to ask on (add --yes)"""


@dataclass(frozen=True, slots=True)
class _File:
    """One prompt of the project, beside what would be used without it."""

    name: str
    path: Path
    diff: str


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    from daemon.cli.settings import add_flags

    parser = verbs.add_parser(
        "trust",
        help="let a project's own prompts be used, after looking at them",
        description=ABOUT,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dir", nargs="?", default=".", metavar="DIR", help="the project's folder (this one)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="show the prompts and whether they are trusted")
    what.add_argument("--remove", action="store_true", help="trust this project no longer")
    what.add_argument("--list", action="store_true", help="list the projects that you trust")
    parser.add_argument("--yes", action="store_true", help="trust without asking")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON; never asks")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do what the arguments say. Raises ``UserError`` and ``Unavailable``."""
    from daemon.cli.settings import load
    from daemon.clock import SystemClock
    from daemon.files.trust import FILE, Trust

    _, where = load(args)
    trust = Trust(where.state_dir / FILE, SystemClock())
    if args.list:
        return _list(trust, args)
    folder = Path(args.dir).absolute()
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    return _remove(trust, folder, args) if args.remove else _trust(trust, folder, args)


def _trust(trust: Trust, folder: Path, args: argparse.Namespace) -> int:
    from daemon.files.prompts import PROJECT_FOLDER, read_project

    layer = read_project(folder)
    trusted, problem = trust.trusts(folder, layer.texts)
    files = _compare(folder, layer.texts)
    problems = [*layer.problems, *([problem] if problem else [])]
    changes = bool(files) and not trusted and not args.show
    if not args.json:
        _tell(files, problems, full=args.show or not trusted)
    if not files and layer.problems:
        raise UserError(f"none of the files in {folder / PROJECT_FOLDER} can be used; nothing was trusted")
    if changes and not args.dry_run:
        if not _agreed(args, folder):
            print("Not trusted. Nothing was changed.")
            return 1
        trust.grant(folder, layer.texts)
    if args.json:
        shown = [{"name": f.name, "path": str(f.path), "diff": f.diff} for f in files]
        done = changes and not args.dry_run
        more = {"trusted": trusted or done, "changed": done, "problems": problems}
        _print_json({"directory": str(folder), "files": shown, **more})
    elif not files:
        print(f"{folder} brings no prompts of its own ({PROJECT_FOLDER}/*.txt): nothing to do.")
    elif trusted:
        print("You trust these prompts; they are used.")
    elif changes and not args.dry_run:
        print("Trusted. A running reflectd uses them from the next judgement on; any change asks again.")
    else:
        print("Not trusted, so not used." if args.show else "You would be asked whether to trust these.")
    return 0


def _agreed(args: argparse.Namespace, folder: Path) -> bool:
    if args.yes:
        return True
    if args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError(
            "there is no terminal to ask on: look with --show, then add --yes. Nothing was trusted"
        )
    try:
        answer = input(f"Trust these prompts of {_plain(str(folder))}? [y/N] ")
    except EOFError:
        print()
        return False
    return answer.strip().lower() in {"y", "yes"}


def _remove(trust: Trust, folder: Path, args: argparse.Namespace) -> int:
    from daemon.files.trust import project_of

    grants, problem = trust.load()
    there = project_of(folder) in grants
    if problem:
        print(f"warning: {problem}", file=sys.stderr)
    if there and not args.dry_run:
        trust.revoke(folder)
    if args.json:
        _print_json(
            {
                "directory": str(folder),
                "trusted": there and args.dry_run,
                "changed": there and not args.dry_run,
            }
        )
    elif not there:
        print(f"{folder} is not trusted: nothing to do.")
    elif args.dry_run:
        print(f"{folder} would no longer be trusted.")
    else:
        print(f"{folder} is no longer trusted. A running reflectd uses its prompts no more.")
    return 0


def _list(trust: Trust, args: argparse.Namespace) -> int:
    from daemon.files.prompts import read_project
    from daemon.files.trust import digest

    grants, problem = trust.load()
    if problem:
        print(f"warning: {problem}", file=sys.stderr)
    found = []
    for name, grant in sorted(grants.items()):
        texts = read_project(name).texts
        state = "used" if digest(texts) == grant.sha256 else "changed" if texts else "gone"
        found.append({"directory": name, "state": state, "at": grant.at})
    if args.json:
        _print_json({"projects": found})
        return 0
    for row in found:
        more = {"changed": ", so not used: run `reflectd trust` there", "gone": ": it brings no prompts"}
        print(f"{_plain(str(row['directory']))}  {row['state']}{more.get(str(row['state']), '')}")
    if not found:
        print("You trust no project's prompts.")
    return 0


def _compare(folder: Path, texts: dict[str, str]) -> list[_File]:
    """Each prompt of the project as a change to what is used without it."""
    from daemon import paths
    from daemon.files.prompts import PROJECT_FOLDER, SUFFIX, read_layer

    without = read_layer(paths.shipped("prompts")).texts
    own = read_layer(paths.config_file(os.environ).parent / "prompts").texts
    files = []
    for name, text in texts.items():
        path = folder / PROJECT_FOLDER / f"{name}{SUFFIX}"
        before = own.get(name, without.get(name, ""))
        source = "yours" if name in own else "shipped"
        files.append(_File(name, path, _diff(before, text, f"{name} ({source})", f"{name} (this project)")))
    return files


def _diff(before: str, after: str, old: str, new: str) -> str:
    """A unified diff of the whole text: nothing of a prompt may stay unseen."""
    from difflib import unified_diff

    a, b = before.split("\n"), after.split("\n")
    lines = unified_diff(a, b, old, new, n=max(len(a), len(b)), lineterm="")
    return "\n".join(_plain(line) for line in lines)


def _plain(text: str) -> str:
    """One line for a terminal: control characters and invisible ones as escapes."""
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text)


def _tell(files: list[_File], problems: list[str], *, full: bool) -> None:
    for problem in problems:
        print(f"warning: {_plain(problem)}", file=sys.stderr)
    for file in files:
        print(f"{_plain(str(file.path))}{'' if file.diff else ': the same as without it'}")
        if file.diff and full:
            print(f"{file.diff}\n")


def _print_json(value: dict[str, object]) -> None:
    import json

    print(json.dumps(value))
