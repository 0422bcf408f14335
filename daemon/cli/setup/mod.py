"""Whether the plugin of Claude Code has its mod: setup's ``--mod`` and ``--no-mod``, and their setting.

A mod runs inside Claude Code with all rights of the person. Whoever does not want that has no file of it on
the disk: the plugin's copy is made without it (``copies``). The hooks are the same in both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ... import config, paths
from ...core.errors import UserError
from .edit import check_editable, read_text, write

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from datetime import datetime

SETTING: Final = "claude_code.mod"
MODULE: Final = Path("hooks", "register.js")
NAMED_IN: Final = Path("hooks", "hooks.json")


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Register ``--mod`` and ``--no-mod``."""
    import argparse

    text = "with or without the plugin's mod, which runs with your rights (otherwise nothing is changed)"
    parser.add_argument("--mod", action=argparse.BooleanOptionalAction, default=None, help=text)


def check(args: argparse.Namespace) -> None:
    """Refuse the flag where nothing is set up. Raises ``UserError``."""
    if args.mod is not None and (args.remove or args.undo):
        raise UserError(f"give --{'' if args.mod else 'no-'}mod alone, without --remove and --undo")


def choose(args: argparse.Namespace, env: Mapping[str, str], now: Callable[[], datetime]) -> tuple[str, ...]:
    """Write the setting if the arguments say so; what to tell the person. Raises ``UserError`` and
    ``Unavailable``.
    """
    return set_part(SETTING, args.mod, args, env, now)


def set_part(
    setting: str,
    wanted: bool | None,
    args: argparse.Namespace,
    env: Mapping[str, str],
    now: Callable[[], datetime],
) -> tuple[str, ...]:
    """Write whether the plugin has a part that can be left out; None writes nothing. See ``choose``."""
    from ...files.toml_text import put

    if wanted is None:
        return ()
    file = paths.config_file(env)
    section, _, name = setting.partition(".")
    old = read_text(file) if file.exists() else ""
    try:
        new = put(old, section, name, wanted)
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed in it") from error
    check_editable(file, force=args.force)
    line = f"{setting} = {json.dumps(wanted)}"
    if args.dry_run:
        return (f"{line} {'stands in' if new == old else 'would be written into'} {file}",)
    if new != old:
        write(file, old, new, now)
    source = config.load(env, file, left_out=[]).sources.get(setting, "")
    counts = (f"{source} in your environment counts more than the file",) if source != str(file) else ()
    return (f"{line} {'stands already' if new == old else 'written'} in {file}", *counts)


def is_wanted(env: Mapping[str, str]) -> bool:
    """What the settings say. A file with mistakes in it still says it."""
    return config.load(env, paths.config_file(env), left_out=[]).claude_code.mod


def without(named: bytes) -> bytes:
    """``hooks.json`` without the mod."""
    found = json.loads(named)
    del found["modules"]
    return json.dumps(found, indent=2, ensure_ascii=False).encode() + b"\n"
