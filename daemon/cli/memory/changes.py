"""``reflectd memory add`` and ``forget``.

What makes a lesson count is a person's word, so it takes a terminal: an agent's shell is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import UserError
from ..render import count, print_json, short
from ..terminal import attended, say
from .shown import Asked

if TYPE_CHECKING:
    import argparse

REWARD = -1.0
"""Of a task whose lesson a person wrote down: it went wrong."""


def add(args: argparse.Namespace) -> int:
    """Store a lesson in a person's words. On a terminal they vouch for it, so it counts at once."""
    if not args.task.strip() or not args.lesson.strip():
        raise UserError("say both: the task, and its lesson")
    asked = Asked(args)
    said = f"Problem: {args.problem or 'It went wrong before.'}\nLesson: {args.lesson}"
    body = {"directory": str(asked.project), "query": args.task, "reward": REWARD, "reflection": said}
    if args.dry_run:
        if args.json:
            print_json({"dry_run": True, "episode": body})
        else:
            say(f"would store: {args.task} → {args.lesson}")
        return 0
    made = asked.post("add", body)["episode"]
    if attended():
        asked.post("settle", {"ids": [made["id"]], "yes": True})
        made = {**made, "state": "confirmed"}
    short_id = made["id"][:12]
    if args.json:
        print_json({"episode": made})
    elif made["state"] == "confirmed":
        say(f"stored as {short_id}; `reflectd memory forget {short_id}` takes it back")
    else:
        say(
            f"stored as {short_id}, apart, because nobody sits at a terminal here; "
            f"`reflectd memory forget --undo {short_id}` on one makes it count"
        )
    return 0


def forget(args: argparse.Namespace) -> int:
    """Dismiss, or undo that, or delete."""
    if args.undo and args.for_good:
        raise UserError("--undo and --for-good say opposite things; what was deleted can't be undone")
    if args.undo and not args.dry_run and not attended():
        raise UserError("whether a lesson counts is a person's decision: do it on a terminal")
    asked = Asked(args)
    found = [asked.one(wanted) for wanted in dict.fromkeys(args.ids)]
    ids = [e["id"] for e in found]
    done = "deleted" if args.for_good else "confirmed" if args.undo else "dismissed"
    if args.dry_run:
        changed = 0
    elif args.for_good:
        changed = asked.post("forget", {"ids": ids})["forgotten"]
    else:
        changed = asked.post("settle", {"ids": ids, "yes": args.undo})["changed"]
    if args.json:
        print_json({"ids": ids, "outcome": done, "changed": changed, "dry_run": args.dry_run})
        return 0
    for e in found:
        say(f"{'would be ' if args.dry_run else ''}{done}: {e['id'][:12]} {short(e['lesson'], 200)}")
    if not args.dry_run and done == "dismissed":
        say(f"{count(changed, 'episode')} changed; `reflectd memory forget --undo` takes it back")
    return 0
