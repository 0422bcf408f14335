"""The text of the launchd agent of macOS, a property list. Pure: ``units`` writes the file.

launchd hands a socket over only through a C function. So the agent starts the daemon at login, and the daemon
makes its own socket. launchd has no journal: the daemon writes to its own rotated log file, and launchd
writes what the daemon says before it opens that file to ``launchd.log``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def module(agent: str) -> str:
    """The module that the text of an agent starts; empty when it starts none."""
    words = _job(agent).get("ProgramArguments")
    return str(words[2]) if isinstance(words, list) and words[1:2] == ["-m"] and len(words) > 2 else ""


def exchanged(agent: str, old: Plan, new: Plan) -> str:
    """The text of an agent that runs ``new`` where it ran ``old``; as it was when it ran anything else."""
    import plistlib

    job = _job(agent)
    if job.get("ProgramArguments") != _command(old):
        return agent
    return plistlib.dumps(job | {"ProgramArguments": _command(new)}, sort_keys=False).decode()


def _command(plan: Plan) -> list[str]:
    return list(plan.command("--log-file", "--socket", str(plan.socket)))


def _job(agent: str) -> dict[str, Any]:
    """The agent's keys; none when the text is no property list."""
    import plistlib

    try:
        found = plistlib.loads(agent.encode())
    except Exception:  # noqa: BLE001 - plistlib lets the errors of its XML parser through
        return {}
    return found if isinstance(found, dict) else {}
