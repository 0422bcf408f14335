"""What a person said in a session that is read as a whole, with the agent's words before it. Pure.

Whether a person typed a message is known by the time a transcript is made (``hosts``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..core.guards import ABORT_ERROR
from ..core.transcript import Said

if TYPE_CHECKING:
    from ..core.transcript import Message, ToolCall, Transcript

PRIOR: Final = 6_000  # characters of the agent's words
_FEEDBACK: Final = "rejected permission to use this specific tool call with the following feedback: "
_ACTS: Final = ("command", "filePath", "file_path", "path", "url", "pattern")


def said_in(transcript: Transcript) -> list[Said]:
    """Everything, oldest first: messages, and why tool calls were refused."""
    found: list[Said] = []
    before: list[Message] = []
    for m in transcript.messages:
        if m.human:
            found.append(_said(transcript, m, m.text, before))
            before = []
            continue
        if m.role == "assistant" and not m.summary:
            before.append(m)
            for call in m.calls:
                if _FEEDBACK in call.error[:300]:
                    words = call.error.partition(_FEEDBACK)[2]
                    found.append(_said(transcript, m, words, before, call))
    return [said for said in found if said.text.strip()]


def _said(
    transcript: Transcript, m: Message, text: str, before: list[Message], refused: ToolCall | None = None
) -> Said:
    parts = [b.text.strip() for b in before if b.text.strip()]
    if refused is not None:
        acts = (v for name in _ACTS if isinstance(v := refused.input.get(name), str))
        parts += [f"{refused.tool}: {value[:300]}" for value in acts]
    return Said(
        text,
        "\n\n".join(parts)[-PRIOR:],
        refusal=refused is not None,
        interrupted=refused is None and bool(before) and before[-1].error == ABORT_ERROR,
        at=refused.ended if refused is not None else m.at,
        session=transcript.session,
        message=f"{m.id}/{refused.id}" if refused is not None else m.id,
    )
