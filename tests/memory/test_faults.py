"""Which errors an output names, and when one is there again."""

from __future__ import annotations

import time

import pytest

from daemon.memory.faults import MAX_FAULTS, fault_of, faults_in

OUTPUTS = {
    "E   ModuleNotFoundError: No module named 'redis'": "ModuleNotFoundError: No module named 'redis'",
    "sqlalchemy.exc.PendingRollbackError: rolled back": "PendingRollbackError: rolled back",
    "src/a.ts(3,5): error TS2345: Argument of type 'Id' is wrong": "TS2345: Argument of type 'Id' is wrong",
    "error[E0382]: borrow of moved value: `cfg`": "E0382: borrow of moved value: `cfg`",
    "npm ERR! code ERESOLVE": "ERESOLVE",
    "Error: connect ECONNREFUSED 10.0.0.7:5432": "ECONNREFUSED: 10.0.0.7:5432",
}


@pytest.mark.parametrize(("output", "text"), OUTPUTS.items(), ids=OUTPUTS.values())
def test_the_errors_of_an_output(output: str, text: str) -> None:
    """Name and message, in a form that reads back."""
    found = faults_in(f"running\n{output}\n")
    assert text in [f.text for f in found]
    assert fault_of(text).is_like(fault_of(text))


@pytest.mark.parametrize(
    "output",
    ["AssertionError", "ValueError: bad input", "ERROR: EXIT 1", "0 errors", "1 failed"],
)
def test_what_could_be_anything_is_left_out(output: str) -> None:
    """A name that says little, without anything that its message names."""
    assert faults_in(output) == ()


@pytest.mark.parametrize(
    ("stored", "later", "again"),
    [
        ("PendingRollbackError: rolled back", "PendingRollbackError: transaction was rolled back", True),
        ("KeyError: 'user_id'", "KeyError: 'user_id'", True),
        ("KeyError: 'user_id'", "KeyError: 'name'", False),
        ("TS2345: Argument of type 'Id' is wrong", "TS2345: Argument of type 'Name' is wrong", False),
        ("ERESOLVE", "ERESOLVE: unable to resolve dependency tree", True),
        ("ERESOLVE", "ECONNREFUSED", False),
    ],
)
def test_again(stored: str, later: str, again: bool) -> None:
    """The same name; where that says little, the same thing that went wrong."""
    assert fault_of(later).is_like(fault_of(stored)) is again


def test_a_long_output_costs_little() -> None:
    """The tail is read, each error once, and nothing backtracks."""
    hostile = ("A" * 3_000 + "." + "a.b.c.d.e." * 500 + "Error Exception ") * 200
    began = time.perf_counter()
    assert len(faults_in(hostile + "FooError: x\n" * 50)) <= MAX_FAULTS
    assert time.perf_counter() - began < 2
