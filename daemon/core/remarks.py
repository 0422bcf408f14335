"""Whether an edit changed nothing but comments, so that an earlier check still speaks for the code.

Careful in one direction: directives in comments, unknown languages and whole-file writes count as code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.weakened import edits

if TYPE_CHECKING:
    from daemon.core.transcript import ToolCall

MAX_TEXT: Final = 20_000  # characters of one edit
_SLASHES: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "js jsx ts tsx mjs cjs mts cts java kt kts go rs c h cc cpp hpp cs swift scala dart php groovy proto"
    ).split()
)
_HASHES: Final = frozenset("py rb sh bash ex exs r jl pl".split())  # noqa: SIM905 -- a word list
_LINE: Final = {
    "/": re.compile(r"^[ \t]*//[^\n]*$", re.MULTILINE),
    "#": re.compile(r"^[ \t]*#(?!!)[^\n]*$", re.MULTILINE),
}
_BLOCK: Final = re.compile(r"^[ \t]*/\*(?:[^*]|\*(?!/)){0,4000}\*/[ \t]*$", re.MULTILINE)
_DIRECTIVE: Final = re.compile(
    r"(?:#|//|/\*|\*)\s{0,4}(?:@ts-|eslint|noqa|type:|pragma|pylint|pyright|mypy|ruff|go:|\+build|nolint"
    r"|prettier|biome"
    r"|jshint|istanbul|c8|v8|rubocop|frozen_string|encoding|-\*-|coding|region|NOSONAR|swiftlint|phpcs"
    r"|@phpstan|@jsx"
    r"|@vitest|@jest|!|>>>|doctest)|@(?:jest-environment|vitest-environment|jsx|param|type|example)\b|```"
    r"|>>>",
    re.IGNORECASE,
)


def only_remarks(call: ToolCall) -> bool:
    """Whether every edit of the call leaves the same code once the comments are gone."""
    found = list(edits(call))
    return bool(found) and all(_same(path, old, new) for path, old, new in found)


def _same(path: str, old: str, new: str) -> bool:
    if not old or old == new or len(old) > MAX_TEXT or len(new) > MAX_TEXT:
        return False
    ext = path.rsplit(".", 1)[-1].lower()
    mark = "/" if ext in _SLASHES else "#" if ext in _HASHES else ""
    if (
        not mark
        or _DIRECTIVE.search(old)
        or _DIRECTIVE.search(new)
        or '"""' in old + new
        or "'''" in old + new
    ):
        return False
    return _code(old, mark) == _code(new, mark)


def _code(text: str, mark: str) -> list[str]:
    """The lines that are no comments; the text may start within a line."""
    text = _LINE[mark].sub("", _BLOCK.sub("", text) if mark == "/" else text)
    return [line.rstrip() for line in text.split("\n") if line.strip()]
