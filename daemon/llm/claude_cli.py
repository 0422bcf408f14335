"""Provider ``claude-cli``: one question to the person's own Claude Code, by ``claude -p`` on its own login.

``auto`` never chooses it. The call has no tools, hooks, plugins, MCP servers or CLAUDE.md, leaves no session
and runs outside every project. Claude Code would attach each file that the text names (``@name``). So
attachments are switched off and reading is denied; each of the two would be enough. The daemon's environment
may be that of one project, so of the variables for Claude Code and Anthropic only the settings folder and the
login token are passed on. The provider never retries (the caller does that), prints nothing and stores
nothing.

The process has its own group, which is killed when the call is cancelled or its time is over. If the daemon
dies before that, the kernel kills the process on Linux; elsewhere it ends after its answer. Failures are
``Unavailable`` with a fault; a reply that is cut off, empty or of another form is ``BadReply``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ..core.errors import BadReply, Unavailable
from ..core.llm import Reply
from ..keys import TOKEN
from . import claude_result, faults
from .faults import Asked
from .sdk import encodable

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping

    from ..core.llm import Prompt
    from .claude_result import Result

FAST_MODEL: Final = "haiku"
TURNS: Final = 3  # one, and two more when the object has a wrong form
THINKING_TOKENS: Final = 8_000
END_S: Final = 5.0
KEPT: Final = frozenset({"CLAUDE_CONFIG_DIR", TOKEN})
DROPPED: Final = ("CLAUDE", "ANTHROPIC_")
GUARDS: Final = {"disableAllHooks": True, "permissions": {"deny": ["Read"]}}
PLACES: Final = (".local/bin/claude", ".claude/local/claude")  # not in the PATH of a service
INSTALL: Final = "Install Claude Code or set claude_cli.path"
COMMAND: Final = (
    *("-p", "--safe-mode", "--output-format", "json", "--tools", "", "--strict-mcp-config"),
    *("--no-session-persistence", "--settings", msgspec.json.encode(GUARDS).decode()),
)


def find(path: str, env: Mapping[str, str]) -> Path | None:
    """The program ``claude``: from the setting, else from PATH, else where installers put it. None if
    missing.
    """
    if path:
        chosen = Path(path).expanduser()
        return chosen if os.access(chosen, os.X_OK) and chosen.is_file() else None
    home = env.get("HOME", "")
    found = shutil.which("claude", path=env.get("PATH", ""))
    usual = (Path(home, place) for place in PLACES if home)
    return Path(found) if found else next((p for p in usual if os.access(p, os.X_OK)), None)


class ClaudeCliProvider:
    """A provider (``core.ports.Provider``). ``folder``: our own folder that it runs in; made when missing."""

    name = "claude-cli"

    def __init__(self, program: Path, model: str, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self._program, self._model, self._folder = program, model, folder
        self._env = os.environ if env is None else env
        self._known: dict[str, str] = {}

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """The setting's model, or ``haiku`` for the tier ``fast``; its full name is known after its first
        call.
        """
        asked = self._asked_model(prompt)
        return "anthropic", self._known.get(asked, asked)

    def most_tokens(self, prompt: Prompt) -> int:
        """The prompt's limit, with more room for thinking."""
        return prompt.max_tokens + THINKING_TOKENS

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """One reply. Raises ``Unavailable`` with a fault, or ``BadReply`` with the raw text."""
        started = time.monotonic()
        model = self._asked_model(prompt)
        asked = Asked(self.name, "Claude Code", model, "")
        env = child_env(self._env, self.most_tokens(prompt), deadline_s)
        problem = faults.of_timeout(asked, deadline_s)
        try:
            async with asyncio.timeout(deadline_s):
                code, out, err = await self._run(self._command(prompt, model), env, _stdin(prompt.text))
        except TimeoutError:
            raise problem from None
        found = claude_result.read(out)
        if found is None:
            raise claude_result.of_exit(asked, code, out, err)
        if found.is_error:
            raise claude_result.of_error(asked, found)
        return self._reply(prompt, asked, found, time.monotonic() - started)

    def _asked_model(self, prompt: Prompt) -> str:
        return FAST_MODEL if prompt.tier == "fast" else self._model

    def _command(self, prompt: Prompt, model: str) -> list[str]:
        """The command line. The system prompt may be in it, because it holds no data of the session."""
        command = [*_dies_with_daemon(), str(self._program), *COMMAND, "--model", model]
        command += ["--max-turns", str(TURNS if prompt.schema is not None else 1)]
        command += ["--system-prompt", encodable(prompt.system).replace("\0", "")]
        if prompt.schema is not None:
            command += ["--json-schema", msgspec.json.encode(prompt.schema).decode()]
        return command

    async def _run(self, command: list[str], env: dict[str, str], text: bytes) -> tuple[int, bytes, bytes]:
        pipe = asyncio.subprocess.PIPE
        if not os.access(self._program, os.X_OK):
            raise Unavailable(f"{self.name}: {self._program} is gone. {INSTALL}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=self._folder,
                env=env,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
            )
        except OSError as e:
            raise Unavailable(
                f"{self.name}: {self._program} can't be started ({e.strerror}). {INSTALL}"
            ) from None
        try:
            out, err = await process.communicate(text)
        except BaseException:
            await _end(process)
            raise
        return process.returncode or 0, out, err

    def _reply(self, prompt: Prompt, asked: Asked, found: Result, seconds: float) -> Reply:
        usage, model = claude_result.usage(found), claude_result.model(found)
        if model:
            self._known[asked.model] = model
        data = found.structured_output if prompt.schema is not None else None
        if data is None and not found.result.strip():
            raise BadReply(f"{self.name}: the answer of {model or asked.model} is empty", usage=usage)
        text = found.result or msgspec.json.encode(data).decode()
        return Reply(text, self.name, model or asked.model, data, usage, seconds)


def child_env(env: Mapping[str, str], max_tokens: int, deadline_s: float) -> dict[str, str]:
    """The environment of the call: ``env`` without the variables of another session or another account."""
    kept = {
        name: value
        for name, value in env.items()
        if name in KEPT or not (name.startswith(DROPPED) or name == "AI_AGENT")
    }
    return kept | {
        "REFLECTD_CHILD": "1",
        "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(max_tokens),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "API_TIMEOUT_MS": str(
            int(deadline_s * 1000)
        ),  # so that it ends by itself after the daemon was killed
    }


def _dies_with_daemon() -> list[str]:
    """The command that makes Linux kill the call when the daemon dies, also by ``kill -9`` (I45)."""
    found = shutil.which("setpriv") if sys.platform == "linux" else None
    return [found, "--pdeathsig", "KILL", "--"] if found else []


def _stdin(text: str) -> bytes:
    """The text as stdin. One that begins with a slash would be a command, so a line is put before it."""
    return encodable(f"\n.\n{text}" if text.lstrip().startswith("/") else text).encode()


async def _end(process: Process) -> None:
    """Kill the process group and wait until the process is gone (I45)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            await process.wait()
