"""``make release-check``: builds what would be published, installs each part in an empty place, and uses it.

It works on a copy of the last commit, so that nothing else gets in. Wheel and sdist are installed beside
python-daemon, whose package is called ``daemon`` too, and take the README's first steps. With a second Python
(``--other-python``, else one that is on PATH) uv and pipx install the wheel, change its Python and remove it.
It needs the package indexes. It publishes nothing. Exit codes: 0, 1 when a step failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any, Final

from harness.machine import upgrade
from harness.machine.sandbox import REPO, Sandbox, sandbox

TOOLS: Final = REPO / ".venv" / "release" / "bin"  # twine, uv and pipx
PYTHONS: Final = ("python3.11", "python3.12", "python3.13", "python3.14")
SHIM: Final = "plugin-shim/opencode"
URLS: Final = ("Homepage", "Repository", "Issues", "Changelog")
IN_WHEEL: Final = (
    "reflectd/__init__.py",
    "reflectd/py.typed",
    "reflectd/prompts/",
    "reflectd/examples/consumers/speak.py",
    "reflectd/shims/opencode/index.ts",
    "reflectd/shims/claude-code/hooks/hooks.json",
    "reflectd/reflection/schemas/",
)
IN_NPM: Final = ("dist/reflectd.js", "index.d.ts", "LICENSE", "README.md", "package.json")
STEPS: Final[tuple[tuple[int, str], ...]] = (
    (0, "--version"),
    (0, "setup opencode"),
    (0, "setup claude-code --judge offline"),
    (3, "status"),
    (0, "start"),
    (0, "status"),
    (2, "why"),
    (0, "cost"),
    (0, "examples"),
    (0, "stop"),
    (0, "setup claude-code --remove"),
    (0, "setup opencode --remove"),
    (0, "uninstall --yes"),
)
"""The README's first steps, and the exit code of each."""


class Failed(Exception):
    """A step did not do what it should."""


def main(argv: list[str]) -> int:
    """All checks, one after the other; the first that fails ends it."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--other-python", default=_other_python(), help="of another version than this one")
    other = parser.parse_args(argv).other_python
    with tempfile.TemporaryDirectory(prefix="reflectd-release-") as folder:
        try:
            wheel = _check(Path(folder).resolve())
            if other:
                _upgrade(wheel, other)
        except (Failed, upgrade.Failed) as e:
            print(f"release-check: {e}", file=sys.stderr)
            return 1
    for line in missing():
        print(f"missing  {line}")
    if not other:
        print("missing  a second Python, to show upgrades: make release-check OTHER_PYTHON=PATH")
    print("ready, but for what is called missing above")
    return 0


def missing() -> list[str]:
    """What a published version should name and nobody has decided yet. It is never made up."""
    project = _project()
    package = json.loads((REPO / SHIM / "package.json").read_text("utf-8"))
    found = [f"pyproject.toml: project.urls.{name}" for name in URLS if name not in project.get("urls", {})]
    if not any("email" in author for author in project["authors"]):
        found.append("pyproject.toml: an address to write to, in project.authors")
    found += [f"{SHIM}/package.json: {name}" for name in ("repository", "homepage") if name not in package]
    return found


def _check(root: Path) -> Path:
    """Build, install and use each; gives the wheel."""
    source, out = root / "source", root / "out"
    for made in (source, out):
        made.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=REPO, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
    versions = {
        _project()["version"],
        json.loads((REPO / SHIM / "package.json").read_text("utf-8"))["version"],
    }
    if len(versions) != 1:
        raise Failed(f"daemon/__init__.py and {SHIM}/package.json differ in the version: {sorted(versions)}")
    if f"## [{versions.pop()}]" not in (REPO / "CHANGELOG.md").read_text("utf-8"):
        raise Failed("CHANGELOG.md has no part for this version")
    _run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], source)
    _run([str(TOOLS / "twine"), "check", "--strict", *map(str, out.iterdir())], source)
    _run(["npm", "pack", "--silent", "--pack-destination", str(out)], REPO / SHIM)
    (wheel,), (sdist,), (tarball,) = (list(out.glob(p)) for p in ("*.whl", "reflectd-*.tar.gz", "*.tgz"))
    _holds(wheel, zipfile.ZipFile(wheel).namelist(), IN_WHEEL)
    with tarfile.open(tarball) as packed:
        _holds(tarball, [n.removeprefix("package/") for n in packed.getnames()], IN_NPM)
    for artifact in (wheel, sdist):
        _install(artifact, root / artifact.suffix.strip("."))
    _load(tarball, root / "npm")
    return wheel


def _other_python() -> str:
    """A Python on PATH that works and is not this one's version; "" when there is none."""
    for name in PYTHONS:
        path = shutil.which(name)
        asked = [path or "", "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
        found = subprocess.run(asked, capture_output=True, text=True, check=False) if path else None
        if found and not found.returncode and found.stdout.strip() != f"3.{sys.version_info.minor}":
            return str(path)
    return ""


def _upgrade(wheel: Path, other: str) -> None:
    """As a person does it, with uv and with pipx."""
    os.environ["PATH"] = f"{TOOLS}:{os.environ['PATH']}"
    for tool in upgrade.TOOLS:
        print(f"ok       {upgrade.check(tool, wheel, (sys.executable, other))}")


def _project() -> dict[str, Any]:
    """``[project]`` of pyproject.toml, with the version that the package names."""
    from daemon import __version__

    found: dict[str, Any] = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
    return found | {"version": __version__}


def _holds(archive: Path, names: list[str], wanted: tuple[str, ...]) -> None:
    gone = [w for w in wanted if not any(n == w or (w.endswith("/") and n.startswith(w)) for n in names)]
    if gone:
        raise Failed(f"{archive.name} lacks {', '.join(gone)}")
    print(f"ok       {archive.name}: {len(names)} files")


def _install(artifact: Path, folder: Path) -> None:
    """In an empty environment beside python-daemon; then the README's first steps as a new user."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for lock in ("run.txt", "beside.txt"):
        _run([*pip, "--require-hashes", "-r", str(REPO / "requirements" / lock)], folder)
    _run([*pip, "--no-deps", str(artifact)], folder)
    both = "import daemon, reflectd; print(daemon.DaemonContext, reflectd.__version__)"
    _run([python, "-c", both], folder)
    with sandbox() as box:
        (box.home / ".claude").mkdir()
        before = _files(box)
        for code, words in STEPS:
            _run([str(folder / "bin" / "reflectd"), *words.split()], box.project, box.env(), code)
        left = sorted(str(p) for p in _files(box) - before)
        if left:
            raise Failed(f"{artifact.name}: uninstall left {', '.join(left)}")
    print(f"ok       {artifact.name}: installed beside python-daemon, {len(STEPS)} first steps")


def _files(box: Sandbox) -> set[Path]:
    """The files of the person's home, but those of opencode's and Claude Code's own making."""
    return {p for p in box.home.rglob("*") if p.is_file() and "reflectd" in str(p)}


def _load(tarball: Path, folder: Path) -> None:
    """Node loads the plugin from an installed package."""
    folder.mkdir()
    (folder / "package.json").write_text('{"private": true}')
    _run(["npm", "install", "--silent", "--no-audit", "--no-fund", str(tarball)], folder)
    script = 'const p = (await import("opencode-reflectd")).default; if (p.id !== "reflectd") process.exit(1)'
    _run(["node", "--input-type=module", "-e", script], folder)
    print(f"ok       {tarball.name}: installed and loaded")


def _run(command: list[str], folder: Path, env: dict[str, str] | None = None, code: int = 0) -> None:
    """Raises ``Failed`` with what it printed when it ends with another exit code."""
    env = env or {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode != code:
        said = f"{done.stdout}{done.stderr}".strip()
        raise Failed(f"`{' '.join(command)}` ended with {done.returncode}, not {code}:\n{said}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
