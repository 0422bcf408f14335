"""The real hook.sh, run by dash and bash, with curl and without, against a real Unix socket.

The file is long because it tests one script, whose parts can only be run together.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.machine.reflectd import call
from harness.machine.sandbox import REPO
from harness.machine.waiting import wait_until
from tests.plugin.hook_runs import JSON, SCRIPTS, SILENT, Hook, http, made

if TYPE_CHECKING:
    from collections.abc import Iterator

WAKE = (
    b"## Reflection-3: Task Incomplete (HIGH)\nRun `make test`: it's red. \xc3\xbc\n"
    b"\n(reflectd rfl_0123456789abcdef0123)"
)
root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a socket away")
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)] or ["sh"]
RUNS = [
    pytest.param((shell, client), id=f"{shell}-{client}", marks=pytest.mark.needs(client))
    for shell in SHELLS
    for client in ("curl", "python3")
]


@pytest.fixture(params=RUNS)
def hook(request: pytest.FixtureRequest) -> Iterator[Hook]:
    with made(*request.param) as found:
        yield found


@pytest.fixture
def plain() -> Iterator[Hook]:
    """For what does not depend on the shell or the client."""
    with made("sh", "python3") as found:
        yield found


# --- the wire -------------------------------------------------------------------------------------


def test_an_event_goes_out_and_its_json_comes_back(hook: Hook) -> None:
    """The body is the hook's stdin, byte for byte; who asks is in headers; the answer is printed as it is."""
    sent = '{"prompt": "ü \\" $(id) `id` \\\\ \\u0000", "x": [1]}\n\n'.encode()
    hook.env["REFLECTD_HEADLESS"] = "1"
    with hook.daemon() as daemon:
        assert hook("UserPromptSubmit", stdin=sent) == (0, JSON + b"\n", b"")
    (request,) = daemon.requests
    assert request.line.split()[:2] == ["POST", "/v1/hooks/UserPromptSubmit"]
    assert request.body == sent
    wanted = {
        "host": "reflectd",
        "content-type": "application/json",
        "x-cc-entrypoint": "cli",
        "x-cc-attended": "1",
        "x-cc-pid": "4242",
        "x-cc-project": str(hook.project),
        "x-cc-headless": "1",
    }
    assert {name: request.headers[name] for name in wanted} == wanted
    assert "secret" not in repr(request)  # I46


def test_a_megabyte_goes_through(hook: Hook) -> None:
    """Long prompts and answers are neither cut nor changed; nothing waits for a `100 Continue`."""
    sent = json.dumps({"prompt": "ü\n$x`'\"\\" * 150_000}, ensure_ascii=False).encode()
    answer = json.dumps({"systemMessage": "y" * 300_000}).encode()
    with hook.daemon(http(200, answer)) as daemon:
        for event in ("PreCompact", "SessionStart"):
            assert hook(event, stdin=sent) == (0, answer + b"\n", b"")
    assert [request.body for request in daemon.requests] == [sent, sent]
    assert len(sent) > 1_000_000


def test_nothing_to_say_is_silent(hook: Hook) -> None:
    """204 is the usual answer."""
    with hook.daemon(http(204)) as daemon:
        for args in (["Stop", "wake"], ["SessionStart"], ["SessionEnd"]):
            assert hook(*args) == SILENT
        hook.strict()
        assert hook("Stop", "strict") == SILENT
    routes = [request.line.split()[1].removeprefix("/v1/hooks/") for request in daemon.requests]
    assert routes == ["Stop", "SessionStart", "SessionEnd", "Stop?strict=1"]


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="only Linux tells a process's words")
def test_a_run_of_codex_that_nobody_wants_judged_asks_nobody(hook: Hook) -> None:
    """`codex exec` has that word of its own; a prompt with it has not. A person's wish is in the environment,
    in the settings, or in what a running daemon left.
    """
    config = hook.root / ".config" / "reflectd" / "config.toml"
    config.parent.mkdir(parents=True)
    with hook.daemon() as daemon:
        for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
            assert hook(event, "codex", below="exec") == SILENT
        assert not daemon.requests
        wanted = (0, JSON + b"\n", b"")
        assert hook("Stop", "codex", below="now exec it") == wanted
        hook.env["REFLECTD_HEADLESS"] = "1"
        assert hook("Stop", "codex", below="exec") == wanted
        del hook.env["REFLECTD_HEADLESS"]
        config.write_text("[run]\nheadless = true\n")
        assert hook("Stop", "codex", below="exec") == wanted
        config.unlink()
        (hook.state / "codex-exec").touch()
        assert hook("Stop", "codex", below="exec") == wanted


@pytest.mark.parametrize("status", [400, 409, 499])
def test_feedback_wakes_the_agent(hook: Hook, status: int) -> None:
    """A 4xx that begins as our feedback does: stderr and exit code 2, for the one hook that wakes."""
    with hook.daemon(http(status, WAKE)):
        assert hook("Stop", "wake") == (2, b"", WAKE + b"\n")
        assert hook("UserPromptSubmit") == SILENT
        hook.strict()
        assert hook("Stop", "strict") == SILENT


def test_strict_feedback_is_json(hook: Hook) -> None:
    """The hook that Claude Code waits for prints the decision."""
    answer = json.dumps({"decision": "block", "reason": WAKE.decode()}).encode()
    hook.strict()
    with hook.daemon(http(200, answer)):
        assert hook("Stop", "strict") == (0, answer + b"\n", b"")


def test_only_the_hook_of_stop_that_counts_asks_the_daemon(hook: Hook) -> None:
    """Claude Code runs both; the other one ends at once, whatever the daemon does."""
    with hook.daemon() as daemon:
        assert hook("Stop", "strict") == SILENT
        hook.strict()
        assert hook("Stop", "wake") == SILENT
    assert daemon.requests == []


@pytest.mark.parametrize(("entrypoint", "attended"), [("sdk-cli", ""), ("sdk-py", "1"), ("", "0")])
def test_where_nobody_sits_the_turn_itself_waits(hook: Hook, entrypoint: str, attended: str) -> None:
    """`claude -p` and the SDKs: a wake would give a second result, so the other hook of Stop counts."""
    answer = json.dumps({"decision": "block", "reason": WAKE.decode()}).encode()
    hook.env |= {"CLAUDE_CODE_ENTRYPOINT": entrypoint, "CLAUDE_CODE_SESSION_ATTENDED": attended}
    with hook.daemon(http(200, answer)) as daemon:
        assert hook("Stop", "wake") == SILENT
        assert hook("Stop", "strict") == (0, answer + b"\n", b"")
    assert [r.line.split()[1] for r in daemon.requests][-1] == "/v1/hooks/Stop?strict=1"


def test_a_session_in_the_background_is_woken(hook: Hook) -> None:
    """`claude --bg` is a terminal session (`cli`) that nobody attends; it lives on, so a wake reaches it."""
    hook.env |= {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ATTENDED": "0"}
    with hook.daemon(http(422, WAKE)) as daemon:
        assert hook("Stop", "strict") == SILENT
        assert hook("Stop", "wake") == (2, b"", WAKE + b"\n")
    assert [r.line.split()[1] for r in daemon.requests][-1] == "/v1/hooks/Stop"


# --- failing open ---------------------------------------------------------------------------------

ODD = {
    "an older daemon": http(404, b'{"api": 1, "error": "no route"}'),
    "refused": http(403, b'{"api": 1, "error": "another user"}'),
    "too big": http(413, b"## Too big"),
    "broken": http(500, b"## Reflection-3: not from a broken daemon"),
    "full": http(503, b"{}"),
    "moved": http(302, b"## Reflection-3", b"Location: http://127.0.0.1:1/"),
    "not json": http(200, b"Traceback (most recent call last):"),
    "a list": http(200, b'["x"]'),
    "nothing": http(200),
    "half of it": http(200, JSON).replace(b"Content-Length: ", b"Content-Length: 9"),
    "half a wake": http(409, WAKE).replace(b"Content-Length: ", b"Content-Length: 9"),
    "half a head": b"HTTP/1.1 200 OK\r\nContent-",
    "no http": b"## Reflection-3: Task Incomplete\r\n\r\n{}",
    "no status": b"HTTP/1.1\r\n\r\n{}",
    "zeros": b"\0" * 5000,
    "closed": b"",
    "endless": http(200, b'{"a": "' + b"x" * (2 << 20) + b'"}'),
}


@pytest.mark.shows("I35")
@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_any_other_answer_is_silence(hook: Hook, answer: bytes) -> None:
    """Whatever is wrong with the daemon, Claude Code goes on as if we were not installed."""
    with hook.daemon(answer):
        assert hook("Stop", "wake") == SILENT
        assert hook("UserPromptSubmit") == SILENT


@pytest.mark.shows("I35")
def test_a_daemon_that_hangs_is_given_up(hook: Hook) -> None:
    """The deadline is the hook's own; Claude Code is not the one to end it."""
    with hook.daemon(None) as daemon:
        assert hook("SessionEnd") == SILENT
    assert len(daemon.requests) == 1


def test_a_long_wait_is_no_silence() -> None:
    """A Stop whose daemon gave its sign of life may wait until its time is over; other events may not."""
    with made("sh", "curl") as hook:
        hook.program("curl", "cat >/dev/null; printf '\\n000'; exit 28")
        with hook.daemon():
            assert hook("Stop", "wake") == SILENT
            assert not (hook.state / "silent").exists()
            assert hook("UserPromptSubmit") == SILENT
            assert (hook.state / "silent").exists()


@pytest.mark.parametrize("client", ["curl", "python3"])
def test_a_daemon_that_was_silent_is_asked_with_less_patience(client: str) -> None:
    """The hooks of one session wait for a hung daemon once; when it answers again, they are patient again."""
    with made("sh", client) as hook:
        silent = hook.state / "silent"
        with hook.daemon(None):
            assert hook("UserPromptSubmit") == SILENT
        assert silent.exists()
        hook.socket.unlink()
        program = "curl" if client == "curl" else "python3"
        real = (hook.bin / program).resolve() if client == "curl" else Path(sys.executable)
        (hook.bin / program).unlink()
        hook.program(program, f'printf "%s " "$@" >"{hook.root}/asked"; exec "{real}" "$@"')
        with hook.daemon():
            assert hook("UserPromptSubmit") == (0, JSON + b"\n", b"")
            assert " 0.5 " in (hook.root / "asked").read_text()
            assert not silent.exists()
            assert hook("Notification") == (0, JSON + b"\n", b"")
            assert " 0.5 " not in (hook.root / "asked").read_text()


@pytest.mark.shows("I35")
@pytest.mark.parametrize("client", ["curl", "python3"])
def test_a_daemon_that_hangs_is_not_waited_for_long(client: str) -> None:
    """Where it answers nothing at all, a Stop that Claude Code waits for gives up long before a judge's time
    is over: the turn is not even told of.
    """
    with made("sh", client) as hook, hook.daemon(None) as daemon:
        hook.strict()
        assert hook("Stop", "strict") == SILENT
    assert not daemon.requests


@pytest.mark.parametrize("client", ["curl", "python3"])
def test_a_slow_daemon_hears_of_the_turn_that_nobody_waits_for(client: str) -> None:
    """A Stop in the background gives a daemon on a busy machine time, also after one that was silent."""
    with made("sh", client) as hook:
        (hook.state / "silent").touch()
        with hook.daemon(http(422, WAKE), slow_s=2.5) as daemon:
            assert hook("Stop", "wake") == (2, b"", WAKE + b"\n")
    assert len(daemon.requests) == 1


@pytest.mark.shows("I35")
@pytest.mark.parametrize("event", [["Stop", "wake"], ["SessionStart"], ["UserPromptSubmit"]])
def test_no_daemon_is_silence(hook: Hook, event: list[str]) -> None:
    """No socket, one that nobody listens on, a file in its place, no folder at all."""
    assert hook(*event) == SILENT
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(hook.socket))
    assert hook(*event) == SILENT
    hook.socket.unlink()
    hook.socket.write_text("no socket")
    assert hook(*event) == SILENT
    hook.env["REFLECTD_SOCKET"] = "/nowhere/r.sock"
    assert hook(*event) == SILENT


@pytest.mark.shows("I35")
@pytest.mark.parametrize(
    "change",
    [
        {"HOME": "", "REFLECTD_STATE_DIR": "", "REFLECTD_SOCKET": ""},
        {"REFLECTD_STATE_DIR": "relative", "REFLECTD_SOCKET": "relative"},
        {"REFLECTD_SOCKET": "/" + "x" * 5000},
        {"REFLECTD_SOCKET": "", "XDG_RUNTIME_DIR": "relative"},
        {"PATH": "/nowhere"},
    ],
)
def test_odd_surroundings_are_silence(hook: Hook, change: dict[str, str]) -> None:
    """Sh ends with 2 on errors of its own, which would wake the agent; the trap makes it 0."""
    hook.env |= change
    for args in (["Stop", "wake"], ["SessionStart"], []):
        assert hook(*args) == SILENT


@pytest.mark.parametrize("variable", ["REFLECTD_CHILD", "REFLECTD_DISABLE"])
def test_our_own_children_say_nothing(hook: Hook, variable: str) -> None:
    """No recursion into our own hooks: a judge's `claude -p` is not even heard of, and starts nothing."""
    hook.env |= {variable: "1", "REFLECTD_NO_START": "0"}
    hook.program("reflectd", f"touch '{hook.state}/ran'")
    with hook.daemon() as daemon:
        for args in (["SessionStart"], ["Stop", "wake"], ["Stop", "strict"], ["SessionEnd"]):
            assert hook(*args) == SILENT
    assert daemon.requests == []
    assert list(hook.state.iterdir()) == []


def test_a_line_break_in_a_folder_is_no_header(hook: Hook) -> None:
    """A folder's name can't add headers, and the event still arrives."""
    hook.env |= {"CLAUDE_PROJECT_DIR": "/a\r\nOrigin: evil", "CLAUDE_PID": "1\nX-Evil: 1"}
    with hook.daemon() as daemon:
        assert hook("PreCompact") == (0, JSON + b"\n", b"")
    (request,) = daemon.requests
    assert not {"origin", "x-evil"} & set(request.headers)
    assert request.headers.get("x-cc-project", "") == ""


def test_a_persons_curl_settings_are_not_ours(hook: Hook) -> None:
    """`.curlrc` and proxies are for other uses of curl."""
    (hook.root / ".curlrc").write_text(
        'verbose\nfail\nheader = "Origin: http://evil"\nproxy = "http://127.0.0.1:1"\n'
    )
    proxies = ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy")
    hook.env |= dict.fromkeys(proxies, "http://127.0.0.1:1") | {"CURL_HOME": str(hook.root)}
    with hook.daemon(http(409, WAKE)) as daemon:
        assert hook("Stop", "wake") == (2, b"", WAKE + b"\n")
    assert "origin" not in daemon.requests[0].headers


# --- where the socket is --------------------------------------------------------------------------


def places(hook: Hook) -> dict[str, tuple[Path, dict[str, str]]]:
    """By what it is found → the socket, and the environment that says so."""
    unset = {"REFLECTD_SOCKET": "", "REFLECTD_STATE_DIR": ""}
    run, state = hook.root / "xdg" / "reflectd", hook.root / ".local" / "state" / "reflectd"
    elsewhere = hook.root / "elsewhere"
    for folder in (run, state / "run", hook.state / "run", elsewhere / "reflectd" / "run"):
        folder.mkdir(parents=True)
    return {
        "~": (hook.root / "r.sock", {"REFLECTD_SOCKET": "~/r.sock"}),
        "runtime folder": (run / "reflectd.sock", unset | {"XDG_RUNTIME_DIR": str(hook.root / "xdg")}),
        "state folder": (hook.state / "run" / "reflectd.sock", {"REFLECTD_SOCKET": ""}),
        "XDG_STATE_HOME": (
            elsewhere / "reflectd" / "run" / "reflectd.sock",
            unset | {"XDG_STATE_HOME": str(elsewhere)},
        ),
        "home": (state / "run" / "reflectd.sock", unset | {"XDG_STATE_HOME": "relative"}),
    }


@pytest.mark.parametrize("place", ["~", "runtime folder", "state folder", "XDG_STATE_HOME", "home"])
def test_the_socket_is_found_as_the_daemon_places_it(plain: Hook, place: str) -> None:
    """The variable, the runtime folder, the state folder: as in design/protocol.md."""
    at, env = places(plain)[place]
    plain.env |= env
    with plain.daemon(at=at):
        assert plain("PreCompact") == (0, JSON + b"\n", b"")


def test_the_path_that_the_daemon_wrote_is_read(plain: Hook) -> None:
    """XDG_RUNTIME_DIR differs between shells, so the written path wins; a stale one is passed over."""
    at, env = places(plain)["runtime folder"]
    written = plain.root / "written.sock"
    plain.env |= env | {"REFLECTD_STATE_DIR": str(plain.state)}
    (plain.state / "socket").write_text(str(written))  # no line end, as the daemon may write it
    with plain.daemon(at=at) as default:
        assert plain("PreCompact")[0] == 0
        with plain.daemon(at=written) as chosen:
            assert plain("PreCompact")[0] == 0
    assert (len(default.requests), len(chosen.requests)) == (1, 1)


# --- whose the socket is --------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["folder", "socket"])
@pytest.mark.parametrize("event", [["Stop", "wake"], ["SessionStart"], ["UserPromptSubmit"]])
def test_a_socket_that_others_may_replace_is_not_used(hook: Hook, event: list[str], which: str) -> None:
    """Not a byte goes out, and no answer of it reaches the agent."""
    with hook.daemon(http(422, WAKE)) as daemon:
        place = hook.socket.parent if which == "folder" else hook.socket
        for bit in (0o020, 0o002):
            usual = place.stat().st_mode
            place.chmod(usual | bit)
            assert hook(*event, stdin=b'{"last_assistant_message": "mine"}') == SILENT
            assert hook("Where") == SILENT
            place.chmod(usual)
        assert daemon.connections == 0
        assert hook("Stop", "wake") == (2, b"", WAKE + b"\n")


def test_the_mod_is_told_where_it_may_connect(plain: Hook) -> None:
    """The mod can't see whose a socket is: it is told the path, and nothing where nobody listens, where the
    plugin is switched off, or for a child of reflectd.
    """
    assert plain("Where") == SILENT
    with plain.daemon() as daemon:
        assert plain("Where") == (0, f"{plain.socket}\n".encode(), b"")
        for name in ("REFLECTD_DISABLE", "REFLECTD_CHILD"):
            plain.env[name] = "1"
            assert plain("Where") == SILENT
            del plain.env[name]
    assert daemon.connections == 0


@root_only
@pytest.mark.parametrize("named", ["by the variable", "by the state folder"])
@pytest.mark.parametrize("which", ["folder", "socket"])
def test_a_socket_of_another_user_is_not_used(hook: Hook, which: str, named: str) -> None:
    """The same for what another user owns, also where `<state>/socket` names it."""
    if named == "by the state folder":
        (hook.state / "socket").write_text(f"{hook.socket}\n")
        hook.env["REFLECTD_SOCKET"] = ""
    with hook.daemon(http(422, WAKE)) as daemon:
        os.chown(hook.socket.parent if which == "folder" else hook.socket, 54321, 54321)
        assert hook("Stop", "wake", stdin=b'{"last_assistant_message": "mine"}') == SILENT
        assert hook("UserPromptSubmit") == SILENT
        assert hook("Where") == SILENT
    assert daemon.connections == 0


@root_only
def test_a_note_of_another_user_is_not_followed(plain: Hook) -> None:
    """`<state>/socket` counts only where it is this user's."""
    at, env = places(plain)["runtime folder"]
    plain.env |= env | {"REFLECTD_STATE_DIR": str(plain.state)}
    written = plain.root / "written.sock"
    (plain.state / "socket").write_text(f"{written}\n")
    os.chown(plain.state / "socket", 54321, 54321)
    with plain.daemon(at=at) as default, plain.daemon(at=written) as other:
        assert plain("UserPromptSubmit") == (0, JSON + b"\n", b"")
    assert (len(default.requests), other.connections) == (1, 0)


@root_only
def test_post_py_looks_itself(plain: Hook) -> None:
    """It does not rely on the script that calls it: neither for the files nor for who answers."""
    command = [sys.executable, "-I", "-S", SCRIPTS / "post.py", plain.socket, "/v1/hooks/Stop", "5", "1"]
    with plain.daemon() as daemon:
        os.chown(plain.socket, 54321, 54321)
        done = subprocess.run(command, input=b"{}", capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (1, b"")
        os.chown(plain.socket, 0, 0)
        done = subprocess.run(command, input=b"{}", capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, JSON + b"\n200")
    assert daemon.connections == 2  # the question whether it is there, and the event


# --- starting the daemon --------------------------------------------------------------------------

RECORD = """\
printf '%s\\n' "$*" >>"$REFLECTD_STATE_DIR/ran"
env >"$REFLECTD_STATE_DIR/env"
printf '%s\\n' '{socket}' >"$REFLECTD_STATE_DIR/socket"
"""


def starts(hook: Hook) -> list[str]:
    """How `reflectd` was run."""
    ran = hook.state / "ran"
    return ran.read_text().splitlines() if ran.exists() else []


@pytest.fixture
def asleep(hook: Hook) -> Hook:
    """No daemon where one is looked for; `reflectd start` makes one known."""
    hook.program("env", 'exec /usr/bin/env "$@"')
    hook.env |= {"REFLECTD_SOCKET": "", "REFLECTD_NO_START": "0"}
    name = str(hook.socket).replace("'", "'\\''")
    hook.program("reflectd", RECORD.replace("{socket}", name))
    return hook


def test_session_start_starts_the_daemon_and_asks_it(asleep: Hook) -> None:
    """Started as a host's start, once, without Claude Code's variables; then the same event is forwarded."""
    asleep.env |= {"CLAUDECODE": "1", "ANTHROPIC_API_KEY": "kept"}
    with asleep.daemon() as daemon:
        assert asleep("SessionStart", stdin=b'{"source": "startup"}') == (0, JSON + b"\n", b"")
        assert asleep("SessionStart") == (0, JSON + b"\n", b"")
    assert starts(asleep) == ["start --from-shim"]
    assert [request.body for request in daemon.requests] == [b'{"source": "startup"}', b"{}"]
    given = (asleep.state / "env").read_text()
    assert "ANTHROPIC_API_KEY=kept" in given
    assert not [line for line in given.splitlines() if line.startswith(("CLAUDE", "AI_AGENT"))]


def test_a_start_that_failed_is_told_once(hook: Hook) -> None:
    """In the words that `reflectd start` wrote down, or in our own where it wrote none; never by a hook that
    may not speak, and never what is no JSON text.
    """
    hook.program("env", 'exec /usr/bin/env "$@"')
    hook.env |= {"REFLECTD_SOCKET": "", "REFLECTD_NO_START": "0"}
    hook.program("reflectd", "exit 1")
    failed = hook.state / "start-failed"
    assert hook("UserPromptSubmit") == SILENT
    wait_until(failed.exists, "the end of the start")
    assert hook("PostToolUse") == hook("SessionEnd") == SILENT
    code, out, _ = hook("UserPromptSubmit")
    assert (code, "reflectd start in a terminal" in json.loads(out)["systemMessage"]) == (0, True)
    assert hook("UserPromptSubmit") == SILENT
    said = 'It "broke": \\ ü.'
    failed.write_text(json.dumps(said) + "\n")
    code, out, _ = hook("UserPromptSubmit")
    assert (code, json.loads(out)) == (0, {"systemMessage": said})
    failed.write_text("It broke.\n")
    assert hook("UserPromptSubmit") == SILENT


@pytest.mark.parametrize(("age", "started"), [(30, 0), (61, 1), (-500, 1), (None, 1)])
def test_at_most_one_start_a_minute(asleep: Hook, age: int | None, started: int) -> None:
    """A daemon that can't start is not tried at every session; an unreadable or future mark is no mark."""
    mark = asleep.state / "started-by-hook"
    mark.write_text("0999 rubbish" if age is None else f"{int(time.time()) - age}\n")
    with asleep.daemon():
        code, _, err = asleep("SessionStart")
    assert (code, err) == (0, b"")
    assert len(starts(asleep)) == started


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Notification", "StopFailure"])
def test_a_daemon_that_died_is_started_by_the_next_hook(asleep: Hook, event: str) -> None:
    """A session that began with a daemon gets a new one; the hook does not wait for it."""
    end = asleep.root / "end"
    # it ends with the box too, so that nothing is left running
    wait = f'while [ -d "{asleep.root}" ] && ! [ -e "{end}" ]; do sleep 0.05; done'
    asleep.program("reflectd", f'printf "%s\\n" "$*" >>"$REFLECTD_STATE_DIR/ran"; {wait}')
    try:
        assert asleep(event) == SILENT  # it returns while `reflectd start` goes on
        wait_until(lambda: starts(asleep), "a start")
        assert asleep(event) == SILENT
        assert starts(asleep) == ["start --from-shim"]
    finally:
        end.touch()


def test_the_end_of_a_turn_waits_for_the_daemon_that_it_starts(asleep: Hook) -> None:
    """In the background, so that the turn is judged although the daemon died in it."""
    with asleep.daemon(http(422, WAKE)) as daemon:
        assert asleep("Stop", "wake", stdin=b'{"x": 1}') == (2, b"", WAKE + b"\n")
    assert starts(asleep) == ["start --from-shim"]
    assert [request.body for request in daemon.requests] == [b'{"x": 1}']


def test_the_end_of_a_turn_waits_long_for_a_daemon_that_starts_slowly(asleep: Hook) -> None:
    """Somebody else started it half a minute ago. 8 seconds later it listens, and the turn is judged."""
    (asleep.state / "started-by-hook").write_text(f"{int(time.time()) - 30}\n")
    slept = asleep.root / "slept"
    asleep.program("sleep", f'echo >>"{slept}"; [ "$(wc -l <"{slept}")" -lt 32 ] || "{asleep.bin}/reflectd"')
    asleep.program("wc", f'exec {shutil.which("wc")} "$@"')
    with asleep.daemon(http(422, WAKE)):
        assert asleep("SessionStart") == SILENT
        assert asleep("Stop", "wake") == (2, b"", WAKE + b"\n")
    assert len(slept.read_text().splitlines()) == 32


def test_a_daemon_that_dies_in_a_judgement_soon_after_its_start(asleep: Hook) -> None:
    """The hook that waits for the verdict asks again, and starts one when the minute is over, so that the
    turn does not stay `judging`. Where somebody waits for the hook it ends.
    """
    first = asleep.root / "run" / "first.sock"
    mark, known = asleep.state / "started-by-hook", asleep.state / "socket"
    minute_ago = int(time.time()) - 61
    over = asleep.root / "over"  # the minute ends once: what was started then takes its time
    ends = f': >"{over}"; echo {minute_ago} >"{mark}"; : >"{known}"'
    asleep.program("sleep", f'[ -e "{over}" ] || {{ {ends}; }}; exec /bin/sleep 0.02')
    for mode, found in (("strict", SILENT), ("wake", (2, b"", WAKE + b"\n"))):
        (asleep.state / "strict").unlink(missing_ok=True)
        if mode == "strict":
            asleep.strict()
        known.write_text(f"{first}\n")
        mark.write_text(f"{int(time.time())}\n")
        with asleep.daemon(b"", first) as died, asleep.daemon(http(422, WAKE)) as second:
            assert asleep("Stop", mode, stdin=b'{"x": 0}') == found
        assert [request.body for request in died.requests] == [b'{"x": 0}']
        assert len(second.requests) == (mode == "wake")
        first.unlink()
        asleep.socket.unlink()
    assert starts(asleep) == ["start --from-shim"]


def test_the_end_of_a_session_starts_nothing(asleep: Hook) -> None:
    """Nobody is there any more."""
    assert asleep("SessionEnd") == SILENT
    assert starts(asleep) == []


@pytest.mark.parametrize("noted", ["", "REFLECTD_HEADLESS", "REFLECTD_RUN_HEADLESS", "config.toml"])
def test_a_session_that_nobody_wants_judged_starts_nothing(asleep: Hook, noted: str) -> None:
    """`claude -p` starts the daemon only where the setting, or its variable, may be on."""
    asleep.env |= {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli", "CLAUDE_CODE_SESSION_ATTENDED": "0"}
    config = asleep.root / ".config" / "reflectd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[run]\n  # headless = true\nheadless = false\n[claude_code]\nstrict = true")
    if noted == "config.toml":
        config.write_text("[run]\n  headless = true")
    elif noted:
        asleep.env[noted] = "1"
    with asleep.daemon():
        assert asleep("SessionStart") == ((0, JSON + b"\n", b"") if noted else SILENT)
    assert starts(asleep) == (["start --from-shim"] if noted else [])


def test_a_state_folder_that_cannot_be_written_costs_no_wait(asleep: Hook) -> None:
    """The minute between two starts can't be noted there, and no daemon could use it: none is started."""
    asleep.env["REFLECTD_STATE_DIR"] = "/proc/none"
    asleep.program("sleep", f'touch "{asleep.state}/slept"')
    for event in (["SessionStart"], ["Stop", "wake"]):
        assert asleep(*event) == SILENT
    assert list(asleep.state.iterdir()) == []


@pytest.mark.parametrize("home", ["", "relative"])
def test_without_a_home_nothing_is_made(asleep: Hook, home: str) -> None:
    """Without HOME there is no default place: not one at the root of the disk."""
    asleep.env |= {"HOME": home, "REFLECTD_STATE_DIR": "", "REFLECTD_SOCKET": ""}
    asleep.program("mkdir", f'touch "{asleep.state}/made"')
    assert asleep("SessionStart") == SILENT
    asleep.env["REFLECTD_STATE_DIR"] = "~/state"
    assert asleep("SessionStart") == SILENT
    assert list(asleep.state.iterdir()) == []


def test_a_stopped_daemon_stays_stopped(asleep: Hook) -> None:
    """`reflectd stop` and REFLECTD_NO_START are respected, at once."""
    (asleep.state / "stopped").touch()
    assert asleep("SessionStart") == SILENT
    (asleep.state / "stopped").unlink()
    asleep.env["REFLECTD_NO_START"] = "1"
    assert asleep("SessionStart") == SILENT
    assert sorted(asleep.state.iterdir()) == []


def test_a_program_of_the_project_is_never_run(asleep: Hook) -> None:
    """Relative folders of PATH are passed over; REFLECTD_BIN says which one it is."""
    asleep.program("reflectd", "touch ran-by-name").rename(asleep.project / "reflectd")
    asleep.env["PATH"] = f".::{asleep.bin}"
    assert asleep("SessionStart") == SILENT
    assert list(asleep.project.iterdir()) == [asleep.project / "reflectd"]
    chosen = asleep.program("chosen", RECORD.replace("{socket}", "/nowhere"))
    asleep.env["REFLECTD_BIN"] = str(chosen)
    (asleep.state / "started-by-hook").unlink(missing_ok=True)
    with asleep.daemon():
        chosen.write_text(chosen.read_text().replace("/nowhere", str(asleep.socket).replace("'", "'\\''")))
        assert asleep("SessionStart") == (0, JSON + b"\n", b"")
    assert starts(asleep) == ["start --from-shim"]


def test_exec_form_needs_the_executable_bit(plain: Hook) -> None:
    """Claude Code runs the script itself, no shell between; whatever the shell, its checks are clean."""
    for name in ("hook.sh", "ctl.sh"):
        assert (SCRIPTS / name).stat().st_mode & 0o111 == 0o111
    with plain.daemon():
        done = subprocess.run(
            [SCRIPTS / "hook.sh", "PreCompact"], env=plain.env, input=b"{}", capture_output=True, check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, JSON + b"\n", b"")


@pytest.mark.shows("I45")
def test_the_real_daemon_is_started_and_stays(plain: Hook) -> None:
    """Started from SessionStart it outlives the hook, and answers until `reflectd stop`."""
    command = f'exec "{sys.executable}" -m daemon "$@"'
    program = plain.program("reflectd", command)
    plain.env |= {"REFLECTD_NO_START": "0", "PYTHONPATH": str(REPO), "REFLECTD_JUDGE_PROVIDER": "offline"}
    plain.socket.parent.chmod(0o700)
    try:
        code, _, err = plain("SessionStart", stdin=b'{"session_id": "s", "source": "startup"}')
        assert (code, err) == (0, b"")
        wait_until(plain.socket.is_socket, "the daemon, which a busy machine starts in more than 5 seconds")
        assert call(plain.socket, "GET", "/v1/status")["pid"]
    finally:
        done = subprocess.run(
            [program, "stop"], env=plain.env, capture_output=True, text=True, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert not plain.socket.exists()
