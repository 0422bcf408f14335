"""A case: everything one judgement may look at, frozen before the flow starts (design/architecture.md).

So a case can be saved, replayed and turned into a labelled test.
"""

from __future__ import annotations

from operator import is_
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from ..core.cuts import bounded
from ..core.evidence import Evidence
from ..core.given import cited_ids
from ..core.question import Texts
from ..core.transcript import Message, Model, ToolCall, Transcript
from ..redact import Numbers, redact, redact_value

EARLIER_REQUESTS = 5
FINAL_CHARS = 4_000
ANSWERED_CHARS = 2_000  # the prompt shows fewer
ROUND_CHARS = 300
MAX_ROUNDS = 4
PROMPT_TOKENS = 6_000


class Case(Struct, frozen=True):
    """One turn to be judged. ``at`` is epoch ms; ``nonce`` fences the untrusted text of this call.

    ``requests``: the human messages of this task, oldest first; ``earlier``: those before it, as context
    (I28). ``answered``: for each request what the agent had said before it. ``rounds``: the feedback of
    earlier rounds, a line each. ``open_items``: what earlier rounds found, so that the judge reuses their
    wording. ``templates``: the prompts in force. ``project``: what AGENTS.md and CLAUDE.md demand.
    ``transcript``: what the evidence was computed from, redacted. ``prompt_tokens``: the largest size of the
    first prompt.
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
    templates: Texts
    agent: str = ""
    model: Model | None = None
    open_items: tuple[str, ...] = ()
    project: str = ""
    transcript: Transcript | None = None
    answered: tuple[str, ...] = ()
    rounds: tuple[str, ...] = ()
    prompt_tokens: int = PROMPT_TOKENS

    @property
    def cited(self) -> tuple[str, ...]:
        """The names of the points that the agent cited in whatever it wrote for this task."""
        work = self.transcript.work if self.transcript is not None else ()
        said = [m for m in work if m.role == "assistant" and not m.summary]
        thought = (name for m in said for name in m.cited)
        return tuple(dict.fromkeys((*cited_ids(m.text for m in said), *thought)))


def make_case(
    transcript: Transcript,
    *,
    at: int,
    nonce: str,
    templates: Texts,
    open_items: tuple[str, ...] = (),
    project: str = "",
    prompt_tokens: int = PROMPT_TOKENS,
) -> Case:
    """The case of the transcript's last turn. Needs a task and a turn (the guards saw to that).

    Secrets are redacted here, once, before anything is collected or cut: prompts, feedback, files and the
    database are made from the case (I46).
    """
    from ..evidence.collect import collect

    numbers = Numbers()
    transcript = _redacted_transcript(bounded(transcript), numbers)
    project = redact(project, numbers)
    task, turn = transcript.task, transcript.turn
    if task is None or turn is None:
        raise ValueError("a case needs a human message and an answer")
    requests = transcript.requests
    first = _index(transcript, requests[0].id)
    before = [m.text for m in transcript.messages[:first] if m.human and m.text]
    return Case(
        session=transcript.session,
        task=task.id,
        turn=turn.id,
        at=at,
        nonce=nonce,
        requests=tuple(m.text for m in requests),
        earlier=tuple(before[-EARLIER_REQUESTS:]),
        final=turn.text,
        evidence=collect(transcript),
        templates=templates,
        agent=task.agent,
        model=task.model,
        open_items=open_items,
        project=project,
        transcript=transcript,
        answered=tuple(_answered(transcript, m) for m in requests),
        rounds=_rounds(transcript),
        prompt_tokens=prompt_tokens,
    )


def _answered(transcript: Transcript, request: Message) -> str:
    """The agent's words that stood last when the person typed ``request``, or what a tool of it asked."""
    from ..evidence.actions import questions_of  # as above

    before = transcript.messages[: _index(transcript, request.id)]
    for m in reversed(before):
        if m.human:
            return ""
        said = "\n".join((m.text.strip(), *(q for c in m.calls for q in questions_of(c)))).strip()
        if m.role == "assistant" and said and not m.summary:
            return said[-ANSWERED_CHARS:]
    return ""


def _rounds(transcript: Transcript) -> tuple[str, ...]:
    """The feedback that this task had, a line each, without its heading and its last sentence."""
    found = []
    for number, m in enumerate((m for m in transcript.work if m.order and m.text), 1):
        lines = [line.strip() for line in m.text.splitlines() if line.strip()]
        said = " ".join(lines[1:-1] or lines)
        found.append(f"round {number}: {said[:ROUND_CHARS]}")
    return tuple(found[-MAX_ROUNDS:])


def _redacted_transcript(transcript: Transcript, numbers: Numbers) -> Transcript:
    """The transcript without secrets, for the case file and for replay. A call without any stays itself."""
    return replace(
        transcript,
        title=redact(transcript.title, numbers),
        messages=tuple(_redacted_message(m, numbers) for m in transcript.messages),
        todos=tuple(replace(t, text=redact(t.text, numbers)) for t in transcript.todos),
    )


def _redacted_message(m: Message, numbers: Numbers) -> Message:
    text, error = redact(m.text, numbers), redact(m.error_message, numbers)
    calls = tuple(_redacted_call(c, numbers) for c in m.calls)
    if (text, error) == (m.text, m.error_message) and all(map(is_, calls, m.calls)):
        return m
    return replace(m, text=text, error_message=error, calls=calls)


def _redacted_call(call: ToolCall, numbers: Numbers) -> ToolCall:
    arguments = cast("dict[str, object]", redact_value(call.input, name=numbers))
    output, error = redact(call.output, numbers), redact(call.error, numbers)
    inner = tuple(_redacted_call(c, numbers) for c in call.inner)
    if (arguments, output, error) == (call.input, call.output, call.error) and all(
        map(is_, inner, call.inner)
    ):
        return call
    return replace(call, input=arguments, output=output, error=error, inner=inner)


def _index(transcript: Transcript, message_id: str) -> int:
    return next(i for i, m in enumerate(transcript.messages) if m.id == message_id)
