"""How much processor time each test takes, its programs included: ``pytest --costs FILE`` (``make costs``).

Wall time says little where six processes share two cores. A program counts once a test has waited for its end.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import cast

import pytest

from harness.machine.forked import SPENT

PROPERTY = "cpu_s"
SHOWN = 40


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--costs FILE``."""
    parser.addoption("--costs", metavar="FILE", help="write the processor time of each test to FILE (JSON)")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Measure only when asked."""
    if config.getoption("--costs"):
        config.pluginmanager.register(Costs(Path(cast("str", config.getoption("--costs")))))


def spent() -> float:
    """Seconds of processor time of this process, and of the children and forks it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system + sum(SPENT)


class Costs:
    """Measures in each worker, adds up and prints where the reports come together."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._at = spent()
        self._tests: dict[str, tuple[float, float]] = {}
        self._walls: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> object:
        """Collecting belongs to no test."""
        result: object = yield  # type: ignore[misc]
        self._at = spent()
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """What a test cost is known when its clean-up is done."""
        if call.when == "teardown":
            now = spent()
            item.user_properties.append((PROPERTY, round(now - self._at, 3)))
            self._at = now

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One report for each phase."""
        self._walls[report.nodeid] += report.duration
        for name, value in report.user_properties:
            if name == PROPERTY and report.when == "teardown":
                self._tests[report.nodeid] = (cast("float", value), round(self._walls[report.nodeid], 3))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The dearest files, and everything in FILE."""
        if os.environ.get("PYTEST_XDIST_WORKER") or not self._tests:
            return
        files: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for test, costs in self._tests.items():
            files[test.partition("::")[0]].append(costs)
        rows = sorted(((sum(c for c, _ in t), sum(w for _, w in t), len(t), f) for f, t in files.items()), reverse=True)
        terminalreporter.section("processor time by file")
        terminalreporter.write_line(f"{'CPU s':>8} {'wall s':>8} {'tests':>6}  file")
        for cpu, wall, tests, file in rows[:SHOWN]:
            terminalreporter.write_line(f"{cpu:8.1f} {wall:8.1f} {tests:6}  {file}")
        terminalreporter.write_line(f"{sum(r[0] for r in rows):8.1f} {sum(r[1] for r in rows):8.1f} {len(self._tests):6}  all")
        known = {test: {"cpu_s": cpu, "wall_s": wall} for test, (cpu, wall) in self._tests.items()}
        self._target.write_text(json.dumps(known, indent=0, sort_keys=True), "utf-8")
