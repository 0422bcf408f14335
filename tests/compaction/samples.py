"""A compacted session, its parts exchangeable: transcript, case, session, verdict."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from daemon.compaction.case import Action, Case, Outcome, make_case
from daemon.compaction.decide import Decision, decide
from daemon.core.guards import Limits
from daemon.core.orders import SendNudge
from daemon.core.session import Session
from daemon.core.transcript import Compaction, Message, Model, Todo, ToolCall, Transcript
from daemon.core.verdict import FinalState, Missing, Verdict

SESSION = "ses_1"
TASK = "msg_2"
SUMMARY = "msg_6"
REQUEST = "Add a login page, write tests for it and open a pull request"
PR = "https://github.com/acme/shop/pull/12"
CREATE = {"command": "git push && gh pr create --fill"}
CREATED = ToolCall("c2", "bash", "completed", CREATE, f"To github.com\n{PR}\n", exit=0)
CALLS = (ToolCall("c1", "edit", "completed", {"filePath": "login.py"}), CREATED)
MESSAGES = (
    Message("msg_1", "user", text="Look at the shop first", human=True),
    Message("msg_1b", "assistant", text="Looked.", finish="stop"),
    Message(TASK, "user", text=REQUEST, human=True, agent="build", model=Model("acme", "big")),
    Message(
        "msg_3", "assistant", text="The page is there. Tests come next.", calls=CALLS, finish="tool-calls"
    ),
    Message("msg_5", "user", compaction="manual"),
    Message(SUMMARY, "assistant", text="## Goal\nLogin page.\n## Next\nTests.", summary=True, finish="stop"),
)
CONTINUATION = Message("msg_7", "user", text="Continue if you have next steps")


def transcript(
    compaction: Compaction = "manual", *after: Message, calls: tuple[ToolCall, ...] = CALLS, **changes: Any
) -> Transcript:
    """The session up to its summary, and what came ``after``."""
    marked = [replace(m, compaction=compaction) if m.compaction else m for m in MESSAGES]
    messages = [replace(m, calls=calls) if m.calls else m for m in marked]
    todos = (Todo("write tests", "in_progress"), Todo("page", "completed"))
    return Transcript(**({"session": SESSION, "messages": (*messages, *after), "todos": todos} | changes))


def verdict(state: FinalState = "incomplete", task: str = TASK) -> Verdict:
    missing = (Missing("No test covers the login page", "E1"),) if state == "incomplete" else ()
    return Verdict(SESSION, task, "msg_3", state, 5, missing=missing)


def session(**changes: Any) -> Session:
    """The session as it is when the compaction is over: idle, the task open again."""
    return Session(**({"id": SESSION, "task": TASK, "attempts": 1} | changes))


def case(last: Verdict | None = None, found: Transcript | None = None, **changes: Any) -> Case:
    made = make_case(found or transcript(), last or verdict())
    return replace(made, **changes)


SAID = "Write the tests."
GOOD: dict[str, Any] = {
    "reason": "Tests are open.",
    "action": "continue_task",
    "confidence": 0.9,
    "message": SAID,
}


SECRET = "ghp_" + "a1B2" * 9


def said(
    action: Action | None, confidence: float = 0.9, message: str = "The page works. Tests are next."
) -> Outcome:
    return Outcome(action, "because", confidence, message)


def decided(action: Action | None, *, github: bool = True, **changes: Any) -> Decision:
    return decide(session(), case(**changes), said(action), Limits(), github=github)


def nudge(decision: Decision) -> SendNudge:
    (order,) = decision.orders
    assert isinstance(order, SendNudge)
    assert (order.session, order.task, order.turn, order.kind) == ("ses_1", TASK, SUMMARY, "compaction")
    assert (order.agent, order.model and order.model.model) == ("build", "big")
    return order
