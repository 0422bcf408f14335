"""Scripts to actions: what an exit code proves, stashes, folders."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.evidence.calls.actions import Check, Stash
from daemon.evidence.calls.commands import final_cwd, read_script


def checks(script: str) -> list[Check]:
    return [a for a in read_script(script, "/repo") if isinstance(a, Check)]


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    ("script", "passes", "fails"),
    [
        ("pytest", True, True),
        ("cd x && pytest 2>&1", True, True),
        ("cd x; pytest", True, True),
        ("pytest && echo ok", True, True),
        ("pytest | tail -5", False, False),
        ("pytest |& tee log", False, False),
        ("pytest || true", False, False),
        ("pytest || echo failed", False, False),
        ("pytest && echo ok || echo bad", False, False),
        ("pytest; echo done", False, False),
        ("pytest\necho done", False, False),
        ("pytest &", False, False),
        ("! pytest", False, False),
        ("if pytest; then echo ok; fi", False, False),
        ("set -o pipefail; pytest | tail -5", True, True),
        ("set -euo pipefail\npytest | tee log\necho ok", True, True),
        ("set -o pipefail; pytest | grep -v x", True, False),
        ("set -e\npytest\necho ok", True, True),
        ("npm install && pytest", True, False),
        ("pytest && git diff --exit-code", True, False),
        ("false || pytest", False, False),
        ("(pytest) || true", False, False),
        ("bash -c 'pytest; true'", False, False),
        ("bash -c 'pytest' | tail", False, False),
        ("bash -c pytest", True, True),
    ],
)
def test_what_the_exit_code_proves(script: str, passes: bool, fails: bool) -> None:
    """A masked exit code proves nothing; behind ``&&`` it proves the pass only, or both."""
    (check,) = checks(script)
    assert (check.proves_pass, check.proves_fail) == (passes, fails)


def test_stash_is_seen() -> None:
    """Runs between ``git stash`` and its pop judge the old state."""
    found = read_script("git stash && pytest; git stash pop", "/repo")
    assert [type(a) for a in found] == [Stash, Check, Stash]
    assert [a.away for a in found if isinstance(a, Stash)] == [True, False]


def test_folder_of_a_lasting_shell() -> None:
    """Where a shell ends up, for hosts that keep it."""
    assert final_cwd("cd a && cd ../b", "/repo") == "/repo/b"
    assert final_cwd("cd $HOME", "/repo") is None
    assert final_cwd("ls", "/repo") == "/repo"


@pytest.mark.parametrize(
    "script",
    [
        "$(" * 500_000,
        '"' * 999_999,
        "(" * 1_000_000,
        "<<A " * 250_000,
        "pytest && " * 100_000,
        "pytest | " * 100_000,
        "cd a; " * 100_000,
        "bash -c '" * 100_000,
        "A=" * 500_000,
        "python " * 100_000,
    ],
)
def test_hostile_scripts_are_quick(script: str) -> None:
    """A megabyte of nonsense costs well under a second."""
    before = time.process_time()
    read_script(script, "/repo")
    assert time.process_time() - before < 5


@given(st.text(alphabet="pytes \n;&|()'\"$`<>\\#A=-{}2", max_size=200))
def test_any_script_is_read(script: str) -> None:
    """No text makes the reader fail."""
    read_script(script, "/repo")
