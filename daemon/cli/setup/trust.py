"""``reflectd trust``: shows the prompts that a project brings, and asks whether they may be used.

Stores the digest of exactly the texts that it showed, with control characters and invisible ones as escapes.
Without a terminal to ask on, it trusts nothing unless ``--yes`` is given.
"""

from __future__ import annotations

import os
import sys
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ... import paths
from ...clock import SystemClock
from ...config import project_command
from ...core.errors import Unavailable, UserError
from ...core.given import known_as
from ...files.project import find_project, upward
from ...files.prompts import (
    COMMAND_FILE,
    PROJECT_FOLDER,
    SUFFIX,
    TRUST_FILE,
    Trust,
    command_place,
    digest,
    read_layer,
    read_project,
    trusts_command,
)
from ...files.safe import alone
from ...learning.playbook.project_playbook import ProjectPlaybook
from ...learning.rules.learned_rules import changes_of, entries
from ...learning.state import ReflectState
from ...proof.choice import refused
from ..render import Paint, count, print_json, visible
from ..settings import add_flags, load, look
from ..terminal import agreed, asked, attended, say, show

if TYPE_CHECKING:
    import argparse

    from ...learning.rules.places import Preference
    from ..render import Style

ABOUT = """A project may bring its own prompts for the judge in .reflection/prompts. reflectd uses them only
after you have looked at them here and trusted them. When one of them changes, you are asked again. Your own
prompts, in ~/.config/reflectd/prompts, are used without this.

The preferences that it brings (.claude/memory/preferences.md) and the check that its settings name
(proof.command) are shown too. Only after you have trusted them, on a terminal, are agents given these
preferences, and only then does reflectd run this check."""
EPILOG = """examples:
  reflectd trust                   show this project's prompts and ask
  reflectd trust --show            show them, ask nothing
  reflectd trust --remove          stop using them
  reflectd trust --list            everything that you trust

exit codes: 0 done, or nothing to do; 1 you said no, or the file system refused; 2 wrong arguments, prompts
that can't be used, or no terminal to ask on (add --yes)"""
COLOURS: Final[dict[str, Style]] = {"+": "green", "-": "red", "@": "blue"}


class _File(Struct, frozen=True):
    """One prompt of the project, compared with the prompt that is used without it."""

    name: str
    path: Path
    diff: str


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("trust", description=ABOUT, epilog=EPILOG)
    parser.add_argument("dir", nargs="?", metavar="DIR", help="exactly this folder (this project)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="show what there is and whether it is trusted")
    what.add_argument("--remove", action="store_true", help="trust this project no longer")
    what.add_argument("--list", action="store_true", help="list everything that you trust")
    parser.add_argument("--yes", action="store_true", help="trust without asking")
    add_flags(parser, run, json="print the outcome as JSON; never asks")


def run(args: argparse.Namespace) -> int:
    """Do what the arguments say. Raises ``UserError`` and ``Unavailable``."""
    settings, where = look(args) if args.list or args.show else load(args)
    trust = Trust(where.state_dir / TRUST_FILE, SystemClock())
    if args.list:
        return _list(trust, args)
    folder = upward(args.dir)[0] if args.dir else find_project()
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    if args.remove:
        return _remove(trust, folder, args, where.state_dir)
    code = _trust(trust, folder, args, where.state_dir)
    if not args.json:
        _ask_command(trust, folder, args)
        _ask_preferences(folder, where.state_dir, args)
        _tell_of_points(ProjectPlaybook(folder, where.state_dir, SystemClock(), settings.playbook.path))
    return code


def _tell_of_points(book: ProjectPlaybook) -> None:
    """A playbook that came with the project is another thing to look at, where the person can say so."""
    from ...learning.playbook.points import each

    known = book.known()
    unknown = sum(not known.is_approved(p["text"]) for _, p in each(book.read().playbook))
    if unknown:
        print(f"Its playbook has {count(unknown, 'point')} that you did not approve: agents are given none")
        print("of them but those that a session confirmed. `reflectd learned approve` shows them.")


def _trust(trust: Trust, folder: Path, args: argparse.Namespace, state_dir: Path) -> int:
    layer = read_project(folder)
    trusted, problem = trust.trusts(folder, layer.texts)
    files = _compare(folder, layer.texts)
    problems = [*layer.problems, *([problem] if problem else [])]
    changes = bool(files) and not trusted and not args.show
    if not args.json:
        _tell(files, problems, full=args.show or not trusted)
    if not files and layer.problems:
        raise UserError(f"none of the files in {folder / PROJECT_FOLDER} can be used; nothing was trusted")
    if changes:
        if not agreed(args, f"Trust these prompts of {visible(folder)}?"):
            print("Not trusted. Nothing was changed.")
            return 1
        trust.grant(folder, layer.texts)
    if args.json:
        shown = [{"name": f.name, "path": str(f.path), "diff": f.diff} for f in files]
        more: dict[str, Any] = {"trusted": trusted or changes, "changed": changes, "problems": problems}
        unknown, _ = _unknown(folder, ReflectState(state_dir, folder))
        more["preferences"] = [{"text": each.text, "refused": each.refused} for each in unknown]
        more["check"] = _check(trust, folder)
        print_json({"directory": str(folder), "files": shown, **more})
    elif not files:
        rest = "" if project_command(folder) else ": nothing to do"
        print(f"{folder} brings no prompts of its own ({PROJECT_FOLDER}/*.txt){rest}.")
    elif trusted:
        print("You trust these prompts; they are used.")
    elif changes:
        print("Trusted. A running reflectd uses them from the next judgement on, until one of them changes.")
    else:
        print("Not trusted, so not used.")
    return 0


def _remove(trust: Trust, folder: Path, args: argparse.Namespace, state_dir: Path) -> int:
    grants, problem = trust.load()
    if problem:
        say(f"warning: {problem}", sys.stderr)
    check = command_place(folder)
    held = [place for place in (folder, check) if os.path.realpath(place) in grants]
    for place in held:
        trust.revoke(place)
    gone = _forget_preferences(folder, state_dir)
    if args.json:
        print_json({"directory": str(folder), "trusted": False, "changed": bool(gone or held)})
        return 0
    if folder not in held:
        nothing = f"{folder} is not trusted: nothing to do."
        print("Its prompts are not trusted." if gone or held else nothing)
    else:
        print(f"{folder} is no longer trusted. A running reflectd stops using its prompts.")
    if check in held:
        print("Its check is not run any more.")
    if gone:
        print(f"{gone} of its preferences are no longer trusted: no agent is given them.")
    return 0


def _list(trust: Trust, args: argparse.Namespace) -> int:
    grants, problem = trust.load()
    if problem:
        say(f"warning: {problem}", sys.stderr)
    found = []
    for name, grant in sorted(grants.items()):
        texts = read_project(name).texts
        if name.endswith(f"/{COMMAND_FILE}"):
            command = project_command(Path(name).parent.parent)
            texts = {"proof.command": command} if command else {}
        state = "used" if digest(texts) == grant.sha256 else "changed" if texts else "gone"
        found.append({"directory": name, "state": state, "at": grant.at})
    if args.json:
        print_json({"projects": found})
        return 0
    more = {"changed": "run `reflectd trust` there", "gone": "it brings no prompts"}
    for row in found:
        state = str(row["state"])
        unused = f", so not used: {more[state]}" if state in more else ""
        what = "check" if str(row["directory"]).endswith(f"/{COMMAND_FILE}") else "prompts"
        print(f"{visible(row['directory'])}  {what}: {state}{unused}")
    if not found:
        print("You trust no project.")
    return 0


def _compare(folder: Path, texts: dict[str, str]) -> list[_File]:
    """Each prompt as a diff to the one used without it, with the whole text in it."""
    without = read_layer(paths.shipped("prompts")).texts
    own = read_layer(paths.config_file(os.environ).parent / "prompts").texts
    files = []
    for name, text in texts.items():
        source = "yours" if name in own else "shipped"
        before, after = own.get(name, without.get(name, "")).split("\n"), text.split("\n")
        heads = f"{name} ({source})", f"{name} (this project)"
        lines = unified_diff(before, after, *heads, n=max(len(before), len(after)), lineterm="")
        path = folder / PROJECT_FOLDER / f"{name}{SUFFIX}"
        files.append(_File(name, path, "\n".join(map(visible, lines))))
    return files


def _tell(files: list[_File], problems: list[str], *, full: bool) -> None:
    for problem in problems:
        say(f"warning: {visible(problem)}", sys.stderr)
    paint, lines = Paint(), list[str]()
    for file in files:
        same = "" if file.diff else ": the same text as without it"
        lines.append(f"{paint(visible(file.path), 'bold')}{same}")
        if file.diff and full:
            old, new, *changes = file.diff.split("\n")
            lines += [paint(old, "bold"), paint(new, "bold")]
            styles = ((line, COLOURS.get(line[:1])) for line in changes)
            lines += [*(paint(line, style) if style else line for line, style in styles), ""]
    if lines:
        show(lines)


# --- the preferences that a project brings: only a person at a terminal trusts them, also with --yes ---


def _ask_preferences(folder: Path, state_dir: Path, args: argparse.Namespace) -> None:
    """Show what nobody vouches for yet, and ask. Raises ``Unavailable``."""
    from ...learning.rules.places import vouch

    state = ReflectState(state_dir, folder)
    unknown, problem = _unknown(folder, state)
    if problem:
        say(f"warning: {visible(problem)}", sys.stderr)
    if not unknown:
        return
    print(f"It brings {count(len(unknown), 'preference')} that agents are given only when you trust them:")
    for each in unknown:
        note = f" (may not be offered: {each.refused})" if each.refused else ""
        say(f"  - {visible(each.text)}{note}")
    texts = [each.text for each in unknown if not each.refused]
    question = f"Trust these preferences of {visible(folder)}?"
    if texts and _says_yes(args, question, "them", "No agent is given them."):
        clock = SystemClock()
        with alone(state.folder):
            vouch(state, texts, clock.now_ms())
        print("Trusted. The next session is given them.")


def _says_yes(args: argparse.Namespace, question: str, what: str, without: str) -> bool:
    """Says whether the person trusts it; ``without``: what is so otherwise."""
    if args.show:
        return False
    if not attended():
        say(f"Run `reflectd trust` on a terminal to trust {what}.")
        return False
    if yes := asked(question, "no terminal"):
        return yes
    print(f"Not trusted. {without}")
    return False


def _check(trust: Trust, folder: Path) -> dict[str, Any] | None:
    """The check that the project's settings name, None for none."""
    command = project_command(folder)
    trusted = bool(command) and trusts_command(trust, folder, command)
    return {"command": command, "trusted": trusted, "refused": refused(command)} if command else None


def _ask_command(trust: Trust, folder: Path, args: argparse.Namespace) -> None:
    """Show the check that the project's settings name, and ask. Raises ``Unavailable``."""
    found = _check(trust, folder)
    if found is None:
        return
    command, text = found["command"], visible(found["command"])
    if found["refused"]:
        say(f"Its settings name a check that is never run: {found['refused']}.")
    elif found["trusted"]:
        say(f"You trust its check: `{text}`.")
    else:
        say(f"Its settings name a check (proof.command): `{text}`")
        question = f"Let reflectd run it in {visible(folder)} when an agent says it is done?"
        if _says_yes(args, question, "it", "It is not run."):
            trust.grant(command_place(folder), {"proof.command": command})
            say("Trusted, until it changes. It is run only while proof.enabled is true.")


def _forget_preferences(folder: Path, state_dir: Path) -> int:
    """Vouch no longer for preferences not learned here; how many. Raises ``Unavailable``."""
    from ...learning.rules.places import vouched_for

    state = ReflectState(state_dir, folder)
    if not state.has("preferences"):
        return 0
    with alone(state.folder):
        known = vouched_for(state)
        own = {known_as(entry["content"]) for entry in entries(changes_of(state))}
        kept = {digest: at for digest, at in known.items() if digest in own}
        if kept != known:
            state.save("preferences", kept, SystemClock().now_ms())
    return len(known) - len(kept)


def _unknown(folder: Path, state: ReflectState) -> tuple[list[Preference], str]:
    from ...learning.rules.places import those_that_count

    try:
        return [each for each in those_that_count(folder, state) if not each.known], ""
    except (UserError, Unavailable) as error:
        return [], str(error)
