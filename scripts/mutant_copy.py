"""A throw-away copy of a checkout, in which ``mutants.py`` runs tests.

Its ``.venv`` is made of links, and everything in it that names the checkout names the copy: the tests and the
programs that they start import the copy.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

PROBE = Path(__file__).with_name("mutant_probe.py")
BUILT = ("plugin-shim/opencode/dist", "plugin-shim/opencode/node_modules", "tests/web/node_modules")
PYTEST = [
    "-q",
    "-p",
    "no:randomly",
    "-p",
    "no:cacheprovider",
    "-p",
    "mutant_probe",
    "--hypothesis-seed=0",
    "--timeout=120",
]


class Copy:
    """Its files as they are, links to what was built, and the ``.venv``."""

    def __init__(self, root: Path, source: Path, base: Path, name: str) -> None:
        """``base/name``. ``source`` is the checkout ``root`` or a copy of it."""
        self.path, self.base = base / name, base / f"t{name}"
        self.second = 1_000_000_000
        self.base.mkdir()
        ask = ["git", "ls-files", "-zco", "--exclude-standard"]  # what is not committed yet too
        listed = subprocess.run(  # noqa: S603 - git
            ask, cwd=root, check=True, stdout=subprocess.PIPE
        )
        for file in filter(None, listed.stdout.decode().split("\0")):
            if os.path.lexists(source / file) and not file.startswith(".venv"):
                (self.path / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source / file, self.path / file, follow_symlinks=False)
        for built in BUILT:
            if (root / built).exists():
                (self.path / built).symlink_to(root / built)
        self.environment((root / ".venv").resolve(), self.path / ".venv")

    def environment(self, real: Path, own: Path) -> None:
        """Everything is a link but what names the checkout."""
        packages = next(real.glob("lib/python*/site-packages"))
        for folder in (own / "bin", target := own / packages.relative_to(real)):
            folder.mkdir(parents=True)
        (own / "lib64").symlink_to("lib")
        for path in (*real.iterdir(), *packages.iterdir()):
            place = own / path.relative_to(real)
            if not place.exists() and path.name != "_reflectd.pth":
                place.symlink_to(path)
        for path in (real / "bin").iterdir():
            if path.is_symlink() or path.stat().st_size > 100_000:
                (own / "bin" / path.name).symlink_to(path if not path.is_symlink() else path.readlink())
            else:
                shutil.copy2(path, own / "bin" / path.name)
                (own / "bin" / path.name).write_bytes(path.read_bytes().replace(bytes(real), bytes(own)))
        (target / "_reflectd.pth").write_text(f"{self.path}\n{self.path / 'dev'}\n", "utf-8")
        shutil.copy2(PROBE, target)

    def pytest(self, *args: str, limit: float | None = None, **env: str) -> int | None:
        """Its exit code, None when it took too long. Nothing that it started is left."""
        command = [
            str(self.path / ".venv/bin/python"),
            "-m",
            "pytest",
            *PYTEST,
            f"--basetemp={self.base / 'b'}",
            *args,
        ]
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV"))
        }
        given = inherited | {"TMPDIR": str(self.base), "MUTANTS_BASE": str(self.base)} | env
        with (self.base / "output").open("wb") as output:
            run = subprocess.Popen(  # noqa: S603 - the copy's own Python
                command,
                cwd=self.path,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=given,
                start_new_session=True,
            )
            try:
                return run.wait(limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(run.pid, signal.SIGKILL)
                run.wait()
                self.sweep()

    def sweep(self) -> None:
        """End what tests left behind: every process whose temporary folder is in ours."""
        mark = f"TMPDIR={self.base}/".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if any((v + b"/").startswith(mark) for v in (process / "environ").read_bytes().split(b"\0")):
                    os.kill(int(process.name), signal.SIGKILL)
        for left in self.base.iterdir():
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)

    def write(self, module: str, text: bytes) -> None:
        """Change a module. No two texts get the same second, so Python compiles each anew."""
        (self.path / module).write_bytes(text)
        self.second += 1
        os.utime(self.path / module, (self.second, self.second))

    def picked(
        self, tests: list[str], options: list[str], limit: float | None
    ) -> tuple[int | None, dict[str, bool]]:
        """Run these tests in this order; the exit code, and which passed, in the order of their ends."""
        report, pick = self.base / "report", self.base / "pick"
        report.unlink(missing_ok=True)
        pick.write_text(json.dumps(tests), "utf-8")
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        code = self.pytest(
            "-x", *options, *files, limit=limit, MUTANTS_PICK=str(pick), MUTANTS_REPORT=str(report)
        )
        ended = json.loads(report.read_text("utf-8")) if report.exists() else {}
        return code, {test: ok for test, (ok, _) in ended.items()}
