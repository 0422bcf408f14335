"""``reflectd reflect`` inside a host: an agent runs it, so the host shows a person's will, and no flag does.

What the person typed themselves behind `/reflect`, with just these words, is done. Anything else becomes a
question for the host's question tool (``propose``, and each action that changes something), and ``apply``
does what they answer. The answer is no argument: the daemon says it, which heard it from the
host; it says each once. Which session this is, the host's shell says; a wrong one only
leads to a refusal. Questions that were put are remembered in the state folder for a day. Raises ``UserError``
and ``Unavailable``.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from ...core.consent import MAX_QUESTIONS, wish
from ...core.errors import Refused, UserError
from ..render import print_json
from ..settings import here, look
from ..terminal import attended
from .decisions import MOST, Decisions, Outcome, Proposal, answers, now, question, rules_of, stored

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from ...learning.rules.learned_rules import LearnedRules
    from ...paths import Paths
    from .decisions import Answer

Json = dict[str, Any]
SESSION: Final = ("REFLECTD_SESSION", "CLAUDE_CODE_SESSION_ID")
EXPIRES_MS: Final = 86_400_000
KEPT: Final = 200
_RULES_OF: Final = {"claude-code": "claude_code", "opencode": "opencode"}
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


@dataclass(frozen=True, slots=True)
class InHost:
    """A session of a host, and its project's rules. ``host``: the host's name."""

    session: str
    host: str
    rules: "LearnedRules"
    where: "Paths"

    def decisions(self) -> Decisions:
        """On its rules; the model of whoever judges this session says what a text contradicts."""
        from .model import HostModel

        return Decisions(self.rules, HostModel(self.session, self.where).compare, _RULES_OF[self.host])

    def tell(self, ask: Iterable[Proposal], done: Sequence[Json] | None = None, **more: object) -> None:
        """Print what was done, and the questions for the host's tool."""
        said = {} if done is None else {"done": list(done)}
        print_json({"project": str(self.rules.journal.project), **said, "ask": self._ask(ask), **more})

    def _ask(self, wanted: Iterable[Proposal]) -> list[Json]:
        """Remember proposals as of now, and give the questions for the host's tool, some in each call."""
        made = [replace(p, token=secrets.token_hex(6), session=self.session, at=now()) for p in wanted]
        if made:
            self._change(add=made)
        batches = [made[i : i + MAX_QUESTIONS] for i in range(0, len(made), MAX_QUESTIONS)]
        several = _SEVERAL[self.host]
        return [
            {
                "tokens": [p.token for p in batch],
                "input": {"questions": [question(p).form(several) for p in batch]},
            }
            for batch in batches
        ]

    def asked(self, token: str) -> Proposal:
        """The proposal of that token. Raises ``UserError``."""
        found = next((p for p in self._proposals() if p.token == token), None)
        if found is None:
            raise UserError("no question with this token is open: it was answered, or is older than a day")
        if found.session != self.session:
            raise UserError("this question was asked in another session")
        return found

    def answer(self, p: Proposal) -> str:
        """The label that the person chose, "" for words of their own; the question is settled by that.

        Raises ``Refused`` when nobody can say that a person answered it, and ``Unavailable``.
        """
        label = self._spend(question(p).digest)
        self._change(drop={p.token})
        return label

    def typed(self, verb: str, words: str, flags: Sequence[str]) -> bool:
        """Whether the person typed just this behind `/reflect`. Raises ``Unavailable``."""
        try:
            self._spend(wish(verb, words, *flags).digest)
        except Refused:
            return False
        return True

    def _spend(self, digest: str) -> str:
        from ...client import request
        from ...paths import find_socket

        body = {"session": self.session, "digest": digest}
        said = request(find_socket(self.where), "POST", "/v1/features/rules/spend", body)
        return str(said["label"])

    def _proposals(self) -> list[Proposal]:
        """Those that still count, newest first."""
        found = (stored(each) for each in self.rules.journal.state.load("proposals").values())
        since = now() - EXPIRES_MS
        return sorted((p for p in found if p is not None and p.at > since), key=lambda p: -p.at)

    def _change(self, add: Sequence[Proposal] = (), drop: Iterable[str] = ()) -> None:
        from ...files.safe import alone

        state, gone = self.rules.journal.state, set(drop)
        with alone(state.folder):
            left = [p for p in (*add, *self._proposals()) if p.token not in gone][:KEPT]
            state.save("proposals", {p.token: p.object() for p in left}, now())


def opened(args: argparse.Namespace) -> InHost:
    """The session that runs this, and the project's rules. Raises ``UserError`` where it is none, and where
    its project is another one.
    """
    from ...client import request
    from ...paths import find_socket

    why: Refused | None = None
    where, rules = look(args)[1], rules_of(args)
    found: Json = {}
    for session in sessions_here():
        try:
            query = urlencode({"session": session})
            found = request(find_socket(where), "GET", f"/v1/features/rules/session?{query}")
            break
        except Refused as error:
            why = error
    else:
        raise why or UserError(OUTSIDE)
    theirs = os.path.realpath(here(where, str(found["directory"])))
    if theirs != os.path.realpath(rules.journal.project):
        raise UserError(f"this session works in {theirs}: rules of another project are not decided there")
    return InHost(str(found["session"]), str(found["host"]), rules, where)


# --- the actions ---------------------------------------------------------------------------------------


def propose(args: argparse.Namespace) -> int:
    """Print questions: about the patterns of the journal; with ``--rule`` about an agent's wording of
    messages that no model read, beside the person's own words, which come from the scan, not from the agent.
    ``--none`` names messages that teach nothing.
    """
    from ...learning.rules.findings import drop

    inside = opened(args)
    decisions = inside.decisions()
    if not (args.rule or args.none):
        found = decisions.patterns()
        inside.tell(found[:MOST], more=len(found[MOST:]))
        return 0
    made = [decisions.worded(_ids(ids), text) for ids, text in args.rule]
    if args.none:
        drop(inside.rules.journal, _ids(args.none), now())
    inside.tell([p for p in made if p is not None], more=0)
    return 0


def apply(args: argparse.Namespace) -> int:
    """Do what was answered, and print what became of each. A token whose question nobody is known to have
    answered is refused, and the others are done all the same; the exit code is 2 then.
    """
    inside = opened(args)
    decisions, done, asks = inside.decisions(), list[Json](), list[Proposal]()
    for token in dict.fromkeys(args.tokens):
        try:
            proposal = inside.asked(token)
            label = inside.answer(proposal)
            outcome = Outcome("own words", (OWN_WORDS,), proposal.text)
            if label:
                outcome = decisions.done(proposal, answers(proposal)[label][0])
        except UserError as error:
            done.append({"token": token, "status": "refused", "why": str(error)})
            continue
        asks += outcome.ask
        done.append({"token": token, **outcome.object()})
    inside.tell(asks, done)
    return 2 if any(one["status"] == "refused" for one in done) else 0


def decided(name: str, args: argparse.Namespace) -> int:
    """An action that changes something: done where the person typed just that, else asked about."""
    inside = opened(args)
    outcome = _decided(name, args, inside, inside.decisions())
    inside.tell(outcome.ask, [outcome.object()] if outcome.status != "asks" else [])
    return 0


def _decided(name: str, args: argparse.Namespace, inside: InHost, decisions: Decisions) -> Outcome:
    """What can't be done is said before anything that was typed is used up."""
    answer: Answer
    found = decisions.wanted(name, args)
    if isinstance(found, Outcome):
        return found
    match name:
        case "learn":
            words, flags = args.text, ["--soft"] if args.soft else []
            plain, answer = found[0].kind == "learn", "soft" if args.soft else "rule"
        case "unlearn":
            words, flags = args.text, ["--delete"] if args.delete else []
            plain, answer = _names(found, args.text), "delete" if args.delete else "archive"
        case "undo":
            words, flags, plain, answer = str(args.number) if args.number else "", [], True, "do"
        case _:
            words, flags, plain, answer = " ".join(args.names), [], True, "do"
    if plain and inside.typed(name, words, flags):
        return decisions.done(found[0], answer)
    return Outcome("asks", ask=tuple(found))


def _names(found: Sequence[Proposal], text: str) -> bool:
    """Whether the words name one rule: by its id, or by all that it says. Others only mean one."""
    said = " ".join(text.split()).strip("\"'")
    return len(found) == 1 and said in {found[0].stands[0].id, found[0].stands[0].text}


def _ids(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]
