"""A case: everything one judgement may look at, frozen before the flow starts (DESIGN §3).

So a case can be saved, replayed and turned into a labelled test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from daemon.core.evidence import Evidence
from daemon.core.redact import redact, redact_value
from daemon.core.transcript import Message, Model, Transcript

EARLIER_REQUESTS = 5
FINAL_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Templates:
    """The prompt texts in force; ``daemon.files.prompts`` knows which ``{names}`` each must hold."""

    system: str
    case: str
    second: str = ""
    second_case: str = ""
    again: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One turn to be judged. ``at`` is epoch ms; ``nonce`` fences the untrusted text of this call.

    ``requests``: the human messages of this task, oldest first; ``earlier``: those before it, as context
    (I28). ``open_items``: what earlier rounds found, so that the judge reuses their wording. ``project``:
    the gate lines of AGENTS.md and CLAUDE.md. ``transcript``: what the evidence was computed from, redacted.
    """

    session: str
    task: str
    turn: str
    at: int
    nonce: str
    requests: tuple[str, ...]
    earlier: tuple[str, ...]
    final: str
    evidence: Evidence
    templates: Templates
    agent: str = ""
    model: Model | None = None
    open_items: tuple[str, ...] = ()
    project: str = ""
    transcript: Transcript | None = None


def make_case(
    transcript: Transcript,
    *,
    at: int,
    nonce: str,
    templates: Templates,
    open_items: tuple[str, ...] = (),
    project: str = "",
) -> Case:
    """The case of the transcript's last turn. Needs a task and a turn (the guards saw to that).

    Secrets are redacted here, once: prompts, feedback, files and the database are made from the case (I46).
    """
    from daemon.core.collect import collect  # half of the core's start-up time, not needed to answer a host

    task, turn = transcript.task, transcript.turn
    if task is None or turn is None:
        raise ValueError("a case needs a human message and an answer")
    requests = transcript.requests
    first = requests[0].id
    before = [m.text for m in transcript.messages[: _index(transcript, first)] if m.human and m.text]
    return Case(
        session=transcript.session,
        task=task.id,
        turn=turn.id,
        at=at,
        nonce=nonce,
        requests=tuple(redact(m.text) for m in requests),
        earlier=tuple(redact(text) for text in before[-EARLIER_REQUESTS:]),
        final=redact(turn.text),
        evidence=_redacted(collect(transcript, project)),
        templates=templates,
        agent=task.agent,
        model=task.model,
        open_items=open_items,
        project=redact(project),
        transcript=_redacted_transcript(transcript),
    )


def _redacted(evidence: Evidence) -> Evidence:
    rows = (
        replace(r, text=redact(r.text), detail=redact(r.detail), command=redact(r.command))
        for r in evidence.rows
    )
    return replace(evidence, rows=tuple(rows))


def _redacted_transcript(transcript: Transcript) -> Transcript:
    """The transcript without secrets, for the case file and for replay."""
    return replace(
        transcript,
        title=redact(transcript.title),
        messages=tuple(_redacted_message(m) for m in transcript.messages),
        todos=tuple(replace(t, text=redact(t.text)) for t in transcript.todos),
    )


def _redacted_message(m: Message) -> Message:
    calls = (
        replace(
            c,
            input=cast("dict[str, object]", redact_value(c.input)),
            output=redact(c.output),
            error=redact(c.error),
        )
        for c in m.calls
    )
    return replace(m, text=redact(m.text), error_message=redact(m.error_message), calls=tuple(calls))


def _index(transcript: Transcript, message_id: str) -> int:
    return next(i for i, m in enumerate(transcript.messages) if m.id == message_id)
