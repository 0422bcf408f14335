"""No pattern of the package needs more than linear time: ``re`` can't be stopped, and stops the daemon."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from harness.machine.sandbox import REPO
from harness.pattern_attack import attack
from harness.patterns import Place, patterns_of, written_in

if TYPE_CHECKING:
    from pathlib import Path

BUDGET_S = 500.0  # it takes half a minute; the limit is for a machine that does other things
# Patterns that are made while the program runs, and why none of them is slow.
MADE = {
    "core/secret_tokens.py:_one_pattern": "called while the module is imported: attacked with the others",
    "core/secret_values.py:_until": "called while the module is imported: attacked with the others",
    "core/template.py:fill": "names of slots, escaped, no repeat",
    "evidence/calls/shell.py:_heredoc_end": "a line end, spaces and an escaped word",
    "evidence/calls/summaries.py:_line": "called for constants while the module is imported",
    "evidence/request/project_rules.py:_words": "called for constants while the module is imported",
    "evidence/request/topic_words.py:_any": "called for constants while the module is imported",
    "evidence/rules/leaks.py:_names": "an escaped file name, no repeat",
    "rules/grammar.py:any_of": "called for constants while the module is imported",
    "files/toml_text.py:_edits": "reads one line of a person's own settings",
}


@pytest.mark.shows("I53")
@pytest.mark.slow("attacks each of over 600 patterns with a hundred texts")
def test_every_pattern_takes_linear_time_on_any_text() -> None:
    """Each pattern of the package, wherever it stands, is done with 100,000 characters in a moment."""
    places = [*patterns_of("daemon"), *written_in(REPO / "daemon")[0]]
    slow, done = attack(places, BUDGET_S)
    assert [f"{s.place.name}: {s.text} in {s.length} characters" for s in slow] == []
    assert done == len(places), "the budget of time did not suffice"


def test_patterns_are_made_when_the_package_is_imported() -> None:
    """What is made later was looked at by hand, and the table says why it is linear."""
    assert set(written_in(REPO / "daemon")[1]) == set(MADE)


@pytest.mark.parametrize(
    "pattern",
    [
        r"[\w@-]+(?:[./-][\w@-]+)+",
        r"^(?:[^:]+:?)*!",
        r"<content>\n(.*?)\n</content>",
        r"fail\w* before",
    ],
)
def test_a_slow_pattern_is_found(pattern: str) -> None:
    """Exponential and quadratic patterns, some of which the package had, are told with a text."""
    slow, done = attack([Place("sample", pattern, int(re.UNICODE | re.DOTALL))], BUDGET_S)
    assert (len(slow), done) == (1, 1)


def test_a_fast_pattern_is_not_told() -> None:
    """Linear ones pass, bounded repeats too, and the attack goes on behind a slow one."""
    fast = [r"\b[a-z]{1,40}\b", r"\[\[[^\]\n]{0,200}\]\]", r"(?<![a-z])[a-z]{8,}+\.[a-z]{2,9}"]
    slow, done = attack([Place(p, p, int(re.UNICODE)) for p in (r"(x+x+)+y", *fast)], BUDGET_S)
    assert ([s.place.name for s in slow], done) == ([r"(x+x+)+y"], 4)


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
