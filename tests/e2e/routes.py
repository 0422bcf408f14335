"""The six routes of `/reflect` (TR6), as a person types them one after the other, in either real host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.models.server import text
from tests.support.consenting import results
from tests.support.reflecting import STRICT, rules_file, statuses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer, Step, Tool
    from tests.support.consenting import Tokens


@dataclass(frozen=True, slots=True)
class Route:
    """``typed`` by the person, ``runs`` by the agent; ``shows``: what the last command printed. ``asks``:
    whether it puts a question.
    """

    typed: str
    runs: tuple[str, ...]
    shows: tuple[str, ...]
    ended: str
    asks: bool = False

    def steps(self, shell: Callable[[str], Tool], ask: str, tokens: Tokens) -> Sequence[Step]:
        """What the agent does, as the command's text says."""
        asking = (tokens.asks(ask), tokens.apply(shell)) if self.asks else ()
        return [*(shell(f"reflectd reflect {words}") for words in self.runs), *asking, text(self.ended)]


ROUTES: Final = (
    Route("/reflect status", ("status",), ("1 signal, 1 pending",), "That is the status."),
    Route(
        '/reflect learn "Run lint before committing"',
        ('learn "Run lint before committing" --json',),
        ('"rule added"', "rule-001"),
        "The rule is written.",
    ),
    Route(
        "/reflect learn Prefer short answers --soft",
        ('learn "Prefer short answers" --soft --json',),
        ('"preference added"',),
        "The preference is kept.",
    ),
    Route("/reflect unlearn rule-001", ("unlearn rule-001 --json",), ('"archived"',), "It is archived."),
    Route("/reflect", ("scan --json", "propose --json"), ('"rule added"',), "The review is over.", asks=True),
    Route(
        "/reflect history",
        ("history",),
        ("rule-001", "archived", STRICT.content, "Prefer short answers"),
        "That is the history.",
    ),
)


def asked_of(box: Sandbox, llm: ModelServer, name: str) -> None:
    """What each route came to, in what its last command printed and in the files."""
    printed = results(llm.of("main")[-1])
    for route in ROUTES:
        assert any(all(words in result for words in route.shows) for result in printed), (route, printed)
    active, _, archived = rules_file(box, name).partition("### Archived Rules")
    assert STRICT.content in active
    assert "Run lint before committing" in archived
    assert "Prefer short answers" in rules_file(box, ".claude/memory/preferences.md")
    assert statuses(box) == {STRICT.content: "promoted"}
