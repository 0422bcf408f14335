"""``reflectd reflect`` inside a host: an agent runs it, so the host shows a person's will, and no flag does.

Which session this is, the host's shell says; a wrong one only leads to a refusal. What the person answered or
typed, the daemon says, which heard it from the host and looks into the host's own record; it says each once.
Questions that were put are remembered in the state folder for a day. Raises ``UserError`` and
``Unavailable``.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from ...core.consent import MAX_QUESTIONS, wish
from ...core.errors import Refused, UserError
from ..settings import here, look
from ..terminal import attended
from .action import rules_of
from .questions import Proposal, question, stored

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from ...files.learned_rules import LearnedRules
    from ...paths import Paths

Json = dict[str, Any]
SESSION: Final = ("REFLECTD_SESSION", "CLAUDE_CODE_SESSION_ID")
EXPIRES_MS: Final = 86_400_000
KEPT: Final = 200
SPEND_S: Final = 30.0  # the host's own record may be a moment behind, and is read again
RULES_OF: Final = {"claude-code": "claude_code", "opencode": "opencode"}
OUTSIDE: Final = (
    "this is for an agent inside Claude Code or opencode; on a terminal `reflectd reflect` asks you itself"
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

    def ask(self, wanted: Iterable[Proposal]) -> list[Json]:
        """Remember proposals as of now, and give the questions for the host's tool, some in each call."""
        made = [replace(p, token=secrets.token_hex(6), session=self.session, at=self.now()) for p in wanted]
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
        said = request(find_socket(self.where), "POST", "/v1/features/rules/spend", body, SPEND_S)
        return str(said["label"])

    @staticmethod
    def now() -> int:
        """Epoch ms."""
        return int(time.time() * 1000)

    def _proposals(self) -> list[Proposal]:
        """Those that still count, newest first."""
        found = (stored(each) for each in self.rules.journal.state.load("proposals").values())
        since = self.now() - EXPIRES_MS
        return sorted((p for p in found if p is not None and p.at > since), key=lambda p: -p.at)

    def _change(self, add: Sequence[Proposal] = (), drop: Iterable[str] = ()) -> None:
        from ...files.alone import alone

        state, gone = self.rules.journal.state, set(drop)
        with alone(state.folder):
            left = [p for p in (*add, *self._proposals()) if p.token not in gone][:KEPT]
            state.save("proposals", {p.token: p.object() for p in left}, self.now())


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
