"""Claude Code transcripts as the tests tell them: lines in the form of the new version or of an old one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

SESSION = "0f6d1f9e-5a7e-4b6e-9f57-3a1c2b4d5e6f"
FOLDER = "/repo"
Json = dict[str, Any]


@dataclass
class Story:
    """Each verb appends lines; ``old`` leaves out what 2.1.197 does not write. Ids count up."""

    old: bool = False
    session: str = SESSION
    lines: list[Json] = field(default_factory=list)
    tip: str | None = None
    mode: str = "default"
    cwd: str = FOLDER
    _n: int = 0
    _prompt: str = ""

    def new_id(self, letter: str = "u") -> str:
        self._n += 1
        return f"{letter}{self._n:05d}-{self.session[:8]}"

    def put(self, kind: str, **more: Any) -> str:
        """A line of the conversation; ``parent`` and ``uuid`` may be given. Returns its uuid."""
        uuid = more.pop("uuid", None) or self.new_id()
        parent = more.pop("parent", self.tip)
        seconds, ms = divmod(self._n, 1000)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{ms:03d}"
        line = {
            "parentUuid": parent,
            "isSidechain": False,
            **more,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-11-20T{clock}Z",
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.197" if self.old else "2.1.330",
            "gitBranch": "main",
        }
        self.lines.append(line)
        self.tip = uuid
        return uuid

    def raw(self, **line: Any) -> None:
        """A line outside the conversation."""
        self.lines.append(line)

    def human(self, text: Any, **more: Any) -> str:
        """A typed prompt; returns the message's id (the prompt's)."""
        self._prompt = more.pop("promptId", None) or self.new_id("p")
        known = {} if self.old else {"origin": {"kind": "human"}, "promptSource": "typed"}
        message = {"role": "user", "content": text}
        self.put(
            "user",
            **{"promptId": self._prompt, "message": message, "permissionMode": self.mode, **known, **more},
        )
        if not self.old:
            self.put("attachment", attachment={"type": "environment", "snapshot": {"platform": "linux"}})
        return self._prompt

    def user(self, text: Any, **more: Any) -> str:
        """Any other user line."""
        return self.put(
            "user", **{"promptId": self._prompt, "message": {"role": "user", "content": text}, **more}
        )

    def answer(self, *blocks: Json, message: str = "", stop: str | None = None, **more: Any) -> str:
        """One line for each block, as the host writes them."""
        message = message or self.new_id("msg_")
        if not self.old:
            self.raw(
                type="api-request-blob", sessionId=self.session, hash="h", message={"content": "x" * 300}
            )
        uses = any(b.get("type") == "tool_use" for b in blocks)
        for block in blocks:
            content = {
                "id": message,
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5-5",
                "content": [block],
                "stop_reason": stop or ("tool_use" if uses else "end_turn"),
                "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100},
            }
            self.put("assistant", message=content, **more)
        return str(self.tip)

    def say(self, text: str, **more: Any) -> str:
        return self.answer({"type": "text", "text": text}, **more)

    def result(self, call: str, content: Any, *, error: bool = False, own: Any = None, **more: Any) -> str:
        block = {"tool_use_id": call, "type": "tool_result", "content": content, "is_error": error}
        extra = {} if own is None else {"toolUseResult": own}
        return self.user([block], **extra, sourceToolAssistantUUID=self.tip, **more)

    def tool(
        self, name: str, arguments: Json, output: Any = "", *, error: bool = False, own: Any = None
    ) -> str:
        """A call and its result; returns the call's id."""
        call = self.new_id("toolu_")
        self.answer({"type": "tool_use", "id": call, "name": name, "input": arguments})
        self.result(call, output, error=error, own=own)
        return call

    def bash(self, command: str, output: str = "", code: int = 0) -> str:
        if code:
            shown = f"Exit code {code}\n{output}" if output else f"Exit code {code}"
            return self.tool("Bash", {"command": command}, shown, error=True, own=f"Error: {shown}")
        own = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        return self.tool("Bash", {"command": command}, output, own=own)

    def stopped(self) -> None:
        """What the host adds when a turn is over."""
        self.put("system", subtype="turn_duration", durationMs=1200)
        self.raw(type="last-prompt", lastPrompt="x", leafUuid=self.tip, sessionId=self.session)

    def data(self) -> bytes:
        return b"".join(
            json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            for line in self.lines
        )
