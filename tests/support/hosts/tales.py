"""One task, told in the format of either host and read by that host's own reader.

``OpencodeTale`` makes what the shim's ``read`` order answers, ``ClaudeCodeTale`` a transcript file. Both have
the same verbs, so that a test shows a shape once for both hosts.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from daemon.core.transcript import Transcript
from daemon.hosts.claude_code.transcript import transcript_of
from daemon.hosts.opencode.messages import parse_transcript
from tests.support.hosts.claude_code_story import FOLDER, Story

Json = dict[str, Any]


class Tale(Protocol):
    """What happens in a session, in order."""

    def types(self, text: str) -> None:
        """The person types a message."""

    def says(self, text: str) -> None:
        """The agent ends its turn with these words."""

    def runs(self, command: str, output: str = "", code: int = 0) -> None:
        """The agent runs a command to its end."""

    def times_out(self, command: str, output: str) -> None:
        """The host kills a command after its time."""

    def is_refused(self, command: str) -> None:
        """The person does not let the agent run a command."""

    def edits(self, path: str, old: str, new: str) -> None:
        """The agent replaces a text in a file."""

    def writes(self, path: str, text: str) -> None:
        """The agent writes a whole file."""

    def reads(self, path: str, text: str) -> None:
        """The agent looks at a file."""

    def lists(self, *todos: tuple[str, str]) -> None:
        """The agent sets its own list: (text, status)."""

    def asks(self, question: str, answer: str) -> None:
        """The agent asks with its tool for that, and the person answers."""

    def transcript(self) -> Transcript:
        """What the host's reader makes of it."""


class OpencodeTale:
    """Messages as the shim sends them."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.todos: list[Json] = []

    def types(self, text: str) -> None:
        self._add("user", {"type": "text", "text": text})

    def says(self, text: str) -> None:
        self._add("assistant", {"type": "text", "text": text}, finish="stop")

    def runs(self, command: str, output: str = "", code: int | None = 0) -> None:
        self._call("bash", {"command": command}, output=output, exit=code)

    def times_out(self, command: str, output: str) -> None:
        note = "bash tool terminated command after exceeding timeout 120000 ms. Retry with a larger timeout."
        self.runs(command, f"{output}\n\n<bash_metadata>\n{note}\n</bash_metadata>", None)

    def is_refused(self, command: str) -> None:
        said = "The user rejected permission to use this specific tool call."
        self._call("bash", {"command": command}, status="error", error=said)

    def edits(self, path: str, old: str, new: str) -> None:
        given = {"filePath": path, "oldString": old, "newString": new}
        self._call("edit", given, output="Edit applied successfully.")

    def writes(self, path: str, text: str) -> None:
        self._call("write", {"filePath": path, "content": text}, output="Wrote file successfully.")

    def reads(self, path: str, text: str) -> None:
        lines = text.split("\n")
        shown = "\n".join(f"{i}: {line}" for i, line in enumerate(lines, 1))
        end = f"(End of file - total {len(lines)} lines)"
        output = f"<path>{path}</path>\n<type>file</type>\n<content>\n{shown}\n\n{end}\n</content>"
        self._call("read", {"filePath": path}, output=output)

    def lists(self, *todos: tuple[str, str]) -> None:
        self.todos = [{"content": text, "status": status} for text, status in todos]
        self._call("todowrite", {"todos": self.todos}, output=json.dumps(self.todos))

    def asks(self, question: str, answer: str) -> None:
        said = f'User has answered your questions: "{question}"="{answer}". You can now continue.'
        self._call("question", {"questions": [{"question": question, "header": "?"}]}, output=said)

    def transcript(self) -> Transcript:
        session = {"id": "ses_1", "directory": FOLDER}
        found = {"session": session, "messages": self.messages, "todos": self.todos}
        return parse_transcript(json.dumps(found).encode(), is_ours=lambda _: True)

    def _call(self, tool: str, given: Json, **state: Any) -> None:
        part = {"type": "tool", "callID": f"c{len(self.messages)}", "tool": tool}
        state = {"status": "completed", "input": given, **state}
        self._add("assistant", {**part, "state": state}, finish="tool-calls")

    def _add(self, role: str, part: Json, **info: Any) -> None:
        n = len(self.messages) + 1
        header = {"id": f"msg_{n:04d}", "role": role, "time": {"created": n}, **info}
        self.messages.append({"info": header, "parts": [{"id": f"prt_{n:04d}", **part}]})


class ClaudeCodeTale:
    """Lines of a transcript file."""

    def __init__(self) -> None:
        self._story = Story()

    def types(self, text: str) -> None:
        self._story.human(text)

    def says(self, text: str) -> None:
        self._story.say(text)

    def runs(self, command: str, output: str = "", code: int = 0) -> None:
        self._story.bash(command, output, code)

    def times_out(self, command: str, output: str) -> None:
        said = f"Command timed out after 2m 0.0s {output}"
        self._story.tool("Bash", {"command": command}, said, error=True, own=f"Error: {said}")

    def is_refused(self, command: str) -> None:
        said = "The user doesn't want to proceed with this tool use. The tool use was rejected"
        call = self._story.new_id("toolu_")
        self._story.answer({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}})
        self._story.result(call, said, error=True, toolDenialKind="user-rejected")

    def edits(self, path: str, old: str, new: str) -> None:
        given = {"file_path": f"{FOLDER}/{path}", "old_string": old, "new_string": new}
        self._story.tool("Edit", given, f"The file {path} has been updated.")

    def writes(self, path: str, text: str) -> None:
        self._story.tool("Write", {"file_path": f"{FOLDER}/{path}", "content": text}, "File created")

    def reads(self, path: str, text: str) -> None:
        shown = "\n".join(f"{i:6d}\t{line}" for i, line in enumerate(text.split("\n"), 1))
        self._story.tool("Read", {"file_path": f"{FOLDER}/{path}"}, shown)

    def lists(self, *todos: tuple[str, str]) -> None:
        given = [{"content": text, "status": status, "activeForm": text} for text, status in todos]
        self._story.tool("TodoWrite", {"todos": given}, "Todos have been modified successfully.")

    def asks(self, question: str, answer: str) -> None:
        asked = [{"question": question, "header": "?"}]
        own = {"questions": asked, "answers": {question: answer}}
        self._story.tool("AskUserQuestion", {"questions": asked}, "User has answered", own=own)

    def transcript(self) -> Transcript:
        return transcript_of(self._story.data(), "file")


TALES = (OpencodeTale, ClaudeCodeTale)
