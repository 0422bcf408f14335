"""``reflectd trust --git``: shows how git is set up in a repository, and asks whether git may be run there.

Stores the fingerprint of exactly the files that it showed; only secrets are left out on the screen. Until the
person says yes, git only reads its configuration, which runs nothing.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from ...core.errors import Unavailable, UserError
from ...core.redact import redact
from ...files import git
from ..render import print_json, visible
from ..terminal import say, show
from .confirm import agreed

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ...core.settings import Settings
    from ...files.trust import Trust

OFF = "judge.git_status is false, so git is not run anywhere: set it to true to use this"
REFUSED = "git is not run here, trusted or not: "


def trust(trusted: Trust, folder: Path, args: argparse.Namespace, settings: Settings) -> int:
    """Show, ask, trust. Raises ``UserError`` where git can't be run, and ``Unavailable``."""
    try:
        repository = git.find(folder)
        found = git.set_up(repository, time.monotonic() + git.LIMIT_S)
    except Unavailable as error:
        raise UserError(f"{error}; nothing was trusted") from None
    grants, problem = trusted.load("git")
    grant = grants.get(str(repository.top))
    already = grant is not None and grant.sha256 == found.fingerprint
    problems = [p for p in (problem, REFUSED + found.refusal if found.refusal else "") if p]
    if not args.json:
        _tell(repository, found, problems, full=args.show or not already, pager=not args.no_pager)
    if found.refusal and not args.show:
        raise UserError(f"{REFUSED}{found.refusal}. Nothing was trusted")
    changes = not (already or args.show or args.dry_run)
    if changes:
        if not agreed(args, f"May reflectd run `git status` in {visible(repository.top)}?"):
            print("Not trusted. Nothing was changed.")
            return 1
        trusted.grant_git(repository.top, found.fingerprint)
    if args.json:
        files = [{"path": path, "text": redact(text)} for path, text in found.files.items()]
        done = {"trusted": already or changes, "changed": changes, "problems": problems}
        print_json({"directory": str(repository.top), "files": files, **done})
        return 0
    if changes:
        print("Trusted, until git's configuration or attributes here change.")
    elif already:
        print("You trust git here.")
    else:
        print(
            "Not trusted, so git is not run." if args.show else "You would be asked whether you trust this."
        )
    if not settings.judge.git_status:
        print(OFF)
    return 0


def top_of(folder: Path) -> Path:
    """The repository that the folder is in; the folder itself where there is none any more."""
    try:
        return git.find(folder).top
    except Unavailable:
        return folder


def listed(trusted: Trust) -> list[dict[str, object]]:
    """Every repository in which git is trusted: its folder, its state, and since when."""
    found = []
    for name, grant in sorted(trusted.load("git")[0].items()):
        try:
            there = git.set_up(git.find(name), time.monotonic() + git.LIMIT_S)
        except Unavailable:
            state = "gone"
        else:
            state = "refused" if there.refusal else "used" if there.fingerprint == grant.sha256 else "changed"
        found.append({"directory": name, "state": state, "at": grant.at})
    return found


def _tell(
    repository: git.Repository, found: git.SetUp, problems: list[str], *, full: bool, pager: bool
) -> None:
    for problem in problems:
        say(f"warning: {visible(problem)}", sys.stderr)
    lines = [f"repository  {visible(repository.top)}", f"git folder  {visible(repository.folder)}"]
    for path, text in found.files.items():
        lines.append(visible(path))
        if full:
            lines += [*(f"    {visible(line)}" for line in redact(text).split("\n")), ""]
    show(lines, pager=pager)
