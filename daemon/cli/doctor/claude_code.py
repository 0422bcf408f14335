"""Checks of the agents together, and of Claude Code: the program, our plugin in its settings, and its hooks.

Outdated copies of the plugins are brought up to date; nothing else is changed. Where Claude Code is not used,
its checks say so and never warn.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.words import HOSTS
from ..setup import agents as setup
from ..setup import copies
from .installation import Check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .installation import About


def agents(about: About) -> Iterator[Check]:
    """Whether there is an agent, and one that loads reflectd in this folder."""
    found = [(host, setup.find(about.env, host)) for host in setup.HOST]
    there = [host for host, program in found if program]
    if not there:
        mend = f"install one: {', '.join(host.address for host in setup.HOST.values())}"
        yield Check("agents", "warn", f"there is {setup.neither()} on PATH: nothing can be judged", mend)
        return
    connected = [host for host in there if setup.loads(about.env, host, Path.cwd())]
    names = ", ".join(HOSTS[host] for host in connected or there)
    if connected:
        yield Check("agents", "ok", f"connected here: {names}")
    else:
        yield Check("agents", "warn", f"{names}: none of them loads reflectd here", "reflectd setup")


def plugins(about: About) -> Iterator[Check]:
    """Whether the copies that the hosts load are of this version; afterwards they are."""
    for host, name in HOSTS.items():
        folder = copies.place(about.env, host)
        if copies.state(about.env, host) == "linked":
            yield Check("copies", "ok", f"{folder} is a link: reflectd leaves it alone")
        elif copies.refresh(about.env, host):
            yield Check(
                "copies", "warn", f"{folder} was of another version, now it is of this", f"restart {name}"
            )
        elif folder.is_dir():
            yield Check("copies", "ok", f"{folder} is of this version")


SETUP = "reflectd setup claude-code"
FIRST_WITH_MODS = (2, 1, 287)  # those before load one only with a switch
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


def program(about: About) -> Iterator[Check]:
    """Whether the program is there, and not older than the oldest version that the plugin was tested with."""
    from ..setup.agents import find
    from ..setup.claude_code import OLDEST, enabled_in
    from .operation import absent, version_of

    found = find(about.env, "claude-code")
    if not found:
        used = [file for file, _, on in enabled_in(about.env, Path.cwd()) if on]
        yield absent("claude-code", "claude code", used)
        return
    version = version_of(found, about.env)
    numbers = _VERSION.match(version)
    if numbers and tuple(map(int, numbers.groups())) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        mend = f"claude update: reflectd is tested with {oldest} and newer"
        yield Check("claude code", "warn", f"{version} is too old ({found})", mend)
    else:
        yield Check("claude code", "ok", f"{version} ({found})")


def plugin(about: About) -> Iterator[Check]:
    """Our entries in the settings that count in this folder, and the programs that the hooks need."""
    from ..setup.claude_code import HOST, enabled_in, read_in, silenced, skipped
    from ..setup.copies import place

    for file in read_in(about.env, Path.cwd()):
        if file.is_file() and (problem := skipped(file.read_text("utf-8", "replace"))):
            yield Check(
                "hooks", "fail", f"{file}: {problem}", "make it plain JSON: no setting in it counts now"
            )
    found = list(enabled_in(about.env, Path.cwd()))
    if not found:
        yield Check("hooks", "ok", f"Claude Code does not load reflectd here ({SETUP})")
        return
    here = place(about.env, HOST)
    for file, folder, on in found:
        yield _entry(file, folder, here, on=on)
    if not any(on for _, _, on in found):
        return
    for why in silenced(about.env, Path.cwd()):
        yield Check("hooks", "fail", why, "take it out: reflectd hears nothing of these sessions")
    path = about.env.get("PATH", "")
    if not shutil.which("curl", path=path) and not shutil.which("python3", path=path):
        yield Check("hooks", "fail", "there is neither `curl` nor `python3` on PATH", "install curl")
    elif not shutil.which("curl", path=path):
        yield Check("hooks", "warn", "without `curl` each hook takes longer", "install curl")


def mod(about: About) -> Iterator[Check]:
    """Whether the plugin's mod runs in the sessions that the daemon knows. Without it the hooks do all the
    work, so this never warns.
    """
    from ..setup.agents import find
    from ..setup.claude_code import HOST, enabled_in
    from .operation import version_of

    found = find(about.env, HOST)
    if not found or not any(on for _, _, on in enabled_in(about.env, Path.cwd())):
        return
    if not about.settings.claude_code.mod:
        yield Check("mod", "ok", "switched off (claude_code.mod); the hooks do all the work")
        return
    instances = (about.status or {}).get("instances", ())
    missing = [str(i["pid"]) for i in instances if i.get("mod") is False]
    if missing:
        text = (
            f"not loaded in Claude Code {', '.join(missing)} (pid), which began before it was there, or "
            "whose settings or organisation allow none; the hooks do all the work"
        )
    elif any(i.get("mod") for i in instances):
        text = "runs beside the hooks"
    else:
        numbers = _VERSION.match(version_of(found, about.env))
        old = numbers is not None and tuple(map(int, numbers.groups())) < FIRST_WITH_MODS
        text = "this version loads none; the hooks do all the work" if old else "no session tells of it yet"
    yield Check("mod", "ok", text)


def _entry(file: Path, folder: str | None, here: Path, *, on: bool) -> Check:
    """The finding on one settings file that names us."""
    if not on:
        return Check("hooks", "warn", f"{file} has reflectd switched off", f"{SETUP}, or --remove")
    if folder is None:
        return Check("hooks", "warn", f"{file} enables reflectd and does not say where it is", SETUP)
    script = Path(folder, "scripts", "hook.sh")
    if not script.is_file():
        return Check("hooks", "fail", f"{file} loads {folder}, which is not there", SETUP)
    if not os.access(script, os.X_OK):
        return Check("hooks", "fail", f"{script} cannot be run", f"chmod +x {script}")
    if Path(folder) != here:
        return Check("hooks", "warn", f"{file} loads another installation, {folder}", SETUP)
    return Check("hooks", "ok", f"{file} loads {folder}")
