"""The launchd agent of macOS, as a property list. Pure: looks at nothing, writes nothing.

launchd hands a socket over only through a C function, so the daemon is started at login and makes its own.
It has no journal: the daemon's log goes to its rotated file, and what it says before that to ``launchd.log``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daemon.core.errors import UserError

if TYPE_CHECKING:
    from daemon.service.systemd import Plan

LABEL = "local.reflectd"
FILE = f"{LABEL}.plist"


def render(plan: Plan) -> dict[str, str]:
    """File name → text."""
    import plistlib

    job: dict[str, object] = {
        "Label": LABEL,
        "ProgramArguments": list(plan.command("--log-file", "--socket", str(plan.socket))),
        "RunAtLoad": True,
        # started again after a failure, not after `reflectd stop`; launchd knows no end of a crash loop, so
        # the pause is long
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 60,
        "ProcessType": "Background",
        "WorkingDirectory": "/",  # a folder `daemon` in another one would be imported
        "ExitTimeOut": 20,  # a drain takes up to 11 s
        "Umask": 0o077,
        "SoftResourceLimits": {"NumberOfFiles": 8192, "Core": 0},
        "StandardOutPath": "/dev/null",
        "StandardErrorPath": str(plan.state_dir / "launchd.log"),
    }
    if plan.environment:
        job["EnvironmentVariables"] = dict(plan.environment)
    try:
        return {FILE: plistlib.dumps(job, sort_keys=False).decode()}
    except ValueError as e:  # a control character in a path
        raise UserError(f"launchd cannot use these paths: {e}") from e
