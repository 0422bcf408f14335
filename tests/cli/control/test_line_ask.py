"""How `reflectd line` finds the socket and asks: as every client does, only faster."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from daemon import config, paths
from daemon.cli.control.line import MOST_BYTES, ask, find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENT_MS = 10_000


@pytest.fixture
def run() -> Iterator[Path]:
    """A folder of one's own for a socket, with a short name."""
    with tempfile.TemporaryDirectory(prefix="rd-") as folder:
        path = Path(folder).resolve() / "run"
        path.mkdir(mode=0o700)
        yield path


@contextlib.contextmanager
def listening(path: Path, serve: Callable[[socket.socket], None]) -> Iterator[list[bytes]]:
    """A program that reads one request and serves it; what it heard."""
    heard: list[bytes] = []
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(path))
        path.chmod(0o600)
        server.listen()

        def work() -> None:
            with contextlib.suppress(OSError):
                link, _ = server.accept()
                with link:
                    heard.append(link.recv(65536))
                    serve(link)

        thread = threading.Thread(target=work)
        thread.start()
        yield heard
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


HOMES = [
    {},
    {"REFLECTD_STATE_DIR": "{root}/state"},
    {"XDG_STATE_HOME": "{root}/xdg"},
    {"XDG_STATE_HOME": "relative"},
    {"XDG_RUNTIME_DIR": "{root}/runtime"},
    {"XDG_RUNTIME_DIR": "runtime"},
    {"XDG_RUNTIME_DIR": "{root}/runtime", "REFLECTD_STATE_DIR": "{root}/state"},
    {"REFLECTD_SOCKET": "{root}/chosen"},
    {"REFLECTD_SOCKET": "~/chosen"},
    {"REFLECTD_SOCKET": "relative"},
    {"REFLECTD_STATE_DIR": "~/state"},
    {"REFLECTD_STATE_DIR": "relative"},
    {"XDG_CONFIG_HOME": "{root}/config"},
    {"HOME": ""},
    {"HOME": "relative"},
]


@pytest.mark.parametrize("more", HOMES, ids=str)
@pytest.mark.parametrize("written", ["", "/run/other.sock\n", "relative", "/with\0nul"], ids=repr)
def test_the_socket_is_where_every_client_finds_it(
    more: dict[str, str], written: str, tmp_path: Path
) -> None:
    """Or it is left to the settings; never another place."""
    env = {"HOME": str(tmp_path)} | {k: v.format(root=tmp_path) for k, v in more.items()}
    for state in (tmp_path / ".local/state/reflectd", tmp_path / "state", tmp_path / "xdg/reflectd"):
        state.mkdir(parents=True)
        if written:
            (state / "socket").write_text(written)
    found = find(env)
    if found is not None:
        assert found == str(paths.find_socket(paths.resolve(env, connects=False)))
    else:
        assert env["HOME"] != str(tmp_path) or any("~" in v or "relative" in v for v in more.values())


def test_a_settings_file_that_names_the_socket_is_read_by_its_reader(tmp_path: Path) -> None:
    """Then the fast way gives up; other settings don't matter to it."""
    env = {"HOME": str(tmp_path)}
    file = paths.config_file(env)
    file.parent.mkdir(parents=True)
    file.write_text('[judge]\nprovider = "offline"\n')
    assert find(env) is not None
    file.write_text('[daemon]\nsocket = "/somewhere"\n')
    assert config.load(env, file).daemon.socket == "/somewhere"
    assert find(env) is None


def answers(data: bytes) -> Callable[[socket.socket], None]:
    return lambda link: link.sendall(data)


def drips(link: socket.socket) -> None:
    """A byte each time the client looks, for ever."""
    while True:
        link.sendall(b"x")


def body(text: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\n\r\n" + text


@pytest.mark.parametrize(
    ("serve", "state", "error"),
    [
        (answers(body(b'{"state": "working"}')), "working", ""),
        (answers(body(b'{"error": "no address"}', b"404 Not Found")), "no answer", "no address"),
        (answers(body(b"[]")), "no answer", "another program"),
        (answers(body(b"{")), "no answer", "another program"),
        (answers(body(b"[" * 60_000)), "no answer", "another program"),
        (answers(b""), "no answer", "another program"),
        (answers(b"\xff" * 10), "no answer", "another program"),
        (drips, "no answer", "another program"),
    ],
    ids=["right", "refused", "a list", "half", "deep", "nothing", "garbage", "for ever"],
)
def test_whatever_answers_is_taken_calmly(
    run: Path, serve: Callable[[socket.socket], None], state: str, error: str
) -> None:
    """An answer is at most 64 KB; what is none is `no answer`, with the reason."""
    with listening(run / "s", serve) as heard:
        found = ask(str(run / "s"), {"directory": "/a b/ü?&#"}, PATIENT_MS)
    assert found["state"] == state
    assert error in found.get("error", "")
    assert heard[0].startswith(b"GET /v1/line?directory=/a%20b/%C3%BC%3F%26%23 HTTP/1.1\r\n")
    assert MOST_BYTES == 65536


def test_a_daemon_that_hangs_is_not_waited_for(run: Path) -> None:
    """It accepts and says nothing, or does not even accept: `no answer` after the time that was given."""
    end = threading.Event()
    with listening(run / "s", lambda _: end.wait() and None) as heard:  # type: ignore[func-returns-value]
        assert ask(str(run / "s"), {}, 50)["error"] == "the daemon did not answer within 50 ms"
        end.set()
    assert len(heard) <= 1
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as deaf, contextlib.ExitStack() as full:
        deaf.bind(str(run / "deaf"))
        (run / "deaf").chmod(0o600)
        deaf.listen(0)
        for _ in range(3):
            waiting = full.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(str(run / "deaf"))
        assert ask(str(run / "deaf"), {}, 50)["state"] == "no answer"


def test_nothing_is_sent_to_a_socket_that_is_not_ones_own(run: Path) -> None:
    """Others may write to it or to its folder, or it belongs to another user: as if there were none."""
    with listening(run / "s", answers(b"")) as heard:
        for place, mode, usual in ((run / "s", 0o666, 0o600), (run, 0o777, 0o700)):
            place.chmod(mode)
            found = ask(str(run / "s"), {}, PATIENT_MS)
            assert (found["state"], "chmod go-w" in found["error"]) == ("no daemon", True)
            place.chmod(usual)
        if os.geteuid() == 0:
            os.chown(run / "s", 54321, 54321)
            assert "another user" in ask(str(run / "s"), {}, PATIENT_MS)["error"]
    assert heard == []


def test_without_a_daemon_it_says_so(run: Path) -> None:
    """No folder, no socket, one that nobody listens on, and a file in its place."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as stale:
        stale.bind(str(run / "stale"))
    (run / "stale").chmod(0o600)
    (run / "file").write_text("")
    (run / "file").chmod(0o600)
    found: list[dict[str, Any]] = [
        ask(str(run / name), {}, PATIENT_MS) for name in ("none/s", "s", "stale", "file")
    ]
    assert [one["state"] for one in found] == ["no daemon"] * 4
    assert all("no daemon answers on" in one["error"] for one in found)
