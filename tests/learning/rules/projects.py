"""A project with rules on a disk of its own, for the tests of what changes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daemon.learning.playbook.project_playbook import dumped
from daemon.learning.rules.journal import checked
from daemon.learning.rules.learned_rules import Done, LearnedRules
from daemon.testing import FakeClock
from harness.machine.sandbox import REPO
from tests.learning.playbook.books import book, point

NOW_MS = 1_764_201_600_000  # 2025-11-27
DRIVER = """
import os, signal, sys
counted = 0
def hook(event, args):
    global counted
    if event in {"os.rename", "os.remove"}:
        counted += 1
        if counted == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
exec(sys.argv[2])
"""
"""Runs a program and kills it with signal 9 right before its n-th rename or removal, which is how a file is
replaced."""


@dataclass
class Machine:
    """A home folder, a project in it, and a state folder. ``path``: the PATH of commands."""

    root: Path
    path: str = "/nonexistent"

    def __post_init__(self) -> None:
        self.home, self.project = self.root / "home", self.root / "home" / "work"
        self.project.mkdir(parents=True, exist_ok=True)
        self.state = self.root / "state"
        self.state.mkdir(exist_ok=True)
        self.clock = FakeClock(NOW_MS)

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": self.path}

    @property
    def rules(self) -> LearnedRules:
        return LearnedRules(self.project, self.state, self.clock, self.env)

    def put(self, name: str, text: str = "# Rules\n") -> Path:
        """A file of the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @property
    def text(self) -> str:
        """CLAUDE.md."""
        return self.file.read_text() if self.file.exists() else ""

    @property
    def file(self) -> Path:
        return self.project / "CLAUDE.md"

    def journal(self) -> dict[str, Any]:
        """The journal's file, as it is."""
        found: dict[str, Any] = json.loads(self.rules.journal.path.read_text())
        return found

    def entries(self) -> list[tuple[str, str, bool]]:
        return [(r["id"], r["content"], r["active"]) for r in self.journal()["learned_rules"]]

    def learn(self, text: str, **more: Any) -> Done:
        return self.rules.learn(text, **more)

    def signals(self, *contents: str) -> list[str]:
        """Signals that wait, and their ids."""
        names = [f"sig-20251120-{i:03d}" for i in range(1, len(contents) + 1)]
        with self.rules.journal.change() as draft:
            for name, content in zip(names, contents, strict=True):
                signal = {"id": name, "type": "correction", "content": content, "severity": "high"}
                draft.journal["signals"].append(checked({"signals": [signal]})["signals"][0])
        return names

    def status_of(self, name: str) -> str:
        return str(next(s["status"] for s in self.journal()["signals"] if s["id"] == name))

    def workshop(self, script: str, path: str = "") -> None:
        """A program called workshop, alone in PATH or with that of ``path``."""
        folder = self.root / "bin"
        folder.mkdir()
        (folder / "workshop").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "workshop").chmod(0o755)
        self.path = f"{folder}{path}"

    def points(self, *texts: str) -> Path:
        """A playbook with these points."""
        path = self.project / ".reflection" / "playbook.json"
        path.parent.mkdir()
        path.write_bytes(dumped(book(*(point(f"pat-{n:03d}", text) for n, text in enumerate(texts, 1)))))
        return path

    def killed(self, at: int, code: str) -> bool:
        """Run code in a process that is killed before its ``at``-th rename; False when it came to its end."""
        program = (
            "from pathlib import Path\nfrom daemon.testing import FakeClock\n"
            "from daemon.learning.rules.learned_rules import LearnedRules\n"
            f"rules = LearnedRules({str(self.project)!r}, Path({str(self.state)!r}), "
            f"FakeClock({NOW_MS}), {self.env!r})\n{code}"
        )
        run = [sys.executable, "-c", DRIVER, str(at), program]
        env = {**os.environ, "PYTHONPATH": str(REPO), "HOME": str(self.home)}
        done = subprocess.run(run, env=env, capture_output=True, timeout=60, check=False)
        assert done.returncode in {0, -9}, done.stderr.decode()
        return done.returncode == -9
