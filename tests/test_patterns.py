"""No pattern of the package needs more than linear time: ``re`` can't be stopped, and stops the daemon.

``tests/data/patterns.json`` holds the digests of the patterns that were attacked, so that only new ones are
each time. ``python -m tests.test_patterns`` attacks those and writes the file anew.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import sys
from typing import TYPE_CHECKING, Final

import pytest

from harness.machine.sandbox import REPO
from harness.pattern_attack import Slow, attack
from harness.patterns import Place, patterns_of, written_in

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

RECORDED: Final = REPO / "tests" / "data" / "patterns.json"
RECORD: Final = ".venv/bin/python -m tests.test_patterns"
# Patterns that are made while the program runs, and why none of them is slow.
MADE = {
    "tables.py:pattern": "called while a module is imported: attacked with the others",
    "redact/tokens.py:_one_pattern": "called while the module is imported: attacked with the others",
    "redact/values.py:_until": "called while the module is imported: attacked with the others",
    "core/question.py:fill": "names of slots, escaped, no repeat",
    "evidence/shell.py:_heredoc_end": "a line end, spaces and an escaped word",
    "judge/decide.py:_names": "an escaped file name, no repeat",
    "evidence/rows.py:_names": "an escaped file name, no repeat",
    "files/toml_text.py:_edits": "reads one line of a person's own settings",
}


@functools.cache
def written() -> tuple[list[Place], list[str]]:
    """What the source of the package holds: patterns as text, and functions that make some."""
    return written_in(REPO / "daemon")


@functools.cache
def places() -> dict[str, Place]:
    """Every pattern of the package by its digest."""
    return {digest(place): place for place in [*patterns_of("daemon"), *written()[0]]}


def digest(place: Place) -> str:
    """Of all that decides on what a pattern is attacked with: its text, its flags, how it is used."""
    text = json.dumps([place.pattern, place.flags, place.anchored])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def told(slow: Iterable[Slow]) -> str:
    """One line a pattern."""
    return "".join(f"\n- {each}" for each in slow)


@pytest.mark.shows("I53")
def test_every_new_pattern_takes_linear_time_on_any_text() -> None:
    """A pattern that was not attacked as it is now is attacked, and has to be recorded."""
    recorded = json.loads(RECORDED.read_text("ascii"))
    new = [place for key, place in places().items() if key not in recorded]
    slow = attack(new)
    assert not slow, f"these patterns need more than linear time:{told(slow)}"
    names = "".join(f"\n- {place.name}: {place.pattern[:80]!r}" for place in new)
    assert not new, f"these new patterns take linear time; record them with `{RECORD}`:{names}"


@pytest.mark.shows("I53")
@pytest.mark.full("all patterns are attacked")
def test_every_pattern_takes_linear_time_on_any_text() -> None:
    """Each pattern of the package, wherever it stands, takes four times as long for a text of four times the
    length.
    """
    slow = attack(list(places().values()))
    assert not slow, f"these patterns need more than linear time:{told(slow)}"


def test_patterns_are_made_when_the_package_is_imported() -> None:
    """What is made later was looked at by hand, and the table says why it is linear."""
    assert set(written()[1]) == set(MADE)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(
            r"[\w@-]+(?:[./-][\w@-]+)+", marks=pytest.mark.full("takes five seconds of a processor")
        ),
        r"^(?:[^:]+:?)*!",
        r"<content>\n(.*?)\n</content>",
        r"fail\w* before",
    ],
)
@pytest.mark.full("the attack itself is tried")
def test_a_slow_pattern_is_found(pattern: str) -> None:
    """Exponential and quadratic patterns, some of which the package had, are told with a text."""
    (slow,) = attack([Place("sample", pattern, int(re.UNICODE | re.DOTALL))])
    assert repr(pattern) in told([slow])
    assert "pump=" in told([slow])


@pytest.mark.full("the attack itself is tried")
def test_a_fast_pattern_is_not_told() -> None:
    """Linear ones pass, bounded repeats too, and the attack goes on behind a slow one."""
    fast = [r"\b[a-z]{1,40}\b", r"\[\[[^\]\n]{0,200}\]\]", r"(?<![a-z])[a-z]{8,}+\.[a-z]{2,9}"]
    slow = attack([Place(p, p, int(re.UNICODE)) for p in (r"(x+x+)+y", *fast)])
    assert [s.place.name for s in slow] == [r"(x+x+)+y"]


def test_patterns_are_found_wherever_a_module_holds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In globals, containers, classes, instances, defaults, closures and partial calls."""
    (tmp_path / "holder").mkdir()
    (tmp_path / "holder" / "__init__.py").write_text("")
    (tmp_path / "holder" / "held.py").write_text(HOLDER)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {p.pattern for p in patterns_of("holder")}
    assert found == {
        "global",
        "list",
        "table",
        "class",
        "field",
        "slot",
        "default",
        "named",
        "closure",
        "part",
    }
    for name in [n for n in sys.modules if n.split(".")[0] == "holder"]:
        monkeypatch.delitem(sys.modules, name)


HOLDER = """
import functools, re
from dataclasses import dataclass

_A = re.compile("global")
LISTED = [(1, {re.compile("list")})]
TABLE = {"x": {"y": re.compile("table")}}

class Plain:
    pattern = re.compile("class")

@dataclass
class Held:
    pattern: object

@dataclass(frozen=True, slots=True)
class Slotted:
    pattern: object

HELD = (Held(re.compile("field")), Slotted(re.compile("slot")))

def default(text, pattern=re.compile("default"), *, other=re.compile("named")):
    return pattern.search(text)

def _maker():
    inside = re.compile("closure")
    return lambda text: inside.search(text)

CLOSURE = _maker()
PART = functools.partial(default, pattern=re.compile("part"))
"""


def test_a_pattern_that_is_only_matched_at_one_place_is_attacked_there(tmp_path: Path) -> None:
    """The source says how a pattern is used: one that nobody searches with is not searched with here."""
    source = (
        'import re\n\ndef go(t):\n    re.match(r"\\s*x", t)\n    re.search(r"y+", t, flags=re.IGNORECASE)\n'
    )
    (tmp_path / "m.py").write_text(source)
    found, made = written_in(tmp_path)
    assert [(p.pattern, p.anchored, bool(p.flags & re.IGNORECASE)) for p in found] == [
        (r"\s*x", True, False),
        ("y+", False, True),
    ]
    assert made == []


if __name__ == "__main__":
    known = json.loads(RECORDED.read_text("ascii")) if RECORDED.exists() else []
    found = attack([place for key, place in places().items() if key not in known])
    if found:
        sys.exit(f"these patterns need more than linear time; nothing was written:{told(found)}")
    RECORDED.write_text(json.dumps(sorted(places()), indent=0) + "\n", "ascii")
