"""A plugin of pytest that ``mutants.py`` puts into its copies.

It runs chosen tests in a given order, writes down how they ended, and has the call that stands at the place
of each mutant while the tests run without any. A program that a test started learns the test's name from a
file in its temporary folder: its environment is made anew, but keeps ``TMPDIR``. Such a program must not wait
for an import of pytest, so no hook is marked: this plugin is known before those of the tests and heard after.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_seen: set[tuple[int, str]] = set()
_ended: dict[str, tuple[bool, float]] = {}
_state = {"pid": 0, "shared": False}


def hit(mutant: int) -> None:
    """Note that the test of the moment reaches the statement of ``mutant``.

    For a program, and for what several tests share, the whole file of the test is noted.
    """
    inside = os.getpid() == _state["pid"]
    try:
        folder = os.environ["TMPDIR"]
        if inside:
            test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")[0]
        else:
            test = Path(folder, "current").read_text("utf-8")
        line = json.dumps([mutant, test, not inside or _state["shared"]])
        if (os.getpid(), line) not in _seen:
            _seen.add((os.getpid(), line))
            hits = os.open(os.path.dirname(folder) + "/hits", os.O_WRONLY | os.O_APPEND | os.O_CREAT)  # noqa: PTH120
            os.write(hits, line.encode() + b"\n")
            os.close(hits)
    except (OSError, KeyError):
        pass


def pytest_configure() -> None:
    """Each worker has a temporary folder of its own, with a short path: a socket's has 104 bytes."""
    _state["pid"] = os.getpid()
    folder = Path(os.environ["MUTANTS_BASE"], os.environ.get("PYTEST_XDIST_WORKER", "m"))
    folder.mkdir()
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)


def pytest_runtest_logstart(nodeid: str) -> None:
    """For the programs that the test will start."""
    Path(os.environ["TMPDIR"], "current").write_text(nodeid, "utf-8")


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> None:
    """From here on something is made, perhaps for several tests."""
    _state["shared"] = fixturedef.scope != "function"


def pytest_runtest_call() -> None:
    """Everything is made."""
    _state["shared"] = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Only the chosen tests, in their order."""
    if pick := os.environ.get("MUTANTS_PICK"):
        place = {test: n for n, test in enumerate(json.loads(Path(pick).read_text("utf-8")))}
        items[:] = sorted((i for i in items if i.nodeid in place), key=lambda i: place[i.nodeid])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test has passed when no phase failed and its body was run."""
    passed, seconds = _ended.get(report.nodeid, (report.when == "setup", 0.0))
    _ended[report.nodeid] = (
        passed and report.passed and not hasattr(report, "wasxfail"),
        seconds + report.duration,
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write it down, where the reports come together."""
    if (target := os.environ.get("MUTANTS_REPORT")) and not hasattr(session.config, "workerinput"):
        Path(target).write_text(json.dumps(_ended), "utf-8")
