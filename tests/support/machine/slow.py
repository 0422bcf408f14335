"""Whole files and folders that ``make test-fast`` leaves out, and why.

A single test is marked where it stands: ``@pytest.mark.slow("why")``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
SLOW = {
    "cli": "the command is started for each test",
    "evals": "hundreds of labelled cases are judged",
    "examples": "the scripts are started for each test",
    "plugin": "the hooks are started for each test",
    "server": "a daemon is started for each test or file",
    "web/test_browser.py": "a daemon and a chromium are started",
    "web/test_entry.py": "daemons are started, and the command",
    "web/test_learned.py": "a daemon is started",
    "web/test_learned_browser.py": "a daemon and a chromium are started",
    "web/test_pages.py": "daemons are started, and the command",
    "service": "daemons, systemd and its user manager are started",
    "store/test_survival.py": "a daemon is started and killed for each test",
    "store/test_episodes_postgres.py": "a PostgreSQL is started",
    "engine/test_machine.py": "thousands of random steps",
    "engine/test_kills.py": "daemons are killed and started again and again",
    "files/test_verdict.py": "thousands of files are synced to the disk",
    "files/test_git.py": "git is started for each test",
    "files/test_workspace.py": "git is started for each test",
    "engine/test_workspaces.py": "git is started for each test",
    "files/test_watch.py": "changes of files are waited for",
    "files/test_jsonc.py": "thousands of random documents",
    "llm/test_sdk.py": "the vendors' libraries are imported and asked over real sockets",
    "llm/test_offered.py": "the vendors' libraries are imported and asked over real sockets",
    "embed/test_contract.py": "a real model is loaded, the vendor's library asks over real sockets",
    "embed/test_imports.py": "Python is started for each test",
    "embed/test_minilm.py": "a real model is loaded",
    "embed/test_openai_compat.py": "the vendor's library is imported and asked over real sockets",
    "core/test_redact.py": "thousands of random texts",
    "hosts/claude_code/test_transcript.py": "thousands of random transcripts",
    "stuck/test_signals.py": "thousands of random steps",
    "compaction/test_references.py": "thousands of random texts",
    "replay": "hundreds of labelled cases are judged",
    "llm/test_imports.py": "Python is started for each test",
    "support": "sandboxes, and pytest itself, are started",
    "test_demo.py": "the demo is run in a copy of the clone",
    "test_docs.py": "the commands of the pages are run",
    "test_package.py": "wheels are built and installed",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them, before ``-m`` is heard."""
    for item in items:
        if TESTS not in item.path.parents:
            continue
        path = item.path.relative_to(TESTS).as_posix()
        for name, why in SLOW.items():
            if path == name or path.startswith(f"{name}/"):
                item.add_marker(pytest.mark.slow(why))
