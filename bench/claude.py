"""What our hooks cost in the real Claude Code: warm, cold (the daemon is started), and outside of it."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bench.stand import REPO, Failed, Json, Table, median, percentile
from harness.hosts.claude_code import ClaudeCode, find_claude
from harness.machine import processes
from harness.machine.reflectd import Daemon, call
from harness.machine.sandbox import sandbox
from harness.machine.waiting import wait_until
from harness.models.server import ModelServer, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.machine.sandbox import Sandbox

PLUGIN = REPO / "plugin-shim" / "claude-code"
HOOK = PLUGIN / "scripts" / "hook.sh"
EVENTS = ("UserPromptSubmit", "Stop", "SessionStart")
STARTED = "started-by-hook"
"""The file in which hook.sh notes that it starts a daemon."""
WARM_UP = 2
QUIET_S = 0.2
"""After each turn, so that its last work is not in the next hook's time."""


def hooks(*, quick: bool) -> Table:
    """Milliseconds from ``hook_started`` to ``hook_response`` in the output of ``claude -p``, and bare."""
    turns, starts = (5, 2) if quick else (40, 7)
    title = f"Hooks of Claude Code ({turns} prompts in one session, {starts} cold starts)"
    table = Table(title, ("ms", "p50", "p95", "n"))
    if find_claude() is None:
        table.notes = ["skipped, Claude Code is missing: make hosts"]
        return table
    with ModelServer() as llm:
        with sandbox() as box, Daemon(box):
            claude = ClaudeCode(box, llm.url, plugin=PLUGIN, REFLECTD_HEADLESS="1")
            seen = _session(claude, llm, turns)
            _row(table, "a prompt, daemon there", seen["UserPromptSubmit"])
            _row(table, "the end of a turn, what the host waits for", seen["Stop"])
            told = {"session_id": "bench", "cwd": str(box.project), "prompt": "Say it"}
            env = claude.env | {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_PROJECT_DIR": str(box.project)}
            ours = _bare([str(HOOK), "UserPromptSubmit"], env, json.dumps(told).encode(), turns)
            _row(table, "  hook.sh for a prompt, no host", ours)
            if shutil.which("curl"):  # without it hook.sh uses Python
                bare = _bare(["curl", "-q", "--version"], env, b"", turns)
                _row(table, "  curl --version, no host", bare)
            _row(
                table, "  /bin/sh that does nothing, no host", _bare(["/bin/sh", "-c", ":"], env, b"", turns)
            )
            codex = env | {"REFLECTD_HEADLESS": ""}
            for event in ("UserPromptSubmit", "PostToolUse", "Stop"):  # of a session that is not judged
                body = json.dumps(told | {"transcript_path": str(box.root / "rollout-none.jsonl")}).encode()
                run = ["/bin/sh", "-c", '"$@"; exit $?', "codex", str(HOOK), event, "codex", "exec"]
                ours = _bare(run, codex, body, turns)
                _row(table, f"  hook.sh for {event} of a `codex exec` that is not judged, no host", ours)
        with sandbox() as box:
            nothing = {"hooks": [{"type": "command", "command": "/bin/sh", "args": ["-c", ":"]}]}
            settings = {"hooks": {"UserPromptSubmit": [nothing]}}
            floor = _session(ClaudeCode(box, llm.url, settings=settings), llm, turns)
            _row(table, "  /bin/sh that does nothing, in the host", floor["UserPromptSubmit"])
        _row(table, "a session's start, daemon started", [_cold(llm) for _ in range(starts + 1)][1:])
        _row(table, "  hook.sh that starts it, no host", [_cold(None) for _ in range(starts)])
    table.notes.append("aim for a `codex exec` that is not judged: each hook at most 10 ms over /bin/sh")
    table.notes.append("aim: a prompt p50 < 15, p95 < 25; the daemon started < 900")
    return table


def _row(table: Table, what: str, values: list[float]) -> None:
    p50, p95 = median(values), percentile(values, 0.95)
    table.rows.append((what, f"{p50:.1f}", f"{p95:.1f}", str(len(values))))
    table.values[what.strip()] = {"p50": p50, "p95": p95, "n": len(values)}


def _session(claude: ClaudeCode, llm: ModelServer, turns: int) -> dict[str, list[float]]:
    """One session with ``turns`` prompts; the times of its hooks without those of the first prompts."""
    with _Talk(claude) as talk:
        for n in range(turns + WARM_UP):
            llm.script(text(f"Answer {n}."))
            talk.ask(f"Say {n}")
            if n == WARM_UP - 1:
                talk.seen = {event: [] for event in EVENTS}
            time.sleep(QUIET_S)
        return talk.seen


def _cold(llm: ModelServer | None) -> float:
    """The hook of SessionStart on a machine where no daemon runs; without a model: outside of the host."""
    with sandbox() as box:
        program = Path(sys.executable).with_name("reflectd")
        env: dict[str, Any] = {
            "REFLECTD_NO_START": "0",
            "REFLECTD_BIN": str(program),
            "PYTHONPATH": str(REPO),
        }
        env["REFLECTD_HEADLESS"] = "1"  # else hook.sh starts no daemon for `claude -p`
        try:
            if llm is None:
                told = json.dumps({"session_id": "bench", "cwd": str(box.project), "source": "startup"})
                took = _ms(lambda: _run([str(HOOK), "SessionStart"], box.env(**env), told.encode()))
            else:
                with _Talk(ClaudeCode(box, llm.url, plugin=PLUGIN, **env)) as talk:
                    llm.script(text("Hello."))
                    talk.ask("Say hello")
                    took = talk.seen["SessionStart"][0]
            if not (box.state / STARTED).exists():
                raise Failed("the hook of SessionStart started no daemon")
            return took
        finally:
            if (box.state / STARTED).exists():
                _end_daemon(box)


def _end_daemon(box: Sandbox) -> None:
    """It is nobody's child."""
    pid = wait_until(partial(_answering, box), "answer of the daemon that the hook started")
    found = [p for p in processes.left_over() if p.pid == pid]
    for process in found:
        process.terminate()
    wait_until(lambda: not any(p.is_running() for p in found), "end of the daemon")


def _answering(box: Sandbox) -> int | None:
    """The process of the daemon, once it answers: on a busy machine the hook stops waiting before that."""
    try:
        return int(call(box.socket, "GET", "/v1/status")["pid"])
    except (OSError, http.client.HTTPException):
        return None


def _bare(command: list[str], env: dict[str, str], body: bytes, runs: int) -> list[float]:
    return [_ms(lambda: _run(command, env, body)) for _ in range(runs + WARM_UP)][WARM_UP:]


def _run(command: list[str], env: dict[str, str], body: bytes) -> None:
    subprocess.run(command, env=env, input=body, check=True, capture_output=True)


def _ms(job: Callable[[], None]) -> float:
    began = time.perf_counter()
    job()
    return (time.perf_counter() - began) * 1000


class _Talk:
    """``claude -p`` with one message after the other; ``seen``: milliseconds of the hooks, by event.

    Of the two for Stop only the later one counts, for which the host waits: the other one ends at once in
    ``claude -p``.
    """

    def __init__(self, claude: ClaudeCode) -> None:
        more = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        self._command = claude.command(*more, "--include-hook-events")
        self._claude = claude
        self._open: dict[str, float] = {}
        self.seen: dict[str, list[float]] = {event: [] for event in EVENTS}

    def __enter__(self) -> Self:
        with (self._claude.box.root / "claude.err").open("wb") as err:
            self._process = subprocess.Popen(
                self._command,
                env=self._claude.env,
                cwd=self._claude.box.project,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                start_new_session=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            processes.end_group(self._process, gently=0)

    def ask(self, words: str) -> None:
        """Until the answer is there and no hook runs."""
        assert self._process.stdin is not None
        message = {"type": "user", "message": {"role": "user", "content": words}}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        answered, took = False, dict[str, float]()
        while not answered or self._open:
            line = self._next()
            answered = answered or line["type"] == "result"
            now, which = time.perf_counter(), line.get("hook_id", "")
            match line.get("subtype"):
                case "hook_started":
                    self._open[which] = now
                case "hook_response" if began := self._open.pop(which, None):
                    if not answered:
                        took[line["hook_event"]] = (now - began) * 1000
        for event, ms in took.items():
            self.seen.setdefault(event, []).append(ms)

    def _next(self) -> Json:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"claude ended with {self._process.wait(10)}")
        found: Json = json.loads(line)
        return found
