"""``reflectd reflect`` inside a host: an agent runs it, so the host shows a person's will, and no flag does.

A command that the person typed themselves behind `/reflect`, with just these words, is done. Any other
becomes a question for the host's question tool (the bare verb, ``propose``, and each action that changes
something), and ``apply`` does what they answer. The answer is no argument: the daemon says it, which heard it
from the host; it says each once. The host's shell says which session this is; a wrong one only leads to a
refusal. Questions are remembered in the state folder for a day. Raises ``UserError`` and ``Unavailable``.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from ...core.consent import MAX_QUESTIONS, wish
from ...core.errors import ReflectdError, Refused, UserError
from ...core.question import Answer
from ..render import print_json
from ..settings import here, look
from ..terminal import attended
from .decisions import MOST, Decisions, Outcome, Proposal, answers, now, question, rules_of, stored
from .reading import Model, Scan

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from ...core.question import Question
    from ...paths import Paths

Json = dict[str, Any]
T = TypeVar("T")
SESSION: Final = ("REFLECTD_SESSION", "CLAUDE_CODE_SESSION_ID")
MODEL_S: Final = 150.0  # for one question to a model
MOST_READ: Final = 200  # messages that one `/reflect` has read
EXPIRES_MS: Final = 86_400_000
KEPT: Final = 200
OUTSIDE: Final = (
    "this is for an agent inside Claude Code or opencode; on a terminal `reflectd reflect` asks you itself"
)
OWN_WORDS: Final = (
    "the person answered in words of their own, so nothing was decided; do what they said. Another wording "
    'becomes a question by: reflectd reflect learn "WORDING" --json'
)
_SEVERAL: Final = {"claude-code": "multiSelect", "opencode": "multiple"}


def sessions_here() -> list[str]:
    """The session whose agent runs this, and another one where a host runs inside a host; none on a terminal,
    and where no host runs it.
    """
    return [] if attended() else [os.environ[name] for name in SESSION if os.environ.get(name)]


class InHost(Model):
    """The session of a host that runs this, its project's rules, and the model of whoever judges it."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Raises ``UserError`` where no session runs this, and where its project is another one."""
        self.where: Paths = look(args)[1]
        self.rules = rules_of(args)
        found = self._opened()
        theirs = os.path.realpath(here(self.where, str(found["directory"])))
        if theirs != os.path.realpath(self.rules.journal.project):
            raise UserError(f"this session works in {theirs}: rules of another project are not decided there")
        self.session, self.host = str(found["session"]), str(found["host"])

    def _opened(self) -> Json:
        why: UserError = UserError(OUTSIDE)
        for session in sessions_here():
            try:
                return self._request("GET", f"session?{urlencode({'session': session})}")
            except Refused as error:
                why = error
        raise why

    def _request(self, method: str, route: str, body: Json | None = None, timeout_s: float = 10.0) -> Json:
        from ...client import request
        from ...paths import find_socket

        sent = {"session": self.session, **body} if body is not None else None
        route = f"/v1/features/rules/{route}"
        return dict(request(find_socket(self.where), method, route, sent, timeout_s))

    def decisions(self) -> Decisions:
        return Decisions(self.rules, self, self.host)

    def ask(self, question: Question[T]) -> Answer[T]:
        """The daemon asks, on its ledger and within its caps."""
        (lines,) = question.slots.values()
        try:
            found = self._request("POST", "ask", {"question": question.template, "lines": lines}, MODEL_S)
            return Answer(msgspec.convert(found["reply"], question.form | None), found["why"])
        except (ReflectdError, msgspec.ValidationError) as error:
            return Answer(why=str(error))

    def tell(self, ask: Iterable[Proposal], done: Sequence[Json] | None = None, **more: object) -> None:
        """Print the results, and the questions for the host's tool; these are remembered."""
        made = [replace(p, token=secrets.token_hex(6), session=self.session, at=now()) for p in ask]
        if made:
            self._keep(made)
        said = {} if done is None else {"done": list(done)}
        batches = [made[i : i + MAX_QUESTIONS] for i in range(0, len(made), MAX_QUESTIONS)]
        asks = [(batch, [question(p).form(_SEVERAL[self.host]) for p in batch]) for batch in batches]
        entries = [{"tokens": [p.token for p in ps], "input": {"questions": form}} for ps, form in asks]
        print_json({"project": str(self.rules.journal.project), **said, "ask": entries, **more})

    def answer(self, token: str) -> tuple[Proposal, str]:
        """The proposal of that token, and the label that the person chose, "" for words of their own; the
        question is settled by that. Raises ``Refused`` when nobody can say that a person answered it.
        """
        p = next((p for p in self._proposals() if p.token == token), None)
        if p is None:
            raise UserError("no question with this token is open: it was answered, or is older than a day")
        if p.session != self.session:
            raise UserError("this question was asked in another session")
        label = self._spend(question(p).digest)
        self._keep((), without=token)
        return p, label

    def typed(self, verb: str, words: str, *flags: str) -> bool:
        """Says whether the person typed just this behind `/reflect`."""
        try:
            self._spend(wish(verb, words, *flags).digest)
        except Refused:
            return False
        return True

    def _spend(self, digest: str) -> str:
        return str(self._request("POST", "spend", {"digest": digest})["label"])

    def _proposals(self) -> list[Proposal]:
        """Those that still count, newest first."""
        found = (stored(each) for each in self.rules.journal.state.load("proposals").values())
        since = now() - EXPIRES_MS
        return sorted((p for p in found if p is not None and p.at > since), key=lambda p: -p.at)

    def _keep(self, more: Sequence[Proposal], without: str = "") -> None:
        from ...files.safe import alone

        state = self.rules.journal.state
        with alone(state.folder):
            left = [p for p in (*more, *self._proposals()) if p.token != without][:KEPT]
            state.save("proposals", {p.token: to_builtins(p) for p in left}, now())


# --- the actions ---------------------------------------------------------------------------------------


def review(args: argparse.Namespace) -> int:
    """Read new sessions; print the patterns as questions, and the messages that no model read."""
    inside = InHost(args)
    scan = Scan(inside.rules)
    scan.all(inside.where)
    scan.have_read(inside, most=MOST_READ)
    patterns = inside.decisions().patterns()
    inside.tell(patterns[:MOST], more=len(patterns[MOST:]), **scan.told_json())
    return 0


def propose(args: argparse.Namespace) -> int:
    """Print questions about an agent's wording of messages that no model read, beside the person's own words,
    which come from the scan, not from the agent. ``--none`` names messages that teach nothing.
    """
    inside = InHost(args)
    decisions = inside.decisions()
    made = [decisions.worded(_ids(ids), text) for ids, text in args.rule]
    if args.none:
        inside.rules.journal.drop(_ids(args.none))
    inside.tell(p for p in made if p is not None)
    return 0


def apply(args: argparse.Namespace) -> int:
    """Do what was answered, and print the end of each. A token whose question nobody is known to have
    answered is refused, and the others are done all the same; the exit code is 2 then.
    """
    inside = InHost(args)
    decisions, done, asks = inside.decisions(), list[Json](), list[Proposal]()
    for token in dict.fromkeys(args.tokens):
        try:
            p, label = inside.answer(token)
            outcome = Outcome("own words", p.text, [OWN_WORDS])
            if label:
                outcome = decisions.decide(p, answers(p)[label][0])
        except UserError as error:
            done.append({"token": token, "status": "refused", "why": str(error)})
            continue
        asks += [outcome.ask] if outcome.ask else []
        done.append({"token": token, **outcome.object()})
    inside.tell(asks, done)
    return 2 if any(each["status"] == "refused" for each in done) else 0


def decided(name: str, args: argparse.Namespace) -> int:
    """An action that changes something: done where the person typed just that, else asked about. An action
    that can't be done is refused before anything that was typed is used up.
    """
    inside = InHost(args)
    decisions = inside.decisions()
    p = decisions.wanted(name, args)
    if p.kind == "same":
        inside.tell((), [Outcome("there already", p.text, file=p.stands[0].where).object()])
        return 0
    flags = [f"--{flag}" for flag in ("soft", "delete") if getattr(args, flag, False)]
    words, plain = str(args.text), p.kind == "learn"
    if name == "unlearn":  # the id, or all that the rule says; other words only mean one
        plain = " ".join(words.split()).strip("\"'") in {p.stands[0].id, p.stands[0].text}
    if not (plain and inside.typed(name, words, *flags)):
        inside.tell([p], [])
        return 0
    if name == "learn":
        outcome = decisions.decide(p, "soft" if p.soft else "rule")
    else:
        outcome = decisions.decide(p, "delete" if flags else "archive")
    inside.tell([outcome.ask] if outcome.ask else [], [] if outcome.ask else [outcome.object()])
    return 0


def _ids(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]
