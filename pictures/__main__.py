"""``python -m pictures``: drive the real hosts in a terminal and draw what a person sees.

Writes ``docs/pictures/<host>.svg``. The host, the plugin, the daemon and its rules are real; what the agent
says and does is a script on loopback. Exit code 0, or 1 when a scene did not go as it should.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from harness.hosts.claude_code import ClaudeCode
from harness.hosts.claude_code_tui import ClaudeTui
from harness.hosts.opencode_tui import OpencodeTui
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox, sandbox
from harness.machine.waiting import wait_until
from harness.models import claude_code as claude_tools
from harness.models import server
from harness.models.server import ModelServer, text
from pictures.svg import Frame, animated

if TYPE_CHECKING:
    from harness.machine.terminal import Terminal
    from harness.models.server import Step

FOLDER = REPO / "docs" / "pictures"
PLUGIN = REPO / "plugin-shim" / "claude-code"
COLUMNS, ROWS = 100, 32
REQUEST = "Add slug.py with slugify(title). make test must pass."
CLAIM = "All done! slug.py has slugify(title) now."
DONE = "Done: slugify() drops punctuation now, and make test passes."
SETTLE_S = 0.7  # a screen is drawn in several pieces
NAMES = {"opencode": "opencode", "claude-code": "Claude Code"}
TITLE = "reflectd in {host}: the agent stops too early, and is sent back"

FILES = {
    "Makefile": "test:\n\t@python3 -m unittest -q\n",
    "test_slug.py": textwrap.dedent(
        """\
        import unittest

        from slug import slugify


        class Slugs(unittest.TestCase):
            def test_punctuation(self):
                self.assertEqual(slugify("Hello, World!"), "hello-world")
        """
    ),
}
FIRST = 'def slugify(title):\n    return "-".join(title.lower().split())\n'
SECOND = 'import re\n\n\ndef slugify(title):\n    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))\n'


def main(argv: list[str]) -> int:
    """Draw the pictures of all hosts, or of those that are named."""
    parser = argparse.ArgumentParser(prog="python -m pictures", description=__doc__)
    parser.add_argument("host", nargs="*", choices=[*SCENES, []], help="which; all of them without a name")
    for host in parser.parse_args(argv).host or SCENES:
        try:
            frames = list(SCENES[host]())
        except AssertionError as e:  # a wait that took too long says what was on the screen
            print(f"pictures: {host}: {e}", file=sys.stderr)
            return 1
        FOLDER.mkdir(exist_ok=True)
        file = FOLDER / f"{host}.svg"
        file.write_text(animated(TITLE.format(host=NAMES[host]), frames), "utf-8")
        print(f"{file.relative_to(REPO)}: {len(frames)} screens, {file.stat().st_size // 1024} KB")
    return 0


class _Opencode(OpencodeTui):
    columns, rows = COLUMNS, ROWS


class _Claude(ClaudeTui):
    columns, rows = COLUMNS, ROWS


@contextlib.contextmanager
def _project() -> Iterator[Sandbox]:
    """A machine whose project wants a function that its test describes."""
    with sandbox() as box:
        for name, content in FILES.items():
            box.file(name, content)
        yield box


def _opencode() -> Iterator[Frame]:
    """The feedback is a message in the session, and a toast tells when the work is complete."""
    with _project() as box, ModelServer() as llm, Daemon(box), _Opencode(box, llm.url) as tui:
        llm.script(*_story(server.write, server.bash, ""))
        tui.ask(REQUEST)
        yield from _round(tui, box, "Task Incomplete")
        wait_until(lambda: "Task complete" in tui.screen, "the toast", lambda: tui.screen)
        yield _frame(tui, box, 6)


def _claude_code() -> Iterator[Frame]:
    """The session is woken, and says why in one line."""
    with _project() as box, ModelServer() as llm, Daemon(box):
        claude = ClaudeCode(box, llm.url, plugin=PLUGIN)
        with _Claude(claude) as tui:
            llm.script(*_story(claude_tools.write, claude_tools.bash, f"{box.project}/"))
            tui.ask(REQUEST)
            yield from _round(tui, box, "not done yet, the agent was told")


def _round(tui: Terminal, box: Sandbox, told: str) -> Iterator[Frame]:
    """Asked, stopped too early, told so by reflectd (``told`` is on the screen then), and done."""
    yield _frame(tui, box, 2)
    for words, seconds in ((CLAIM, 3), (told, 5), (DONE, 4)):
        tui.wait_for(words)
        time.sleep(SETTLE_S)
        yield _frame(tui, box, seconds)


def _frame(tui: Terminal, box: Sandbox, seconds: float) -> Frame:
    """What is on the screen now. The sandbox's folder is called as a person's would be."""
    path, name = str(box.project), "~/project"
    rows = tui.cells
    for row in rows:
        at = "".join(cell.data or " " for cell in row).find(path)
        if at < 0:
            continue
        end = at + len(path)
        goes_on = end < len(row) and row[end].data == "/"
        letters = [cell.data for cell in row[end:]] if goes_on else []
        for n, letter in enumerate([*name, *letters] if goes_on else name.ljust(len(path))):
            row[at + n] = row[at + n]._replace(data=letter)
        for n in range(at + len(name) + len(letters), len(row) if goes_on else 0):
            row[n] = row[n]._replace(data=" ")
    return Frame(rows, seconds)


def _story(write: Callable[[str, str], Step], bash: Callable[[str], Step], folder: str) -> list[Step]:
    """What the agent does and says."""
    path = f"{folder}slug.py"
    return [
        write(path, FIRST),
        bash("make test"),
        text(CLAIM),
        write(path, SECOND),
        bash("make test"),
        text(DONE),
    ]


SCENES: dict[str, Callable[[], Iterator[Frame]]] = {"opencode": _opencode, "claude-code": _claude_code}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
