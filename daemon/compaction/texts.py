"""The prompts after a compaction: our words, the person's request, and one cleaned note of the model.

The first line is the mark by which readers of a session know our prompts. The model may have read hostile
text, so its note is short, has no markup, commands or links, and never says where something is posted (I27).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..core.cuts import head_and_tail
from ..core.redact import redact, redact_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .case import Case
    from .references import Reference

MARK: Final = "## Reflection-3:"
CONTINUE: Final = f"{MARK} Continue after compaction"
REQUEST_CHARS: Final = 600
NOTE_CHARS: Final = 600
EARLIER_CHARS: Final = 300
SHORT_REQUEST: Final = 40  # a request such as "go on" needs the one before it
MOST_ITEMS: Final = 8
STOP: Final = "Do only what was asked. If it is finished already, say so in one sentence and stop."
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


def continue_text(case: Case, message: str) -> str:
    """A reminder of the work that was under way."""
    lines = [CONTINUE, "", "The context of this session was compacted. The task goes on.", ""]
    return _joined([*lines, *_context(case, message), STOP])


def github_text(case: Case, message: str, target: Reference) -> str:
    """Asks for one comment on the pull request or issue, and then to go on with the work."""
    noun = "pr" if target.kind == "pr" else "issue"
    command = f"gh {noun} comment {target.number}" + (f" --repo {target.repo}" if target.repo else "")
    return _joined(
        [
            f"{MARK} Update {target.name} after compaction",
            "",
            f"The context of this session was compacted. Update {target.name} with `{command}`: in a few "
            "sentences what is done, what is open and what comes next. One comment, only what you have "
            "checked, no secrets; skip it if it says this already. Then go on with the task.",
            "",
            *_context(case, message),
            "Besides that: " + STOP,
        ]
    )


def clarify_text(case: Case, message: str) -> str:
    """Asks an agent that lost its context to say first how far the work is."""
    return _joined(
        [
            f"{MARK} Summarise the state after compaction",
            "",
            "The context of this session was compacted, and the summary may have lost what matters. Please "
            "summarise the state and what is next: look at the files (and at `git status` and `git diff` "
            "where there is a repository), not at your memory; then say in a few sentences what is done, "
            "what is open and what comes next.",
            "",
            *_context(case, message),
            "If what is open is clear then, go on with it. If only the person can say, ask and stop. " + STOP,
        ]
    )


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


def _context(case: Case, message: str) -> list[str]:
    """The lines that say what was asked, what is open, how far the work is, and the GitHub work."""
    asked = "\n\n".join(case.requests)
    lines: list[str] = []
    if case.earlier and len(asked) < SHORT_REQUEST:
        lines += ["You were asked before:", *_quoted(case.earlier[-1], EARLIER_CHARS), ""]
    lines += ["You were asked:", *_quoted(asked, REQUEST_CHARS), ""]
    for title, items in (("Still open:", case.open_items), ("Open todos:", case.todos)):
        if items:
            lines += [title, *(f"- {item}" for item in items[:MOST_ITEMS]), ""]
    if note := clean(message, case.nonce):
        lines += [f"Where it stands, as far as the summary shows: {note}", ""]
    if github := _github(case):
        lines += [github, ""]
    return lines


def _github(case: Case) -> str:
    """``GitHub: PR #12 (acme/shop); ran git push``."""
    work = case.github
    parts = []
    if work.target:
        parts.append(work.target.name + (f" ({work.target.repo})" if work.target.repo else ""))
    if work.tools:
        parts.append("so far: " + ", ".join(work.tools))
    return f"GitHub: {'; '.join(parts)}." if parts else ""


def _quoted(text: str, limit: int) -> list[str]:
    lines = head_and_tail(_INVISIBLE.sub(" ", text).strip(), limit).splitlines()
    return [f"> {line}".rstrip() for line in lines if line.strip()]


def _joined(lines: list[str]) -> str:
    return "\n".join([*lines, _SIGNED])


def hand_over(requests: Sequence[str], missing: Sequence[str]) -> str:
    """What the agent was asked and what is open: facts, not orders, for a model that reads its own summary
    too.
    """
    lines = ["The context was compacted. What the person asked for in the current task, word for word:"]
    lines += [f"> {line}" for text in requests for line in text.splitlines()]
    if missing:
        lines += ["What was still open when the last turn was checked:"]
        lines += [f"- {item}" for item in missing]
    return "\n".join(lines)
