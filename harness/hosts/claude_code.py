"""The real Claude Code: found, run once with ``-p``, read back. (Its terminal UI is in ``claude_tui``.)

Three pinned versions: the newest (``new``), the one ``before`` it and the oldest that is supported (``old``).
Whatever is started runs in a sandbox and in its own process group, sees no other settings and no network but
the model server, and is gone when the block ends.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.machine import processes
from harness.machine.sandbox import REPO, Sandbox

HOSTS = REPO / "tests" / "e2e" / "hosts" / "node_modules"
KEY = "sk-ant-api03-dummy-key-of-the-tests-0123456789"
Json = dict[str, Any]
Version = Literal["new", "before", "old"]
_PLACES: dict[Version, str] = {"before": "claude-code-before", "old": "claude-code-oldest"}


def find_claude(version: Version = "new") -> Path | None:
    """The pinned binary that ``make hosts`` installed, for this machine; None when it is not there."""
    arch = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
    package = f"claude-code-{sys.platform}-{arch.get(platform.machine().lower(), '')}"
    if Path("/etc/alpine-release").exists():
        package += "-musl"
    inside = HOSTS / _PLACES[version] / "node_modules" if version in _PLACES else HOSTS
    found = inside / "@anthropic-ai" / package / "claude"
    return found if found.is_file() else None


def binary(version: Version = "new") -> Path:
    """``find_claude`` or a message that says how to get it."""
    found = find_claude(version)
    assert found is not None, "the Claude Code binary is missing: run `make hosts`"
    return found


class ClaudeCode:
    """One person's Claude Code: ``model_url`` is a ``ModelServer``'s.

    ``plugin``: a plugin's folder for ``--plugin-dir``. ``settings``: the person's ``settings.json``. ``env``:
    more of the environment.
    """

    def __init__(
        self,
        box: Sandbox,
        model_url: str,
        version: Version = "new",
        *,
        plugin: Path | None = None,
        settings: Json | None = None,
        **env: str,
    ) -> None:
        self.box, self.version, self.plugin = box, version, plugin
        self.config = box.home / ".claude"
        temporary = box.root / "tmp"
        for folder in (self.config, temporary):
            folder.mkdir(exist_ok=True)
        self.env = claude_env(box, model_url, config=self.config, temporary=temporary) | env
        if settings is not None:
            self.write_settings(settings)
        _prepare(self.config / ".claude.json", box.project)

    def write_settings(self, settings: Json) -> Path:
        """The person's settings file, as a whole."""
        file = self.config / "settings.json"
        file.write_text(json.dumps(settings, indent=2), encoding="utf-8")
        return file

    def command(self, *args: str) -> list[str]:
        """The command line, with the plugin."""
        plugin = ["--plugin-dir", str(self.plugin)] if self.plugin is not None else []
        return [str(binary(self.version)), *plugin, *args]

    def run(self, prompt: str, *args: str, cwd: Path | None = None, **env: str) -> Ran:
        """``claude -p`` with the prompt on stdin, with Bash allowed and JSON as its output."""
        with self.start(prompt, *args, cwd=cwd, **env) as running:
            return running.wait()

    def start(self, prompt: str, *args: str, cwd: Path | None = None, **env: str) -> Running:
        """The same in flight, for tests that do something meanwhile."""
        wanted = ["-p", "--output-format", "json", "--allowedTools", "Bash,Write,Edit,Read", *args]
        folder = cwd or self.box.project
        return Running(self.box.root, self.command(*wanted), prompt, self.env | env, folder)

    def serve(self, **env: str) -> Dialogue:
        """A session as a program that uses the SDK holds it: messages come one by one, stdin stays open."""
        wanted = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        command = self.command(*wanted, "--allowedTools", "Bash,Write,Edit,Read")
        return Dialogue(self.box.root, command, "", self.env | env, self.box.project)

    def call(self, *args: str) -> Ran:
        """Any other verb (``plugin list`` …), without input."""
        with Running(self.box.root, self.command(*args), "", self.env, self.box.project) as running:
            return running.wait()

    def transcripts(self, project: Path | None = None) -> list[Path]:
        """The sessions of a project, oldest first."""
        folder = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project or self.box.project))
        found = (self.config / "projects" / folder).glob("*.jsonl")
        return sorted(found, key=lambda p: p.stat().st_mtime_ns)

    def transcript(self, session: str) -> list[Json]:
        """The lines of one session, in any project."""
        (file,) = (self.config / "projects").glob(f"*/{session}.jsonl")
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def claude_env(box: Sandbox, model_url: str, *, config: Path, temporary: Path) -> dict[str, str]:
    """The environment of a Claude Code that reaches nothing but the model server."""
    return box.env(
        CLAUDE_CONFIG_DIR=str(config),
        ANTHROPIC_BASE_URL=model_url.removesuffix("/v1"),
        ANTHROPIC_API_KEY=KEY,
        DISABLE_TELEMETRY="1",
        DISABLE_ERROR_REPORTING="1",
        DISABLE_AUTOUPDATER="1",
        DISABLE_BUG_COMMAND="1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        TMPDIR=str(temporary),
        CLAUDE_CODE_TMPDIR=str(temporary),
    )


def _prepare(file: Path, project: Path) -> None:
    """As if the person had been through the first start and trusted the project; else the UI asks for it."""
    if file.exists():
        return
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(project): trusted},
    }
    file.write_text(json.dumps(known), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Ran:
    """How a ``claude`` ended."""

    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def json(self) -> Json:
        """What ``--output-format json`` printed."""
        found: Json = json.loads(self.stdout)
        return found

    @property
    def result(self) -> str:
        """The last words of the agent."""
        said: str = self.json["result"]
        return said

    @property
    def session(self) -> str:
        found: str = self.json["session_id"]
        return found


class Running(processes.Program):
    """A ``claude`` in flight."""

    def wait(self) -> Ran:
        """Until it ends by itself."""
        return Ran(*self.ended())


class Dialogue(Running):
    """A ``claude`` that is given messages while it runs."""

    stays_open = True

    def say(self, text: str) -> None:
        """Send one message of the person."""
        assert self._process is not None
        assert self._process.stdin is not None
        line = {"type": "user", "message": {"role": "user", "content": text}}
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        self._process.stdin.flush()

    def end(self) -> Ran:
        """Close its input; until it ends."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.wait()

    @property
    def results(self) -> list[str]:
        """The last words of each turn that it reported as over."""
        lines = self.texts()[0].splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return [line["result"] for line in found if line["type"] == "result"]
