"""``reflectd line``, as a prompt runs it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from daemon.cli.control.line import STDIN_BYTES, line
from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox, sandbox
from tests.support.hosts.wire import WireHost, unfinished
from tests.support.machine.command_line import COMMAND, Done, environment, reflectd, said

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT = ["--wait", "10000"]  # this machine may be busy


@pytest.fixture(scope="module")
def served() -> Iterator[Sandbox]:
    """One daemon for the tests of this file, with a session that was sent back once and works again."""
    with (
        sandbox() as box,
        processes.none_left_over(),
        Daemon(box) as daemon,
        WireHost(box.socket, box.project, unfinished(box.project)) as host,
    ):
        host.send(host.turn("ses_back"))
        daemon.wait_verdict("ses_back", "incomplete")
        host.send([host.event("session.status", sessionID="ses_back", status={"type": "busy"})])
        yield box


def printed(box: Sandbox, *args: str, stdin: bytes | None = None, code: int = 0) -> Done:
    """What one run says; a prompt never sees anything on stderr."""
    done = reflectd(box, "line", *args, stdin=stdin)
    said(done, code)
    assert (done.stderr == "") is (code == 0)
    return done


def test_line_tells_of_this_folders_session(served: Sandbox) -> None:
    """One line with state and round, also in a folder below and for a session that is named."""
    assert printed(served, *WAIT).stdout == "working · sent back 1\n"
    (served.project / "below").mkdir(exist_ok=True)
    below = reflectd(served, "line", *WAIT, cwd=served.project / "below")
    assert below.stdout == "working · sent back 1\n"
    assert printed(served, *WAIT, "--session", "ses_b").stdout == "working · sent back 1\n"
    assert printed(served, *WAIT, "--session=nobody").stdout == "no session\n"
    assert reflectd(served, "line", *WAIT, cwd=served.home).stdout == "no session\n"


def test_line_as_json(served: Sandbox) -> None:
    """An object with the same facts and the line itself, also where nobody answers."""
    found = json.loads(printed(served, *WAIT, "--json").stdout)
    assert found["text"] == "working · sent back 1"
    assert (found["session"], found["directory"]) == ("ses_back", str(served.project))
    assert (found["state"], found["round"], found["waiting"]) == ("working", 1, 0)
    with sandbox() as alone:
        found = json.loads(printed(alone, "--json").stdout)
        assert (found["state"], found["text"]) == ("no daemon", "no daemon")
        assert "no daemon answers" in found["error"]


def test_line_with_the_flags_of_every_verb(served: Sandbox) -> None:
    """`--socket` and a settings file that names the socket lead to the same daemon."""
    assert printed(served, *WAIT, "--socket", str(served.socket)).stdout == "working · sent back 1\n"
    with sandbox() as other:
        file = other.home / ".config" / "reflectd" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(f'[daemon]\nsocket = "{served.socket}"\n')
        env = {k: v for k, v in environment(other).items() if k != "REFLECTD_SOCKET"}
        command = [*COMMAND, "line", *WAIT]
        done = subprocess.run(
            command, env=env, cwd=served.project, stdin=subprocess.DEVNULL, capture_output=True, check=True
        )
        assert (done.stdout.decode(), done.stderr) == ("working · sent back 1\n", b"")


def test_line_for_claude_code_is_about_the_session_it_names(served: Sandbox) -> None:
    """Session, folder and the agent's own cost come from stdin; what is missing is left out."""
    told = {"session_id": "ses_back", "cost": {"total_cost_usd": 1.234}, "workspace": {"current_dir": "/"}}
    cases: list[tuple[Any, str]] = [
        (told, "working · sent back 1 · agent 1.23 USD"),
        (told | {"cost": None}, "working · sent back 1"),
        (told | {"session_id": "unknown"}, "no session · agent 1.23 USD"),
        ({"workspace": {"current_dir": str(served.project)}}, "working · sent back 1"),
        ({"cwd": str(served.home)}, "no session"),
        ({"session_id": 7, "cost": {"total_cost_usd": "much"}, "workspace": []}, "working · sent back 1"),
        ({"cwd": "\ud800"}, "no answer"),
        ([], "working · sent back 1"),
    ]
    for given, wanted in cases:
        stdin = json.dumps(given).encode()
        assert printed(served, *WAIT, "--claude-code", stdin=stdin).stdout == f"{wanted}\n", given


@pytest.mark.parametrize(
    "stdin",
    [b"", b"not json", b"\xff\xfe", b'{"session_id": "ses', b"[" * 100_000, b'"' + b"x" * STDIN_BYTES],
    ids=["empty", "text", "bytes", "half", "deep", "long"],
)
def test_garbage_on_stdin_changes_nothing(served: Sandbox, stdin: bytes) -> None:
    """The folder decides, as without the flag."""
    assert printed(served, *WAIT, "--claude-code", stdin=stdin).stdout == "working · sent back 1\n"


def test_a_stdin_that_never_ends_is_not_waited_for(served: Sandbox) -> None:
    """Whoever starts it with an open pipe gets the line all the same."""
    reader, writer = os.pipe()
    try:
        done = subprocess.run(
            [*COMMAND, "line", *WAIT, "--claude-code"],
            env=environment(served),
            cwd=served.project,
            stdin=reader,
            capture_output=True,
            check=True,
            timeout=60,
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert (done.stdout.decode(), done.stderr) == ("working · sent back 1\n", b"")


@pytest.mark.parametrize(
    "args",
    [
        ["--wait", "soon"],
        ["--wait", "0"],
        ["--wait", "99999"],
        ["--session"],
        ["--json=1"],
        ["x"],
        ["--colour"],
    ],
    ids=" ".join,
)
def test_wrong_flags_of_line(served: Sandbox, args: list[str]) -> None:
    """Exit code 2 with the verb's usage, as of every verb: only what is typed wrong can fail."""
    done = printed(served, *args, code=2)
    assert done.stderr.startswith("usage: reflectd line")


def test_a_folder_that_is_gone_and_a_narrow_locale(served: Sandbox) -> None:
    """The prompt is shown all the same, in the letters that there are."""
    gone = served.project / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    env = environment(served, PYTHONIOENCODING="latin-1")
    done = subprocess.run(
        ["sh", "-c", script, "sh", *COMMAND, "line", *WAIT, "--session", "ses_back"],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"working - sent back 1\n", b"")


def test_line_imports_next_to_nothing(served: Sandbox) -> None:
    """What makes Python slow to start is not loaded, with a daemon and without one."""
    script = (
        "import sys; from daemon.cli import entry\n"
        "try: entry.entry()\n"
        "finally: print(*sorted(sys.modules), file=sys.stderr)"
    )
    heavy = {
        "argparse",
        "asyncio",
        "dataclasses",
        "http",
        "inspect",
        "pathlib",
        "tomllib",
        "typing",
        "urllib",
    }
    base = subprocess.run(
        [COMMAND[0], "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    for more in ({}, {"REFLECTD_SOCKET": str(served.root / "none")}):
        done = subprocess.run(
            [COMMAND[0], "-c", script, "line", *WAIT],
            env=environment(served, **more),
            cwd=served.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = set(done.stderr.split()) - set(base.stdout.split())
        assert "daemon.cli.control.line" in loaded
        assert loaded & heavy == set()
        ours = {name for name in loaded if name.startswith("daemon.")}
        assert len(ours) <= 6, ours


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"state": "none"}, "no session"),
        ({"state": "waiting", "waiting": 1}, "your turn"),
        ({"state": "waiting", "waiting": 3}, "your turn · 2 more wait"),
        ({"state": "working", "waiting": 1}, "working · 1 waits"),
        ({"state": "complete", "round": 2, "usd_today": 0.123}, "done · sent back 2 · 0.12 USD today"),
        ({"state": "complete", "usd_today": 0.001}, "done · <0.01 USD today"),
        ({"state": "off", "tokens_today": 12345}, "off · 12,345 unpriced tokens today"),
        ({"state": "from the future"}, "no answer"),
        ({"state": ["x"], "round": "2", "waiting": True, "usd_today": None}, "no answer"),
        ({}, "no answer"),
    ],
)
def test_the_words_of_the_line(found: dict[str, Any], text: str) -> None:
    """What is nothing is left out; what is not understood is not shown."""
    assert line(found) == text


def test_the_page_names_every_state() -> None:
    """docs/status-line.md lists the words that the line may begin with."""
    from daemon.cli.control.line import WORDS

    page = (REPO / "docs" / "status-line.md").read_text("utf-8")
    assert [word for word in WORDS.values() if f"`{word}`" not in page] == []
