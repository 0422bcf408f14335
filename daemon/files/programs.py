"""Finds a program on PATH that the project itself can't have put there.

A folder of PATH that is relative, or that lies in the project, does not count: a clone may ship a program of
that name. Runs nothing.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def find_program(name: str, env: Mapping[str, str], project: Path) -> str | None:
    """The program's absolute path; None when there is none outside of ``project``, a real path."""
    folders = [Path(folder) for folder in env.get("PATH", os.defpath).split(os.pathsep)]
    outside = [
        str(f) for f in folders if f.is_absolute() and not Path(os.path.realpath(f)).is_relative_to(project)
    ]
    found = shutil.which(name, path=os.pathsep.join(outside)) if outside else None
    if found is None or Path(os.path.realpath(found)).is_relative_to(project):
        return None
    return found
