"""Scripts to actions: what an exit code proves, which run covers which, stashes, folders, prefixes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.evidence.actions import Check, Stash
from daemon.evidence.commands import final_cwd, read_script
from daemon.evidence.shell import unwrap
from tests.support.tables import tables

ROWS = tables("commands")


def check(script: str) -> Check:
    """The first check of a script."""
    return next(a for a in read_script(script, "/repo") if isinstance(a, Check))


@pytest.mark.shows("I24")
@pytest.mark.parametrize(("script", "passes", "fails"), ROWS["exit_code"])
def test_what_the_exit_code_proves(script: str, passes: bool, fails: bool) -> None:
    """A masked exit code proves nothing; behind ``&&`` it proves the pass only, or both."""
    assert (check(script).proves_pass, check(script).proves_fail) == (passes, fails)


@pytest.mark.parametrize(("later", "earlier", "covers"), ROWS["scopes"])
def test_scopes(later: str, earlier: str, covers: bool) -> None:
    """A run replaces an earlier one of the same kind with the same scope or a narrower one, nothing else."""
    assert check(later).covers(check(earlier)) is covers


@pytest.mark.parametrize(("command", "inner", "negated"), ROWS["prefixes"])
def test_unwrap(command: str, inner: str, *, negated: bool) -> None:
    """The command that runs, and whether something eats its exit code."""
    assert unwrap(tuple(command.split())) == (tuple(inner.split()), negated)


def test_stash_is_seen() -> None:
    """Runs between ``git stash`` and its pop judge the old state."""
    found = read_script("git stash && pytest; git stash pop", "/repo")
    assert [type(a) for a in found] == [Stash, Check, Stash]
    assert [a.away for a in found if isinstance(a, Stash)] == [True, False]


def test_folder_of_a_lasting_shell() -> None:
    """Where a shell ends up, for hosts that keep it."""
    ends = [final_cwd(script, "/repo") for script in ("cd a && cd ../b", "cd $HOME", "ls")]
    assert ends == ["/repo/b", None, "/repo"]


HOSTILE = ("$(", '"', "(", "<<A ", "pytest && ", "pytest | ", "cd a; ", "bash -c '", "A=", "python ")


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_scripts_are_quick(unit: str) -> None:
    """A megabyte of nonsense costs well under a second."""
    before = time.process_time()
    read_script(unit * (1_000_000 // len(unit)), "/repo")
    assert time.process_time() - before < 5


@given(st.text(alphabet="pytes \n;&|()'\"$`<>\\#A=-{}2", max_size=200))
def test_any_script_is_read(script: str) -> None:
    """No text makes the reader fail."""
    read_script(script, "/repo")
