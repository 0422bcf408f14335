"""``reflectd reflect classify``: one JSON object a line in and out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox


@pytest.mark.shows("RULES-02")
def test_a_line_in_a_line_out(box: Sandbox) -> None:
    """In the agreed form and in order; a line that can't be read is answered too, with exit code 2."""
    given = [
        {"text": "No, use strict mode", "prior_assistant": "I set strict to false."},
        {"text": "continue", "prior_assistant": None},
        {"text": "Perfect, exactly what I wanted", "prior_assistant": "Done."},
    ]
    lines = "\n".join(json.dumps(line, ensure_ascii=False) for line in given).encode()
    done = reflectd(box, "reflect", "classify", "--json", stdin=lines)
    assert done.returncode == 0
    first, second, third = (json.loads(line) for line in done.stdout.splitlines())
    assert first == {
        "type": "correction",
        "content": "Use strict mode",
        "severity": "medium",
        "confidence": 0.85,
    }
    assert (second["type"], second["content"]) == ("none", "")
    assert third["type"] == "positive"
    broken = b'{"text": "x"}\n\n[]\n{"text": 3}\nno\n\xff\n'
    done = reflectd(box, "reflect", "classify", "--json", stdin=broken)
    assert done.returncode == 2
    assert ["error" in json.loads(line) for line in done.stdout.splitlines()] == [
        False,
        True,
        True,
        True,
        True,
    ]
    said(reflectd(box, "reflect", "classify", stdin=lines), 0, "correction   medium  0.85  Use strict mode")
