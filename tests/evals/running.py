"""One evaluation, run as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]


def evaluate(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    """``python -m evals.<name>``. A traceback fails the test."""
    done = subprocess.run(
        [sys.executable, "-m", f"evals.{name}", *args],
        cwd=REPO,
        env=os.environ | {"PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done
