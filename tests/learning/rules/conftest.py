"""What the tests of several modules need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.learning.rules.projects import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A project with rules on a disk of its own."""
    return Machine(tmp_path.resolve())
