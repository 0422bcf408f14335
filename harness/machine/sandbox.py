"""A throw-away machine: home, XDG folders, a git project, and the environment to run programs in."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.machine import processes

REPO = Path(__file__).resolve().parents[2]
SHIM = REPO / "plugin-shim" / "opencode" / "src"
MODEL = {"providerID": "fake", "modelID": "fake-1"}
OTHER_MODEL = {"providerID": "fake", "modelID": "fake-2"}

MAKEFILE = """\
test:
\t@test -f answer.txt && echo "1 passed" || { echo "1 failed: no answer.txt" >&2; exit 1; }
"""


@dataclass(slots=True)
class Sandbox:
    """``home``, ``project`` (a git repository whose ``make test`` fails until ``answer.txt`` exists) and what
    the daemon gets: ``socket``, ``state``.
    """

    root: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def socket(self) -> Path:
        return self.root / "run" / "r.sock"

    @property
    def state(self) -> Path:
        return self.root / "state"

    def env(self, **more: str) -> dict[str, str]:
        """The whole environment of a program: nothing of the caller's but PATH and the locale."""
        env = {k: v for k, v in os.environ.items() if k in {"LANG", "LC_ALL", "TMPDIR"}}
        env |= {
            processes.MARK: processes.RUN,
            "PATH": path_without_reflectd(),
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_DATA_HOME": str(self.home / ".local" / "share"),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_STATE_HOME": str(self.home / ".local" / "state"),
            "REFLECTD_SOCKET": str(self.socket),
            "REFLECTD_STATE_DIR": str(self.state),
            "REFLECTD_NO_START": "1",
            "REFLECTD_JUDGE_PROVIDER": "offline",
        }
        return env | self.extra | more

    def file(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


def path_without_reflectd() -> str:
    """PATH without the folders that hold a ``reflectd``: tests say when there is a daemon."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(f for f in folders if not (Path(f) / "reflectd").exists())


@contextlib.contextmanager
def sandbox(**extra: str) -> Iterator[Sandbox]:
    """Make one in the temporary folder (a short path: sockets have 104 bytes), remove it afterwards."""
    root = Path(tempfile.mkdtemp(prefix="rd-")).resolve()
    box = Sandbox(root, extra)
    try:
        for folder in (box.home, box.project, box.state):
            folder.mkdir()
        box.socket.parent.mkdir(mode=0o700)
        _seed_opencode(box.home / ".config" / "opencode")
        box.file("Makefile", MAKEFILE)
        git = [
            "git",
            "-c",
            "user.name=A Person",
            "-c",
            "user.email=person@example.org",
            "-C",
            str(box.project),
        ]
        for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "First"]):
            subprocess.run([*git, *command], check=True, env=box.env(), stdin=subprocess.DEVNULL)
        yield box
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _seed_opencode(folder: Path) -> None:
    """As if opencode's install of its plugin package had happened: otherwise each start tries it, offline for
    75 s, and a process that ended in the middle of it leaves a lock that holds up the next one for 60 s.
    """
    wanted = {"dependencies": {"@opencode-ai/plugin": "*"}}
    lock = {"name": "opencode", "lockfileVersion": 3, "requires": True, "packages": {"": wanted}}
    (folder / "node_modules").mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps(wanted), encoding="utf-8")
    (folder / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")


def opencode_env(
    box: Sandbox, model_url: str, *, plugin: bool = True, config: dict[str, Any] | None = None
) -> dict[str, str]:
    """The environment of an opencode that reaches nothing but the model server.

    ``npm_config_offline``: whatever it still wants from npm fails at once.
    """
    models = {
        name: {"name": name, "limit": {"context": 200_000, "output": 8_192}}
        for name in ("fake-1", "fake-2", "fake-small")
    }
    options = {"baseURL": model_url, "apiKey": "none"}
    settings: dict[str, Any] = {
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,
        "lsp": False,
        "formatter": False,
        "model": "fake/fake-1",
        "small_model": "fake/fake-small",
        "agent": {"careful": {"mode": "primary", "description": "A person's own agent"}},
        "enabled_providers": ["fake", "fakeant"],
        "plugin": [SHIM.as_uri()] if plugin else [],
        "provider": {
            "fake": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Fake",
                "options": options,
                "models": models,
            },
            "fakeant": {
                "npm": "@ai-sdk/anthropic",
                "name": "Fake Anthropic",
                "options": options,
                "models": models,
            },
        },
    }
    return box.env(
        npm_config_offline="true",
        OPENCODE_CONFIG_CONTENT=json.dumps(settings | (config or {})),
        OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_MODELS_FETCH="1",
        OPENCODE_DISABLE_LSP_DOWNLOAD="1",
        OPENCODE_DISABLE_SHARE="1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS="1",
        OPENCODE_DISABLE_EXTERNAL_SKILLS="1",
        OPENCODE_DISABLE_CLAUDE_CODE="1",
    )
