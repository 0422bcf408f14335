"""The ``offline`` provider: a judge without a model, from evidence rows only.

It says what the calls prove and nothing more: "incomplete" where an open row proves it, "complete" where a
change was made and a check passed after it. Everywhere else it answers ``{"unscored": reason}``, which has
none of the wanted keys: the turn ends quietly, because no model judged it (``no_proof``). It reads
``Prompt.evidence`` and never the prompt's text, so no text in a transcript can change its verdict (I27).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ..core.llm import Reply, Usage
from ..core.verdict import Severity

if TYPE_CHECKING:
    from ..core.evidence import Evidence, Row, RowKind
    from ..core.llm import Prompt

PROVIDER: Final = "offline"
MODEL: Final = "rules"
MAX_ITEMS: Final = 10
MAX_REQUEST: Final = (
    100  # bytes; a longer request has parts, and a change and a passed check don't show them all
)
_ORDER: Final = tuple(Severity)
LEAK_ACTION: Final = (
    "Stop tracking it: `git rm --cached -- {paths}`, add it to .gitignore, and commit that. Leave the "
    "history as it is; the person has to rotate what the file held."
)


def judge(prompt: Prompt) -> Reply:
    """A verdict object for ``judge.parse`` as ``data``, or ``{"unscored": reason}``. Never raises."""
    data = (
        _verdict(prompt.evidence) if prompt.evidence else _unscored("the rules judge evidence and got none")
    )
    text = json.dumps(data, ensure_ascii=False)
    return Reply(text=text, provider=PROVIDER, model=MODEL, data=data, usage=Usage(cost=0.0))


def _verdict(evidence: Evidence) -> dict[str, object]:
    if leaked := tuple(r for r in evidence.of("leak") if r.open):
        return _incomplete((*leaked, *(r for r in evidence.open if r.kind in {"check", "todo"})))
    if evidence.ending == "question":
        offers = evidence.of("offer")
        asked_for = tuple(r for r in offers if r.open)
        if asked_for and not evidence.of("denied"):
            return _incomplete(asked_for + tuple(r for r in evidence.open if r.kind in {"check", "todo"}))
        if offers and not evidence.open and not _doubt(evidence):
            return _answer(complete=True, feedback="The agent offers more than was asked for.")
        return _answer(complete=False, feedback="The agent asks; it is the person's turn.", human=True)
    if denied := evidence.of("denied"):
        text = f"{_sentence(denied[-1].text)} ({denied[-1].id}); how to go on is the person's decision."
        return _answer(complete=False, feedback=text, human=True)
    if rows := evidence.open:
        return _incomplete(rows)
    if why := _doubt(evidence):
        return _unscored(why)
    return _answer(complete=True)


def _doubt(evidence: Evidence) -> str:
    """Why nothing shows that this is complete, or ``""``."""
    if evidence.ending == "empty":
        return "there is no final text"
    extras = bool(evidence.of("offer")) and _checked(evidence)
    if evidence.ending == "next_steps" and not extras:
        return "the text ends with next steps, and no rule tells whether they were asked for"
    kinds = {"write", "check", "git", "run"}
    if failed := [r for r in evidence.rows if r.kind in kinds and r.outcome == "failed" and not r.settled]:
        return f"something failed ({failed[-1].id}), and no rule tells whether it had to work"
    for kind, why in _UNPROVEN.items():
        if rows := [r for r in evidence.of(kind) if not r.settled]:
            return f"{why} ({rows[-1].id})"
    if evidence.wants != "change":
        return "no rule tells whether a question was answered or a plan is whole"
    if evidence.messages != 1 or evidence.request_bytes > MAX_REQUEST:
        return "the request may have several parts, and no rule tells whether each is done"
    if not evidence.writes:
        return "a change was asked for and no written file was seen"
    if checks_asked := {"tests", "build", "lint"} & set(evidence.asks) - _passed(evidence):
        return f"asked for and not shown: {', '.join(sorted(checks_asked))}"
    if not _checked(evidence):
        return "no check passed after the last edit"
    return ""


_UNPROVEN: Final[dict[RowKind, str]] = {
    "unmet": "nothing shows what was asked for, and the text may say why",
    "claim": "the agent says more than the calls show",
    "tests_changed": "tests were made weaker, and no rule tells whether that was right",
    "leak": "a commit holds files that nobody asked for",
    "todo": "the todo list has entries that are not ticked",
}


def _checked(evidence: Evidence) -> bool:
    """Whether a check passed after the last edit, or documents only were written and no check was asked
    for.
    """
    if not evidence.code_writes and not evidence.delegated:
        return True
    return bool(_passed(evidence))


def _passed(evidence: Evidence) -> set[str]:
    """The topics whose check passed after the last edit; tests that pass were built too."""
    topics = {"test": {"tests", "build"}, "build": {"build"}, "lint": {"lint"}}
    rows = (r for r in evidence.of("check") if r.outcome == "passed" and r.position == "after_last_write")
    return {topic for r in rows if r.check for topic in topics[r.check]}


def _incomplete(rows: tuple[Row, ...]) -> dict[str, object]:
    """All open rows, the worst first, as numbered lines where there is more than one."""
    ordered = sorted(rows, key=lambda r: -_ORDER.index(_severity(r)))[:MAX_ITEMS]
    findings = [_finding(row) for row in ordered]
    lines = [
        f"{item} ({row.id}){said}. {action}"
        for row, (item, said, action) in zip(ordered, findings, strict=True)
    ]
    if len(lines) > 1:
        lines = [f"{i}. {line}" for i, line in enumerate(lines, 1)]
    return _answer(
        complete=False,
        severity=_severity(ordered[0]),
        feedback="\n".join(lines),
        missing=[
            {"item": item, "cites": row.id} for row, (item, _, _) in zip(ordered, findings, strict=True)
        ],
        actions=[action for _, _, action in findings],
    )


def _severity(row: Row) -> Severity:
    """A lint finding after the last edit is weaker than a failed test: many projects have old ones."""
    if row.kind == "leak":
        return Severity.BLOCKER if row.detail == "pushed" else Severity.HIGH
    if row.kind == "check" and row.position != "before_last_write" and row.check != "lint":
        return Severity.HIGH
    if row.kind == "tests_changed":
        return Severity.HIGH
    return Severity.LOW if row.kind == "ending" and row.detail else Severity.MEDIUM


def _finding(row: Row) -> tuple[str, str, str]:
    """What is open, in words that stay the same from round to round (guard 6); how that shows; what to do."""
    match row.kind:
        case "check" if row.position == "after_last_write":
            said = f": {row.detail.rstrip('.')}" if row.detail else ""
            item = f"`{row.command}` failed after the last edit"
            return item, said, f"Fix it and run `{row.command}` again."
        case "check" if not row.position:
            said = f": {row.detail.rstrip('.')}" if row.detail else ""
            return f"`{row.command}` failed", said, f"Fix it and run `{row.command}` again."
        case "check":
            said = f": {row.detail.rstrip('.')}" if row.detail else ""
            item = f"`{row.command}` failed before the last edit and was not run again"
            return item, said, f"Run `{row.command}` again and fix what still fails."
        case "todo":
            return f'The todo list still has "{row.detail}"', "", "Do it, or mark it done if it is."
        case "tool_error":
            item = f"{_sentence(row.detail)} failed and nothing came after it"
            return item, "", "Try again or do it another way."
        case "leak":
            item = row.text
            return item, "", LEAK_ACTION.format(paths=row.command)
        case "tests_changed":
            return f"{_sentence(row.detail)} while tests failed", "", "Take that back and fix the cause."
        case "unmet":
            said = row.text.partition("; ")[2]
            return row.detail, f": {said}" if said else "", _todo(row)
        case "offer":
            return f'"{row.detail}" was already asked for', "", _todo(row)
        case _ if row.detail:
            return f'The answer stops before what it announces: "{row.detail}"', "", "Carry it out."
        case _:
            return "The answer breaks off", "", "Finish it."


def _todo(row: Row) -> str:
    """What to do about a row that names a topic."""
    if row.command:
        return f"Run `{row.command}` and fix what fails."
    match row.topic:
        case "tests":
            return "Run the tests and fix what fails."
        case "build":
            return "Run the build and fix what fails."
        case "lint":
            return "Run the linter and fix what it finds."
        case "new_tests":
            return "Write the tests and run them."
        case "docs":
            return "Write it."
        case "changelog":
            return "Add the changelog entry."
        case "commit":
            return "Commit the work."
        case "push":
            return "Push the work."
        case "pr":
            return "Open the pull request."
        case _:
            return "Do it now, without asking again." if row.kind == "offer" else "Do it."


def _answer(
    *,
    complete: bool,
    severity: Severity = Severity.NONE,
    feedback: str = "",
    missing: list[dict[str, str]] | None = None,
    actions: list[str] | None = None,
    human: bool = False,
) -> dict[str, object]:
    return {
        "complete": complete,
        "severity": severity.value,
        "feedback": feedback,
        "missing": missing or [],
        "next_actions": list(dict.fromkeys(actions or [])),
        "requires_human_action": human,
    }


def _unscored(reason: str) -> dict[str, object]:
    return {"unscored": reason}


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


class OfflineProvider:
    """``judge`` as a provider (``core.ports.Provider``)."""

    name = "offline"

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """No model at all."""
        del prompt
        return PROVIDER, MODEL

    def most_tokens(self, prompt: Prompt) -> int:
        """What the prompt allows."""
        return prompt.max_tokens

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """Answers at once; the deadline never matters."""
        del deadline_s
        return judge(prompt)
