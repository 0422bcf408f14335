"""The units as systemd itself reads them."""

from __future__ import annotations

import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.paths import resolve
from daemon.service import units
from daemon.service.units import SERVICE, SOCKET, Plan, address, quote, render, whole_line

HOME = {"HOME": "/home/me", "XDG_RUNTIME_DIR": "/run/user/1000"}
WHERE = resolve(HOME)
PLAN = Plan((sys.executable, "-m", "daemon"), WHERE.state_dir, WHERE.socket)


def parsed(name: str, plan: Plan = PLAN) -> ConfigParser:
    found = ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(render(plan)[name])
    return found


def written(folder: Path, plan: Plan) -> list[str]:
    for name, text in render(plan).items():
        units.write(folder / name, text, "x")
    return [str(folder / name) for name in render(plan)]


def analyze(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``systemd-analyze``, which wants a run-time folder."""
    return subprocess.run(
        ["systemd-analyze", *words],
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("odd", ["plain", "a b", "100%h", "$HOME ${X}", "ü"])
def test_systemd_accepts_the_units(tmp_path: Path, odd: str) -> None:
    """Every key and value is known to systemd, whatever the paths are; a wrong key would fail."""
    program = tmp_path / odd / "python"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    plan = Plan(
        (str(program), "-m", "daemon"),
        tmp_path / odd / 'it\'s "x"',
        tmp_path / odd / "r.sock",
        {"XDG_CONFIG_HOME": str(tmp_path / odd)},
    )
    files = written(tmp_path, plan)
    done = analyze(tmp_path, "--user", "verify", "--man=no", "--recursive-errors=no", *files)
    assert (done.returncode, done.stderr) == (0, "")
    Path(files[0]).write_text(Path(files[0]).read_text().replace("Restart=", "Restrat="))
    assert analyze(tmp_path, "--user", "verify", "--man=no", "--recursive-errors=no", *files).returncode == 1


@pytest.mark.needs("systemd-analyze")
def test_the_exposure_is_bounded(tmp_path: Path) -> None:
    """Hardening: at most 6.3 of 10, without a namespace that would hide workspaces (a bare unit has 9.6)."""
    service, _ = written(tmp_path, PLAN)
    done = analyze(tmp_path, "security", "--offline=true", "--threshold=63", service)
    assert done.returncode == 0, done.stdout[-300:]
    assert analyze(tmp_path, "security", "--offline=true", "--threshold=20", service).returncode == 1


def test_a_crash_loop_ends() -> None:
    """Restarted after a failure, with a pause, five times at most; never after wrong settings."""
    service = parsed(SERVICE)
    assert service["Service"]["Restart"] == "on-failure"
    assert service["Service"]["RestartPreventExitStatus"] == "2"
    burst, window = (int(service["Unit"][f"StartLimit{k}"]) for k in ("Burst", "IntervalSec"))
    assert burst * int(service["Service"]["RestartSec"]) < window, "the limit would never be reached"


def test_the_socket_is_the_daemons_own() -> None:
    """The same address, private, with room for every host; the service comes on demand."""
    unit = parsed(SOCKET)
    assert dict(unit["Socket"]) == {
        "ListenStream": "/run/user/1000/reflectd/reflectd.sock",
        "SocketMode": "0600",
        "DirectoryMode": "0700",
        "Backlog": "4096",
        "RemoveOnStop": "yes",
        "Service": "reflectd.service",
    }
    assert unit["Install"]["WantedBy"] == "sockets.target"
    assert dict(parsed(SERVICE)["Install"]) == {"Also": SOCKET}


@pytest.mark.shows("I36")
def test_nothing_hides_a_workspace() -> None:
    """The daemon writes `.reflection` anywhere the person may; no directive takes folders away."""
    text = render(PLAN)[SERVICE]
    keys = set(re.findall(r"^([A-Za-z]+)=", text, re.MULTILINE))
    hiding = r"Protect\w+|Private\w+|Read(Only|Write)Paths|InaccessiblePaths|TemporaryFileSystem|Root\w+"
    assert [k for k in keys if re.fullmatch(hiding, k)] == []


@pytest.mark.parametrize("text", ["/a\n/b", "/a\\", "/a ", "/a\x1b"])
def test_a_path_that_no_unit_can_hold(text: str) -> None:
    """Bad input: refused, not written wrongly."""
    with pytest.raises(UserError, match="REFLECTD_SOCKET"):
        whole_line(Path(text))


def test_a_program_that_systemd_would_not_run() -> None:
    """Bad input: systemd refuses quotes in a program's path; so do we, before anything is written."""
    with pytest.raises(UserError, match="quotes"):
        render(Plan(("/it's/python",), WHERE.state_dir, WHERE.socket))


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("/usr/bin/python3.12", "/usr/bin/python3.12"),
        ("", '""'),
        ("a b", '"a b"'),
        ("50%", '"50%%"'),
        ("$HOME", '"$HOME"'),
        ('say "hi"\\', '"say \\"hi\\"\\\\"'),
        ("a\nb", '"a\\x0ab"'),
    ],
)
def test_words_are_quoted(word: str, quoted: str) -> None:
    """What systemd's own parser undoes."""
    assert quote(word) == quoted


def test_the_address_is_read_back() -> None:
    """Which daemon an installed unit serves."""
    plan = Plan(("/p",), Path("/s"), Path("/run/100%/r.sock"))
    assert address(render(plan)[SOCKET]) == "/run/100%/r.sock"
    assert address("") == ""
