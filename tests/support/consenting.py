"""What a scripted model does with `/reflect`: it runs what the command says, and passes questions on as they
are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from harness.models.server import Later, Request, Step, Tool, text_of

Json = dict[str, Any]


def results(request: Request) -> list[str]:
    """What each tool gave, oldest first, in the form of either host."""
    found: list[str] = []
    for message in request.messages:
        if message["role"] == "tool":
            found.append(text_of(message["content"]))
        elif not isinstance(message["content"], str):
            blocks = (b for b in message["content"] or [] if b.get("type") == "tool_result")
            found += [text_of(b.get("content")) for b in blocks]
    return found


def printed(request: Request) -> Json:
    """What the last command printed: the JSON in the newest result of a tool."""
    for text in reversed(results(request)):
        if found := re.search(r"\{\n.*\n\}", text, re.DOTALL):
            loaded: Json = json.loads(found[0])
            return loaded
    raise AssertionError(f"no command printed JSON:\n{request.everything[-3000:]}")


def then(make: Callable[[Json], Step]) -> Later:
    """A step that follows from what was printed last."""
    return Later(lambda request: make(printed(request)))


def asks(tool: str, *, change: Callable[[Json], Json] = lambda given: given, entry: int = 0) -> Later:
    """The question tool, with the input that was printed, byte for byte unless ``change`` changes it."""
    return then(lambda said: Tool(tool, change(json.loads(json.dumps(said["ask"][entry]["input"])))))


class Tokens:
    """Remembers the tokens that were printed, because the answer to a question does not name them."""

    def __init__(self) -> None:
        self.known: list[str] = []
        self.questions: list[Json] = []

    def asks(self, tool: str, *, change: Callable[[Json], Json] = lambda given: given) -> Later:
        """As ``asks``; the tokens and the questions are remembered."""

        def make(said: Json) -> Step:
            self._note(said)
            return Tool(tool, change(json.loads(json.dumps(said["ask"][0]["input"]))))

        return then(make)

    def apply(self, shell: Callable[[str], Tool]) -> Later:
        """`apply` with the tokens."""
        return Later(lambda _: self._applied(shell, *self.known))

    def apply_unasked(self, shell: Callable[[str], Tool]) -> Later:
        """`apply` with the tokens that were just printed, which nobody was asked about."""

        def make(said: Json) -> Step:
            self._note(said)
            return self._applied(shell, *self.known)

        return then(make)

    def apply_one(self, shell: Callable[[str], Tool], number: int) -> Later:
        """`apply` with one of the tokens."""
        return Later(lambda _: self._applied(shell, self.known[number]))

    def asks_one(self, tool: str, number: int, words: str = "") -> Later:
        """One of the questions, alone; with other ``words`` in front of its token."""

        def make(_: Request) -> Step:
            asked = dict(self.questions[number])
            if words:
                asked["question"] = f"{words}\n(reflectd {self.known[number]})"
            return Tool(tool, {"questions": [asked]})

        return Later(make)

    def _note(self, said: Json) -> None:
        self.known = said["ask"][0]["tokens"]
        self.questions = said["ask"][0]["input"]["questions"]

    @staticmethod
    def _applied(shell: Callable[[str], Tool], *tokens: str) -> Tool:
        return shell(f"reflectd reflect apply {' '.join(tokens)} --json")
