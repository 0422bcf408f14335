"""What a scripted model does with `/reflect`: it runs what the command says, and passes questions on as they
are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from harness.models.server import Later, Request, Tool, text_of

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


def printed(request: Request) -> list[Json]:
    """The JSON that commands printed, oldest first."""
    found = (re.search(r"\{\n.*\n\}", text, re.DOTALL) for text in results(request))
    return [json.loads(each[0]) for each in found if each]


def question(request: Request) -> Json:
    """The newest that a command printed: the question tool's ``input``, and ``tokens``."""
    entries: list[Json] = [said["ask"][0] for said in printed(request) if said.get("ask")]
    assert entries, f"no command printed a question:\n{request.everything[-3000:]}"
    return entries[-1]


def asks(tool: str, words: str = "") -> Later:
    """The question tool with the input that was printed, byte for byte, or with other ``words``."""

    def make(request: Request) -> Tool:
        entry = question(request)
        if words:
            entry["input"]["questions"][0]["question"] = f"{words}\n(reflectd {entry['tokens'][0]})"
        return Tool(tool, entry["input"])

    return Later(make)


def apply(shell: Callable[[str], Tool]) -> Later:
    """`apply` with the tokens that were printed."""
    return Later(lambda r: shell(f"reflectd reflect apply {' '.join(question(r)['tokens'])} --json"))


def words_it(shell: Callable[[str], Tool], part: str, wording: str) -> Later:
    """`propose` with this wording for the message of the scan that has ``part``; the others teach nothing."""

    def make(request: Request) -> Tool:
        found = next(said["candidates"] for said in printed(request) if said.get("candidates"))
        ids = [c["id"] for c in found if part in c["text"]]
        others = [c["id"] for c in found if part not in c["text"]]
        none = f" --none {','.join(others)}" if others else ""
        return shell(f"reflectd reflect propose --rule {','.join(ids)} '{wording}'{none} --json")

    return Later(make)
