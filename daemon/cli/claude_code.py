"""``reflectd doctor`` on Claude Code: the program, our plugin in its settings, what hooks need. Only looks.

Who does not use Claude Code reads one line that says so, never a warning.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from daemon.cli.finding import Check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.cli.finding import About

SETUP = "reflectd setup claude-code"
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


def program(about: About) -> Iterator[Check]:
    """The host: installed, and not older than what the plugin was tested with."""
    from daemon.cli.operation import version_of
    from daemon.cli.setup_claude import OLDEST

    found = shutil.which("claude", path=about.env.get("PATH", ""))
    if found is None:
        yield Check("claude code", "ok", "there is no `claude` on PATH")
        return
    version = version_of(found, about.env)
    numbers = _VERSION.match(version)
    if numbers and tuple(map(int, numbers.groups())) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        mend = f"claude update: reflectd is tested with {oldest} and newer"
        yield Check("claude code", "warn", f"{version} is too old ({found})", mend)
    else:
        yield Check("claude code", "ok", f"{version} ({found})")


def plugin(about: About) -> Iterator[Check]:
    """Our entries in its settings, as they would be read in this folder; and what its hooks run with."""
    from daemon.cli.setup_claude import enabled_in
    from daemon.paths import shipped

    found = list(enabled_in(about.env, Path.cwd()))
    if not found:
        yield Check("hooks", "ok", f"Claude Code does not load reflectd here ({SETUP})")
        return
    here = shipped("shims/claude-code")
    for file, folder, on in found:
        yield _entry(file, folder, here, on=on)
    if not any(on for _, _, on in found):
        return
    path = about.env.get("PATH", "")
    if not shutil.which("curl", path=path) and not shutil.which("python3", path=path):
        yield Check("hooks", "fail", "there is neither `curl` nor `python3` on PATH", "install curl")
    elif not shutil.which("curl", path=path):
        yield Check("hooks", "warn", "without `curl` each hook takes longer", "install curl")


def _entry(file: Path, folder: str | None, here: Path, *, on: bool) -> Check:
    """One settings file that names us."""
    if not on:
        return Check("hooks", "warn", f"{file} has reflectd switched off", f"{SETUP}, or --remove")
    if folder is None:
        return Check("hooks", "warn", f"{file} enables reflectd and does not say where it is", SETUP)
    script = Path(folder, "scripts", "hook.sh")
    if not script.is_file():
        return Check("hooks", "fail", f"{file} loads {folder}, which is not there", SETUP)
    if not os.access(script, os.X_OK):
        return Check("hooks", "fail", f"{script} cannot be run", f"chmod +x {script}")
    if not script.samefile(here / "scripts" / "hook.sh"):
        return Check("hooks", "warn", f"{file} loads another installation, {folder}", SETUP)
    return Check("hooks", "ok", f"{file} loads {folder}")
