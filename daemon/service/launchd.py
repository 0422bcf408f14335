"""The text of the launchd agent of macOS, a property list. Pure: ``units`` writes the file.

launchd hands a socket over only through a C function. So the agent starts the daemon at login, and the daemon
makes its own socket. launchd has no journal: the daemon writes to its own rotated log file, and launchd
writes what the daemon says before it opens that file to ``launchd.log``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .systemd import Plan

LABEL = "local.reflectd"
FILE = f"{LABEL}.plist"


def render(plan: Plan) -> dict[str, str]:
    """The text of the agent, by its file name. Raises ``UserError``."""
    import plistlib

    job: dict[str, object] = {
        "Label": LABEL,
        "ProgramArguments": _command(plan),
        "RunAtLoad": True,
        # started again after a failure, not after `reflectd stop`; launchd never gives up on a crash loop, so
        # the pause between two starts is long
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 60,
        "ProcessType": "Background",
        "WorkingDirectory": "/",  # Python would import a folder in another one that has the module's name
        "ExitTimeOut": 20,  # the daemon takes up to 11 s to finish its work and store its state
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


def is_ours(env: Mapping[str, str]) -> bool:
    """Whether launchd started this process as our agent."""
    return env.get("XPC_SERVICE_NAME") == LABEL


def _command(plan: Plan) -> list[str]:
    return list(plan.command("--log-file", "--socket", str(plan.socket)))
