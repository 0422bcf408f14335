"""Commands that are a test, build or lint run: tables of what counts, and longer ones of what must not."""

from __future__ import annotations

import pytest

from daemon.evidence.actions import Check
from daemon.evidence.commands import read_script
from tests.support.tables import tables

ROWS = tables("runners")


def checks(script: str) -> list[Check]:
    return [a for a in read_script(script, "/repo") if isinstance(a, Check)]


@pytest.mark.parametrize(("script", "kind", "tool"), ROWS["runs"])
def test_known_runners(script: str, kind: str, tool: str) -> None:
    """The usual runners are found behind prefixes, folders and wrappers."""
    assert [(c.kind, c.tool) for c in checks(script)] == [(kind, tool)]


@pytest.mark.parametrize("script", ROWS["none"])
def test_hard_negatives(script: str) -> None:
    """What mentions a runner, asks for its version, writes, installs or serves is no check."""
    assert checks(script) == []


@pytest.mark.parametrize(("script", "kind"), ROWS["kinds"])
def test_kinds(script: str, kind: str) -> None:
    """What a command looks for; a run that leaves the tests out is no test run."""
    assert [c.kind for c in checks(script)] == [kind]
