"""The real Codex CLI: found, run once with ``codex exec``, or in a terminal, and read back.

One pinned version. It runs in a sandbox and in its own process group, knows no provider but the model server,
and is gone when the block ends.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

from daemon.cli.setup.codex import EVENTS, group
from harness.hosts.claude_code import HOSTS, Ran, Running
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.terminal import Terminal
from harness.machine.waiting import wait_until
from harness.models.server import ModelServer, Tool

Json = dict[str, Any]
MODEL = "fake-1"
SCRIPT = REPO / "plugin-shim" / "claude-code" / "scripts" / "hook.sh"
READY = "\u203a"  # the angle before the input line


def find_codex() -> Path | None:
    """The pinned binary that ``make hosts`` installed, for this machine; None when it is not there."""
    arch = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
    package = HOSTS / "@openai" / f"codex-{sys.platform}-{arch.get(platform.machine().lower(), '')}"
    return next(package.glob("vendor/*/bin/codex"), None)


def binary() -> Path:
    """``find_codex`` or a message that says how to get it."""
    found = find_codex()
    assert found is not None, "the Codex binary is missing: run `make hosts`"
    return found


def shell(command: str, **more: Any) -> Tool:
    """Codex's shell tool; ``yield_time_ms`` leaves a longer command running."""
    return Tool("exec_command", {"cmd": command, **more})


def patch(*lines: str) -> Tool:
    """A patch, as a model without the tool of that name writes it: by its shell."""
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    return shell(f"apply_patch <<'EOF'\n{text}\nEOF")


def write(path: str, content: str) -> Tool:
    """A new file."""
    return patch(f"*** Add File: {path}", *(f"+{line}" for line in content.splitlines()))


class Codex:
    """One person's Codex: ``model_url`` is a ``ModelServer``'s. ``settings``: lines of ``config.toml`` that
    stand before its tables. ``trusting``: hooks run without having been trusted.
    """

    def __init__(self, box: Sandbox, model_url: str, settings: str = "", *, trusting: bool = True) -> None:
        self.box, self.trusting = box, trusting
        self.config = box.home / ".codex"
        self.config.mkdir(exist_ok=True)
        self.env = box.env(CODEX_HOME=str(self.config), FAKE_KEY="none", REFLECTD_HEADLESS="1")
        lines = [
            f'model = "{MODEL}"',
            'model_provider = "fake"',
            'approval_policy = "never"',
            'sandbox_mode = "danger-full-access"',
            "check_for_update_on_startup = false",
            settings,
            "[model_providers.fake]",
            'name = "Fake"',
            f'base_url = "{model_url}"',
            'wire_api = "responses"',
            'env_key = "FAKE_KEY"',
            "request_max_retries = 0",
            "stream_max_retries = 0",
            f'[projects."{box.project}"]',
            'trust_level = "trusted"',
        ]
        (self.config / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def write_hooks(self, hooks: Json) -> Path:
        """The person's ``hooks.json``, as a whole."""
        file = self.config / "hooks.json"
        file.write_text(json.dumps(hooks, indent=2), encoding="utf-8")
        return file

    def command(self, *args: str) -> list[str]:
        """The command line."""
        return [str(binary()), *(["--dangerously-bypass-hook-trust"] if self.trusting else []), *args]

    def run(self, prompt: str, *args: str, cwd: Path | None = None, **env: str) -> Ran:
        """``codex exec --json`` with the prompt on stdin, until it ends."""
        with self.start(prompt, *args, cwd=cwd, **env) as running:
            return running.wait()

    def start(self, prompt: str, *args: str, cwd: Path | None = None, **env: str) -> Running:
        """The same in flight."""
        command = self.command("exec", "--json", *args, "-")
        return Running(self.box.root, command, prompt, self.env | env, cwd or self.box.project)

    def rollouts(self) -> list[Path]:
        """The files of its sessions, oldest first; those of sub-agents are among them."""
        found = (self.config / "sessions").glob("*/*/*/rollout-*.jsonl")
        return sorted(found, key=lambda p: p.stat().st_mtime_ns)

    def rollout(self, session: str) -> Path:
        """The file of one session."""
        (file,) = (self.config / "sessions").glob(f"*/*/*/rollout-*-{session}.jsonl")
        return file


def hooked(box: Sandbox, llm: ModelServer) -> Codex:
    """A Codex with our hooks, which it runs without having been asked to trust them."""
    made = Codex(box, llm.url)
    made.write_hooks({"hooks": {event: [group(event, SCRIPT)] for event in EVENTS}})
    return made


def items_of(ran: Ran) -> list[Json]:
    """What ``--json`` printed."""
    return [json.loads(line) for line in ran.stdout.splitlines()]


def session_of(ran: Ran) -> str:
    """The id of the session that an ``exec`` was."""
    found: str = next(item["thread_id"] for item in items_of(ran) if item["type"] == "thread.started")
    return found


def said_by(ran: Ran) -> list[str]:
    """The agent's messages of an ``exec``, oldest first."""
    items = [line["item"] for line in items_of(ran) if line["type"] == "item.completed"]
    return [item["text"] for item in items if item["type"] == "agent_message"]


class CodexTui(Terminal):
    """``with CodexTui(codex) as tui``: ready to be typed into when the block begins."""

    def __init__(self, codex: Codex, *args: str, **env: str) -> None:
        super().__init__(codex.command(*args), codex.env | env, codex.box.project, READY)

    def interrupt(self) -> None:
        """Esc, once; until the agent has stopped."""
        self.escape()
        self.wait_for("interrupted")

    def wait_idle(self) -> None:
        """Until the agent has stopped, by the screen."""
        wait_until(lambda: "esc to interrupt" not in self.screen, "idle agent", lambda: self.screen)
