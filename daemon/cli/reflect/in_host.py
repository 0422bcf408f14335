"""``reflectd reflect`` inside a host: an agent runs it, so the host shows a person's will, and no flag does.

A command that the person typed themselves behind `/reflect`, with just these words, is done. Any other
becomes a question for the host's question tool (``propose``, and each action that changes something), and
``apply`` does what they answer. The answer is no argument: the daemon says it, which heard it from the host;
it says each once. The host's shell says which session this is; a wrong one only leads to a refusal. Questions
are remembered in the state folder for a day. Raises ``UserError`` and ``Unavailable``.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from ...core.consent import MAX_QUESTIONS, wish
from ...core.errors import ReflectdError, Refused, UserError
from ...learning.rules.journal import Reading
from ...learning.rules.questions import MOST as MOST_STATEMENTS
from ...learning.rules.questions import Compared
from ..render import print_json
from ..settings import here, look
from ..terminal import attended
from .decisions import MOST, Decisions, Outcome, Proposal, answers, now, question, rules_of, stored

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from ...learning.rules.candidates import Candidate
    from ...learning.rules.questions import Stands
    from ...paths import Paths

Json = dict[str, Any]
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


class InHost:
    """The session of a host that runs this, and its project's rules."""

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
                return self.ask("GET", f"session?{urlencode({'session': session})}")
            except Refused as error:
                why = error
        raise why

    def ask(self, method: str, route: str, body: Json | None = None, timeout_s: float = 10.0) -> Json:
        """An answer of the daemon."""
        from ...client import request
        from ...paths import find_socket

        sent = {"session": self.session, **body} if body is not None else None
        route = f"/v1/features/rules/{route}"
        return dict(request(find_socket(self.where), method, route, sent, timeout_s))

    def decisions(self) -> Decisions:
        """On its rules."""
        return Decisions(self.rules, self.compare, self.host.replace("-", "_"))

    def read(self, said: Sequence[Candidate], stands: Sequence[Stands]) -> tuple[dict[int, Reading], str]:
        """How the small model of whoever judges this session reads these messages, and why not, where no
        answer comes. The daemon asks it, on its ledger and within its caps.
        """
        body = {"messages": [{"text": c.text, "prior": c.prior} for c in said]}
        try:
            found = self.ask("POST", "signals", body | {"stands": msgspec.to_builtins(stands)}, MODEL_S)
            return msgspec.convert(found["readings"], dict[int, Reading], str_keys=True), str(found["why"])
        except (ReflectdError, msgspec.ValidationError) as error:
            return {}, str(error)

    def compare(self, text: str, statements: Sequence[str]) -> Compared:
        """The statements that a new rule contradicts or repeats; none where no answer comes."""
        body = {"text": text, "statements": list(statements)[:MOST_STATEMENTS]}
        try:
            found = self.ask("POST", "contradicts", body, MODEL_S)
        except ReflectdError:
            return Compared()
        return Compared(tuple(found["contradicts"]), tuple(found["same"]))

    def tell(self, ask: Iterable[Proposal], done: Sequence[Json] | None = None, **more: object) -> None:
        """Print what was done, and the questions for the host's tool, some in each call; they are
        remembered.
        """
        made = [replace(p, token=secrets.token_hex(6), session=self.session, at=now()) for p in ask]
        if made:
            self._keep(made)
        said = {} if done is None else {"done": list(done)}
        batches = [made[i : i + MAX_QUESTIONS] for i in range(0, len(made), MAX_QUESTIONS)]
        forms = [[question(p).form(_SEVERAL[self.host]) for p in batch] for batch in batches]
        entries = [
            {"tokens": [p.token for p in batch], "input": {"questions": form}}
            for batch, form in zip(batches, forms, strict=True)
        ]
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
        return str(self.ask("POST", "spend", {"digest": digest})["label"])

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


def propose(args: argparse.Namespace) -> int:
    """Print questions: about the patterns of the journal; with ``--rule`` about an agent's wording of
    messages that no model read, beside the person's own words, which come from the scan, not from the agent.
    ``--none`` names messages that teach nothing.
    """
    inside = InHost(args)
    decisions = inside.decisions()
    if not (args.rule or args.none):
        patterns = decisions.patterns()
        inside.tell(patterns[:MOST], more=len(patterns[MOST:]))
        return 0
    made = [decisions.worded(_ids(ids), text) for ids, text in args.rule]
    if args.none:
        inside.rules.journal.drop(_ids(args.none))
    inside.tell([p for p in made if p is not None], more=0)
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
    asks = decisions.wanted(name, args)
    p = asks[0]
    if p.kind == "same":
        inside.tell((), [Outcome("there already", p.text, file=p.stands[0].where).object()])
        return 0
    flags = [f"--{flag}" for flag in ("soft", "delete") if getattr(args, flag, False)]
    match name:
        case "learn":
            words, plain = args.text, p.kind == "learn"
        case "unlearn":
            # the id, or all that the rule says; other words only mean one
            said = " ".join(args.text.split()).strip("\"'")
            words, plain = args.text, len(asks) == 1 and said in {p.stands[0].id, p.stands[0].text}
        case "undo":
            words, plain = str(args.number or ""), True
        case _:
            words, plain = " ".join(args.names), True
    if not (plain and inside.typed(name, words, *flags)):
        inside.tell(asks, [])
        return 0
    plainly = {"learn": "soft" if p.soft else "rule", "unlearn": "delete" if flags else "archive"}
    outcome = decisions.decide(p, plainly.get(name, "do"))  # type: ignore[arg-type]
    inside.tell([outcome.ask] if outcome.ask else [], [] if outcome.ask else [outcome.object()])
    return 0


def _ids(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]
