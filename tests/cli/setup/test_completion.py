"""``reflectd completion``, in the real shells."""

from __future__ import annotations

import subprocess
import sys

import pytest

from daemon.cli.verbs import VERBS
from harness.machine.sandbox import Sandbox
from tests.support.machine.command_line import environment, reflectd


def completed(box: Sandbox, line: str, **env: str) -> list[str]:
    """What bash offers for the last word of ``line``."""
    words = line.split(" ")
    script = f"""
reflectd() {{ {sys.executable} -m daemon "$@"; }}
source <(reflectd completion bash)
COMP_WORDS=({" ".join(f"'{w}'" for w in words)}); COMP_CWORD={len(words) - 1}
_reflectd
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=environment(box, **env),
        cwd=box.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_bash_completes(box: Sandbox) -> None:
    """Completes verbs, verbs below verbs, flags, choices, values of settings and folders; else nothing."""
    (box.project / "a folder").mkdir()
    assert set(completed(box, "reflectd ")) == set(VERBS)
    assert completed(box, "reflectd wa") == ["watch"]
    assert completed(box, "reflectd setup o") == ["opencode"]
    assert completed(box, "reflectd help wa") == ["watch"]
    assert completed(box, "reflectd setup opencode --dr") == ["--dry-run"]
    assert completed(box, "reflectd cost --by p") == ["project", "purpose", "provider"]
    assert completed(box, "reflectd serve --judge-mode ") == ["act", "observe"]
    assert completed(box, "reflectd why --dir a") == ["a", "folder"]
    assert completed(box, "reflectd logs -n ") == []


@pytest.mark.needs("fish")
def test_fish_completes(box: Sandbox) -> None:
    """The script in a real fish: verbs, choices, flags."""
    (box.root / "r.fish").write_text(reflectd(box, "completion", "fish").stdout)
    for line, wanted in (("wa", "watch"), ("cost --by pu", "purpose"), ("setup opencode --dr", "--dry-run")):
        ours = f"function reflectd; {sys.executable} -m daemon $argv; end"
        script = f"{ours}; source {box.root}/r.fish; complete -C 'reflectd {line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", script],
            env=environment(box),
            capture_output=True,
            text=True,
            check=True,
        )
        assert [found.partition("\t")[0] for found in done.stdout.splitlines()] == [wanted]


@pytest.mark.needs("zsh")
def test_zsh_completes(box: Sandbox) -> None:
    """The script in a real zsh, with what it would show instead of `_describe`."""
    (box.root / "r.zsh").write_text(reflectd(box, "completion", "zsh").stdout)
    for line, wanted in (("wa", "watch"), ("cost --by pu", "purpose"), ("setup opencode --dr", "--dry-run")):
        script = f"""
reflectd() {{ {sys.executable} -m daemon "$@" }}
compdef() {{ }}
_describe() {{ print -l -- "${{(@P)2}}" }}
source {box.root}/r.zsh
words=(reflectd {line}) CURRENT=$#words
_reflectd
"""
        done = subprocess.run(
            ["zsh", "-f", "-c", script], env=environment(box), capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        assert [found.partition(":")[0] for found in done.stdout.splitlines()] == [wanted]
