"""Which tests run when, and why.

| command | runs |
| --- | --- |
| `make test-fast` | what takes milliseconds (``--fast``): neither ``full`` nor ``slow`` nor a real host |
| `make test` | all but ``full``; 20 examples of each property |
| `make test-all` | everything (``--all``); 200 examples of each property |

A test is marked where it stands: ``@pytest.mark.full("why")``, ``@pytest.mark.slow("why")``. Whole files and
folders are listed here. Stories with the real hosts (``tests/e2e``) are ``full``, except those that show a
promise of the README: ``@pytest.mark.main("the promise")``, which also keeps a test of a listed file.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).resolve().parents[2]
FULL = {
    "cli/judge/test_report.py": "whole folders of sessions are judged",
    "cli/control/test_restart.py": "daemons of other versions are installed and started",
    "cli/reflect/test_review.py": "a pseudo-terminal is driven",
    "cli/setup/test_completion.py": "shells are started",
    "evals": "hundreds of labelled cases are judged",
    "examples/test_end_to_end.py": "daemons and the example scripts are started",
    "examples/test_published_readers.py": "programs of others are started",
    "llm/test_claude_cli.py": "the real Claude Code is started for each test",
    "llm/test_imports.py": "Python is started for each test",
    "mcp/test_server.py": "the SDK's client and servers are started",
    "service/test_user_manager.py": "systemd's user manager is started",
    "test_demo.py": "the demo is run in copies of the clone",
    "web/test_browser.py": "a chromium is started",
    "web/test_learned_browser.py": "a chromium is started",
    "test_package.py": "wheels are built and installed",
}
NEEDS = {
    "axe-core": "a chromium is started",
    "embeddings": "a real model is loaded",
    "espeak-ng": "the real program speaks",
    "fish": "shells are started",
    "local model": "a real model of 130 MB is loaded",
    "python-daemon": "wheels are built and installed",
    "setpriv": "another user is needed",
    "systemd-analyze": "systemd is started",
    "systemd-socket-activate": "systemd is started",
    "zsh": "shells are started",
}
POSTGRES = "a PostgreSQL is started"
SLOW = {
    "engine/test_upgrade.py": "programs are started",
    "learning/playbook/test_look_back.py": "whole sessions are learned from, with a store on the disk",
    "learning/lessons/test_feature.py": "whole sessions are learned from, with a store on the disk",
    "learning/playbook/test_feature.py": "whole sessions are learned from, with a store on the disk",
    "engine/test_abandoned.py": "time-outs are waited for",
    "engine/test_lanes.py": "folders that hang are waited for",
    "learning/test_spine.py": "whole sessions are learned from, with a store on the disk",
    "engine/test_reconnect.py": "thousands of sessions are looked through",
    "learning/test_revisions.py": "thousands of files are written",
    "hosts/claude_code/test_recorded.py": "each field of each recorded line is changed",
    "store/test_damage.py": "databases are damaged and rescued",
    "learning/test_tables.py": "fifty megabytes are written",
    "test_patterns.py": "hundreds of expressions are run",
    "e2e": "real hosts are started",
    "mcp/test_server.py": "the SDK's client and servers are started",
    "test_conventions.py": "every test file is read",
    "test_shows.py": "every test file is read",
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
    "learning/lessons/test_shared.py": "a PostgreSQL is started",
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
    "learning/embed/test_contract.py": "a real model is loaded, the vendor's library asks over real sockets",
    "learning/embed/test_imports.py": "Python is started for each test",
    "learning/embed/test_embedder.py": "a real model is loaded",
    "learning/embed/test_openai_compat.py": "the vendor's library is imported and asked over real sockets",
    "core/test_redact.py": "thousands of random texts",
    "hosts/claude_code/test_transcript.py": "thousands of random transcripts",
    "stuck/test_loops.py": "thousands of random steps",
    "replay": "hundreds of labelled cases are judged",
    "llm/test_claude_cli.py": "the real Claude Code is started for each test",
    "llm/test_imports.py": "Python is started for each test",
    "support": "sandboxes, and pytest itself, are started",
    "test_demo.py": "the demo is run in a copy of the clone",
    "test_docs.py": "the commands of the pages are run",
    "test_package.py": "wheels are built and installed",
}
EXAMPLES = {False: 20, True: 200}
_left = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--all`` and ``--fast``."""
    parser.addoption(
        "--all", action="store_true", help="run the tests marked `full` too, and more examples of each"
    )
    parser.addoption("--fast", action="store_true", help="leave out the tests marked `slow`")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is imported: a property takes its number of examples when it is defined."""
    everything = bool(config.getoption("--all"))
    # a busy machine takes its time, so no example has a deadline
    settings.register_profile("tier", deadline=None, max_examples=EXAMPLES[everything])
    settings.load_profile("tier")


def why(item: pytest.Item, table: dict[str, str]) -> str | None:
    """The reason that the table gives for the test's file or one of its folders."""
    path = item.path.relative_to(TESTS)
    names = [path.as_posix(), *(folder.as_posix() for folder in path.parents)]
    return next((table[name] for name in names if name in table), None)


def left_to_all(item: pytest.Item) -> str | None:
    """Why the test is left to ``make test-all``, beside its own mark."""
    if "e2e" in item.path.relative_to(TESTS).parts:
        return "a real host, beside the main story of its promise"
    tools = [str(tool) for mark in item.iter_markers("needs") for tool in mark.args]
    given = getattr(item, "callspec", None)
    values = given.params.values() if given else ()
    fixtures = item.fixturenames if isinstance(item, pytest.Function) else ()
    if "postgres" in [*fixtures, *values]:
        return POSTGRES
    return why(item, FULL) or next((NEEDS[tool] for tool in tools if tool in NEEDS), None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``--fast`` does not even import the files that are listed as slow."""
    if not config.getoption("--fast") or TESTS not in collection_path.parents:
        return None
    return collection_path.relative_to(TESTS).as_posix() in SLOW or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark them before ``-m`` is heard, and leave out what only ``make test-all`` runs."""
    for item in (i for i in items if TESTS in i.path.parents):
        reason = left_to_all(item)
        if reason and not item.get_closest_marker("main"):
            item.add_marker(pytest.mark.full(reason))
        reason = why(item, SLOW)
        if reason:
            item.add_marker(pytest.mark.slow(reason))
    if config.getoption("--fast"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    if not config.getoption("--all"):
        full = [item for item in items if item.get_closest_marker("full")]
        config.stash[_left] = len(full)
        if full:
            config.hook.pytest_deselected(items=full)
            items[:] = [item for item in items if not item.get_closest_marker("full")]


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """How many were left out."""
    left = config.stash.get(_left, 0)
    return [f"{left} tests are left to `make test-all` (pytest --all)"] if left else []


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A file whose tests all wait for `--all` is no mistake of the command line; nothing failed."""
    left = session.config.stash.get(_left, 0)
    if left and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and "PYTEST_XDIST_WORKER" not in os.environ:
        session.exitstatus = pytest.ExitCode.OK
