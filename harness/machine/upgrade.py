"""Upgrades an installation to another Python as a person does, with uv and with pipx, and uninstalls it.

``python -m harness.machine.upgrade WHEEL PYTHON OTHER_PYTHON``. It needs ``uv``, ``pipx`` and a package
index, so no test runs it. Exit codes: 0 the agents' settings led to a whole plugin all along, and nothing was
left · 1 a step failed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from harness.machine.sandbox import Sandbox, sandbox

TOOLS: Final = {
    "uv": (
        "uv tool install --python {python} {wheel}",
        "uv tool install --force --python {python} {wheel}",
        "uv tool uninstall reflectd",
    ),
    "pipx": (
        "pipx install --python {python} {wheel}",
        "pipx reinstall --python {python} reflectd",  # its `install --force` keeps the old Python
        "pipx uninstall reflectd",
    ),
}
"""For each tool: how a person installs, changes the Python, and removes."""
ENTRIES: Final = {"opencode": "index.ts", "claude-code": "hooks/hooks.json"}
_CERTIFICATES: Final = (
    "SSL_CERT_FILE",
    "PIP_CERT",
    "UV_SYSTEM_CERTS",
    "UV_NATIVE_TLS",
    "HTTPS_PROXY",
    "NO_PROXY",
)


class Failed(Exception):
    """A step did not do what it should."""


def check(tool: str, wheel: Path, pythons: tuple[str, str]) -> str:
    """One line on what was seen. Raises ``Failed``."""
    install, upgrade, remove = TOOLS[tool]
    with sandbox() as box:
        env = box.env(
            PATH=f"{box.home / '.local' / 'bin'}:{os.environ['PATH']}",
            **{name: os.environ[name] for name in _CERTIFICATES if name in os.environ},
        )
        before = _ours(box)
        _run(install.format(python=pythons[0], wheel=wheel), box, env)
        for host in ENTRIES:
            _run(f"reflectd setup {host}", box, env)
        settings = _settings(box)
        first = _python(box, env)
        _run(upgrade.format(python=pythons[1], wheel=wheel), box, env)
        second = _python(box, env)
        if first == second:
            raise Failed(f"{tool}: still {first} after the upgrade, so nothing was shown")
        if _settings(box) != settings:
            raise Failed(f"{tool}: the upgrade changed settings")
        for host, folder in _named(settings).items():
            entry = folder / ENTRIES[host]
            if not entry.is_file():
                raise Failed(f"{tool}: the settings of {host} lead to {entry}, which is gone")
            entry.write_text("of the older version")
        _run("reflectd start --from-shim", box, env)
        for host, folder in _named(settings).items():
            if "of the older version" in (folder / ENTRIES[host]).read_text("utf-8"):
                raise Failed(f"{tool}: the start left the old plugin of {host}")
        _run("reflectd uninstall --yes", box, env)
        _run(remove, box, env)
        if left := sorted(_ours(box) - before):
            raise Failed(f"{tool}: left {', '.join(left)}")
    return f"{tool}: from Python {first} to {second}, both agents stay connected, and nothing is left"


def _run(words: str, box: Sandbox, env: dict[str, str]) -> str:
    done = subprocess.run(
        words.split(), cwd=box.project, env=env, capture_output=True, text=True, timeout=900, check=False
    )
    if done.returncode:
        raise Failed(f"`{words}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _python(box: Sandbox, env: dict[str, str]) -> str:
    """The version of the Python that the installed command runs with."""
    checks = json.loads(_run("reflectd doctor --json", box, env))["checks"]
    (package,) = (str(c["text"]) for c in checks if c["name"] == "package")
    return package.rpartition(", Python ")[2].split()[0]


def _settings(box: Sandbox) -> dict[str, str]:
    files = {
        "opencode": box.home / ".config" / "opencode" / "opencode.json",
        "claude-code": box.home / ".claude" / "settings.json",
    }
    return {host: file.read_text("utf-8") for host, file in files.items()}


def _named(settings: dict[str, str]) -> dict[str, Path]:
    """The folder that each agent's settings name."""
    found = {host: re.search(r'"(?:file://)?(/[^"]*reflectd[^"]*)"', text) for host, text in settings.items()}
    return {host: Path(unquote(match[1])) for host, match in found.items() if match}


def _ours(box: Sandbox) -> set[str]:
    """What has our name, but for what package tools keep for themselves."""
    named = (p for p in (*box.home.rglob("*reflectd*"), box.state) if p.exists() or p.is_symlink())
    return {str(p) for p in named if not {".cache", "pipx"} & set(p.parts)}


def main(argv: list[str]) -> int:
    """Both tools, one after the other."""
    wheel, *pythons = argv
    for tool in TOOLS:
        try:
            print(f"ok       {check(tool, Path(wheel).resolve(), (pythons[0], pythons[1]))}", flush=True)
        except Failed as e:
            print(f"upgrade: {e}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
