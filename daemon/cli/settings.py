"""The shared parts of the verbs: flags for settings, the settings and paths of this process, and the person's
project.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from .. import config, paths
from ..core.errors import BadReply, ReflectdError, UserError
from ..core.settings import SETTINGS
from ..files.project import find_project
from .terminal import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..core.settings import Settings
    from ..paths import Paths
    from ..store.readonly import ReadOnly

ASK_S = 2.0
NOTHING = "nothing was judged yet; `reflectd setup` connects your coding agent, or says that it is"
SHORT = {"daemon.socket": "--socket", "daemon.state_dir": "--state-dir"}


def add_flags(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], int] | None = None,
    *,
    json: str = "",
    all_settings: bool = False,
) -> None:
    """End a verb's parser: ``run`` does the verb; ``json``: the help of ``--json``. Add ``--socket`` and
    ``--state-dir``, which say where the daemon is; with ``all_settings`` every setting. The help lists only
    those two: ``reflectd config`` shows all.
    """
    import argparse

    if run is not None:
        parser.set_defaults(run=run)
    if json:
        parser.add_argument("--json", action="store_true", help=json)
    for key, setting in SETTINGS.items():
        if all_settings or key in SHORT:
            names = [SHORT[key]] if key in SHORT else []
            names.append(setting.flag)
            text = setting.doc.replace("%", "%%") if key in SHORT else argparse.SUPPRESS
            parser.add_argument(*names, dest=f"set:{key}", metavar="VALUE", help=text)


def add_action(
    what: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Register an action of a verb about one project, with the flags that all of them have."""
    parser = what.add_parser(name, help=text, description=text)
    parser.add_argument("--dir", metavar="DIR", help="the project of this folder (of the current one)")
    add_flags(parser, run, json="print the outcome as JSON")
    return parser


def later(package: str | None, module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """The function of another module of the package, which is imported when it is run."""

    def run(args: argparse.Namespace) -> int:
        from importlib import import_module

        code: int = getattr(import_module(f".{module}", package), function)(args)
        return code

    return run


def load(args: argparse.Namespace, *, left_out: list[str] | None = None) -> tuple[Settings, Paths]:
    """Settings and paths from environment, file and flags. ``left_out`` as in ``config.load``. Raises
    ``UserError``.
    """
    flags = {key: getattr(args, f"set:{key}", None) for key in SETTINGS}
    settings = config.load(os.environ, paths.config_file(os.environ), flags, left_out)
    where = paths.resolve(os.environ, state_dir=settings.daemon.state_dir, socket=settings.daemon.socket)
    return settings, where


def look(args: argparse.Namespace) -> tuple[Settings, Paths]:
    """As ``load``, for a verb that neither starts nor changes judging: mistakes in the settings are one line
    on stderr, and the verb goes on without those settings. Raises ``UserError`` for wrong flags.
    """
    left_out: list[str] = []
    found = load(args, left_out=left_out)
    if left_out:
        first = left_out[0].splitlines()[0]
        more = f" (and {len(left_out) - 1} more)" if len(left_out) > 1 else ""
        say(f"reflectd: ignored here: {first}{more} (see `reflectd config`)", sys.stderr)
    return found


@contextmanager
def database(where: Paths) -> Iterator[ReadOnly | None]:
    """The daemon's database, read-only, whether a daemon runs or not; None before the first start. Several
    sessions with one beginning are a ``UserError``.
    """
    from ..store.readonly import ReadOnly

    try:
        if where.database.exists():
            with ReadOnly(where.database) as db:
                yield db
        else:
            yield None
    except BadReply as e:
        raise UserError(str(e)) from e


def unknown(session: str) -> UserError:
    return UserError(f"no session begins with {session!r}; `reflectd history --all` lists all")


def running(where: Paths) -> dict[str, Any]:
    """The status of the daemon; empty when none answers."""
    from ..client import request

    with suppress(ReflectdError):
        return request(paths.find_socket(where), "GET", "/v1/status", timeout_s=ASK_S)
    return {}


def here(where: Paths, folder: str | None = None) -> Path:
    """The project of ``folder``, of the current one when None. A running daemon is asked in which folders
    hosts work and which are off. Raises ``UserError``.
    """
    status = running(where)
    known = {i["directory"] for i in status.get("instances", ())} | set(status.get("off", ()))
    return find_project(folder or ".", known)
