"""``reflectd memory``: shows the lessons from tasks that ended badly, and changes them.

All ask the daemon. What makes a lesson count is a person's word, so it takes a terminal: an agent's shell is
none. ``forget`` dismisses, which ``--undo`` takes back; only ``--for-good`` deletes. Exit codes: 0 done, or
nothing to do · 1 no daemon, or a store that can't be reached · 2 wrong arguments, or no such episode.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ..client import request
from ..core.errors import Unavailable, UserError, words
from ..paths import find_socket
from .progress import Progress
from .render import Paint, clock, count, place, plain, print_json, short
from .settings import add_action, here, look
from .terminal import attended, say
from .terminal import show as show_lines

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

Json = dict[str, Any]
MOST = 1_000
PAGE = 200
OPINION = "none: it rests on a model's opinion"
WRITTEN = "none: a person or a program stored it"
SHORTEST = 4  # characters of an id that is told by how it begins
REWARD = -1.0  # of a task whose lesson a person wrote down: it went wrong
LIMIT = 256 * 1024 * 1024  # bytes of a file that is taken over
BLOCK = 100  # episodes in one request
STATES = ("quarantined", "confirmed", "dismissed")
EPILOG = """examples:
  reflectd memory                                the episodes of this project
  reflectd memory search "the migration fails"   what was learned from tasks like this
  reflectd memory show 3f0c…                     one episode, and what became of its lesson
  reflectd memory stats                          how many there are
  reflectd memory add "Run the migration" "Stop the workers first."
  reflectd memory forget 3f0c…                   its lesson is not shown again
  reflectd memory forget --undo 3f0c…            it is
  reflectd memory export --out lessons.jsonl     all episodes of this project
  reflectd memory import lessons.jsonl           take them over, apart until you confirm them

exit codes: 0 done, or nothing to do; 1 no daemon, or a store that can't be reached; 2 wrong arguments,
or no such episode"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb and its actions."""
    parser = verbs.add_parser(
        "memory", help="lessons from tasks that ended badly: show and change them", epilog=EPILOG
    )
    parser.set_defaults(run=show, id=None, state=None, limit=50, dir=None, json=False, no_pager=False)
    what = parser.add_subparsers(dest="what", metavar="WHAT")
    one = add_action(what, "search", "lessons from tasks like this one", search, pager=True)
    one.add_argument("words", nargs="+", metavar="WORDS", help="the task, in your words")
    one.add_argument("--limit", type=int, default=10, metavar="N", help="at most N episodes (10)")
    one = add_action(what, "show", "one episode, or all of this project", show, pager=True)
    one.add_argument("id", nargs="?", metavar="ID", help="an episode's id, or how it begins")
    one.add_argument("--state", choices=STATES, help="only episodes in this state")
    one.add_argument("--limit", type=int, default=50, metavar="N", help="at most N episodes (50)")
    one = add_action(what, "stats", "how many episodes there are, by state", stats)
    one.add_argument("--all", action="store_true", help="of all projects")
    one = add_action(what, "add", "store a lesson of your own; typed on a terminal it counts at once", add)
    one.add_argument("task", metavar="TASK", help="the task that it is about, as you would give it")
    one.add_argument("lesson", metavar="LESSON", help="what to do next time")
    one.add_argument("--problem", default="", metavar="TEXT", help="what went wrong")
    one.add_argument("--dry-run", action="store_true", help="say what would be stored, change nothing")
    one = add_action(what, "forget", "do not show these lessons again, or delete them", forget)
    one.add_argument("ids", nargs="+", metavar="ID", help="ids of episodes, or how they begin")
    one.add_argument(
        "--undo", action="store_true", help="they count from now on, by your word, on a terminal"
    )
    one.add_argument("--for-good", action="store_true", help="delete them; `export` keeps a copy")
    one.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")
    one = add_action(what, "export", "print episodes as JSON, one on each line", export)
    one.add_argument("--out", metavar="FILE", help="write them to FILE, which must not exist")
    one.add_argument("--all", action="store_true", help="of all projects")
    one = add_action(what, "import", "take over exported episodes, apart until confirmed", take)
    one.add_argument("file", metavar="FILE", help="what `export` wrote, - for stdin")
    one.add_argument("--dry-run", action="store_true", help="say what would be stored, change nothing")


class Asked:
    """The daemon and the project that the arguments mean. Raises ``UserError``."""

    def __init__(self, args: argparse.Namespace) -> None:
        _, where = look(args)
        self.project: Path = here(where, args.dir)
        if not self.project.is_dir():
            raise UserError(f"there is no folder {self.project}")
        self._socket = find_socket(where)

    def get(self, route: str, **query: object) -> Json:
        """What the daemon says. Raises ``Unavailable``."""
        return request(self._socket, "GET", f"/v1/features/memory/{route}?{urlencode(query)}")

    def post(self, route: str, body: Json) -> Json:
        """Likewise, when something changes."""
        return request(self._socket, "POST", f"/v1/features/memory/{route}", body)

    def episodes(self, *, everywhere: bool = False, state: str = "", limit: int = 0) -> list[Json]:
        """All of the project, newest first, or so many."""
        found: list[Json] = []
        directory = "" if everywhere else str(self.project)
        while True:
            most = min(PAGE, limit - len(found)) if limit else PAGE
            after = found[-1]["id"] if found else ""
            page = self.get("list", directory=directory, state=state, after=after, limit=most)["episodes"]
            found += page
            if len(page) < most or (limit and len(found) >= limit):
                return found

    def one(self, wanted: str) -> Json:
        """The episode of this id, or of the project the one whose id begins so. Raises ``UserError``."""
        if len(wanted) == 32:
            whole: Json = self.get("show", id=wanted)["episode"]
            return whole
        if len(wanted) < SHORTEST:
            raise UserError(
                f"{short(wanted, 40)!r} is too short for an id; give {SHORTEST} characters or more"
            )
        found = [e for e in self.episodes() if e["id"].startswith(wanted.lower())]
        if len(found) != 1:
            known = "several episodes begin" if found else "no episode of this project begins"
            raise UserError(f"{known} with {short(wanted, 40)!r}; `reflectd memory show` lists all")
        return found[0]


def search(args: argparse.Namespace) -> int:
    """Lessons from tasks like this one: the most similar, without a model for embeddings those with the same
    words.
    """
    asked = Asked(args)
    if not 1 <= args.limit <= 100:
        raise UserError("--limit must be from 1 to 100")
    words = " ".join(args.words).strip()
    if not words:
        raise UserError("say for which task")
    found = asked.get(
        "search",
        directory=str(asked.project),
        query=words,
        top_k=args.limit,
        min_similarity=-1,
        by_words=1,
    )
    if args.json:
        print_json(found)
        return 0
    if not found["episodes"]:
        say(f"nothing was learned from such a task in {place(asked.project)}")
        return 0
    paint = Paint()
    lines = []
    for e in found["episodes"]:
        alike = "" if e["similarity"] is None else f"similarity {e['similarity']:.2f}; "
        shows = "agents may be given it" if e["shows"] else f"{e['state']}, not given to agents"
        lines += [*_head(e, paint), *paint.row("    ", f"{alike}{shows}"), ""]
    show_lines(lines[:-1], pager=not args.no_pager)
    return 0


def show(args: argparse.Namespace) -> int:
    """One episode whole, or all of the project."""
    asked, paint = Asked(args), Paint()
    if args.id:
        e = asked.one(args.id)
        if args.json:
            print_json({"episode": e})
            return 0
        show_lines(_whole(e, paint), pager=not args.no_pager)
        return 0
    if not 1 <= args.limit <= MOST:
        raise UserError(f"--limit must be from 1 to {MOST}")
    found = asked.episodes(state=args.state or "", limit=args.limit)
    if args.json:
        print_json({"project": str(asked.project), "episodes": found})
        return 0
    if not found:
        say(f"no episodes in {place(asked.project)}")
        return 0
    lines = [paint(f"{count(len(found), 'episode')} in {short(place(asked.project), 300)}", "bold"), ""]
    for e in found:
        lines += [*_head(e, paint), *paint.row("    ", f"{e['state']}; {used(e)}")]
    show_lines(lines, pager=not args.no_pager)
    return 0


def stats(args: argparse.Namespace) -> int:
    """How many there are."""
    asked = Asked(args)
    found = asked.get("stats", directory="" if args.all else str(asked.project))
    if args.json:
        print_json(found)
        return 0
    counts = found["episodes"]
    total = sum(counts[state] for state in ("quarantined", "confirmed", "dismissed"))
    where = "all projects" if args.all else place(asked.project)
    say(f"{count(total, 'episode')} in {where}, {counts['bytes'] / 1e6:,.1f} MB")
    for state, means in (
        ("confirmed", "agents are given their lessons"),
        ("quarantined", "apart until something proves or confirms them"),
        ("dismissed", "not shown again, and not learned again"),
    ):
        say(f"  {counts[state]:>7,} {state}: {means}")
    say(f"  a task is reflected on when its reward is below {found['threshold']:g}")
    if not found["enabled"]:
        say("  the memory is off: no lesson is learned or shown to agents; `reflectd setup` asks about it")
    return 0


def used(episode: Json) -> str:
    """What became of its lesson."""
    use = episode["use"]
    if not use["given"]:
        return "given to no session yet"
    outcome = f"{use['helped']} then good, {use['failed']} bad"
    return f"given to {count(use['given'], 'session')}, {outcome}; last {clock(use['last'])}"


def _head(e: Json, paint: Paint) -> list[str]:
    author = f" · {short(e['author'], 40)}" if e["author"] else ""
    head = f"{e['id'][:12]}  {clock(e['at'])}  reward {e['reward']:+.2f}{author}"
    return [
        paint(head, "dim"),
        *paint.row("  ", short(plain(e["query"]), 300)),
        *paint.row("  → ", e["lesson"]),
    ]


def _whole(e: Json, paint: Paint) -> list[str]:
    rows = [
        ("id", e["id"]),
        ("when", clock(e["at"])),
        ("project", place(e["project"]) if e["project"] else "none"),
        ("author", e["author"]),
        ("session", " ".join(filter(None, (e["session"], e["task"])))),
        ("state", e["state"]),
        ("reward", f"{e['reward']:+.2f}"),
        ("task", " ".join(plain(e["query"]).split())),
        ("problem", e["problem"]),
        ("lesson", e["lesson"]),
        ("proof", e["proof"] or (OPINION if e["turn"] else WRITTEN)),
        ("hung on", "; ".join(f"{t['kind']} {t['text']}" for t in e["triggers"])),
        ("cites", "; ".join(e["cites"])),
        ("files", "; ".join(e["files"])),
        ("use", used(e)),
    ]
    return [line for name, text in rows if text for line in paint.row(f"{name:<8} ", text)]


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
