"""Git repositories for tests: an ordinary one, and one that names a program wherever git reads one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PERSON = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")


class Repository:
    """A repository in ``top`` with one commit."""

    def __init__(self, top: Path) -> None:
        self.top = top
        top.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.write("kept.txt", "kept\n")
        self.commit()

    def git(self, *command: str) -> str:
        """Run git as a person does, with whatever the repository names."""
        done = subprocess.run(
            ["git", *PERSON, *command],
            cwd=self.top,
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode in {0, 128}, done.stderr.decode()
        return done.stdout.decode()

    def write(self, name: str, text: str) -> Path:
        """Write a file of the work tree."""
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def commit(self) -> None:
        """Commit everything."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "More")

    def touch(self) -> None:
        """Make git look into every file again."""
        for path in self.top.rglob("*"):
            if path.is_file() and ".git" not in path.parts:
                os.utime(path, (1, 1))


class Trap:
    """Programs that write down that they ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._ran = folder / "ran"

    def program(self, name: str) -> str:
        """The path of one that notes ``name`` and fails."""
        path = self.folder / f"{name}.sh"
        path.write_text(f"#!/bin/sh\necho {name} >>'{self._ran}'\nexit 1\n")
        path.chmod(0o755)
        return str(path)

    def ran(self) -> set[str]:
        """The names of those that ran since this was asked last."""
        found = set(self._ran.read_text().split()) if self._ran.exists() else set()
        self._ran.unlink(missing_ok=True)
        return found


HOOKS = ("post-index-change", "pre-commit", "post-checkout", "reference-transaction", "fsmonitor-watchman")
NAMES_PROGRAMS = (
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.sshCommand",
    "core.askPass",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "pager.status",
    "pager.config",
    "diff.external",
    "diff.evil.command",
    "diff.evil.textconv",
    "merge.evil.driver",
    "credential.helper",
    "gpg.program",
    "interactive.diffFilter",
    "sequence.editor",
    "uploadpack.packObjectsHook",
)


def booby_trap(repository: Repository, trap: Trap) -> None:
    """Name a program in every setting and hook that git has, but for filters, which reflectd refuses."""
    inner = Repository(repository.top / "inner")
    inner.git("config", "core.fsmonitor", trap.program("submodule"))
    inner.write("kept.txt", "changed\n")
    repository.write(".gitattributes", "* diff=evil merge=evil\n")
    repository.write(".gitmodules", '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n')
    repository.commit()
    for name in HOOKS:
        Path(trap.program(name)).rename(repository.top / ".git" / "hooks" / name)
    for key in NAMES_PROGRAMS:
        repository.git("config", key, trap.program(key))
    repository.git("config", "alias.status", f"!{trap.program('alias')}")
    repository.git("config", "submodule.inner.update", f"!{trap.program('update')}")
    repository.git("config", "status.submoduleSummary", "true")
    repository.touch()
    trap.ran()


def lacks_its_tree(repository: Repository, trap: Trap) -> None:
    """A partial clone in which the last commit's tree is missing: git fetches it by the program that the
    remote names.
    """
    tree = repository.git("rev-parse", "HEAD^{tree}").strip()
    (repository.top / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    away = Repository(repository.top.with_name("away"))
    repository.git("config", "extensions.partialClone", "origin")
    repository.git("config", "remote.origin.promisor", "true")
    repository.git("config", "remote.origin.url", str(away.top))
    repository.git("config", "remote.origin.uploadpack", trap.program("uploadpack"))
    trap.ran()
