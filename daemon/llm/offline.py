"""The ``offline`` provider: a judge without a model, from evidence rows only.

It says "incomplete" where an open row proves it. Everywhere else it answers ``{"unscored": reason}``, which
has none of the wanted keys: the turn ends quietly, because no model judged it (``no_proof``). It reads
``Prompt.evidence`` and never the prompt's text, so no text in a transcript can change its verdict (I27).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ..core.llm import Reply, Usage
from ..core.verdict import Severity

if TYPE_CHECKING:
    from ..core.evidence import Evidence, Row
    from ..core.llm import Prompt

PROVIDER: Final = "offline"
MODEL: Final = "rules"
MAX_ITEMS: Final = 10
_ORDER: Final = tuple(Severity)
LEAK_ACTION: Final = (
    "Stop tracking it: `git rm --cached -- {paths}`, add it to .gitignore, and commit that. Leave the "
    "history as it is; the person has to rotate what the file held."
)


def judge(prompt: Prompt) -> Reply:
    """A verdict object of the judge's form as ``data``, or ``{"unscored": reason}``. Never raises."""
    data = (
        _verdict(prompt.evidence) if prompt.evidence else _unscored("the rules judge evidence and got none")
    )
    text = json.dumps(data, ensure_ascii=False)
    return Reply(text=text, provider=PROVIDER, model=MODEL, data=data, usage=Usage(cost=0.0))


def _verdict(evidence: Evidence) -> dict[str, object]:
    """A secret in a commit comes first. After a question or a refusal it is the person's turn."""
    if leaked := tuple(r for r in evidence.of("leak") if r.open):
        return _incomplete((*leaked, *(r for r in evidence.open if r.kind in {"check", "todo"})))
    if evidence.ending == "question":
        return _unscored("the answer ends with a question")
    if denied := evidence.of("denied"):
        return _unscored(f"the person refused or stopped a call ({denied[-1].id})")
    if rows := evidence.open:
        return _incomplete(rows)
    return _unscored("no row proves that work is left")


def _incomplete(rows: tuple[Row, ...]) -> dict[str, object]:
    """All open rows, the worst first, as numbered lines where there is more than one."""
    ordered = sorted(rows, key=lambda r: -_ORDER.index(_severity(r)))[:MAX_ITEMS]
    findings = [(row, *_finding(row)) for row in ordered]
    lines = [f"{item} ({row.id}){said}. {action}" for row, item, said, action in findings]
    if len(lines) > 1:
        lines = [f"{i}. {line}" for i, line in enumerate(lines, 1)]
    return {
        "complete": False,
        "severity": _severity(ordered[0]).value,
        "feedback": "\n".join(lines),
        "missing": [{"item": item, "cites": row.id} for row, item, _, _ in findings],
        "next_actions": list(dict.fromkeys(action for _, _, _, action in findings)),
        "requires_human_action": False,
    }


def _severity(row: Row) -> Severity:
    """A lint finding after the last edit is weaker than a failed test: many projects have old ones."""
    if row.kind == "leak":
        return Severity.BLOCKER if row.detail == "pushed" else Severity.HIGH
    if row.kind == "check" and row.position != "before_last_write" and row.check != "lint":
        return Severity.HIGH
    return Severity.MEDIUM


def _finding(row: Row) -> tuple[str, str, str]:
    """An open item in words that stay the same from round to round (guard 6), its proof, the remedy."""
    match row.kind:
        case "check":
            said = f": {row.detail.rstrip('.')}" if row.detail else ""
            again = f"Fix it and run `{row.command}` again."
            if row.position == "after_last_write":
                return f"`{row.command}` failed after the last edit", said, again
            if not row.position:
                return f"`{row.command}` failed", said, again
            item = f"`{row.command}` failed before the last edit and was not run again"
            return item, said, f"Run `{row.command}` again and fix what still fails."
        case "todo":
            return f'The todo list still has "{row.detail}"', "", "Do it, or mark it done if it is."
        case "tool_error":
            item = f"{row.detail[:1].upper()}{row.detail[1:]} failed and nothing came after it"
            return item, "", "Try again or do it another way."
        case "leak":
            return row.text, "", LEAK_ACTION.format(paths=row.command)
        case "ending":
            return "The answer breaks off", "", "Finish it."
        case _:
            return row.detail, "", "Do it."


def _unscored(reason: str) -> dict[str, object]:
    return {"unscored": reason}


class OfflineProvider:
    """``judge`` as a provider (``core.ports.Provider``)."""

    name = "offline"

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """No model at all."""
        del prompt
        return PROVIDER, MODEL

    def most_tokens(self, prompt: Prompt) -> int:
        """The prompt's limit."""
        return prompt.max_tokens

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """Answers at once; the deadline never matters."""
        del deadline_s
        return judge(prompt)
