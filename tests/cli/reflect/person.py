"""A person at a terminal: types a command of reflectd and answers what it asks."""

from __future__ import annotations

from collections.abc import Sequence

import pexpect

from harness.machine.sandbox import Sandbox
from harness.machine.waiting import PATIENCE_S
from tests.support.machine.command_line import COMMAND, environment
from tests.support.reflecting import Reviewing

QUESTION = [r"\[y/N\] ", r"Letter \(Enter is .\): ", r"nothing, q quits\): "]


def typed(
    box: Sandbox, args: Sequence[str], *, columns: int = 100, command: Sequence[str] = COMMAND, **env: str
) -> pexpect.spawn[str]:
    """The command in a terminal of its own."""
    return pexpect.spawn(
        command[0],
        [*command[1:], *args],
        env=environment(box, **{"TERM": "dumb", **env}),  # type: ignore[arg-type]
        cwd=str(box.project),
        encoding="utf-8",
        timeout=PATIENCE_S,
        dimensions=(60, columns),
    )


def ended(child: pexpect.spawn[str], screen: str = "") -> tuple[int, str]:
    """Exit code and screen, when nothing more is answered."""
    try:
        child.expect(pexpect.EOF)
    finally:
        child.close()
    code = child.exitstatus if child.exitstatus is not None else -1
    return int(code), f"{screen}{child.before}".replace("\r\n", "\n")


def at_a_terminal(
    box: Sandbox, args: Sequence[str], *answers: str, columns: int = 100, **env: str
) -> tuple[int, str]:
    """Exit code and screen. Each answer is typed when the next question has come; "\\x04" ends the input."""
    child, screen = typed(box, args, columns=columns, **env), ""
    for answer in answers:
        child.expect(QUESTION)
        screen += f"{child.before}{child.after}"
        child.send(answer if answer == "\x04" else f"{answer}\r")
    return ended(child, screen)


def leaves(terminal: Reviewing, key: str = "q", code: int = 0) -> str:
    """The last letter of a review; gives what the screen said, in one line."""
    terminal.press(f"{key}\r")
    assert terminal.ended() == code
    return " ".join(terminal.screen.split())
