"""``reflectd help [VERB]``, ``reflectd version`` and ``reflectd daemon VERB``: other spellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

EPILOG = "`reflectd help VERB` says more about each. `reflectd start` is the same as `reflectd daemon start`."


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verbs."""
    from .main import DAEMON

    text = "start, stop or restart it, serve, service, logs"
    below = verbs.add_parser("daemon", help=text, epilog=EPILOG)
    below.add_argument("action", choices=DAEMON, metavar="VERB", help=", ".join(DAEMON))
    below.set_defaults(run=lambda args: _main(args.action))
    explains = verbs.add_parser("help", help="explain reflectd, or one verb")
    explains.add_argument("words", nargs="*", metavar="VERB", help="a verb, or `setup HOST` and the like")
    explains.set_defaults(run=_help)
    verbs.add_parser("version", help="print the version").set_defaults(run=_version)


def _help(args: argparse.Namespace) -> int:
    return _main(*args.words, "--help")


def _version(_: argparse.Namespace) -> int:
    return _main("--version")


def _main(*argv: str) -> int:
    from .main import main

    return main([*argv])
