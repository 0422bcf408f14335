"""What ``reflectd memory`` shows. Also how every action asks the daemon and finds its project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...client import request
from ...core.errors import UserError
from ...paths import find_socket
from ..render import Paint, clock, count, place, plain, print_json, short
from ..settings import here, look
from ..terminal import say
from ..terminal import show as show_lines

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

Json = dict[str, Any]
MOST = 1_000
PAGE = 200
OPINION = "none: it rests on a model's opinion"
WRITTEN = "none: a person or a program stored it"
SHORTEST = 4  # characters of an id that is told by how it begins


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
