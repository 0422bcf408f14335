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
from daemon.learning.rules.journal import Adding, Journal, Seen
from tests.support.reflecting import archive, promote

SIGNAL = {"id": "sig-001", "type": "correction", "content": "c"}
RULE = {"id": "rule-001", "content": "c"}
CONTENTS = ["Use strict mode", "Run lint first", "Never push to main", "Use tabs", "Use spaces"]
SEEN = st.builds(
    Seen,
    type=st.sampled_from(["correction", "instruction"]),
    content=st.sampled_from(CONTENTS),
    severity=st.sampled_from(["high", "medium", "low"]),
    day=st.sampled_from(["2026-01-01", "2026-01-02", "2026-03-05"]),
    session=st.sampled_from(["a", "b", "c", "d"]),
    message=st.integers(0, 40).map(str),
)


def new() -> Journal:
    return j.empty("my-project", "2025-11-27T19:30:00+00:00")


def seen(content: str = "Use strict mode", session: str = "a", message: str = "1", **more: Any) -> Seen:
    given = {"type": "correction", "severity": "medium", "day": "2025-11-27", **more}
    return Seen(content=content, session=session, message=message, **given)


def promoted(journal: Journal, *names: str, **more: Any) -> dict[str, Any]:
    """A rule of these signals."""
    given = {"content": "c", "target": "claude_md", "file": "CLAUDE.md", "day": "d", **more}
    return promote(journal, list(names), **given)


def added(journal: Journal, *found: Seen) -> list[str]:
    adding = Adding(journal)
    for each in found:
        adding.add(each)
    return adding.new


@pytest.mark.shows("TR4")
def test_a_new_journal_has_the_agreed_form() -> None:
    """Version, project, created, signals, learned_rules."""
    assert new() == {
        "version": "1.0",
        "project": "my-project",
        "created": "2025-11-27T19:30:00+00:00",
        "signals": [],
        "learned_rules": [],
        "tombstones": [],
    }


@pytest.mark.shows("FR1", "FR2")
def test_a_signal_has_the_agreed_form_and_id() -> None:
    """Numbered by day; feedback has a polarity."""
    journal = new()
    names = added(
        journal,
        seen(),
        seen("Run lint first", message="2"),
        seen("Great", message="3", type="feedback", polarity="positive", day="2025-12-01"),
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
        "sightings": {"a": ["1"]},
    }
    assert journal["signals"][2]["polarity"] == "positive"


def test_days_and_severity_grow_with_each_sighting() -> None:
    """First seen is the earliest day, last seen the latest, and the severest wording counts."""
    journal = new()
    added(journal, seen(day="2025-11-20"))
    added(journal, seen(session="b", message="2", day="2025-11-01", severity="high"))
    added(journal, seen(session="c", message="3", day="2025-12-01", severity="low"))
    (signal,) = journal["signals"]
    days = (signal["first_seen"], signal["last_seen"])
    assert (days, signal["severity"]) == (("2025-11-01", "2025-12-01"), "high")


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
    assert found["mine"] == 1
    assert promoted(found, "sig-001")["id"] == "rule-002"


@given(found=st.lists(SEEN, max_size=30), again=st.integers(1, 3), parts=st.integers(1, 4))
def test_the_same_messages_again_change_nothing(found: list[Seen], again: int, parts: int) -> None:
    """In one go or in parts, once or several times: the journal is the same."""
    journal = new()
    added(journal, *found)
    once = json.dumps(journal)
    for _ in range(again):
        assert added(journal, *found) == []
    assert json.dumps(journal) == once
    other = new()
    for n in range(parts):
        added(other, *found[len(found) * n // parts : len(found) * (n + 1) // parts])
    assert json.dumps(other) == once


@given(found=st.lists(SEEN, max_size=30))
def test_counts_are_those_of_sessions(found: list[Seen]) -> None:
    """Each message counts once, in the session where it was seen first; occurrences are distinct sessions."""
    journal = new()
    added(journal, *found)
    first: dict[str, Seen] = {}
    for each in found:
        first.setdefault(each.message, each)
    for signal in journal["signals"]:
        sessions = {s.session for s in first.values() if s.content == signal["content"]}
        assert signal["occurrences"] == len(signal["sightings"]) == len(sessions)
    assert sum(len(m) for s in journal["signals"] for m in s["sightings"].values()) == len(first)
    assert {m for s in journal["signals"] for of in s["sightings"].values() for m in of} == set(first)


@given(found=st.lists(SEEN, max_size=30))
def test_a_journal_survives_being_written(found: list[Seen]) -> None:
    """Ids are unique and of the agreed form, and what is read back is what was written."""
    journal = new()
    added(journal, *found)
    names = [s["id"] for s in journal["signals"]]
    assert len(set(names)) == len(names)
    assert all(j.SIGNAL_ID.fullmatch(name) for name in names)
    assert j.checked(json.loads(json.dumps(journal))) == journal


@given(before=st.lists(SEEN, max_size=12), later=st.lists(SEEN, max_size=12), lost=st.booleans())
def test_what_is_dismissed_never_comes_back(before: list[Seen], later: list[Seen], lost: bool) -> None:
    """Not from other sessions, and not when only the tombstones are left."""
    journal = new()
    names = added(journal, *before)
    dismissed = {s["content"] for s in j.dismiss(journal, names, "2026-01-03")}
    if lost:
        journal = {**new(), "tombstones": journal["tombstones"]}
    added(journal, *later, seen("use strict mode.", "z", "99"))
    for signal in journal["signals"]:
        if signal["content"] in dismissed:
            assert signal["status"] == "dismissed"


def test_a_dismissal_is_taken_back() -> None:
    """Status and tombstone are as before, and it is suggested again."""
    journal = new()
    added(journal, seen(), seen("Run lint first", message="2"))
    before = copy.deepcopy(journal)
    j.dismiss(journal, ["sig-20251127-001"], "2026-01-03")
    assert [t["content"] for t in journal["tombstones"]] == ["Use strict mode"]
    j.restore(journal, ["sig-20251127-001"])
    assert journal == before
    assert added({**new(), "tombstones": journal["tombstones"]}, seen()) == ["sig-20251127-001"]


def test_what_can_not_be_decided_changes_nothing() -> None:
    """One wrong id of several; a rule's signal can't be dismissed, and what waits can't be restored."""
    journal = new()
    added(journal, seen())
    before = copy.deepcopy(journal)
    with pytest.raises(UserError, match="there is no signal"):
        j.dismiss(journal, ["sig-20251127-001", "sig-20251127-009"], "d")
    with pytest.raises(UserError, match="there is no signal"):
        j.restore(journal, ["rule-001"])
    assert journal == before
    with pytest.raises(UserError, match="was not dismissed; it is pending"):
        j.restore(journal, ["sig-20251127-001"])
    promoted(journal, "sig-20251127-001")
    with pytest.raises(UserError, match="is a rule by now"):
        j.dismiss(journal, ["sig-20251127-001"], "d")


@pytest.mark.shows("FR2", "PATH_DECISION-5")
def test_a_rule_from_its_first_to_its_last_day() -> None:
    """Promoted, archived, removed; no number is given again."""
    journal = new()
    names = added(journal, seen(), seen("Run lint first", message="2"))
    assert promoted(journal, *names, taken=["rule-004", "not an id"]) == {
        "id": "rule-005",
        "content": "c",
        "source_signals": names,
        "promoted_at": "d",
        "target": "claude_md",
        "file": "CLAUDE.md",
        "active": True,
    }
    assert {s["status"] for s in journal["signals"]} == {"promoted"}
    archived = archive(journal, "rule-005", reason="switched", day="e")
    assert [archived[key] for key in ("active", "archived_at", "reason")] == [False, "e", "switched"]
    j.put(journal, [(archived, None)], ())
    assert journal["learned_rules"] == []
    learned = promoted(journal, taken=["rule-005"])
    assert (learned["id"], learned["source_signals"]) == ("rule-006", [])
    with pytest.raises(UserError, match="there is no rule 'rule-099'"):
        archive(journal, "rule-099", reason="", day="d")


@pytest.mark.shows("FR3")
def test_severity_and_sessions_decide_what_is_suggested() -> None:
    """High at once, medium from two sessions, low from three; praise never; what is decided no more."""
    journal = new()
    for severity, times in (("high", 1), ("medium", 2), ("low", 3)):
        for n in range(times):
            due = [s["content"] for s in journal["signals"] if j.is_due(s)]
            assert severity not in due
            added(journal, seen(severity, f"s{n}", f"{severity}{n}", severity=severity))
    added(journal, seen("Great", message="f", type="feedback", polarity="positive", severity="high"))
    due = [s for s in journal["signals"] if j.is_due(s)]
    assert [s["content"] for s in due] == ["high", "medium", "low"]
    assert [s["content"] for s in j.ranked(due[::-1])] == ["high", "medium", "low"]
    j.dismiss(journal, [due[0]["id"]], "d")
    assert not j.is_due(due[0])


@pytest.mark.shows("FR3")
def test_equal_texts_are_one_signal() -> None:
    """But for case, blanks and the marks around them; corrections and instructions are of one kind."""
    journal = new()
    added(journal, seen("Use  Bun."), seen("use bun", "b", "2", type="instruction"))
    added(journal, seen("use bun", "c", "3", type="feedback", polarity="positive"))
    assert [s["occurrences"] for s in journal["signals"]] == [2, 1]
    assert not j.same("Use bun", "Never use bun")


@pytest.mark.shows("FR8")
def test_a_signal_remembers_which_rules_it_contradicts() -> None:
    """Each once, from all its sightings; whatever the file holds in that place."""
    journal = new()
    added(
        journal, seen(against=("rule-001",)), seen(session="b", message="2", against=("rule-001", "rule-002"))
    )
    (signal,) = journal["signals"]
    assert j.against(signal) == ["rule-001", "rule-002"]
    assert (j.against({}), j.against({"against": "x"}), j.against({"against": [1]})) == ([], [], [])


@pytest.mark.shows("I44")
def test_it_stays_bounded() -> None:
    """The least of too many signals that wait go first; decisions stay."""
    journal = new()
    found = [seen(f"rule number {n} of many", message=str(n), severity="low") for n in range(j.MAX_SIGNALS)]
    added(journal, seen("A severe one", message="x", severity="high"), *found)
    j.dismiss(journal, ["sig-20251127-003"], "d")
    assert len(j.trim(journal)) == 1
    assert j.trim(journal) == []
    left = {s["id"] for s in journal["signals"]}
    assert len(left) == j.MAX_SIGNALS
    assert {"sig-20251127-001", "sig-20251127-003"} <= left
    many = new()
    added(many, *(seen(session=str(n), message=str(n)) for n in range(j.MAX_SESSIONS + 20)))
    (signal,) = many["signals"]
    assert len(signal["sightings"]) == j.MAX_SESSIONS
    assert signal["occurrences"] == j.MAX_SESSIONS + 20
    talk = new()
    added(talk, *(seen(message=str(n)) for n in range(j.MAX_MESSAGES + 20)))
    assert [len(of) for of in talk["signals"][0]["sightings"].values()] == [j.MAX_MESSAGES]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "it is no object"),
        ({"signals": ["x"]}, "signals is no list of objects"),
        ({"signals": [{"id": "sig-001"}]}, "an entry of signals has no content"),
        ({"signals": [{**SIGNAL, "id": "one"}]}, "'one' is no id of a signal"),
        ({"signals": [{**SIGNAL, "type": "idea"}]}, "the type of sig-001 is none of correction"),
        ({"signals": [{**SIGNAL, "occurrences": 0}]}, "are no number above 0"),
        ({"signals": [{**SIGNAL, "first_seen": 3}]}, "first_seen of sig-001 is no day"),
        ({"signals": [{**SIGNAL, "sightings": {"a": "b"}}]}, "are no lists by session"),
        ({"signals": [SIGNAL, SIGNAL]}, "two entries of signals have the same id"),
        ({"learned_rules": [{**RULE, "id": "1"}]}, "'1' is no id of a rule"),
        ({"learned_rules": [{**RULE, "target": "elsewhere"}]}, "the target of rule-001"),
        ({"learned_rules": [{**RULE, "active": 1}]}, "neither true nor false"),
        ({"learned_rules": [{**RULE, "source_signals": [1]}]}, "no list of ids"),
    ],
)
def test_what_is_no_journal_is_named(found: object, why: str) -> None:
    """The message says which entry is wrong, and how."""
    with pytest.raises(ValueError, match=why):
        j.checked(found)
