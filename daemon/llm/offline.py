"""The ``offline`` provider: a judge without a model, from evidence rows only.

It says what a rule proves and nothing more. Where no rule decides it answers ``{"unscored": reason}``,
which has none of the wanted keys, so that the flow treats it as unscored and nothing is sent. It reads
``Prompt.evidence`` and never the prompt's text, so nothing in a transcript can talk it round (I27).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from daemon.core.llm import Reply, Usage
from daemon.core.verdict import Severity

if TYPE_CHECKING:
    from daemon.core.evidence import Evidence, Row
    from daemon.core.llm import Prompt

PROVIDER: Final = "offline"
MODEL: Final = "rules"
MAX_ITEMS: Final = 10
_ORDER: Final = tuple(Severity)


def judge(prompt: Prompt) -> Reply:
    """The verdict object of DESIGN §4 as ``data``, or ``{"unscored": reason}``. Never raises."""
    data = (
        _verdict(prompt.evidence) if prompt.evidence else _unscored("the rules judge evidence and got none")
    )
    text = json.dumps(data, ensure_ascii=False)
    return Reply(text=text, provider=PROVIDER, model=MODEL, data=data, usage=Usage(cost=0.0))


def _verdict(evidence: Evidence) -> dict[str, object]:
    if evidence.ending == "question":
        offers = evidence.of("offer")
        asked_for = tuple(r for r in offers if r.open)
        if asked_for and not evidence.of("denied"):
            return _incomplete(asked_for + tuple(r for r in evidence.open if r.kind in {"check", "todo"}))
        if offers and not evidence.open and _proven(evidence) and not _doubt(evidence):
            return _answer(complete=True, feedback="The agent offers more than was asked for.")
        return _answer(complete=False, feedback="The agent asks; it is the person's turn.", human=True)
    if denied := evidence.of("denied"):
        text = f"{_sentence(denied[-1].text)} ({denied[-1].id}); how to go on is the person's decision."
        return _answer(complete=False, feedback=text, human=True)
    if rows := evidence.open:
        return _incomplete(rows)
    if why := _doubt(evidence):
        return _unscored(why)
    return _complete(evidence)


def _doubt(evidence: Evidence) -> str:
    """Why no rule can call this complete, or ``""``."""
    if evidence.ending == "empty":
        return "there is no final text"
    extras = bool(evidence.of("offer")) and _proven(evidence)
    if evidence.ending == "next_steps" and evidence.wants != "plan" and not extras:
        return "the text ends with next steps, and no rule tells whether they were asked for"
    told = evidence.wants == "answer" and not evidence.code_writes  # a run was to be reported, not mended
    kinds = {"write", "git", "run"} if told else {"write", "check", "git", "run"}
    if failed := [r for r in evidence.rows if r.kind in kinds and r.outcome == "failed" and not r.settled]:
        return f"something failed ({failed[-1].id}), and no rule tells whether it had to work"
    hidden = [r for r in evidence.of("check") if r.outcome == "unknown" and r.detail and not told]
    if hidden and not any(r.outcome == "passed" for r in evidence.of("check")):
        return f"the summary of {hidden[-1].id} tells of failures, and its exit code of none"
    if unmet := evidence.of("unmet"):
        return f"nothing shows what was asked for ({unmet[-1].id}), and the text may say why"
    if weaker := [r for r in evidence.of("tests_changed") if not r.settled]:
        return f"tests were made weaker ({weaker[-1].id}), and no rule tells whether that was right"
    settled = {r.id for r in evidence.rows if r.settled}
    unproven = {"failed"} if told else {"failed", "unknown"}
    if claims := [
        r
        for r in evidence.of("claim")
        if r.topic != "browser" and r.outcome in unproven and not settled & set(r.cites)
    ]:
        return f"no row shows what the final text says ({claims[-1].id})"
    if evidence.wants == "plan" and evidence.code_writes:
        return "a plan was asked for and code was written"
    if (
        evidence.wants == "change"
        and not evidence.writes
        and evidence.tool_calls
        and not _delegated(evidence)
    ):
        return "a change was asked for and none was seen"
    return ""


def _delegated(evidence: Evidence) -> bool:
    """Whether a sub-agent may have made the change, and a check passed."""
    return evidence.delegated and any(r.outcome == "passed" for r in evidence.of("check"))


def _proven(evidence: Evidence) -> bool:
    """Whether there is no code to check, or a check passed after the last edit."""
    return not evidence.code_writes or any(
        r.outcome == "passed" and r.position == "after_last_write" for r in evidence.of("check")
    )


def _complete(evidence: Evidence) -> dict[str, object]:
    checks = evidence.of("check")
    if _proven(evidence):
        return _answer(complete=True)
    if gates := {"tests", "build", "lint"} & set(evidence.asks):
        return _unscored(f"asked for and not visible: {', '.join(sorted(gates))}")
    if settled := [r for r in checks if r.settled]:
        text = f"`{settled[-1].command}` fails ({settled[-1].id}), which was wanted or so before the work."
    elif after := [r for r in checks if r.position == "after_last_write"]:
        text = f"The outcome of `{after[-1].command}` ({after[-1].id}) is not visible."
    elif checks:
        text = f"No check ran after the last edit; the last one was `{checks[-1].command}` ({checks[-1].id})."
    else:
        text = "No test, build or lint run was seen in this task."
    return _answer(complete=True, severity=Severity.LOW, feedback=text)


def _incomplete(rows: tuple[Row, ...]) -> dict[str, object]:
    """All open rows, the worst first, as numbered lines where there is more than one."""
    ordered = sorted(rows, key=lambda r: -_ORDER.index(_severity(r)))[:MAX_ITEMS]
    findings = [_finding(row) for row in ordered]
    lines = [
        f"{item} ({', '.join((row.id, *row.cites))}){said}. {action}"
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
    if row.kind == "check" and row.position == "after_last_write" and row.check != "lint":
        return Severity.HIGH
    if row.kind == "tests_changed":
        return Severity.HIGH
    if row.kind == "claim":
        return Severity.LOW
    return Severity.LOW if row.kind == "ending" and row.detail else Severity.MEDIUM


def _finding(row: Row) -> tuple[str, str, str]:
    """What is open, in words that stay the same from round to round (guard 6); how that shows; what to do."""
    match row.kind:
        case "check" if row.position == "after_last_write":
            said = f": {row.detail.rstrip('.')}" if row.detail else ""
            item = f"`{row.command}` failed after the last edit"
            return item, said, f"Fix it and run `{row.command}` again."
        case "check":
            said = f": {row.detail.rstrip('.')}" if row.detail else ""
            item = f"`{row.command}` failed before the last edit and was not run again"
            return item, said, f"Run `{row.command}` again and fix what still fails."
        case "todo":
            return f'The todo list still has "{row.detail}"', "", "Do it, or mark it done if it is."
        case "tool_error":
            item = f"{_sentence(row.detail)} failed and nothing came after it"
            return item, "", "Try again or do it another way."
        case "tests_changed":
            return f"{_sentence(row.detail)} while tests failed", "", "Take that back and fix the cause."
        case "unmet":
            said = row.text.partition("; ")[2]
            return row.detail, f": {said}" if said else "", _todo(row)
        case "offer":
            return f'"{row.detail}" was already asked for', "", _todo(row)
        case "claim":
            return f'Nothing shows "{row.detail}"', "", _todo(row)
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
