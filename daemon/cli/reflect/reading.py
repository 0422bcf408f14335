"""A scan of a project's past sessions for what the person typed in them: Claude Code's and Codex's files, and
opencode's sessions, page by page, through the daemon and an opencode that is open there.

opencode keeps its sessions in a database of its own, so only opencode reads them. Of each session come its
human messages, each with the agent's answer before it. The place where the last scan stopped is kept as a
cursor. The messages found so far are kept every few seconds, so an end at any time loses nothing and little
memory is needed. A file that can't be read is told of and skipped.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from ...core.errors import BadReply, ReflectdError, Unavailable
from ...hosts.claude_code.past import files_in, folders_of, said_in
from ...hosts.codex import past as codex
from ...hosts.jsonl import Cursor
from ...learning.rules.candidates import candidate_of, for_a_model
from ...learning.rules.candidates import said_in as said_in_session
from ...learning.rules.questions import batches
from ..render import count
from ..terminal import Progress
from .model import stands_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...core.transcript import Said
    from ...learning.rules.candidates import Candidate
    from ...learning.rules.learned_rules import LearnedRules
    from ...paths import Paths
    from .model import Model


Json = dict[str, Any]
KEEP_S: Final = 5.0  # between two writes
FOUND: Final = 5_000  # texts that are held at most
SHOW_S: Final = 0.1
PAGE_S: Final = 90.0  # a page of long sessions takes opencode seconds
MOST_PAGES: Final = 100_000
OPEN_S: Final = 5.0
CURSOR: Final = "opencode"  # among the cursors of files, whose names are paths
TOLD: Final = 5  # files that could not be read, by name
SHOWN: Final = 40  # messages that nobody read yet: an agent's shell shows some 30,000 characters
SHOWN_TEXT: Final = 300
SHOWN_BEFORE: Final = 120


class Scan:
    """A scan as it goes. ``read`` and ``unchanged``: numbers of sessions; ``messages``: of the person's."""

    def __init__(self, rules: LearnedRules) -> None:
        """It goes on where the last one stopped."""
        self.rules, self.book = rules, rules.journal
        self.messages = self.read = self.unchanged = 0
        self._told: list[str] = []
        self._failed: list[str] = []
        self._found: dict[str, Candidate] = {}
        self._cursors = self.book.state.load("cursors")
        self._fresh: Json = {}  # cursors that are not stored yet
        self._kept = time.monotonic()

    @property
    def told(self) -> list[str]:
        """The lines that a person should know."""
        more = [f"{len(self._failed) - TOLD} more could not be read"] if len(self._failed) > TOLD else []
        return [*dict.fromkeys(self._told), *self._failed[:TOLD], *more]

    def all(self, where: Paths, *, quiet: bool) -> bool:
        """Read the project's sessions; ``quiet``: without a bar. Returns whether there is any. After Ctrl-C
        what was read is kept and not read again.
        """
        project = self.book.project
        names = [entry.path for entry in files_in(folders_of(project, os.environ))]
        paths = [*map(Path, names), *codex.files_of(project, os.environ)]
        try:
            self._files(paths, quiet=quiet)
            return self._past(where, quiet=quiet) or bool(paths)
        finally:
            self._keep()

    def have_read(self, model: Model, *, most: int = 0, quiet: bool) -> None:
        """Have the messages read that wait, and count what they teach. ``most``: how many, 0 for all."""
        waiting = for_a_model(self.book.unread())
        parts = batches(waiting[:most] if most else waiting)
        progress = Progress(0 if quiet else len(parts))
        try:
            for done, part in enumerate(parts):
                progress.show(done, "asking")
                readings, why = model.read(part, stands_in(self.rules))
                self._told += self.book.keep({}, {part[at].key: r for at, r in readings.items()}).told
                if why:
                    self._told.append(f"not all was read: {why}")
                    return
        finally:
            progress.clear()

    def line(self) -> str:
        """A line for a person."""
        many = count(self.messages, "new message")
        return f"{count(self.read, 'session')} ({self.unchanged} unchanged), {many} of yours"

    def told_json(self) -> Json:
        """The same for a script, with the messages that nobody read."""
        unread = for_a_model(self.book.unread())
        return {
            "read": {
                "sessions": self.read, "unchanged": self.unchanged, "failed": len(self._failed),
                "messages": self.messages,
            },
            "candidates": [_shown(c) for c in unread[:SHOWN]],
            "more_candidates": len(unread[SHOWN:]),
            "told": self.told,
        }  # fmt: skip

    def _keep(self) -> None:
        """Keep what was found so far."""
        found, fresh = dict(self._found), dict(self._fresh)
        self._told += self.book.keep(found, cursors=fresh).told
        # only now: an interrupt before it leaves them for the next time
        self._found, self._fresh, self._kept = {}, {}, time.monotonic()

    def _keep_sometimes(self) -> None:
        if time.monotonic() - self._kept >= KEEP_S or len(self._found) >= FOUND:
            self._keep()

    def _take(self, said: Said, file: str) -> None:
        self.messages += 1
        if candidate := candidate_of(said, file):
            known = self._found.get(candidate.key, candidate)
            self._found[candidate.key] = known.with_seen(candidate.seen)

    def _goes_on(self, name: str, cursor: list[Any], sessions: int) -> None:
        """The next scan goes on at this cursor."""
        self.read += sessions
        self._cursors[name] = self._fresh[name] = cursor
        self._keep_sometimes()

    # --- files -------------------------------------------------------------------------------------------

    def _files(self, paths: list[Path], *, quiet: bool) -> None:
        progress, shown = Progress(0 if quiet else len(paths)), time.monotonic()
        try:
            for done, path in enumerate(paths):
                if time.monotonic() - shown >= SHOW_S:
                    progress.show(done, path.name)
                    shown = time.monotonic()
                try:
                    self._file(path)
                except (ReflectdError, OSError, RecursionError) as e:
                    self._failed.append(f"{path}: {str(e) or type(e).__name__}")
        finally:
            progress.clear()

    def _file(self, path: Path) -> None:
        """Read one file from where reading stopped."""
        cursor = Cursor.of(self._cursors.get(str(path)))
        if not path.is_file():
            return
        if cursor is not None and cursor.is_unchanged(path.stat()):
            self.unchanged += 1
            return
        read = codex.said_in if codex.is_named_so(path) else said_in
        if found := read(path, cursor, lambda said: self._take(said, path.name)):
            self._goes_on(str(path), list(found), 1)

    # --- opencode's past sessions ------------------------------------------------------------------------

    def _past(self, where: Paths, *, quiet: bool) -> bool:
        """Read new sessions of an opencode that is open in the project; False when there is none. One that
        fails half-way is told of, and asked again for the rest by the next scan. A session that can't be read
        is left out (I36).
        """
        from ...hosts.opencode.messages import parse_transcript
        from ...paths import find_socket

        directory = open_in(where, self.book.project)
        if directory is None:
            return False
        mark = self._cursors.get(CURSOR)
        known = mark[0] if isinstance(mark, list) and mark and isinstance(mark[0], str) else ""
        progress = Progress(0 if quiet else 1)
        try:
            for sessions, after in listed(find_socket(where), "/v1/features/rules/history", directory, known):
                for session in (each for each in sessions if isinstance(each, dict)):
                    try:
                        transcript = parse_transcript(session, is_ours=lambda _: True)
                    except BadReply:
                        continue
                    for said in said_in_session(transcript):
                        self._take(said, transcript.session)
                self._goes_on(CURSOR, [after], len(sessions))
                progress.show(0, f"opencode: {self.read} sessions")
        except Unavailable as e:
            self._failed.append(f"opencode's past sessions: {e}")
        finally:
            progress.clear()
        return True


def _shown(candidate: Candidate) -> Json:
    """A message that nobody read yet, for whoever words it."""
    said = candidate.quote()
    return {
        "id": candidate.key,
        "text": said["text"][:SHOWN_TEXT],
        "before": said["context"][-SHOWN_BEFORE:],
        "day": said["day"],
        "sessions": candidate.sessions,
        "why": list(candidate.reasons),
    }


def open_in(where: Paths, project: Path) -> str | None:
    """The folder of an opencode that is open in the project, as that names it; None when there is none, or no
    daemon.
    """
    from ...client import request
    from ...paths import find_socket

    try:
        instances = request(find_socket(where), "GET", "/v1/status", timeout_s=OPEN_S)["instances"]
    except (ReflectdError, KeyError):
        return None
    here = os.path.realpath(project)
    folders = (i["directory"] for i in instances if i["host"] == "opencode")
    return next((f for f in folders if os.path.realpath(f) == here), None)


def listed(socket: Path, route: str, directory: str, after: str) -> Iterator[tuple[list[Any], str]]:
    """The sessions of each page of this route, as JSON, and its mark. Raises ``ReflectdError``."""
    from ...client import request

    for _ in range(MOST_PAGES):
        query = urlencode({"directory": directory, "after": after})
        page = request(socket, "GET", f"{route}?{query}", timeout_s=PAGE_S).get("page")
        if not isinstance(page, dict) or not isinstance(page.get("sessions"), list):
            raise Unavailable("opencode answered with no list of sessions")
        end = str(page.get("after", ""))
        yield page["sessions"], end
        if page.get("more") is not True or end <= after:
            return
        after = end
