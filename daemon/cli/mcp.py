"""``reflectd mcp``: serves the memory of a project to clients of the Model Context Protocol.

A host starts it: `claude mcp add` and `opencode mcp add` tell them. On a terminal it would only wait, so it
refuses there. Exit codes: 0 the client closed the pipe · 1 the extra [mcp] is missing · 2 wrong arguments, or
a terminal.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..core.errors import UserError
from .settings import add_flags, here, look

if TYPE_CHECKING:
    import argparse

EPILOG = """examples:
  claude mcp add reflectd -- reflectd mcp   let Claude Code start it in each session
  reflectd mcp --dir ~/code/shop            what another client is told to start"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("mcp", epilog=EPILOG)
    parser.add_argument("--dir", metavar="DIR", help="the project of this folder (of the current one)")
    add_flags(parser, run)


def run(args: argparse.Namespace) -> int:
    """Serve until the client goes. Raises ``UserError``, and ``Unavailable`` without the extra."""
    if sys.stdin.isatty():
        raise UserError(
            "an MCP client starts this and talks to it through a pipe; "
            "`claude mcp add reflectd -- reflectd mcp` has Claude Code do it"
        )
    from ..mcp.server import Bridge, serve
    from .reflect.decisions import rules_at
    from .reflect.status import row_object

    settings, where = look(args)
    project = here(where, args.dir)
    if not project.is_dir():
        raise UserError(f"there is no folder {project}")

    def rules() -> list[dict[str, Any]]:
        found = rules_at(settings, where, str(project)).look()
        own = [{"text": line.text, "active": True, "by_hand": True} for line in found.by_hand]
        return [*(row_object(row, found) for row in found.rows if row.active), *own]

    serve(Bridge(where, project, rules))
    return 0
