"""Flags for settings, and the settings and paths of this process: shared by the verbs that need them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from daemon import config, paths
from daemon.core.settings import SETTINGS

if TYPE_CHECKING:
    import argparse

    from daemon.core.settings import Settings
    from daemon.paths import Paths

SHORT = {"daemon.socket": "--socket", "daemon.state_dir": "--state-dir"}


def add_flags(parser: argparse.ArgumentParser, *, all_settings: bool = False) -> None:
    """``--socket`` and ``--state-dir`` (where the daemon is); with ``all_settings`` a flag for each."""
    for key, setting in SETTINGS.items():
        if all_settings or key in SHORT:
            names = [SHORT[key]] if key in SHORT else []
            names.append(setting.flag)
            text = setting.doc.replace("%", "%%")
            parser.add_argument(*names, dest=f"set:{key}", metavar="VALUE", help=text)


def load(args: argparse.Namespace, *, from_shim: bool = False) -> tuple[Settings, Paths]:
    """Settings and paths from environment, file and flags. Raises ``UserError``."""
    flags = {key: getattr(args, f"set:{key}", None) for key in SETTINGS}
    defaults: dict[str, bool | int | str] = {"daemon.idle_exit_minutes": 30} if from_shim else {}
    settings = config.load(os.environ, paths.config_file(os.environ), flags, defaults)
    where = paths.resolve(os.environ, state_dir=settings.daemon.state_dir, socket=settings.daemon.socket)
    return settings, where
