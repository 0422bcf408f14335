"""One run: its limit, its group, what left it, its output, its environment; what a killed daemon left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.proof.run import HEAD, TAIL, Ran, RunFiles, Written, environment, identity, kill_marked, run
from harness.machine.processes import of_a_check

LONG = 60.0


async def ran(command: str, folder: Path, timeout_s: float = LONG, mark: str | None = None) -> Ran:
    """Run it."""
    return await run(command, folder, timeout_s, mark or identity(), lambda _: None)


def lives(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


async def until(path: Path) -> str:
    """The text of a file that a check writes."""
    async with asyncio.timeout(LONG):
        while not path.exists() or not path.read_text().strip():
            await asyncio.sleep(0.02)
    return path.read_text().strip()


@pytest.mark.parametrize(
    ("command", "code", "why"),
    [
        ("true", 0, ""),
        ("exit 3", 3, ""),
        ("false | cat", 1, ""),
        ("no-such-program-here", 127, "not_started"),
        ("kill -9 $$", None, ""),
    ],
)
async def test_how_it_ended(tmp_path: Path, command: str, code: int | None, why: str) -> None:
    """By its own exit code; a pipe does not hide a failure."""
    found = await ran(command, tmp_path)
    assert (found.exit, found.why) == (code, why)


async def test_both_streams_in_order_and_nothing_on_stdin_or_a_terminal(tmp_path: Path) -> None:
    """A check that asks gets the end of the file at once."""
    found = await ran("echo a; echo b >&2; cat; read x < /dev/tty || echo none; tty || true", tmp_path)
    assert [line for line in found.output.splitlines() if line in {"a", "b", "none", "not a tty"}] == [
        "a", "b", "none", "not a tty",
    ]  # fmt: skip


async def test_a_gigabyte_is_read_and_dropped(tmp_path: Path) -> None:
    """The beginning and the end are kept, and how much is missing."""
    found = await ran("echo first; head -c 300000000 /dev/zero | tr '\\0' x; echo; echo last", tmp_path)
    assert found.exit == 0
    assert found.output.startswith("first\n")
    assert found.output.endswith("\nlast\n")
    assert "bytes are left out)" in found.output
    assert len(found.output) < HEAD + TAIL + 200_000


async def test_at_the_limit_all_of_it_ends(tmp_path: Path) -> None:
    """Children, those that ignore SIGTERM, and those that left the group for a session of their own."""
    command = (
        "trap '' TERM; (trap '' TERM; echo $BASHPID > child; sleep 600) & "
        "setsid sh -c 'echo $$ > away; exec sleep 600' & sleep 600"
    )
    found = await ran(command, tmp_path, 1.5)
    assert (found.exit, found.why) == (None, "timed_out")
    for name in ("child", "away"):
        assert not lives(int(await until(tmp_path / name)))


async def test_what_a_check_leaves_running_ends_with_it(tmp_path: Path) -> None:
    """A server that was started in the background does not keep the run open, and is ended."""
    begun = time.monotonic()
    found = await ran("sleep 600 & echo $! > child; exit 0", tmp_path)
    assert found.exit == 0
    assert time.monotonic() - begun < LONG
    assert not lives(int(await until(tmp_path / "child")))


async def test_cancelled_it_ends_before_it_returns(tmp_path: Path) -> None:
    """As Esc does it."""
    task = asyncio.create_task(ran("echo $$ > pid; sleep 600", tmp_path))
    pid = int(await until(tmp_path / "pid"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not lives(pid)


async def test_a_run_that_can_not_be_written_down_never_begins(tmp_path: Path) -> None:
    """The check waits for the word."""

    def refuses(_: int) -> None:
        raise Unavailable("the disk is full")

    with pytest.raises(Unavailable, match="full"):
        await run("touch made", tmp_path, LONG, identity(), refuses)
    assert not (tmp_path / "made").exists()


async def test_no_folder_no_run(tmp_path: Path) -> None:
    """Told, not raised."""
    assert (await ran("true", tmp_path / "gone")).why == "not_started"


def test_the_environment_has_none_of_our_keys() -> None:
    """Nor of others; what a check needs stays."""
    env = {
        "PATH": "/bin", "HOME": "/h", "VIRTUAL_ENV": "/v", "LANG": "C", "SSH_AUTH_SOCK": "/s",
        "ANTHROPIC_API_KEY": "k", "OPENAI_BASE_URL": "u", "REFLECTD_SOCKET": "s", "GITHUB_TOKEN": "t",
        "DB_PASSWORD": "p", "AWS_SECRET_ACCESS_KEY": "a", "CLAUDE_CODE_OAUTH_TOKEN": "c", "CLAUDECODE": "1",
    }  # fmt: skip
    found = environment(env, "m")
    assert set(found) == {"PATH", "HOME", "VIRTUAL_ENV", "LANG", "SSH_AUTH_SOCK", "REFLECTD_PROOF", "TERM"}


OTHER = """
import asyncio, sys
from pathlib import Path
from daemon.proof.run import RunFiles, Written, run
async def main():
    folder, mark = Path(sys.argv[1]), "f" * 16
    files = RunFiles(folder / "state")
    written = lambda pid: files.write(Written(mark, pid, 1, "c", str(folder)))
    await run(sys.argv[2], folder, 600, mark, written)
asyncio.run(main())
"""


async def test_kill_9_of_the_daemon_ends_the_check_at_once(tmp_path: Path) -> None:
    """The group dies with the daemon; what left the group is found at the next start, by what was written."""
    command = (
        "sleep 600 & echo $! > child; setsid sh -c 'echo $$ > away; exec sleep 600' & echo $$ > pid; wait"
    )
    other = subprocess.Popen([sys.executable, "-c", OTHER, str(tmp_path), command])
    try:
        pids = [int(await until(tmp_path / name)) for name in ("pid", "child", "away")]
    finally:
        other.kill()
        other.wait()
    async with asyncio.timeout(LONG):
        while lives(pids[0]) or lives(pids[1]) or len(of_a_check(tmp_path)) > 1:  # the watcher ends last
            await asyncio.sleep(0.02)
    assert lives(pids[2])
    (told,) = RunFiles(tmp_path / "state").clear()
    assert "1 processes ended" in told
    assert not lives(pids[2])
    assert not list((tmp_path / "state").iterdir())


def test_a_file_of_a_run_that_can_not_be_read_stops_no_start(tmp_path: Path) -> None:
    """It is removed."""
    for name, text in {"a.json": "{", "b.json": "[]", "c.json": '{"id": 1}', "note.txt": "x"}.items():
        (tmp_path / name).write_text(text)
    assert len(RunFiles(tmp_path).clear()) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]


def test_only_marked_processes_are_killed() -> None:
    """Another run's are left."""
    mine = subprocess.Popen(["sleep", "600"], env={**os.environ, "REFLECTD_PROOF": "aaa"})
    other = subprocess.Popen(["sleep", "600"], env={**os.environ, "REFLECTD_PROOF": "aaab"})
    try:
        assert kill_marked("aaa") >= 1
        assert mine.wait(LONG) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for process in (mine, other):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()


def test_what_is_written_down_is_private(tmp_path: Path) -> None:
    """0600 in a folder of 0700."""
    files = RunFiles(tmp_path / "proof")
    files.write(Written("x", 1, 1, "c", "/f"))
    assert (tmp_path / "proof").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "proof" / "x.json").stat().st_mode & 0o777 == 0o600
    files.done("x")
    files.done("x")
    assert not list((tmp_path / "proof").iterdir())


def test_the_file_of_a_run_says_nothing_about_other_files(tmp_path: Path) -> None:
    """Its own name counts, whatever is written in it."""
    (tmp_path / "state").mkdir()
    (tmp_path / "kept.json").write_text("x")
    (tmp_path / "kept.tree").mkdir()
    body = {"id": "../kept", "pid": 1, "at": 1, "command": "c", "folder": "/", "place": "x", "repository": 3}
    (tmp_path / "state" / "a.json").write_text(json.dumps(body))
    (tmp_path / "state" / "b.json").write_text(json.dumps(body | {"id": "\0", "place": ""}))
    (tmp_path / "state" / "c.json").mkdir()
    assert len(RunFiles(tmp_path / "state").clear()) == 3
    assert (tmp_path / "kept.json").exists()
    assert (tmp_path / "kept.tree").exists()


def test_a_check_works_on_no_other_repository() -> None:
    """A daemon that a hook of git started has variables that name the hook's repository."""
    found = environment({"GIT_DIR": "/x", "GIT_INDEX_FILE": "/x/i", "GIT_AUTHOR_NAME": "a"}, "m")
    assert set(found) == {"GIT_AUTHOR_NAME", "REFLECTD_PROOF", "TERM"}
