"""A person at a terminal: types a command of reflectd and answers what it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pexpect

from harness.machine.waiting import PATIENCE_S
from tests.support.machine.command_line import COMMAND, environment

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox

QUESTION = [r"\[y/N\] ", r"Enter for none: ", r"applies\) "]


def typed(box: Sandbox, args: list[str], *, columns: int = 100, **env: str) -> pexpect.spawn[str]:
    """The command in a terminal of its own."""
    return pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], *args],
        env=environment(box, TERM="dumb", **env),  # type: ignore[arg-type]
        cwd=str(box.project),
        encoding="utf-8",
        timeout=PATIENCE_S,
        dimensions=(50, columns),
    )


def at_a_terminal(
    box: Sandbox, args: list[str], *answers: str, columns: int = 100, **env: str
) -> tuple[int, str]:
    """Exit code and screen. Each answer is typed when the next question has come; "\\x04" ends the input."""
    child, screen = typed(box, args, columns=columns, **env), ""
    try:
        for answer in answers:
            child.expect(QUESTION)
            screen += f"{child.before}{child.after}"
            child.send(answer if answer == "\x04" else f"{answer}\r")
        child.expect(pexpect.EOF)
        screen += str(child.before)
    finally:
        child.close()
    return int(child.exitstatus if child.exitstatus is not None else -1), screen.replace("\r\n", "\n")
