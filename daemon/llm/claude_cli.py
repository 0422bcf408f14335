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
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field

from ..core.errors import BadReply, Unavailable
from ..core.llm import Reply, Usage
from ..keys import TOKEN
from ..redact import redact, redact_head
from . import faults
from .faults import Asked
from .sdk import encodable

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping

    from ..core.errors import Fault, ReflectdError
    from ..core.llm import Prompt

# Reads the output of ``claude -p --output-format json`` and turns its failures into errors for a person.
#
# Usage and cost are those that Claude Code reports; a cost of 0 means unknown. An unknown failure has an
# empty fault.

SHOWN_CHARS: Final = 200
RAW_CHARS: Final = 4_000
LOGIN: Final = "Claude Code is not logged in here. Run `claude` and type /login, or set claude_cli.token_file"
TOO_OLD: Final = "this Claude Code is too old to be asked (2.1.169 or newer is needed). Run `claude update`"
_LOGIN: Final = re.compile(
    r"not logged in|/login|failed to authenticate|invalid (?:api key|bearer)", re.IGNORECASE
)
_LIMIT: Final = re.compile(
    r"(?:usage|session|hour|weekly) limit reached|hit your [\w -]{0,40}limit"
    r"|out of (?:extra )?usage|credit balance",
    re.IGNORECASE,
)
_CUT: Final = re.compile(r"exceeded the \d{1,9} output token maximum")
_CONNECTION: Final = re.compile(r"connection|ECONN|ENOTFOUND|ETIMEDOUT|fetch failed|socket", re.IGNORECASE)
_TIMED_OUT: Final = re.compile(r"timed out|timeout", re.IGNORECASE)


class _Usage(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Model(Struct):
    output: int = field(name="outputTokens", default=0)


class Result(Struct):
    """The object that Claude Code prints at the end of the call."""

    type: str = ""
    subtype: str = ""
    is_error: bool = False
    result: str = ""
    structured_output: dict[str, object] | None = None
    stop_reason: str | None = None
    api_error_status: int | None = None
    api_error: str | None = None
    total_cost_usd: float | None = None
    usage: _Usage = field(default_factory=_Usage)
    models: dict[str, _Model] = field(name="modelUsage", default_factory=dict)


_decode = msgspec.json.Decoder(Result, strict=False).decode
_decode_all = msgspec.json.Decoder(list[Result], strict=False).decode


def read(out: bytes) -> Result | None:
    """The result in the output: an object, or with ``verbose`` the last one of a list. None without one."""
    text = out.strip()
    try:
        found = _decode_all(text) if text.startswith(b"[") else [_decode(text.rpartition(b"\n")[2])]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return next((f for f in reversed(found) if f.type == "result"), None)


def usage_of(found: Result) -> Usage:
    """Tokens and cost; the input includes the tokens of the cache."""
    used = found.usage
    cached, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
    cost = found.total_cost_usd or None
    return Usage(used.input_tokens + cached + written, used.output_tokens, cost, cached)


def model_of(found: Result) -> str:
    """The model that wrote most, without the mark for its context window; empty when none is named."""
    name = max(found.models, key=lambda each: found.models[each].output, default="")
    return name.partition("[")[0][:200]


def of_error(asked: Asked, found: Result) -> ReflectdError:
    """The error for a result that reports a failure, with the usage of the call."""
    said, used = found.result, usage_of(found)
    if found.subtype.startswith("error_max"):
        return BadReply(
            f"{asked.provider}: {asked.model} gave no reply of the wanted form", said[:RAW_CHARS], used
        )
    if found.api_error == "max_output_tokens" or _CUT.search(said):
        return BadReply(f"{asked.provider}: the answer of {asked.model} was cut off", said[:RAW_CHARS], used)
    refused = found.stop_reason == "refusal"
    problem = faults.of_refusal(asked, said) if refused else _unavailable(asked, found)
    problem.usage = used if used.input or used.output else None
    return problem


def of_exit(asked: Asked, code: int, out: bytes, err: bytes) -> Unavailable:
    """The error for a program that ended without a result."""
    said = _shown((err.strip() or out.strip()).decode("utf-8", "replace"))
    if "unknown option" in said:
        return Unavailable(f"{asked.provider}: {TOO_OLD}")
    return Unavailable(
        f"{asked.provider}: {asked.host} ended with exit code {code}{': ' + said if said else ''}"
    )


def _unavailable(asked: Asked, found: Result) -> Unavailable:
    said, status = found.result, found.api_error_status
    shown = _shown(said)
    if status in {401, 403} or (status is None and _LOGIN.search(said)):
        return Unavailable(f"{asked.provider}: {LOGIN} ({shown})", "auth")
    if _LIMIT.search(said):
        return Unavailable(f"{asked.provider}: the limit of your login is used up ({shown})", "billing")
    if status is not None:
        return faults.of_status(asked, status, {}, said, 0.0)
    fault: Fault = "timeout" if _TIMED_OUT.search(said) else "connection" if _CONNECTION.search(said) else ""
    return Unavailable(f"{asked.provider}: {shown or 'no reason is given'}", fault)


def _shown(text: str) -> str:
    """The first line, redacted and cut."""
    first = text.strip().partition("\n")[0]
    line = redact(" ".join(redact_head(first, SHOWN_CHARS * 4).split()))
    return line if len(line) <= SHOWN_CHARS else line[:SHOWN_CHARS] + " …"


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
        found = read(out)
        if found is None:
            raise of_exit(asked, code, out, err)
        if found.is_error:
            raise of_error(asked, found)
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
        usage, model = usage_of(found), model_of(found)
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
