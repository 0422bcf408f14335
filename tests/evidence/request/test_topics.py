"""What a clause asks for and rules out. Shows ``topic_words`` too: its tables are read by nothing else."""

from __future__ import annotations

import pytest

from daemon.evidence.request.topics import read_clause
from tests.support.tables import tables
from tests.support.transcripts import TEST, edit, evidence_of

ROWS = tables("topics")


@pytest.mark.shows("I26")
@pytest.mark.parametrize(("clause", "asks"), ROWS["asked"])
def test_asked(clause: str, asks: list[str]) -> None:
    """Only plain wording asks for anything."""
    assert read_clause(clause).asks == set(asks)


@pytest.mark.parametrize(("clause", "forbids"), ROWS["forbidden"])
def test_forbidden(clause: str, forbids: list[str]) -> None:
    """What the person ruled out, and near misses that rule out something narrower."""
    said = read_clause(clause)
    assert said.forbids == set(forbids)
    assert not said.asks & said.forbids


@pytest.mark.shows("I24")
def test_pull_request_in_other_words() -> None:
    """ "branch + PR" and "PR against develop" ask for one."""
    for ask in ("Change x, branch + PR against develop", "Change x:\n- clean up\n- PR against main"):
        assert "pr" in evidence_of(ask, edit(), TEST).asks
    assert "pr" not in evidence_of("Change x on the branch and PR template", edit(), TEST).asks
