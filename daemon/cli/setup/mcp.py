"""Whether agents start `reflectd mcp` in each session: setup's ``--mcp`` and ``--no-mcp``.

Off unless the person asks for it, because an agent that sees more tools pays for their descriptions. For
Claude Code it is a setting (``claude_code.mcp``): then the plugin's copy has ``.mcp.json`` (``copies``). For
opencode it is an entry in the settings file that loads the plugin.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ... import config, paths
from ...core.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

SETTING: Final = "claude_code.mcp"
NAMED_IN: Final = Path(".mcp.json")
COMMAND: Final = ("reflectd", "mcp")  # the agent finds it on PATH, as its hooks do
ENTRY: Final = ("mcp", "reflectd")


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Register ``--mcp`` and ``--no-mcp``."""
    import argparse

    text = "let the agent search and keep lessons itself, over MCP (otherwise nothing is changed)"
    parser.add_argument("--mcp", action=argparse.BooleanOptionalAction, default=None, help=text)


def check(args: argparse.Namespace) -> None:
    """Refuse the flag where nothing is set up, and without the extra. Raises ``UserError``."""
    if args.mcp is None:
        return
    if args.remove or args.undo:
        raise UserError(f"give --{'' if args.mcp else 'no-'}mcp alone, without --remove and --undo")
    if args.mcp:
        from importlib.util import find_spec

        if find_spec("mcp") is None:
            raise UserError(
                "the extra [mcp] is not installed: pip install 'reflectd[mcp]'. Nothing was changed"
            )


def is_wanted(env: Mapping[str, str]) -> bool:
    """What the settings say about Claude Code. A file with mistakes in it still says it."""
    return config.load(env, paths.config_file(env), left_out=[]).claude_code.mcp


def plugin_file() -> bytes:
    """The plugin's ``.mcp.json``."""
    server = {"command": COMMAND[0], "args": list(COMMAND[1:])}
    return json.dumps({"mcpServers": {"reflectd": server}}, indent=2).encode() + b"\n"


def in_opencode(text: str, wanted: bool | None) -> str:
    """The settings of opencode with or without our server. ``wanted``: None leaves it as it is. An entry of
    the same name that starts another program is left alone. Raises ``UserError``.
    """
    from ...files.jsonc_members import put, read, take

    if wanted is None:
        return text
    servers = read(text, ENTRY).get(ENTRY[0], {})
    found: Any = servers.get(ENTRY[1])
    if found is not None and not is_ours(found):
        if wanted:
            raise UserError(f"another MCP server is called {ENTRY[1]!r}: rename it, then run this again")
        return text
    if not wanted:
        return take(text, ENTRY)
    return put(text, ENTRY, {"type": "local", "command": list(COMMAND), "enabled": True})


def is_ours(entry: object) -> bool:
    """Whether an entry of opencode's settings starts our server."""
    return isinstance(entry, dict) and entry.get("command") == list(COMMAND)
