"""What a scripted model does with `/reflect`: it runs what the command says, and passes questions on as they
are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from harness.models.server import Later, Request, Step, Tool

Json = dict[str, Any]


def printed(request: Request) -> Json:
    """What the last command printed: the JSON in the newest result of a tool."""
    for message in reversed(request.messages):
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "tool_result", "content": content}]
        for block in reversed(blocks):
            text = block.get("content", block.get("text")) if isinstance(block, dict) else None
            if isinstance(text, list):
                text = "".join(part.get("text", "") for part in text)
            found = re.search(r"\{\n.*\n\}", text, re.DOTALL) if isinstance(text, str) else None
            if found:
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
            self.known = said["ask"][0]["tokens"]
            self.questions = said["ask"][0]["input"]["questions"]
            return Tool(tool, change(json.loads(json.dumps(said["ask"][0]["input"]))))

        return then(make)

    def apply(self, shell: Callable[[str], Tool]) -> Later:
        """`apply` with the tokens."""
        return Later(lambda _: shell(f"reflectd reflect apply {' '.join(self.known)} --json"))
