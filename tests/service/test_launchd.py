"""The launchd agent: what plistlib reads back, and only keys that launchd knows."""

from __future__ import annotations

import plistlib
from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.service import units
from daemon.service.units import Plan

# launchd.plist(5); launchd ignores what it does not know, so a wrong name would go unnoticed
ALLOWED: dict[str, type] = {
    "Label": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "RunAtLoad": bool,
    "KeepAlive": dict,
    "ThrottleInterval": int,
    "ProcessType": str,
    "WorkingDirectory": str,
    "ExitTimeOut": int,
    "Umask": int,
    "SoftResourceLimits": dict,
    "StandardOutPath": str,
    "StandardErrorPath": str,
}
PROGRAM = ('/Users/me/py <&> "x" ü/python', "-m", "daemon")
PLAN = Plan(PROGRAM, Path("/Users/me/state & more"), Path("/Users/me/r.sock"), {"XDG_CONFIG_HOME": "/c <"})


def read(plan: Plan = PLAN) -> dict[str, object]:
    """As it lies on disk."""
    found: dict[str, object] = plistlib.loads(units.seal(units.agent(plan)[units.FILE]).encode())
    return found


def test_every_key_is_launchds_and_has_its_type() -> None:
    """A typo in a key would switch it off silently."""
    job = read()
    assert set(job) == set(ALLOWED)
    assert {k: type(v) for k, v in job.items()} == ALLOWED
    assert job["KeepAlive"] == {"SuccessfulExit": False}
    assert job["ProcessType"] == "Background"
    limits = job["SoftResourceLimits"]
    assert limits == {"NumberOfFiles": 8192, "Core": 0}


def test_the_round_trip_keeps_every_path() -> None:
    """Characters that are special in XML arrive unchanged."""
    job = read()
    arguments = job["ProgramArguments"]
    assert isinstance(arguments, list)
    assert tuple(arguments[:4]) == (*PROGRAM, "serve")
    options = dict(zip(arguments[4::2], arguments[5::2], strict=False))
    assert options["--state-dir"] == "/Users/me/state & more"
    assert arguments[-3:] == ["--log-file", "--socket", "/Users/me/r.sock"]
    assert job["EnvironmentVariables"] == {"XDG_CONFIG_HOME": "/c <"}
    assert job["StandardErrorPath"] == "/Users/me/state & more/launchd.log"
    assert "EnvironmentVariables" not in read(Plan(PROGRAM, Path("/s"), Path("/r")))


def test_a_path_that_no_plist_can_hold() -> None:
    """Bad input: refused with the reason."""
    with pytest.raises(UserError, match="launchd cannot use"):
        read(Plan(("/a\x01b",), Path("/s"), Path("/r")))
