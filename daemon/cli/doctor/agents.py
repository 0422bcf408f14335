"""Checks of the agents together: whether there is one at all, and whether their plugins are of this version.

The copies of the plugins are brought up to date; nothing else is changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...core.words import HOSTS
from ..setup import agents as setup
from ..setup import copies
from .finding import Check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .finding import About


def agents(about: About) -> Iterator[Check]:
    """Whether there is an agent, and one that loads reflectd in this folder."""
    found = [(host, setup.find(about.env, host)) for host in setup.PROGRAMS]
    there = [host for host, program in found if program]
    if not there:
        mend = f"install one: {', '.join(setup.ADDRESSES.values())}"
        yield Check("agents", "warn", f"there is {setup.neither()} on PATH: nothing can be judged", mend)
        return
    connected = [host for host in there if setup.loads(about.env, host, Path.cwd())]
    names = ", ".join(HOSTS[host] for host in connected or there)
    if connected:
        yield Check("agents", "ok", f"connected here: {names}")
    else:
        yield Check("agents", "warn", f"{names}: none of them loads reflectd here", "reflectd setup")


def absent(host: str, subject: str, used: Sequence[Path]) -> Check:
    """The agent is not there. That is fine, unless settings (``used``) load reflectd for it."""
    text = setup.absent(host)
    if not used:
        return Check(subject, "ok", text)
    mend = f"install it ({setup.ADDRESSES[host]}), or reflectd setup {host} --remove"
    return Check(subject, "warn", f"{text}, and {used[0]} loads reflectd for it", mend)


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
