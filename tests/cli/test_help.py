"""``--help`` of every verb, as ``help`` lays it out."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

import pytest

from daemon.cli.main import Parser, build
from daemon.cli.verbs import VERBS, page


def parsers(parser: Parser) -> Iterator[Parser]:
    """The parser and all below it that are ours."""
    yield parser
    for action in parser._actions:
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                yield from parsers(below)


@pytest.mark.parametrize("verb", ["", *VERBS])
@pytest.mark.parametrize("width", [80, 200])
def test_help_fits_the_terminal(verb: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider, whatever its author typed, and nothing that the wide one says is missing."""
    monkeypatch.setenv("COLUMNS", str(width))
    if not verb:
        shown = page().splitlines()
        assert shown[0].startswith("usage: reflectd")
        assert [line for line in shown if len(line) > width] == []
        return
    for parser in parsers(build(verb)):
        lines = parser.format_help().splitlines()
        assert [line for line in lines if len(line) > width] == []
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        build(verb).parse_args([verb, "--help"])
    assert f"usage: reflectd {verb}" in out.getvalue()


def test_examples_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example explains goes on below itself."""
    monkeypatch.setenv("COLUMNS", "60")
    epilog = "examples:\n  run --a --b      what it does, and more than fits on a line"
    parser = Parser(prog="run", epilog=epilog)
    assert parser.format_help().endswith(
        "examples:\n  run --a --b      what it does, and more than fits on a\n                   line\n"
    )
