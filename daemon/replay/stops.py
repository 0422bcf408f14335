"""Each stop of a past session, judged as if it were now: the guards, the case, the opinion, the decision.

The session's state is carried from stop to stop, as the daemon does: a person's message begins a new task.
Pure: reads no files and asks no model.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..core.cuts import bounded
from ..core.errors import BadReply, Unavailable
from ..core.guards import Limits, may_judge_messages
from ..core.session import FINAL_FOR_TASK, Session, judging, reconcile
from ..core.transcript import Stop
from ..core.verdict import JudgedBy
from ..engine.turn import naming_loop, silent
from ..judge.case import Case, make_case
from ..judge.decide import Decision, Round, decide, skip
from ..judge.flow import SecondLook, always, judge
from ..llm import offline
from ..stuck.loops import Loop, loop_in, may_go_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.guards import Skip
    from ..core.llm import Prompt, Reply
    from ..core.question import Texts
    from ..core.transcript import Transcript
    from ..judge.flow import Opinion


class Prepared(Struct, frozen=True):
    """A stop before it is judged. ``decided``: what a guard says; then there is no ``case``. ``session``: its
    state, with which ``Walk.decide`` goes on.
    """

    stop: Stop
    session: Session
    case: Case | None = None
    decided: Decision | None = None
    loop: Loop | None = None


class Walk:
    """One session, from its first stop to its last. ``limits``: the guards' numbers, as the settings have
    them.
    """

    def __init__(self, host: str, limits: Limits) -> None:
        self._host = host
        self._limits = replace(limits, observe=False, toasts=False)
        self._session: Session | None = None

    def prepare(
        self,
        stop: Stop,
        templates: Texts,
        *,
        project: str = "",
        nonce: str = "",
    ) -> Prepared | None:
        """The stop with its case, or with what a guard decided. None where the daemon would write no verdict:
        the turn waited for something in the background, or nobody asked for it.
        """
        if stop.after == "host":
            return None
        transcript = bounded(stop.transcript)
        turn = transcript.turn
        if turn is None:
            return None
        before = self._session or Session(id=transcript.session, host=self._host)
        s = reconcile(before, transcript)
        if s.phase not in FINAL_FOR_TASK:
            s = replace(s, phase="open", reason="")  # the agent worked meanwhile
        loop = loop_in(silent(transcript))
        no: Skip | None = may_judge_messages(s, transcript, self._limits) or may_go_on(s, loop)
        at = turn.completed or turn.at
        if no is not None:
            decided = skip(s, turn.id, no, at, self._limits)
            if decided is None:
                return None
            self._session = decided.session
            return Prepared(stop, s, None, decided, loop)
        s = judging(s, turn.id)
        case = make_case(
            transcript,
            at=at,
            nonce=nonce,
            templates=templates,
            open_items=s.open_items,
            project=project,
        )
        return Prepared(stop, s, case, None, loop)

    def decide(self, found: Prepared, opinion: Opinion, ms: int = 0) -> Decision:
        """The decision on the opinion; the session goes on from there."""
        if found.case is None:
            raise ValueError("a guard decided this stop")
        r = Round(found.session, found.case, self._limits, found.case.at, JudgedBy(ms=ms))
        decision = naming_loop(decide(r, opinion), found.loop)
        self._session = decision.session
        return decision


def driven(case: Case, ask: Callable[[Prompt], Reply], *, second_look: SecondLook = always) -> Opinion:
    """The opinion, with ``ask`` as the model. ``Unavailable`` or ``BadReply`` count as a failure of the
    provider; anything else ends it.
    """
    flow = judge(case, second_look=second_look)
    try:
        prompt = next(flow)
        while True:
            try:
                reply = ask(prompt)
            except (Unavailable, BadReply) as e:
                prompt = flow.throw(e)
            else:
                prompt = flow.send(reply)
    except StopIteration as stop:
        opinion: Opinion = stop.value
    return opinion


def rules(prompt: Prompt) -> Reply:
    """The answer of the fixed rules, as in the daemon where no model is set up."""
    if prompt.purpose != "judge":
        raise Unavailable("nobody is set up to be asked")  # the rules have no second opinion
    return offline.judge(prompt)


def mark_of(transcript: Transcript) -> str:
    """The same for a stop and for its copy in a fork of the session, in which ids may differ."""
    turn = transcript.turn
    at = turn.at if turn is not None else 0
    words = (str(at), *(m.text for m in transcript.requests), turn.text if turn is not None else "")
    said = "\x00".join((*words, *(c.id for c in transcript.calls)))
    return sha256(said.encode("utf-8", "replace")).hexdigest()[:32]
