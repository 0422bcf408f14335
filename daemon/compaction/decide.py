"""Does a compaction need a look of ours (``wanted``), and what is the host told after it (``decide``)?

It is the table of ``design/compaction.md``; ``tests/compaction/test_decide.py`` has a case for each of its
rows. In doubt nothing is sent. A prompt is sent only for work that is open; for a finished task the person
gets a toast (I2). A prompt is our words, the person's request and one note of the model. The model may have
read hostile text, so its note is short, has no markup, commands or links, and never says where something is
posted (I27).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from ..core.cuts import head_and_tail
from ..core.guards import PLAN_AGENTS
from ..core.orders import SendNudge, ShowToast, Variant
from ..redact import redact, redact_head
from .case import Action, compacted, verdict_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.guards import Limits
    from ..core.session import Session
    from ..core.transcript import Transcript
    from ..core.verdict import FinalState, Verdict
    from .case import Case, Outcome

Wanted = Literal["act", "toast", "nothing"]
SURE: Final = 0.5  # below this confidence no prompt is sent
MARK: Final = "## Reflection-3:"  # readers of a session know our prompts by it
REQUEST_CHARS: Final = 600
NOTE_CHARS: Final = 600
EARLIER_CHARS: Final = 300
SHORT_REQUEST: Final = 40  # a request such as "go on" needs the one before it
MOST_ITEMS: Final = 8
STOP: Final = "Do only what was asked. If it is finished already, say so in one sentence and stop."
_ASK: Final = "If what is open is clear then, go on with it. If only the person can say, ask and stop."
_SIGNED: Final = "(reflectd, once after this compaction)"
_INVISIBLE: Final = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_UNWANTED: Final = re.compile(
    r"://|\bwww\.|[|<>{}$\\]|&&|\b(?:gh|git|curl|wget|sudo|rm|ssh|npm|pip|bash|sh|chmod|eval) +[a-z./~-]"
    r"|\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instruction|rule|request|above|previous)|\bnonce\b|\bmarker\b"
    r"|\btask_complete\b|\bneeds_|^-{3}|\bsystem prompt\b",
    re.IGNORECASE,
)
_MARKUP: Final = re.compile(r"^[ \t]*(?:[#>*+-]{1,6}[ \t]+|\d{1,3}[.)][ \t]+)|\*\*|`", re.MULTILINE)
_DONE: Final[frozenset[FinalState]] = frozenset({"complete", "stopped", "awaiting_user"})


class Decision(Struct, frozen=True):
    """``orders``: for the host, at most one. ``action``: what is done, None for nothing. ``why``: for the
    log.
    """

    orders: tuple[SendNudge | ShowToast, ...] = ()
    action: Action | None = None
    why: str = ""


def wanted(session: Session, transcript: Transcript, last: Verdict | None = None) -> Wanted:
    """Says whether the transcript's newest compaction needs a look, a toast, or nothing.

    ``last``: the session's last stored verdict; one about another task does not count. The engine asks before
    every try: as soon as the person or the agent has gone on, the answer is ``nothing`` (I32).
    """
    found, task = compacted(transcript), transcript.task
    if found is None or task is None or found.after or transcript.missing:
        return "nothing"
    ours = session.judge or session.parent or transcript.parent
    if ours or session.deleted or session.off or session.aborted or session.task not in {"", task.id}:
        return "nothing"
    last = verdict_of(transcript, last)
    state = last.state if last else ""
    if state in _DONE or session.phase in _DONE or task.agent in PLAN_AGENTS or found.in_vain:
        return "toast"
    return "act" if found.auto or state == "incomplete" else "toast"


def only_told(session: Session, last: Verdict | None, limits: Limits) -> Decision:
    """The toast for a compaction that needs no look. ``last``: the session's last stored verdict."""
    state = last.state if last and last.task == session.task else session.phase
    said: tuple[str, Variant] = ("Context compacted: the task goes on when you say so", "info")
    if state == "complete":
        said = ("Context compacted: the task was complete before", "success")
    elif state == "awaiting_user":
        said = ("Context compacted: the agent waits for you", "info")
    return Decision(_toast(session, limits, *said), None, "no look needed")


def decide(session: Session, case: Case, outcome: Outcome, limits: Limits, *, github: bool) -> Decision:
    """The decision on ``outcome`` for the session now. ``github``: the setting `compaction.github`."""
    action = outcome.action
    if action is None:
        return Decision(why=f"nothing decided: {outcome.why}")
    if limits.observe or not limits.enabled:
        return Decision((), action, "observe: nothing sent")
    if no := _moved_on(session, case):
        return Decision(why=no)
    if action == "task_complete":
        toast = _toast(session, limits, "Context compacted: the task is complete", "success")
        return Decision(toast, action, outcome.why)
    if outcome.confidence < SURE:
        return Decision(why=f"not sure enough of {action} ({outcome.confidence:.2f})")
    prompted = session.attempts + session.nudges
    if prompted >= limits.max_attempts:
        return Decision(why=f"{prompted} prompts on this task already (guard 5)")
    if action == "needs_github_update" and not (github and case.github.target):
        action = "continue_task"
    text = nudge_text(action, case, clean(outcome.message, outcome.nonce))
    nudge = SendNudge(session.id, case.task, case.turn, text, "compaction", case.agent, case.model)
    return Decision((nudge,), action, outcome.why)


def _moved_on(session: Session, case: Case) -> str:
    """Why the session must not be prompted now, or empty; the last check before an order (I10, I14, I32)."""
    if session.task != case.task:
        return "the person typed meanwhile (guard 7)"
    if session.aborted:
        return "the person pressed Esc (guard 1)"
    if session.off or session.deleted:
        return "switched off or deleted meanwhile"
    if session.busy:
        return "the agent works again"
    if session.waiting:
        return "a permission or a question is open (guard 8)"
    return ""


def _toast(session: Session, limits: Limits, message: str, variant: Variant) -> tuple[ShowToast, ...]:
    quiet = limits.observe or not limits.toasts or not limits.enabled
    return () if quiet else (ShowToast(session.id, message, variant),)


def nudge_text(action: Action, case: Case, note: str) -> str:
    """The prompt for the agent: a reminder of its work, a comment to be written first, or a state to be told
    first. ``note``: the model's words, cleaned.
    """
    title, opening, end = "Continue after compaction", "The task goes on.", STOP
    if action == "needs_github_update" and (target := case.github.target):
        title, end = f"Update {target.name} after compaction", f"Besides that: {STOP}"
        command = f"gh {target.kind} comment {target.number}" + (
            f" --repo {target.repo}" if target.repo else ""
        )
        opening = (
            f"Update {target.name} with `{command}`: in a few sentences what is done, what is open and "
            "what comes next. One comment, only what you have checked, no secrets; skip it if it says this "
            "already. Then go on with the task."
        )
    elif action == "needs_clarification":
        title, end = "Summarise the state after compaction", f"{_ASK} {STOP}"
        opening = (
            "The summary may have lost what matters. Please summarise the state and what is next: look at "
            "the files (and at `git status` and `git diff` where there is a repository), not at your memory; "
            "then say in a few sentences what is done, what is open and what comes next."
        )
    first = f"The context of this session was compacted. {opening}"
    return "\n".join([f"{MARK} {title}", "", first, "", *_context(case, note), end, _SIGNED])


def clean(message: str, nonce: str = "") -> str:
    """The model's words as one plain paragraph of at most ``NOTE_CHARS``, without what looks like orders."""
    text = _MARKUP.sub("", _INVISIBLE.sub(" ", redact_head(message, 8 * NOTE_CHARS)))
    kept: list[str] = []
    for part in _SENTENCE.split(text):
        sentence = " ".join(part.split())
        if sentence and not _UNWANTED.search(sentence) and not (nonce and nonce in sentence):
            kept.append(sentence)
    note = redact(" ".join(kept))
    return note if len(note) <= NOTE_CHARS else note[: NOTE_CHARS - 1].rstrip() + "…"


def _context(case: Case, note: str) -> list[str]:
    """The lines that say what was asked, what is open, how far the work is, and the GitHub work."""
    asked = "\n\n".join(case.requests)
    lines: list[str] = []
    if case.earlier and len(asked) < SHORT_REQUEST:
        lines += ["You were asked before:", *_quoted(case.earlier[-1], EARLIER_CHARS), ""]
    lines += ["You were asked:", *_quoted(asked, REQUEST_CHARS), ""]
    for title, items in (("Still open:", case.open_items), ("Open todos:", case.todos)):
        if items:
            lines += [title, *(f"- {item}" for item in items[:MOST_ITEMS]), ""]
    if note:
        lines += [f"Where it stands, as far as the summary shows: {note}", ""]
    work = case.github
    parts = [work.target.name + (f" ({work.target.repo})" if work.target.repo else "")] if work.target else []
    if parts := [*parts, *(["so far: " + ", ".join(work.tools)] if work.tools else ())]:
        lines += [f"GitHub: {'; '.join(parts)}.", ""]
    return lines


def _quoted(text: str, limit: int) -> list[str]:
    lines = head_and_tail(_INVISIBLE.sub(" ", text).strip(), limit).splitlines()
    return [f"> {line}".rstrip() for line in lines if line.strip()]


def hand_over(requests: Sequence[str], missing: Sequence[str]) -> str:
    """The requests and the open items: facts, not orders, for a model that reads its own summary too."""
    lines = ["The context was compacted. What the person asked for in the current task, word for word:"]
    lines += [f"> {line}" for text in requests for line in text.splitlines()]
    if missing:
        lines += ["What was still open when the last turn was checked:"]
        lines += [f"- {item}" for item in missing]
    return "\n".join(lines)
