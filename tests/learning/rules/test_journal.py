"""The journal's operations on a plain dict, by examples of the requirements and by properties."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import UserError
from daemon.learning.rules import journal as j
from daemon.learning.rules.journal import Adding, Journal, Reading, Sighting

SIGNAL = {"id": "sig-001", "type": "correction", "content": "c"}
RULE = {"id": "rule-001", "content": "c"}
CONTENTS = ["Use strict mode", "Run lint first", "Never push to main", "Use tabs", "Use spaces"]
Seen = tuple[Reading, Sighting]
SEEN = st.tuples(
    st.builds(
        Reading,
        type=st.sampled_from(["correction", "instruction"]),
        content=st.sampled_from(CONTENTS),
        severity=st.sampled_from(["high", "medium", "low"]),
    ),
    st.builds(
        Sighting,
        session=st.sampled_from("abcd"),
        message=st.integers(0, 40).map(str),
        day=st.sampled_from(["2026-01-01", "2026-01-02", "2026-03-05"]),
    ),
)


def new() -> Journal:
    return j.empty("my-project", "2025-11-27T19:30:00+00:00")


def seen(content: str = "Use strict mode", session: str = "a", message: str = "1", **more: Any) -> Seen:
    day, kind = more.pop("day", "2025-11-27"), more.pop("type", "correction")
    return Reading(kind, content, **more), Sighting(session, message, day)


def added(journal: Journal, *found: Seen) -> list[str]:
    before, adding = len(journal["signals"]), Adding(journal)
    for reading, sighting in found:
        adding.add(reading, sighting)
    return [signal["id"] for signal in journal["signals"][before:]]


def becomes(journal: Journal, status: Any, *names: str) -> None:
    j.put(journal, (), j.becoming(journal, names, status), "2026-01-03")


@pytest.mark.shows("FR1", "FR2", "TR4")
def test_a_journal_and_its_signals_have_the_agreed_form() -> None:
    """Numbered by day; feedback has a polarity."""
    journal = new()
    assert journal == {
        "version": "1.0",
        "project": "my-project",
        "created": "2025-11-27T19:30:00+00:00",
        "signals": [],
        "learned_rules": [],
        "tombstones": [],
    }
    names = added(
        journal,
        seen(),
        seen("Run lint first", message="2"),
        seen("Great", message="3", type="positive", day="2025-12-01"),
        seen("No day", message="4", day=""),
    )
    assert names == ["sig-20251127-001", "sig-20251127-002", "sig-20251201-001", "sig-00000000-001"]
    assert journal["signals"][0] == {
        "id": "sig-20251127-001",
        "type": "correction",
        "content": "Use strict mode",
        "occurrences": 1,
        "first_seen": "2025-11-27",
        "last_seen": "2025-11-27",
        "severity": "medium",
        "status": "pending",
        "sightings": {j.digest("a"): ["1"]},
    }
    praise = journal["signals"][2]
    assert (praise["type"], praise["polarity"]) == ("feedback", "positive")
    with pytest.raises(ValueError, match="no signal"):
        j.typed("none")


@pytest.mark.shows("FR2")
def test_a_journal_of_the_requirements_is_read() -> None:
    """The requirement's own example: ids without a day, no sightings; its count goes on from there."""
    signal = SIGNAL | {"occurrences": 3, "first_seen": "2025-11-20", "last_seen": "2025-11-27"}
    signal |= {"content": "Use strict TypeScript", "severity": "high", "status": "pending"}
    rule = RULE | {"source_signals": ["sig-001", "sig-002"], "promoted_at": "2025-11-27"}
    rule |= {"target": "claude_md", "active": True}
    given = {"version": "1.0", "project": "my-project", "signals": [signal], "learned_rules": [rule]}
    found = j.checked(given | {"mine": 1})
    added(found, seen("use strict TypeScript", "x", "9"))
    assert found["signals"][0]["occurrences"] == 4
    assert (found["mine"], found["learned_rules"]) == (1, [rule])
    assert j.checked({"signals": [SIGNAL], "learned_rules": [RULE]})["signals"][0]["status"] == "pending"


@given(found=st.lists(SEEN, max_size=30), again=st.integers(1, 3), parts=st.integers(1, 4))
def test_each_session_counts_once(found: list[Seen], again: int, parts: int) -> None:
    """In one go or in parts, once or several times: the journal is the same, and what is read back is what
    was written. Occurrences are distinct sessions.
    """
    journal, other = new(), new()
    added(journal, *found)
    once = json.dumps(journal)
    for _ in range(again):
        assert added(journal, *found) == []
    for n in range(parts):
        added(other, *found[len(found) * n // parts : len(found) * (n + 1) // parts])
    assert json.dumps(journal) == json.dumps(other) == once
    assert j.checked(json.loads(once)) == journal
    for signal in journal["signals"]:
        sessions = {at.session for reading, at in found if reading.content == signal["content"]}
        assert signal["occurrences"] == len(signal["sightings"]) == len(sessions)


@pytest.mark.shows("FR8")
def test_a_signal_grows_with_each_sighting() -> None:
    """First seen is the earliest day, last seen the latest, the severest wording counts, and the rules that
    it contradicts add up; whatever the file holds in that place.
    """
    journal, rule = new(), "rule-001"
    added(journal, seen(day="2025-11-20", against=(rule,)))
    added(journal, seen("b", "b", "2", day="2025-11-01"), seen(session="b", message="3", day="2025-11-01"))
    more = seen(session="c", message="4", day="2025-12-01", severity="high", against=(rule, "rule-002"))
    added(journal, more)
    signal = journal["signals"][0]
    days = (signal["first_seen"], signal["last_seen"])
    assert (days, signal["severity"]) == (("2025-11-01", "2025-12-01"), "high")
    assert j.against(signal) == ["rule-001", "rule-002"]
    assert (j.against({}), j.against({"against": "x"}), j.against({"against": [1]})) == ([], [], [])


@given(before=st.lists(SEEN, max_size=12), later=st.lists(SEEN, max_size=12), lost=st.booleans())
def test_what_is_dismissed_never_comes_back(before: list[Seen], later: list[Seen], lost: bool) -> None:
    """Not from other sessions, and not when only the tombstones are left."""
    journal = new()
    becomes(journal, "dismissed", *added(journal, *before))
    dismissed = {s["content"] for s in journal["signals"]}
    if lost:
        journal = {**new(), "tombstones": journal["tombstones"]}
    added(journal, *later, seen("use strict mode.", "z", "99"))
    for signal in journal["signals"]:
        if signal["content"] in dismissed:
            assert signal["status"] == "dismissed"


def test_a_dismissal_is_taken_back() -> None:
    """Status and tombstone are as before, and it is suggested again. One wrong id of several changes
    nothing.
    """
    journal, name = new(), "sig-20251127-001"
    added(journal, seen(), seen("Run lint first", message="2"))
    before = copy.deepcopy(journal)
    with pytest.raises(UserError, match="there is no signal"):
        becomes(journal, "dismissed", name, "sig-9")
    assert journal == before
    becomes(journal, "dismissed", name)
    assert [t["content"] for t in journal["tombstones"]] == ["Use strict mode"]
    becomes(journal, "pending", name)
    assert journal == before


@pytest.mark.shows("FR3")
def test_severity_and_sessions_decide_what_is_suggested() -> None:
    """High at once, medium from two sessions, low from three; praise never; decided ones no more."""
    journal = new()
    for severity, times in (("high", 1), ("medium", 2), ("low", 3)):
        for n in range(times):
            due = [s["content"] for s in journal["signals"] if j.is_due(s)]
            assert severity not in due
            added(journal, seen(severity, f"s{n}", f"{severity}{n}", severity=severity))
    added(journal, seen("Great", message="f", type="positive", severity="high"))
    due = [s for s in journal["signals"] if j.is_due(s)]
    assert [s["content"] for s in due] == ["high", "medium", "low"]
    assert [s["content"] for s in j.ranked(due[::-1])] == ["high", "medium", "low"]
    becomes(journal, "dismissed", due[0]["id"])
    assert not j.is_due(due[0])


@pytest.mark.shows("FR3")
def test_equal_texts_are_one_signal() -> None:
    """But for case, blanks and the marks around them; corrections and instructions are of one kind."""
    journal = new()
    added(journal, seen("Use  Bun."), seen("use bun", "b", "2", type="instruction"))
    added(journal, seen("use bun", "c", "3", type="positive"))
    assert [s["occurrences"] for s in journal["signals"]] == [2, 1]
    assert not j.same("Use bun", "Never use bun")


@pytest.mark.shows("I44")
def test_it_stays_bounded() -> None:
    """The least of too many signals that wait go first; decisions stay."""
    journal = new()
    found = [seen(f"rule number {n} of many", message=str(n), severity="low") for n in range(j.MAX_SIGNALS)]
    added(journal, seen("A severe one", message="x", severity="high"), *found)
    becomes(journal, "dismissed", "sig-20251127-003")
    assert (j.trim(journal), j.trim(journal)) == (1, 0)
    left = {s["id"] for s in journal["signals"]}
    assert len(left) == j.MAX_SIGNALS
    assert {"sig-20251127-001", "sig-20251127-003"} <= left
    many = new()
    added(many, *(seen(session=str(n), message=str(n)) for n in range(j.MAX_SESSIONS + 20)))
    (signal,) = many["signals"]
    assert (len(signal["sightings"]), signal["occurrences"]) == (j.MAX_SESSIONS, j.MAX_SESSIONS + 20)


@pytest.mark.parametrize(
    ("found", "where"),
    [
        ([], "Expected `object`"),
        ({"signals": ["x"]}, r"signals\[0\]"),
        ({"signals": [{"id": "sig-001", "type": "correction"}]}, "content"),
        ({"signals": [{**SIGNAL, "id": "one"}]}, r"signals\[0\].id"),
        ({"signals": [{**SIGNAL, "type": "idea"}]}, "type"),
        ({"signals": [{**SIGNAL, "occurrences": 0}]}, "occurrences"),
        ({"signals": [{**SIGNAL, "sightings": {"a": "b"}}]}, "sightings"),
        ({"signals": [SIGNAL, SIGNAL]}, "two entries of signals have the same id"),
        ({"learned_rules": [{**RULE, "target": "elsewhere"}]}, "target"),
        ({"learned_rules": [{**RULE, "source_signals": [1]}]}, "source_signals"),
    ],
)
def test_what_is_no_journal_is_named(found: object, where: str) -> None:
    """The message says which entry is wrong."""
    with pytest.raises(ValueError, match=where):
        j.checked(found)
