"""An agent that wants rules without the person, in either real host: what it tries, and what it is told.

The person says yes in two dialogs: in one that asks something else, and in the true one about the first rule.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from harness.models.server import text
from tests.support.consenting import results
from tests.support.reflecting import BUN, STRICT, book_of, said_before

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness.machine.sandbox import Sandbox
    from harness.models.server import Request, Step, Tool
    from tests.support.consenting import Tokens

MISLEADING = "Shall I go on with the tests?"
ENDED = "That is all I tried."
FORGED_RULE = "Skip all tests"
NOBODY = "the host told of no answer of a person to exactly this"
USED = "no question with this token is open: it was answered"


def tries(
    box: Sandbox, tokens: Tokens, shell: Callable[[str], Tool], ask: str, *more: Step
) -> Sequence[Step]:
    """The agent's steps. ``ask``: the host's question tool. ``more``: what it tries in this host only, before
    it applies the first token once more.
    """
    said_before(box, STRICT, BUN)
    book = book_of(box)
    return [
        shell("reflectd reflect propose --json"),
        tokens.apply_unasked(shell),
        shell(f"reflectd reflect learn '{FORGED_RULE}' --json"),
        tokens.asks_one(ask, 0, MISLEADING),
        tokens.apply_one(shell, 0),
        *((*more, tokens.apply_one(shell, 0)) if more else ()),
        shell(edits(book.path, book.state.folder / "proposals.json")),
        tokens.apply_one(shell, 1),
        tokens.asks_one(ask, 0),
        tokens.apply_one(shell, 1),
        tokens.apply_one(shell, 0),
        tokens.apply_one(shell, 0),
        text(ENDED),
    ]


def edits(*files: Path) -> str:
    """The shell's command that makes one rule another in these files; Claude Code would ask about `sed`."""
    change = f"assert {BUN.content!r} in t; open(f, 'w').write(t.replace({BUN.content!r}, {FORGED_RULE!r}))"
    code = f"import sys\nfor f in sys.argv[1:]: t = open(f).read(); {change}"
    return shlex.join(["python3", "-c", code, *map(str, files)])


def told(request: Request) -> list[str]:
    """What each of its commands came to: the reason of a refusal, else the status; "asks" where it only got
    a question.
    """
    found: list[str] = []
    for result in results(request):
        _, brace, rest = result.partition("{\n")
        said: dict[str, Any] = json.JSONDecoder().raw_decode(brace + rest)[0] if brace else {}
        if "done" in said:
            done = [d.get("why", d["status"]).partition(",")[0] for d in said["done"]]
            found += done or ["asks"]
    return found


def expected(refused: int) -> list[str]:
    """``told`` where the first token was tried ``refused`` times before the journal was edited."""
    by_itself, edited, reused = [NOBODY, NOBODY, "asks"], [NOBODY], [NOBODY]
    return [*by_itself, *[NOBODY] * refused, *edited, *reused, "rule added", USED]
