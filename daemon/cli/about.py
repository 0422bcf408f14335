"""``reflectd help [VERB]`` and ``reflectd version``: the same as ``--help`` and ``--version``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register both verbs."""
    explains = verbs.add_parser("help", help="explain reflectd, or one verb")
    explains.add_argument("words", nargs="*", metavar="VERB", help="a verb, or `setup HOST` and the like")
    explains.set_defaults(run=_help)
    verbs.add_parser("version", help="print the version").set_defaults(run=_version)


def _help(args: argparse.Namespace) -> int:
    from .main import main

    return main([*args.words, "--help"])


def _version(_: argparse.Namespace) -> int:
    from .main import main

    return main(["--version"])
