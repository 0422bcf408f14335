"""A home with Claude Code's settings, and ``reflectd setup`` of one host run on it in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon.cli.main import Parser, failed
from daemon.cli.setup import setup
from daemon.core.errors import ReflectdError


def run_setup(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """``reflectd setup`` in this process; an error is told as the command line tells it."""
    parser, words = Parser(), ["setup", *argv]
    setup.add_parser(parser.add_subparsers(dest="verb", required=True))
    args = parser.parse_args(words)
    try:
        return setup.run(args, env=env)
    except (ReflectdError, OSError) as error:
        return failed(error, words)


@dataclass
class Desk:
    """A home, a project, and the command."""

    root: Path
    capsys: pytest.CaptureFixture[str] | None = None
    env: dict[str, str] = field(default_factory=dict)
    host: str = "claude-code"
    out: str = ""
    err: str = ""

    def __post_init__(self) -> None:
        (self.root / "home").mkdir()
        self.env = {"HOME": str(self.root / "home")}
        self.file = self.root / "home" / ".claude" / "settings.json"
        self.project = self.root / "project"
        self.project.mkdir()
        self.data = self.root / "home" / ".local" / "share" / "reflectd"
        self.folder = str(self.data / "plugins" / "claude-code")
        self.ours = {
            "extraKnownMarketplaces": {"reflectd": {"source": {"source": "directory", "path": self.folder}}},
            "enabledPlugins": {"reflectd@reflectd": True},
        }

    def __call__(self, *argv: str) -> int:
        code = run_setup([self.host, *argv], self.env)
        if self.capsys:
            self.out, self.err = self.capsys.readouterr()
        return code

    def json(self, *argv: str) -> dict[str, Any]:
        assert self(*argv, "--json") == 0
        assert self.err == ""
        return json.loads(self.out)

    def write(self, text: str, file: Path | None = None) -> Path:
        file = file or self.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def tree(self) -> dict[str, bytes | None]:
        """Everything there is, with its bytes."""
        found = self.root.rglob("*")
        return {str(p.relative_to(self.root)): None if p.is_dir() else p.read_bytes() for p in found}
