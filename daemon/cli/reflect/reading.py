"""Reads a project's past sessions, and has a model read the messages that a person typed there.

``Scan`` reads Claude Code's and Codex's files, and opencode's sessions, page by page, through the daemon and
an opencode that is open there: only that reads its database. Of each session come its human messages, each
with the agent's answer before it. The place where the last scan stopped is kept as a cursor. The messages
found so far are kept every few seconds, so an end at any time loses nothing and little memory is needed. A
file that can't be read is told of and skipped.

The model is that of whoever judges, on its fast tier. ``OwnModel`` is asked on a terminal, without a daemon,
and the person is told the cost before. Inside a host the daemon asks it (``in_host``). Without a model, or an
answer, messages stay unread and nothing contradicts.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

from msgspec.structs import replace

from ...core.errors import BadReply, ReflectdError, Unavailable, UserError
from ...core.question import Answer, ask
from ...core.words import PROVIDERS
from ...hosts.claude_code.past import files_in, folders_of, said_in
from ...hosts.codex import past as codex
from ...hosts.jsonl import Cursor
from ...learning.rules import questions
from ...learning.rules.candidates import candidate_of, for_a_model
from ...learning.rules.candidates import said_in as said_in_session
from ..render import count, money, plain
from ..settings import running
from ..terminal import Progress, attended, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...core.question import Question, Texts
    from ...core.transcript import Said
    from ...learning.rules.candidates import Candidate
    from ...learning.rules.learned_rules import LearnedRules
    from ...paths import Paths


Json = dict[str, Any]
T = TypeVar("T")
KEEP_S: Final = 5.0  # between two writes
FOUND: Final = 5_000  # texts that are held at most
PAGE_S: Final = 90.0  # a page of long sessions takes opencode seconds
MOST_PAGES: Final = 100_000
WAIT_S: Final = 30.0  # for what contradicts a rule: a person waits with a finger on the key
CURSOR: Final = "opencode"  # among the cursors of files, whose names are paths
TOLD: Final = 5  # files that could not be read, by name
SHOWN: Final = 40  # messages that nobody read yet: an agent's shell shows some 30,000 characters
SHOWN_TEXT: Final = 300
SHOWN_BEFORE: Final = 120


# --- the model ------------------------------------------------------------------------------------------


class Model(ABC):
    @abstractmethod
    def ask(self, question: Question[T]) -> Answer[T]:
        """Never raises for what a model does."""

    def compare(self, text: str, statements: Sequence[str]) -> questions.Compared:
        """The statements that a new rule contradicts or repeats; none where no answer comes."""
        return questions.compared(self.ask(questions.to_compare(text, statements)).reply, statements)


class OwnModel(Model):
    """A model API or program of the person's settings, asked by this process."""

    def __init__(self, project: Path, state_dir: Path) -> None:
        self.project, self.state_dir = project, state_dir

    def ask(self, question: Question[T]) -> Answer[T]:
        """The cost of a comparison is told before; after ``WAIT_S`` it is given up."""
        waits = question.template == "contradicts"
        try:
            if waits:
                name, takes = self._takes([question])
                say(f"{name} looks for contradictions: {takes}")
            answer = asyncio.run(asyncio.wait_for(self._ask(question), WAIT_S if waits else None))
        except TimeoutError:
            answer = Answer(why=f"no model answered in {WAIT_S:.0f} s")
        except ReflectdError as error:
            answer = Answer(why=str(error))
        if waits and answer.why:
            say(f"only equal texts were found: {plain(answer.why)}")
        return answer

    def estimate(self, said: Sequence[Candidate], stands: Sequence[questions.Stands]) -> str:
        """A sentence on what reading all of these takes."""
        parts = questions.batches(said)
        name, takes = self._takes([questions.to_read(part, stands) for part in parts])
        return f"{count(len(said), 'message')} for {name}: {count(len(parts), 'call')} with {takes}"

    async def _ask(self, question: Question[T]) -> Answer[T]:
        from ...api.asking import Asking

        return await Asking(judges=True).run(ask(replace(question, nonce=secrets.token_hex(8)), self._texts))

    def _takes(self, asked: Sequence[Question[T]]) -> tuple[str, str]:
        """The model's name, and what these calls take. Raises ``UserError`` when no model can be asked."""
        from ...api.asking import Asking
        from ...engine.budget import likely_tokens
        from ...llm.prices import estimate_usd

        (provider, *_), texts = Asking(judges=True).providers(), self._texts
        prompts = [question.prompt(texts) for question in asked]
        tokens = sum(likely_tokens(p.system) + likely_tokens(p.text) for p in prompts)
        vendor, model = provider.model_for(prompts[0])
        usd = estimate_usd(vendor, model, tokens, sum(p.max_tokens for p in prompts))
        who = PROVIDERS.get(provider.name, provider.name)
        cost = "at an unknown price" if usd is None else f"at most {money(usd)}"
        return f"{model} by {who}" if model else who, f"{tokens:,} tokens, {cost}"

    @cached_property
    def _texts(self) -> Texts:
        from ...api.asking import Asking, prompt_texts

        return prompt_texts(Asking(), str(self.project), self.state_dir)


def own_model(rules: LearnedRules) -> OwnModel | None:
    """The model that a person at a terminal has set up; None where there is none, or nobody to tell."""
    if not attended():
        return None
    from ...api.asking import Asking

    try:
        Asking(judges=True).providers()
    except UserError:
        return None
    return OwnModel(rules.journal.project, rules.state_dir)


def stands_in(rules: LearnedRules) -> list[questions.Stands]:
    """Texts to compare messages with: standing rules, then earlier wishes and dismissals, newest first."""
    look = rules.look()
    found = [questions.Stands(row.text, row.id) for row in look.rows if row.active]
    said = [s for s in look.journal["signals"] if s["type"] != "feedback"]
    said = sorted(said, key=lambda s: s["last_seen"], reverse=True)
    found += [questions.Stands(signal["content"]) for signal in said]
    found += [questions.Stands(stone["content"]) for stone in look.journal["tombstones"]]
    once = {each.text: each for each in reversed(found)}
    return [each for each in found if once[each.text] is each][: questions.STANDS]


# --- the scan ------------------------------------------------------------------------------------------


class Scan:
    """A scan as it goes. ``read`` and ``unchanged``: numbers of sessions; ``messages``: of the person's."""

    def __init__(self, rules: LearnedRules) -> None:
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
        more = [f"{len(self._failed) - TOLD} more could not be read"] if len(self._failed) > TOLD else []
        return [*dict.fromkeys(self._told), *self._failed[:TOLD], *more]

    def all(self, where: Paths) -> bool:
        """Read the project's sessions. Returns whether there is any. After Ctrl-C
        what was read is kept and not read again.
        """
        project = self.book.project
        names = [entry.path for entry in files_in(folders_of(project, os.environ))]
        paths = [*map(Path, names), *codex.files_of(project, os.environ)]
        try:
            self._files(paths)
            return self._past(where) or bool(paths)
        finally:
            self._keep()

    def have_read(self, model: Model, *, most: int = 0) -> None:
        """Have the messages read that wait, and count what they teach. ``most``: how many, 0 for all."""
        waiting = for_a_model(self.book.unread())
        parts = questions.batches(waiting[:most] if most else waiting)
        with Progress(len(parts)) as progress:
            for done, part in enumerate(parts):
                progress.show(done, "asking")
                stands = stands_in(self.rules)
                answer = model.ask(questions.to_read(part, stands))
                readings = questions.readings(answer.reply, stands, len(part))
                self._told += self.book.keep({}, {part[at].key: r for at, r in readings.items()}).told
                if answer.why:
                    self._told.append(f"not all was read: {answer.why}")
                    return

    def line(self) -> str:
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
        self._told += self.book.keep(dict(self._found), cursors=dict(self._fresh)).told
        # only now: an interrupt before it leaves them for the next time
        self._found, self._fresh, self._kept = {}, {}, time.monotonic()

    def _take(self, said: Said, file: str) -> None:
        self.messages += 1
        if candidate := candidate_of(said, file):
            known = self._found.get(candidate.key, candidate)
            self._found[candidate.key] = known.with_seen(candidate.seen)

    def _goes_on(self, name: str, cursor: list[Any], sessions: int) -> None:
        """The next scan goes on at this cursor."""
        self.read += sessions
        self._cursors[name] = self._fresh[name] = cursor
        if time.monotonic() - self._kept >= KEEP_S or len(self._found) >= FOUND:
            self._keep()

    # --- files -------------------------------------------------------------------------------------------

    def _files(self, paths: list[Path]) -> None:
        with Progress(len(paths)) as progress:
            for done, path in enumerate(paths):
                progress.show(done, path.name)
                try:
                    self._file(path)
                except (ReflectdError, OSError, RecursionError) as e:
                    self._failed.append(f"{path}: {str(e) or type(e).__name__}")

    def _file(self, path: Path) -> None:
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

    def _past(self, where: Paths) -> bool:
        """Read new sessions of an opencode that is open in the project; False when there is none. One that
        fails half-way is told of, and asked again for the rest by the next scan. A session that can't be read
        is left out (I36).
        """
        from ...hosts.opencode.messages import parse_transcript
        from ...paths import find_socket

        here = os.path.realpath(self.book.project)
        directory = next((f for f in open_folders(where) if os.path.realpath(f) == here), None)
        if directory is None:
            return False
        mark = self._cursors.get(CURSOR)
        known = mark[0] if isinstance(mark, list) and mark and isinstance(mark[0], str) else ""
        pages = listed(find_socket(where), "/v1/features/rules/history", directory, known)
        try:
            with Progress(1) as progress:
                for sessions, after in pages:
                    for session in (each for each in sessions if isinstance(each, dict)):
                        with suppress(BadReply):
                            transcript = parse_transcript(session, is_ours=lambda _: True)
                            for said in said_in_session(transcript):
                                self._take(said, transcript.session)
                    self._goes_on(CURSOR, [after], len(sessions))
                    progress.show(0, f"opencode: {self.read} sessions")
        except Unavailable as e:
            self._failed.append(f"opencode's past sessions: {e}")
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


def open_folders(where: Paths) -> list[str]:
    """The folders in which an opencode is open, as that names them; none without a daemon."""
    instances = running(where).get("instances", ())
    return list(dict.fromkeys(i["directory"] for i in instances if i["host"] == "opencode"))


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
