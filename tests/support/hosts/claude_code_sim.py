"""A simulated Claude Code in front of the real engine: it writes its transcript file and calls its hooks.

Stands where the host is: lines as the host writes them, hooks with the fields that it sends. What wakes the
agent is recorded in ``wakes``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daemon.app import Daemon
from daemon.testing import FakeClock


@dataclass
class Heard:
    """What one hook was answered."""

    status: int
    text: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found


class ClaudeSim:
    """One session of Claude Code in one project."""

    def __init__(
        self, daemon: Daemon, clock: FakeClock, project: Path, session: str, *, entrypoint: str = "cli"
    ) -> None:
        self.daemon, self.clock, self.project, self.session = daemon, clock, project, session
        self.file = project.parent / "claude" / "projects" / "work" / f"{session}.jsonl"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.headers = {
            "X-CC-Entrypoint": entrypoint,
            "X-CC-Project": str(project),
            "X-CC-Pid": "0",
            "X-CC-Attended": "1" if entrypoint == "cli" else "0",
        }
        self.wakes: list[str] = []
        self.prompt_id = ""
        self._n = 0
        self._last: str | None = None
        self._said = ""
        self.strict = False
        self.stop_hook_active = False

    def id(self) -> str:
        """The next uuid of this session."""
        self._n += 1
        return f"{self.session}-{self._n:06d}"

    def line(self, kind: str, **fields: Any) -> str:
        """One line of the transcript; its uuid."""
        uuid = self.id()
        stamp = self.clock.ms / 1000
        body = {
            "parentUuid": self._last,
            "isSidechain": False,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-11-22T00:00:{stamp % 60:06.3f}Z",
            "cwd": str(self.project),
            "sessionId": self.session,
            "version": "2.1.330",
            "userType": "external",
            "entrypoint": self.headers["X-CC-Entrypoint"],
            "promptId": self.prompt_id,
            **fields,
        }
        with self.file.open("a", encoding="utf-8") as f:
            f.write(json.dumps(body) + "\n")
        self._last = uuid
        return uuid

    async def hook(self, event: str, **fields: Any) -> Heard:
        """Call a hook as the host does."""
        body = {
            "session_id": self.session,
            "transcript_path": str(self.file),
            "cwd": str(self.project),
            "hook_event_name": event,
            **({"prompt_id": self.prompt_id} if self.prompt_id else {}),
            **fields,
        }
        headless = self.headers["X-CC-Entrypoint"] != "cli"
        strict = event == "Stop" and (self.strict or headless)
        found = await self.daemon.engine.hooked["claude-code"].hook(
            event, json.dumps(body).encode(), self.headers, strict=strict
        )
        return Heard(found.status, found.body.decode())

    async def start(self, source: str = "startup") -> Heard:
        """A session begins."""
        return await self.hook("SessionStart", source=source)

    async def types(self, text: str = "Do the thing") -> str:
        """A person types; the id of the task. ``heard`` has what the hook was answered."""
        self.prompt_id = self.id()
        self.stop_hook_active = False
        self.heard = await self.hook("UserPromptSubmit", prompt=text)
        self.line(
            "user",
            message={"role": "user", "content": text},
            origin={"kind": "human"},
            promptSource="typed",
        )
        return self.prompt_id

    def answers(
        self, text: str = "All done.", tools: tuple[tuple[str, dict[str, Any], str, int], ...] = ()
    ) -> str:
        """The agent's turn: each tool ``(name, input, output, exit code)`` with its result, then the text."""
        for name, given, output, code in tools:
            use = self.id()
            self._assistant([{"type": "tool_use", "id": use, "name": name, "input": given}], "tool_use")
            content = output if code == 0 else f"Exit code {code}\n{output}"
            result = {"type": "tool_result", "tool_use_id": use, "content": content, "is_error": code != 0}
            self.line(
                "user",
                message={"role": "user", "content": [result]},
                toolUseResult={"stdout": output, "stderr": "", "interrupted": False}
                if code == 0
                else f"Error: {content}",
            )
        self._said = text
        return self._assistant([{"type": "text", "text": text}], "end_turn")

    def leaves(self, command: str, shell: str) -> None:
        """The agent starts a command in the background."""
        use = self.id()
        given = {"command": command, "run_in_background": True}
        self._assistant([{"type": "tool_use", "id": use, "name": "Bash", "input": given}], "tool_use")
        said = f"Command running in background with ID: {shell}."
        self.line(
            "user",
            message={
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": use, "content": said, "is_error": False}],
            },
            toolUseResult={"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": shell},
        )

    async def told(self, text: str) -> None:
        """The host tells the agent something that nobody typed."""
        note = f"<task-notification>{text}</task-notification>"
        await self.hook("UserPromptSubmit", prompt=note)
        self.line("user", message={"role": "user", "content": note}, origin={"kind": "task-notification"})

    def ran(self, command: str) -> None:
        """A person ran a command with `!`; no hook is called."""
        self.line("user", message={"role": "user", "content": f"<bash-input>{command}</bash-input>"})
        self.line("user", message={"role": "user", "content": "<bash-stdout>a</bash-stdout>"})

    def interrupted(self) -> None:
        """Esc, as the file has it; no hook is called."""
        said = [{"type": "text", "text": "[Request interrupted by user]"}]
        self.line("user", message={"role": "user", "content": said})

    def _assistant(self, content: list[dict[str, Any]], stop: str) -> str:
        message = {
            "id": f"msg_{self.id()}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5-5",
            "content": content,
            "stop_reason": stop,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        return self.line("assistant", message=message)

    async def stops(
        self,
        *,
        background: int = 0,
        shells: Mapping[str, str] | None = None,
        dropped: bool = False,
        alone: bool = True,
    ) -> Heard:
        """The turn ends. A wake is written into the transcript as the host does, unless it is ``dropped``.

        ``background``: how many sub-agents still work. ``shells``: id and command of those that still run.
        ``alone``: no Stop hook of the person's holds up the end of the turn.
        """
        if alone:
            self.line("system", subtype="stop_hook_summary", preventedContinuation=False)
        tasks = [{"id": f"b{n}", "type": "subagent", "status": "running"} for n in range(background)]
        for shell, command in (shells or {}).items():
            tasks.append({"id": shell, "type": "shell", "status": "running", "command": command})
        heard = await self.hook(
            "Stop",
            stop_hook_active=self.stop_hook_active,
            last_assistant_message=self._said,
            background_tasks=tasks,
            session_crons=[],
        )
        text = ""
        if dropped:
            return heard
        if heard.status == 422:
            text = heard.text
            note = f"<task-notification><summary>Stop hook feedback</summary>\n{text}</task-notification>"
            await self.hook("UserPromptSubmit", prompt=note)
            self.line("user", message={"role": "user", "content": note}, origin={"kind": "task-notification"})
        elif heard.status == 200 and heard.json.get("decision") == "block":
            text = heard.json["reason"]
            feedback = f"Stop hook feedback:\n{text}"
            self.line("user", isMeta=True, message={"role": "user", "content": feedback})
        if text:
            self.stop_hook_active = True
            self.wakes.append(text)
        return heard

    async def works(self, text: str = "All done.", **more: Any) -> Heard:
        """A whole turn, and what the Stop hook was answered."""
        self.answers(text, **more)
        return await self.stops()


def bash(command: str, code: int = 0, output: str = "") -> tuple[str, dict[str, Any], str, int]:
    """A finished shell call."""
    return ("Bash", {"command": command}, output, code)


def write(path: str) -> tuple[str, dict[str, Any], str, int]:
    """A finished write."""
    return ("Write", {"file_path": path, "content": "x"}, "ok", 0)


async def until(what: Any) -> None:
    """Until ``what()`` is true (bounded)."""
    for _ in range(4000):
        if what():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come true")
