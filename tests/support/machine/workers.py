"""How ``pytest -n`` deals the tests out to its processes: whole files, the longest first.

A file's tests share what is expensive: an opencode with its daemon, a model server, a sandbox. The end-to-end
files come first, those with the most tests before the others, so that no long file begins last.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files in order. Within a file, and between the files that are left, the random order stays."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    tests = Counter(item.path for item in items)

    def place(item: pytest.Item) -> tuple[bool, int]:
        end_to_end = item.get_closest_marker("e2e") is not None
        return not end_to_end, -tests[item.path] if end_to_end else 0

    items.sort(key=place)
